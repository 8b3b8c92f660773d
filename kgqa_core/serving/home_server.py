"""The file in which the server of a home says where it listens, and how a client knows that it speaks to that server.

The file is its owner's alone.  Its key lets the server prove, before a client sends a question or a token, that it is
the server of this very home: after a crash anybody may listen at the address, and a copied home has a copied file.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from kgqa_core.serving.limits import ADDRESS, SERVE_FOLDER
from kgqa_core.store.artifacts import Home, write_json
from kgqa_core.store.locks import free

LOCK = "server.lock"


@contextlib.contextmanager
def announced(home: Home, address: Mapping[str, Any]) -> Iterator[bool]:
    """Keep a server's address in the home while the block runs; says whether it is there.

    address: `url`, `key` and `process`, and what the server was started with.  The first server of a home has the file
    until it ends; a home that cannot be written has none.
    """
    with contextlib.ExitStack() as stack:
        alone = False
        if home.writable:
            with contextlib.suppress(OSError):  # a file system without locks
                (home.root / SERVE_FOLDER).mkdir(exist_ok=True)
                alone = stack.enter_context(free(home.root / SERVE_FOLDER / LOCK, remove=True))
        if alone:
            file = home.root / SERVE_FOLDER / ADDRESS
            stack.callback(file.unlink, missing_ok=True)
            write_json(file, address, mode=0o600)
        yield alone


def read_address(home: Path) -> dict[str, Any] | None:
    """What the server of a home wrote down; None where no process of this user on this machine has done so."""
    file = home / SERVE_FOLDER / ADDRESS
    try:
        with file.open("rb") as stream:
            state = os.fstat(stream.fileno())
            if state.st_uid != os.geteuid() or state.st_mode & 0o077:
                return None
            address = json.loads(stream.read())
        os.kill(int(address["process"]), 0)
        return dict(address) if isinstance(address["key"], str) and isinstance(address["url"], str) else None
    except (OSError, ValueError, KeyError, TypeError, OverflowError):
        return None


def prove(key: str, home: Path, nonce: str) -> str:
    """What the server of a home answers to a nonce, which only who knows its key can."""
    return hmac.new(key.encode(), f"kgqa serve\n{home}\n{nonce}".encode(), hashlib.sha256).hexdigest()
