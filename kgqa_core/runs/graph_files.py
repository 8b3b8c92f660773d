"""A system of graph files alone: graph, arrays and names, built once into a home, and the packaged head start.

Nothing is trained and no question is made.  Everything lies under digests of the files, of the options that decide the
outcome and of the code that reads them: a file that has changed gives a new build, and an unchanged one is found.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from kgqa_core.config import AUTO, TOPICS, KgOptions, Profile, make_profile
from kgqa_core.errors import InputError, KgInputError
from kgqa_core.input_files import unchanged
from kgqa_core.kg.ingest.popularity import views_source
from kgqa_core.kg.ingest.sources import named_files
from kgqa_core.kg.remote.registry import graph_name
from kgqa_core.monitor import QUIET, Monitor
from kgqa_core.runs.finished import UNTRAINED
from kgqa_core.spool import regular_file
from kgqa_core.store.artifacts import ArtifactRef, Home, canonical_json, hash_path, verify
from kgqa_core.workspace import Workspace

CODE = ("dkg", "kg", "linking")
"""Rooms of the library whose code decides what is built."""


def graph_record(
    home: Home, files: Sequence[Path | str], settings: Mapping[str, Any] | None = None, monitor: Monitor = QUIET
) -> dict[str, Any]:
    """What stands for a run's record where graph files answer: `run_id`, `status`, `profile`, artifacts as `stages`.

    files: of one graph, in any format, or the one folder that `kgqa kg build` wrote.  settings: sections of a profile,
    such as {"kg": {"map": …}}.  Built where the home has nothing of these files; two processes build once.
    Raises KgInputError, also for a graph without statements, ConfigError, StorageError.
    """
    profile = _profile(files, settings or {})
    home.prepare()
    kg = _graph(home, profile.kg, monitor)

    def dkg(workspace: Workspace) -> dict[str, Any]:
        from kgqa_core.dkg.export import export

        return export(workspace, kg=kg.folder, options=profile.dkg)

    def mentions(workspace: Workspace) -> dict[str, Any]:
        from kgqa_core.linking.dictionary import build

        return build(workspace, kg=kg.folder)

    inputs = {"inputs": {"kg": kg.digest}}
    made = {
        "kg": kg,
        "dkg": _made(home, "dkg", {**inputs, "options": profile.dkg.decisive()}, dkg, monitor),
        "mentions": _made(home, "mentions", inputs, mentions, monitor),
    }
    stages = [{"name": name, "artifact": ref.model_dump(mode="json")} for name, ref in made.items()]
    return {
        "run_id": f"graph-{kg.digest[:12]}",
        "status": UNTRAINED,
        "profile": profile.model_dump(mode="json"),
        "stages": stages,
    }


def _profile(files: Sequence[Path | str], settings: Mapping[str, Any]) -> Profile:
    if not files:
        raise InputError("no graph file is named; give at least one")
    name = graph_name(str(files[0])) or "graph"
    layer = {
        "name": name,
        "kg": {"name": name, "files": [str(file) for file in files]},
        "retrieval": {"retrievers": [TOPICS]},
        "answering": {"answerer": AUTO, "knowledge": [TOPICS], "more": []},
    }
    return make_profile(layer, settings, origin="the options")


def _graph(home: Home, options: KgOptions, monitor: Monitor) -> ArtifactRef:
    """The graph of files, or in a folder that `kgqa kg build` wrote."""
    if len(options.files) == 1 and (folder := Path(options.files[0]).expanduser()).is_dir() and options.map is None:
        ref = verify(folder.resolve())
        if ref.kind != "kg":
            raise KgInputError(f"{folder} holds an artifact of kind {ref.kind}, not a graph")
        return ref
    views = views_source(options)
    read = {f"file {number}": source.path for number, source in enumerate(named_files(options.files, options))}
    read |= {f"context {name}": Path(file).expanduser() for name, file in options.context.items()}
    read |= {name: Path(file).expanduser() for name in ("map", "names") if (file := getattr(options, name)) is not None}
    read |= {"page views": views.path} if views is not None else {}

    def graph(workspace: Workspace) -> dict[str, Any]:
        from kgqa_core.kg.build import build

        counts = build(workspace, options=options)
        stack.close()
        return counts

    with contextlib.ExitStack() as stack:  # closed before what was built is published under the digests
        stack.enter_context(unchanged(read.values(), KgInputError))
        outside = {name: hash_path(regular_file(path, KgInputError)) for name, path in read.items()}
        return _made(home, "kg", {"outside": outside, "options": options.decisive()}, graph, monitor)


def _made(
    home: Home, kind: str, parts: Mapping[str, Any], fill: Callable[[Workspace], Mapping[str, Any]], monitor: Monitor
) -> ArtifactRef:
    """The artifact of these parts and this code, found or filled."""
    made_of = {"stage": kind, "code": _code(), **parts}
    key = hashlib.sha256(canonical_json(made_of).encode()).hexdigest()
    record = {"stage": kind, "made_of": made_of}

    def compute(out: Path, work: Path) -> Mapping[str, Any]:
        return fill(Workspace(out, work, home.cache, monitor))

    return home.compute(kind, key, compute, record, monitor)[0]


@cache
def _code() -> str:
    """Digest of the source files that a build runs."""
    root = Path(__file__).parents[1]
    files = sorted(file for room in CODE for file in (root / room).rglob("*.py"))
    return hashlib.sha256(b"".join(hashlib.sha256(file.read_bytes()).digest() for file in files)).hexdigest()
