"""The auth string of a home's servers: a user and a generated password in a file that only its owner can read.

It is handed to the clients of this process, and only for a server that proves that it knows the string itself: after a
crash of `kgqa ui` anybody could listen at the address that it wrote down.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import os
import secrets
import urllib.request
from collections.abc import MutableMapping
from pathlib import Path
from urllib.parse import urlsplit

VARIABLE = "PREFECT_SERVER_API_AUTH_STRING"
"""Where the user may set an auth string of his own, and where a server reads it."""
USER = "kgqa"
PROOF = "/kgqa-proof"
LOGIN = "/kgqa-login"
PROBE_TIMEOUT = 2.0


def make_auth_string() -> str:
    """A new auth string, `user:password`."""
    return f"{USER}:{secrets.token_urlsafe(32)}"


def auth_file(home: Path) -> Path:
    """Where the auth string of a home lies."""
    return home / "prefect" / "auth_string"


def record_file(home: Path) -> Path:
    """Where `kgqa ui` writes down the addresses of its servers while they run."""
    return home / "prefect" / "server.json"


def read_auth_string(home: Path) -> str | None:
    """The auth string of a home's servers: the user's own, else that of its file, else None."""
    given = os.environ.get(VARIABLE)
    if given:
        return given
    with contextlib.suppress(OSError, UnicodeDecodeError):
        text = auth_file(home).read_text(encoding="utf-8").strip()
        return text if ":" in text else None
    return None


def ensure_auth_string(home: Path) -> str:
    """The auth string of a home's servers; it is made when there is none.

    The file appears whole, readable by its owner only, and two processes that make it at once get the same.
    Raises ValueError for one of the user's own that is not `user:password`, OSError when none can be written.
    """
    known = read_auth_string(home)
    if known is not None and ":" not in known:
        raise ValueError(f"{VARIABLE} must have the form user:password")
    file = auth_file(home)
    if known is None:
        draft = file.with_name(f".{file.name}.{os.getpid()}.{secrets.token_hex(4)}")
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with open(descriptor, "w", encoding="utf-8") as out:
                out.write(make_auth_string() + "\n")
                out.flush()
                os.fsync(out.fileno())
            try:
                os.link(draft, file)
            except FileExistsError:
                if read_auth_string(home) is None:  # what is there is no auth string
                    os.replace(draft, file)
        finally:
            draft.unlink(missing_ok=True)
        known = read_auth_string(home)
        if known is None:
            raise OSError(f"{file} does not keep what is written into it")
    if not os.environ.get(VARIABLE) and file.stat().st_mode & 0o077:
        file.chmod(0o600)
    return known


def prove(auth_string: str, host: str, nonce: str) -> str:
    """What a server that knows the auth string answers to a nonce; the `Host` ties the answer to one address."""
    words = f"kgqa server\n{host.lower()}\n{nonce}".encode()
    return hmac.new(auth_string.encode(), words, hashlib.sha256).hexdigest()


def is_own(address: str, auth_string: str) -> bool:
    """Whether the server at an address answers, and knows the auth string."""
    parts = urlsplit(address)
    nonce = secrets.token_hex(16)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"{parts.scheme}://{parts.netloc}{PROOF}?nonce={nonce}", timeout=PROBE_TIMEOUT) as reply:
            return hmac.compare_digest(reply.read(100), prove(auth_string, parts.netloc, nonce).encode())
    except (OSError, ValueError):
        return False


def running_server(home: Path) -> str | None:
    """Address of the Prefect API that `kgqa ui` of this home runs, when it answers and is the home's own."""
    record, auth_string = _record(home), read_auth_string(home)
    api = record.get("api")
    return api if api and auth_string and is_own(api, auth_string) else None


def hand_to_clients(home: Path, environment: MutableMapping[str, str]) -> None:
    """Set the login of Prefect's and MLflow's clients where their servers are those of this home's `kgqa ui`.

    What the user has set stays.
    """
    record, auth_string = _record(home), read_auth_string(home)
    if not record or not auth_string:
        return
    user, _, password = auth_string.partition(":")
    api, tracking = environment.get("PREFECT_API_URL", ""), environment.get("MLFLOW_TRACKING_URI", "")
    given = {"PREFECT_API_AUTH_STRING", "PREFECT_API_KEY"} & environment.keys()
    if not given and _same_port(api, record.get("api", "")) and is_own(api, auth_string):
        environment["PREFECT_API_AUTH_STRING"] = auth_string
    given = {"MLFLOW_TRACKING_USERNAME", "MLFLOW_TRACKING_PASSWORD", "MLFLOW_TRACKING_TOKEN"} & environment.keys()
    if not given and _same_port(tracking, record.get("mlflow", "")) and is_own(tracking, auth_string):
        environment.update(MLFLOW_TRACKING_USERNAME=user, MLFLOW_TRACKING_PASSWORD=password)


def _record(home: Path) -> dict[str, str]:
    with contextlib.suppress(OSError, ValueError):
        record = json.loads(record_file(home).read_text(encoding="utf-8"))
        if isinstance(record, dict):
            return {str(key): str(value) for key, value in record.items()}
    return {}


def _same_port(address: str, known: str) -> bool:
    with contextlib.suppress(ValueError):
        first, second = urlsplit(address), urlsplit(known)
        return first.scheme == "http" and first.port is not None and first.port == second.port
    return False
