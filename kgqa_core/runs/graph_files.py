"""A system of graph files alone: graph, arrays and names, built once into a home, and the packaged label parser.

Nothing is trained and no question is made.  Everything lies under digests of the files, of the options that decide the
outcome and of the code that reads them: a file that has changed gives a new build, and an unchanged one is found.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from kgqa_core.config import AUTO, TOPICS, KgOptions, OwnNames, make_profile
from kgqa_core.errors import InputError, KgInputError, KgqaError
from kgqa_core.input_files import unchanged
from kgqa_core.kg.ingest.popularity import views_source
from kgqa_core.kg.ingest.sources import named_files, tables_in
from kgqa_core.kg.remote.registry import graph_name
from kgqa_core.kg.store import KgStore
from kgqa_core.monitor import QUIET, Monitor
from kgqa_core.parent import end_with_parent
from kgqa_core.runs.builds import build_code, filled
from kgqa_core.runs.finished import mentions_of_graph
from kgqa_core.runs.home_names import with_names
from kgqa_core.spool import regular_file, shorten
from kgqa_core.store.artifacts import ArtifactRef, Home, hash_path, verify
from kgqa_core.symbolic.by_labels.packaged import HEAD_START
from kgqa_core.workspace import Workspace

log = logging.getLogger("kgqa")

NAME = re.compile(r"[\w.-]{1,64}")
"""Name of one of several graphs, which stands in addresses."""
FILE_NAME = re.compile(r"[^/\\\x00-\x1f]{1,200}")
UPLOAD_SECONDS, UPLOAD_BYTES = 600, 4 << 30
"""Processor seconds of a core in which an uploaded graph is built, and bytes of each file of it."""


def graph_record(
    home: Home, files: Sequence[Path | str], settings: Mapping[str, Any] | None = None, monitor: Monitor = QUIET
) -> dict[str, Any]:
    """What stands for a run's record where graph files answer: `run_id`, `profile`, and artifacts as `stages`.

    files: of one graph, in any format, or the one folder that `kgqa kg build` wrote.  settings: sections of a profile,
    such as {"kg": {"map": …}}.  Built where the home has nothing of these files; two processes build once.
    Raises KgInputError, also for a graph without statements, ConfigError, StorageError.
    """
    name = graph_name("".join(map(str, files[:1]))) or "graph"
    layer = {
        "name": name,
        "kg": {"name": name, "files": [str(file) for file in files]},
        "retrieval": {"retrievers": [TOPICS]},
        "answering": {"answerer": AUTO, "knowledge": [TOPICS], "more": []},
    }
    profile = make_profile(layer, settings or {}, origin="the options")
    home.prepare()
    kg = built_graph(home, profile.kg, monitor)

    def made(kind: str, fill: Callable[[Workspace, Path], Mapping[str, Any]], **parts: Any) -> ArtifactRef:
        parts |= {"inputs": {"kg": kg.digest}, "code": build_code()}
        return filled(home, kind, parts, lambda workspace: fill(workspace, kg.folder), monitor)

    refs = {
        "kg": kg,
        "dkg": made("dkg", _dkg),
        "mentions": verify(mentions_of_graph(home, kg, monitor)),
        "label_parser": made("label_parser", _label_parser, packaged=hash_path(HEAD_START)),
    }
    stages = [{"name": name, "artifact": ref.model_dump(mode="json")} for name, ref in refs.items()]
    return {"run_id": f"graph-{kg.digest[:12]}", "profile": profile.model_dump(mode="json"), "stages": stages}


def uploaded_record(home: Home, name: str, file: Path) -> dict[str, Any]:
    """The record of a graph of this name whose file somebody else gives, built in a process of its own with limits.

    Raises InputError for a file that cannot be read as a graph, with no folder of this machine in it, or not within
    the limits.
    """
    check_upload(name, file.name)
    command = [sys.executable, "-P", "-m", __name__]
    given = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONIOENCODING": "utf-8"}
    asked = {"home": str(home.root), "name": name, "file": str(file)}
    late = f"{file.name!r} takes longer to read than {UPLOAD_SECONDS} s; serve it with `--graph {name}=FILE`"
    try:
        done = subprocess.run(
            command, input=json.dumps(asked).encode(), capture_output=True, timeout=UPLOAD_SECONDS, env=given
        )
    except subprocess.TimeoutExpired:
        raise InputError(late) from None
    try:
        result: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        log.error("reading %s ended with %d: %s", file, done.returncode, done.stderr.decode(errors="replace")[-2000:])
        raise InputError(f"{late}, where it may also take more memory and disk") from None
    if "fault" in result:
        raise InputError(result["fault"].replace(f"{file.parent}/", ""))
    return result


def check_upload(name: str, file_name: str) -> None:
    """Raises InputError where a graph cannot be called so, or where its file's name is none."""
    if not NAME.fullmatch(name):
        raise InputError(f"{shorten(name)!r} is no name of a graph; give 1 to 64 letters, digits, `.`, `_` and `-`")
    if not FILE_NAME.fullmatch(file_name) or file_name in (".", ".."):
        raise InputError(f"{shorten(file_name)!r} is no name of a file; give it without its folder")


def _write_record() -> None:
    """The process of `uploaded_record`: writes the record of a graph, or its fault, as JSON."""
    seconds = UPLOAD_SECONDS * (os.cpu_count() or 1)
    for limit, most in (("CPU", seconds), ("FSIZE", UPLOAD_BYTES), ("CORE", 0)):
        resource.setrlimit(getattr(resource, f"RLIMIT_{limit}"), (most, most))
    end_with_parent()
    os.nice(10)  # questions are answered meanwhile
    asked = json.load(sys.stdin)
    out, sys.stdout = sys.stdout, sys.stderr
    try:
        home = Home(Path(asked["home"])).look()
        result = graph_record(home, [Path(asked["file"])], {"kg": {"name": asked["name"]}})
    except KgqaError as fault:
        result = {"fault": str(fault)}
    json.dump(result, out)


def built_graph(home: Home, options: KgOptions, monitor: Monitor = QUIET) -> ArtifactRef:
    """The graph of files alone, or in a folder that `kgqa kg build` wrote, with further names where some are given."""
    folder = Path(options.files[0]).expanduser() if len(options.files) == 1 and options.map is None else None
    if folder is not None and folder.is_dir() and not tables_in(folder):
        if (ref := verify(folder.resolve())).kind != "kg":
            raise KgInputError(f"{folder} holds an artifact of kind {ref.kind}, not a graph")
        if options.names == OwnNames():
            return ref
        return with_names(home, ref, options.names, monitor)
    read = {name: Path(file).expanduser() for name, file in options.reading_files().items()}
    sources = [*named_files(options.files, options), views_source(options)]
    read |= {f"file {number}": source.path for number, source in enumerate(sources) if source is not None}

    def fill(workspace: Workspace) -> dict[str, Any]:
        from kgqa_core.kg.build import build

        counts = build(workspace, options=options)
        stack.close()
        return counts

    with contextlib.ExitStack() as stack:  # closed before what was built is published under the digests
        stack.enter_context(unchanged(read.values(), KgInputError))
        outside = {name: hash_path(regular_file(path, KgInputError)) for name, path in read.items()}
        parts = {"outside": outside, "options": options.decisive(), "code": build_code()}
        return filled(home, "kg", parts, fill, monitor)


def _dkg(workspace: Workspace, kg: Path) -> Mapping[str, Any]:
    from kgqa_core.dkg.export import export

    return export(workspace, kg=kg)


def _label_parser(workspace: Workspace, kg: Path) -> Mapping[str, Any]:
    """The packaged one, with the graph's wordings encoded."""
    from kgqa_core.search.graph import LabelGraph
    from kgqa_core.search.phrases import Phrases
    from kgqa_core.symbolic.by_labels.model import keep_phrases

    shutil.copytree(HEAD_START, workspace.out, dirs_exist_ok=True)
    with KgStore.open(kg) as store:
        phrases = Phrases(graph := LabelGraph(store))
    texts = [text for directed in range(2 * graph.relations) for text in phrases.wordings(directed)]
    keep_phrases(workspace.out, texts)
    return {"wordings": len(texts)}


if __name__ == "__main__":
    _write_record()
