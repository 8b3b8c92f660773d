"""Where AMR graphs come from: a file that has them by question, or a parser, whose output is cached.

A parser is a plug with a name and a method; `amrlib:FOLDER` opens a model of amrlib from a local folder.  Weights are
loaded from safetensors only: SPRING and GSII models of amrlib are pickles, which can run code as they are read, and are
refused; so are models of its T5 and BART parsers that come without safetensors.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from kgqa_core.errors import InputError, ModelError
from kgqa_core.input_files import read_document
from kgqa_core.llm.store import open_store
from kgqa_core.monitor import QUIET, Monitor
from kgqa_core.papers.ltgen.relation_ranking.amr import AmrGraph, Triple, read_penman, reify
from kgqa_core.prompts import one_line

FILE = "amr.sqlite"
SCHEMA = "CREATE TABLE IF NOT EXISTS graphs (parser TEXT, sentence TEXT, penman TEXT, PRIMARY KEY (parser, sentence))"
AT_ONCE = 64
"""Sentences that are parsed at once; a kill loses at most these."""
SAFE_MODULES = (".parse_xfm.inference", ".parse_t5.inference")
"""Parsers of amrlib that are models of transformers, and so can be loaded from safetensors."""

log = logging.getLogger("kgqa")


class AmrParser(Protocol):
    """Parses sentences.  name: identifies the parser and its weights, for the cache."""

    name: str

    def parse(self, sentences: Sequence[str]) -> list[str | None]:
        """PENMAN of each sentence; None where it has none."""


class AmrGraphs:
    """Graphs of questions: those of a file, else those of a parser.

    from_file: PENMAN by question, from `read_graphs`.  cache: folder of the parser's output.  read: from PENMAN to
    triples, with the library penman where absent.
    counts: from_file, parsed, kept (parsed earlier, read from the cache), without (no graph or one that is no PENMAN).
    """

    def __init__(
        self,
        from_file: Mapping[str, str],
        parser: AmrParser | None = None,
        cache: Path | None = None,
        read: Callable[[str], Sequence[Triple]] | None = None,
    ) -> None:
        self.from_file = {one_line(question): graph for question, graph in from_file.items()}
        self.parser, self.read = parser, read or read_penman
        self.counts = dict.fromkeys(("from_file", "parsed", "kept", "without"), 0)
        self._store = open_store(None if cache is None else cache / FILE, SCHEMA) if parser is not None else None
        self._known: dict[str, AmrGraph | None] = {}

    def of(self, questions: Sequence[str], monitor: Monitor = QUIET) -> dict[str, AmrGraph]:
        """The graphs of those questions that have one."""
        new = list(dict.fromkeys(question for question in questions if question not in self._known))
        written = {question: graph for question in new if (graph := self.from_file.get(one_line(question))) is not None}
        self.counts["from_file"] += len(written)
        written |= self._parsed([question for question in new if question not in written], monitor)
        for question in new:
            self._known[question] = self._read(written.get(question))
        self.counts["without"] += sum(self._known[question] is None for question in new)
        graphs = {question: self._known[question] for question in dict.fromkeys(questions)}
        return {question: graph for question, graph in graphs.items() if graph is not None}

    def _read(self, penman: str | None) -> AmrGraph | None:
        if not penman:
            return None
        try:
            graph = reify(self.read(penman))
            return graph if graph.labels else None
        except InputError as fault:
            log.warning("%s", fault)
            return None

    def _parsed(self, questions: Sequence[str], monitor: Monitor) -> dict[str, str]:
        """PENMAN by question, from the cache or parsed now."""
        if self.parser is None or self._store is None or not questions:
            return {}
        rows = self._store.read("SELECT sentence, penman FROM graphs WHERE parser = ?", [self.parser.name])
        known = dict(rows)
        graphs = {question: known[question] for question in questions if question in known}
        self.counts["kept"] += len(graphs)
        missing = [question for question in questions if question not in known]
        for start in range(0, len(missing), AT_ONCE):
            part = missing[start : start + AT_ONCE]
            parsed = [graph or "" for graph in self.parser.parse(part)]
            values = [(self.parser.name, *pair) for pair in zip(part, parsed, strict=True)]
            self._store.submit(_insert(values)).result()
            graphs |= dict(zip(part, parsed, strict=True))
            self.counts["parsed"] += len(part)
            monitor.progress(start + len(part), len(missing), "questions parsed")
        return graphs


def open_graphs(
    graphs: str | None, parser: str | None, cache: Path | None = None, monitor: Monitor = QUIET
) -> AmrGraphs | None:
    """The graphs that options name; None, with a note that says why, where there are none.

    Raises InputError for a file that cannot be read, ModelError for a parser that may not be loaded.
    """
    opened = open_parser(parser) if parser is not None else None
    if graphs is None and opened is None:
        named = (
            f"the AMR parser {parser!r} is not there"
            if parser is not None
            else "neither relation_ranking.amr_graphs nor relation_ranking.amr_parser is set"
        )
        monitor.note(f"there are no AMR graphs, for {named}; rank_amr ranks as rank_pair does")
        return None
    if parser is not None and opened is None:
        monitor.note(f"the AMR parser {parser!r} is not there; questions without a graph in {graphs} have none")
    return AmrGraphs(read_graphs(Path(graphs).expanduser()) if graphs is not None else {}, opened, cache)


_FORMS = "blocks of PENMAN with '# ::snt QUESTION', or JSON from question to PENMAN"


def read_graphs(path: Path) -> dict[str, str]:
    """PENMAN by question, from blocks with a line `# ::snt QUESTION`, or from JSON.

    JSON is an object from question to PENMAN, or of objects with `text` and `extended_amr` (as SLING publishes them),
    or one object with `question` and `amr` a line.  Raises InputError when it is none of these.
    """
    text = read_document(path, needs=_FORMS)
    try:
        if not text.lstrip().startswith("{"):
            graphs = _blocks(text)
        elif (lines := text.strip().splitlines()) and _is_json(lines[0]) and "question" in json.loads(lines[0]):
            rows = [json.loads(line) for line in lines if line.strip()]
            graphs = {row["question"]: row["amr"] for row in rows}
        else:
            entries = json.loads(text)
            graphs = dict(_entry(question, entry) for question, entry in entries.items())
    except (ValueError, KeyError, TypeError, RecursionError) as fault:
        raise InputError(f"{path} cannot be read as AMR graphs ({fault!r}); it needs {_FORMS}") from None
    if not graphs:
        raise InputError(f"{path} has no AMR graph with a line '# ::snt QUESTION' before it")
    return graphs


def open_parser(spec: str) -> AmrParser | None:
    """The parser of a name; None when its folder is not there.

    Raises ModelError for another kind of name, for weights that are pickles, and when amrlib is not installed.
    """
    kind, colon, rest = spec.partition(":")
    if kind != "amrlib" or not rest:
        raise ModelError(f"relation_ranking.amr_parser {spec!r} is unknown; write amrlib:FOLDER with a local model")
    folder = Path(rest).expanduser()
    return AmrlibParser(folder) if folder.is_dir() else None


class AmrlibParser:
    """A parser of amrlib in a local folder.

    Raises ModelError when amrlib is not installed or the folder holds no weights as safetensors.
    """

    def __init__(self, folder: Path) -> None:
        meta = check_safe(folder)
        try:
            import amrlib
        except ImportError:
            raise ModelError(
                f"the AMR parser in {folder} needs amrlib, which is not installed; pip install amrlib, or put the "
                "graphs into a file (relation_ranking.amr_graphs)"
            ) from None
        state = hashlib.sha256(json.dumps(meta, sort_keys=True).encode())
        for weights in sorted(folder.glob("*.safetensors")):
            with weights.open("rb") as file:
                state.update(hashlib.file_digest(file, "sha256").digest())
        self.name = f"amrlib {state.hexdigest()}"
        # Both the weights and the tokenizer come from the folder; a hub id in its config is not followed.
        self._model: Any = amrlib.load_stog_model(model_dir=str(folder), tok_name_or_path=str(folder), device="cpu")

    def parse(self, sentences: Sequence[str]) -> list[str | None]:
        """PENMAN of each sentence."""
        return list(self._model.parse_sents(list(sentences), add_metadata=False))


def check_safe(folder: Path) -> dict[str, Any]:
    """The folder's amrlib_meta.json.  Raises ModelError where loading the model would read a pickle."""
    try:
        meta: dict[str, Any] = json.loads((folder / "amrlib_meta.json").read_text(encoding="utf-8"))
        module = str(meta["inference_module"])
    except (OSError, ValueError, KeyError, TypeError) as fault:
        raise ModelError(f"{folder} is no parser of amrlib: amrlib_meta.json cannot be read ({fault!r})") from None
    if module not in SAFE_MODULES:
        raise ModelError(
            f"the AMR parser in {folder} ({module.strip('.')}) is loaded by amrlib from pickled weights, which can run "
            "code; use a parse_xfm model with model.safetensors, or parse elsewhere and give the graphs as a file "
            "(relation_ranking.amr_graphs)"
        )
    if not list(folder.glob("*.safetensors")):
        raise ModelError(
            f"the AMR parser in {folder} has no model.safetensors, and pickled weights (pytorch_model.bin) can run "
            "code; convert them (kgqa models convert), or give the graphs as a file (relation_ranking.amr_graphs)"
        )
    return meta


def _insert(values: Sequence[tuple[str, str, str]]) -> Callable[[Any], None]:
    def write(connection: Any) -> None:
        connection.executemany("INSERT OR REPLACE INTO graphs VALUES (?, ?, ?)", values)

    return write


def _blocks(text: str) -> dict[str, str]:
    graphs = {}
    for block in re.split(r"\n\s*\n", text):
        named = re.search(r"^#.*::snt\s+(.*?)(?:\s+::\w+ .*)?$", block, re.MULTILINE)
        graph = "\n".join(line for line in block.splitlines() if not line.lstrip().startswith("#")).strip()
        if named and graph:
            graphs[named.group(1).strip()] = graph
    return graphs


def _entry(question: str, entry: Any) -> tuple[str, str]:
    return (question, str(entry)) if isinstance(entry, str) else (str(entry["text"]), str(entry["extended_amr"]))


def _is_json(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False
