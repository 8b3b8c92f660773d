"""Names that a home gives to what its graphs have, beside those of `--names`: one names file for each graph.

The page of `kgqa serve` writes them.  Every system of the home reads them, from a copy of the graph that has them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from kgqa_core.config import KgOptions, OwnNames, make_profile, parse_profile, read_profile
from kgqa_core.errors import InputError
from kgqa_core.monitor import QUIET, Monitor
from kgqa_core.runs.builds import build_code, filled
from kgqa_core.runs.records import stage_artifact
from kgqa_core.store.artifacts import ArtifactRef, Home, storage_faults, write_text

FOLDER = "names"
"""Folder of a home with its names files."""
LONGEST, LONGEST_TEXT, MOST = 200, 4000, 10_000
"""Characters of a name and of a change; names of a graph."""
HEAD = "# Names that people gave on the page of `kgqa serve`; a name that is taken out is undone.\n"
SECTIONS = tuple(section for section in OwnNames.model_fields if section != "hide")


def names_file(home: Home, record: Mapping[str, Any]) -> Path:
    """The names file of a record's graph, by the name of the graph; it need not be there."""
    name = str(((record.get("profile") or {}).get("kg") or {}).get("name") or "graph")
    return home.root / FOLDER / (re.sub(r"[^\w.-]", "_", name)[:100].strip(".") + ".yaml")


def home_names(home: Home, record: Mapping[str, Any]) -> OwnNames:
    """The names that a home gives to a record's graph.  Raises ConfigError for a file that is none of names."""
    path = names_file(home, record)
    return _names(read_profile(path), str(path)) if path.is_file() else OwnNames()


def named_graph(home: Home, record: Mapping[str, Any], monitor: Monitor = QUIET) -> ArtifactRef:
    """The graph of a record with the home's names; names of what it does not have any more are noted."""
    ref, names = stage_artifact(record, "kg"), home_names(home, record)
    return ref if names == OwnNames() else with_names(home, ref, names, monitor, noted=True)


def with_names(
    home: Home, ref: ArtifactRef, names: OwnNames, monitor: Monitor = QUIET, *, noted: bool = False
) -> ArtifactRef:
    """A copy of a built graph with further names, found in the home or made there.

    noted: names of what the graph does not have go to the monitor; else, raises KgInputError, as `add_names`.
    """
    from kgqa_core.kg.build import resource_faults  # with DuckDB
    from kgqa_core.kg.ingest.own_names import add_names

    parts = {"inputs": {"kg": ref.digest}, "options": names.decisive(), "code": build_code()}
    told = monitor if noted else None
    with resource_faults(home.root, KgOptions(names=names)):
        return filled(home, "kg", parts, lambda space: add_names(space.out, ref.folder, names, told), monitor)


def change_names(home: Home, record: Mapping[str, Any], text: str, *, remove: bool = False) -> OwnNames:
    """Adds the lines of a names file to the home's, or takes them out; all that it has then.

    The graph with them is built first, so that the file holds nothing that cannot be used.  Raises InputError for text
    that is no names file, KgInputError for names of what the graph does not have, StorageError.
    """
    given, path = _change(text), names_file(home, record)
    with storage_faults(home.root), home.locked(f"names-{path.stem}", "changing the names of a graph"):
        known = home_names(home, record).model_dump(mode="json")
        for section in SECTIONS:
            for key, words in getattr(given, section).items():
                left = [word for word in known[section].pop(key, ()) if word not in words]
                known[section] |= {key: words} if (words := left if remove else [*left, *words]) else {}
        names = OwnNames.model_validate(known)
        if sum(len(words) for section in SECTIONS for words in known[section].values()) > MOST:
            raise InputError(f"a graph may have {MOST:,} names; take some out of {FOLDER}/{path.name} of the home")
        if not remove:
            with_names(home, stage_artifact(record, "kg"), names)
        path.parent.mkdir(exist_ok=True)
        if body := {section: known[section] for section in SECTIONS if known[section]}:
            write_text(path, HEAD + yaml.safe_dump(body, allow_unicode=True, width=1 << 20, sort_keys=False))
        else:
            path.unlink(missing_ok=True)
    return names


def _change(text: str) -> OwnNames:
    """The names of a change.  Raises InputError."""
    if len(text) > LONGEST_TEXT:
        raise InputError(f"a change of names has {len(text):,} characters; give at most {LONGEST_TEXT:,} at a time")
    names = _names(parse_profile(text, "of names"), "the change of names")
    words = [(key, word) for section in SECTIONS for key, own in getattr(names, section).items() for word in own]
    if names.hide or not words:
        raise InputError(
            "give a name, as in `relations: {boss: [head]}`; to hide a relation, use --names with the files"
        )
    for key, word in words:
        if not word.strip() or len(word) > LONGEST or not word.isprintable():
            raise InputError(
                f"{word[:LONGEST]!r} is no name for {key!r}; a name has 1 to {LONGEST} letters in one line"
            )
    return names


def _names(tree: Any, origin: str) -> OwnNames:
    return make_profile({"kg": {"names": tree}}, origin=origin).kg.names
