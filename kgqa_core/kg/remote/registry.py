"""The kinds of servers whose graphs are read.  A new one is a module with its `RemoteSpec`, and a line here."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from kgqa_core.kg.remote import bolt, sparql
from kgqa_core.kg.remote.api import RemoteSpec, host_of

REMOTES: Mapping[str, RemoteSpec] = {spec.name: spec for spec in (sparql.REMOTE, bolt.REMOTE)}
"""Every kind of server by name."""


def remote_of(name: str) -> RemoteSpec | None:
    """The kind of server that an entry of `kg.files` is on; None for a file."""
    return next((spec for spec in REMOTES.values() if name.startswith(spec.schemes)), None)


def graph_name(file: str | Path) -> str:
    """A name for the graph in a file, or on a server.

    >>> graph_name("data/people.nt.gz"), graph_name("sparql+https://query.example.org/sparql")
    ('people', 'query-example-org')
    """
    text = str(file)
    if remote_of(text) is not None:
        return host_of(text).replace(".", "-")
    return Path(text).name.removeprefix("bundled:").split(".")[0]
