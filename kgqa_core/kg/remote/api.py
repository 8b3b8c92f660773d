"""What a kind of server is: how its addresses begin, and how its graph is fetched into a file."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from kgqa_core.config import KgOptions
from kgqa_core.errors import KgInputError, without_passwords
from kgqa_core.kg.client.pass_folder import PassFolder
from kgqa_core.monitor import Monitor

Fetch = Callable[[str, KgOptions, PassFolder, Path, Monitor], Mapping[str, Any]]
"""Writes the graph behind an address to a file and returns counts; pages that are finished lie in the folder.

Raises KgInputError for what cannot be fetched as it is named, EndpointError for a server that does not answer.
"""


@dataclass(frozen=True, slots=True)
class RemoteSpec:
    """A kind of server of the registry.

    schemes: what addresses begin with.  file: name of the file that is written, whose ending says its format.
    check: raises ConfigError or KgInputError for what is known to be wrong before a server is contacted.
    settings: what decides which statements are fetched, as plain values.
    """

    name: str
    label: str
    schemes: tuple[str, ...]
    file: str
    check: Callable[[str, KgOptions], None]
    fetch: Fetch
    settings: Callable[[KgOptions], Mapping[str, Any]]


def host_of(address: str) -> str:
    """The host of an address, in letters that a file's name may have.  Raises KgInputError for none."""
    try:
        host = urlsplit(address).hostname
    except ValueError:
        host = None
    if not host:
        raise KgInputError(f"{without_passwords(address)} is no address of a server; write it as scheme://host:port")
    return re.sub(r"[^0-9A-Za-z.-]", "-", host)
