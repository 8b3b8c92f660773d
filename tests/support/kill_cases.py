"""The commands that the kill tests kill, with toy inputs that all of them share."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import Any

import yaml

from flows.cli.graph_folders import build_folder
from kgqa_core.llm.cache import Identity, Request, ResponseCache
from kgqa_core.llm.protocol import Completion, GenerationParams
from kgqa_core.papers.grailqability.builder.build import build as build_answerability
from kgqa_core.store.artifacts import Home
from kgqa_core.store.publish import publish_folder
from kgqa_core.workspace import Workspace
from tests.support.chaos import PAID
from tests.support.chat_server import digest_words
from tests.support.command import closed_port, kgqa
from tests.support.finished import binary, finished_run, publish, questions
from tests.support.kill_commands import CONCURRENCY, Command, Place
from tests.support.ltgen import make_graph
from tests.support.ltgen import reply as ltgen_reply
from tests.support.register_benchmark import OPTIONS, write_inputs
from tests.support.toy import write_graph, write_questions

TRIPLES = 4500
FORMAT = {"format": "delimited"}
LTGEN = (
    "ltgen.sampling.per_level=4", "ltgen.sampling.levels=absolute", "ltgen.sampling.thresholds=[1,9,12,15,100]",
)  # fmt: skip
ABSTAIN = (
    "retrieval.retrievers=[rigel]", "rigel.encoder=scratch", "rigel.epochs=1", "rigel.min_steps=5",
    "rigel.scratch_width=32", "abstention.training_questions=200", "evaluation.bootstrap=100",
    "answering.answerer=openai:m", "retrieval.edge_budget=50000", f"llm.concurrency={CONCURRENCY}",
)  # fmt: skip
TRAINED_ANSWERING = {"answerer": "openai:m", "knowledge": ["hop_path"], "limit": 4}


def reply(prompt: str, drawn: Any = None) -> str:
    """What the model writes; the request is on disk before anybody reads the reply."""
    line = hashlib.sha256(f"{prompt}|{drawn}".encode()).hexdigest().encode() + b"\n"
    handle = os.open(os.environ[PAID], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    try:
        os.write(handle, line)
    finally:
        os.close(handle)
    ltgen = "Entity Relation Pairs:\n" in prompt or "Knowledge Graph Triples:\n" in prompt
    return ltgen_reply(prompt, drawn) if ltgen else digest_words(prompt)


class Inputs:
    """The shared inputs, each made when it is first needed, in a folder of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def make(self, name: str) -> None:
        """The part of this name: graphs, ltgen, register, home or system."""
        done = self.folder / f"{name}.done"
        if not done.exists():
            getattr(self, f"_{name}")()
            done.touch()

    def _graphs(self) -> None:
        """Two states of a dump, and the graphs of both."""
        folder = self.folder
        rows = write_graph(folder / "graph.tsv", TRIPLES)
        for name, chosen in (("old", rows[300:]), ("new", rows[:-300])):
            (folder / f"{name}.tsv").write_text("".join("\t".join(row) + "\n" for row in chosen), encoding="utf-8")
        write_questions(folder / "subset.jsonl", rows[300:], 60)
        build_folder([str(folder / "old.tsv")], folder / "kg", FORMAT)
        build_folder([str(folder / "new.tsv")], folder / "kg-new", FORMAT)

    def _ltgen(self) -> None:
        place = self.folder / "ltgen"
        shutil.rmtree(make_graph(place))
        build_folder([str(place / "graph.nt")], place / "kg", {})

    def _register(self) -> None:
        place = self.folder / "register"
        place.mkdir()
        kg, asked = write_inputs(place)
        fill = functools.partial(build_answerability, kg=kg, questions=asked, options=OPTIONS, seed=7)
        publish_folder("answerability", place / "benchmark", lambda out, work: fill(Workspace(out)))

    def _abstain(self) -> None:
        """A benchmark that is large enough to learn from it when not to answer."""
        place = self.folder / "abstain"
        place.mkdir()
        kg, asked = write_inputs(place, questions=420)
        fill = functools.partial(build_answerability, kg=kg, questions=asked, options=OPTIONS, seed=7)
        publish_folder("answerability", place / "benchmark", lambda out, work: fill(Workspace(out)))

    def _home(self) -> None:
        """A home of eight finished runs with artifacts, work that nobody took up, and 400 completions."""
        home = Home(self.folder / "home").prepare()
        for number in range(8):
            rows = binary([1.0] * 20)
            asked = questions([f"Question {number} {n}?" for n in range(20)])
            run = f"2026010{number + 1}-000000-aaaa"
            finished_run(home, run, rows, asked)
            for part in range(12):
                publish(home, "facts", f"{number}-{part}", {"facts.json": {"rows": list(range(2000))}}, {}, run)
            (home.root / "runs" / run / "report.html").write_text("page" * 500, encoding="utf-8")
        cache = ResponseCache(home.cache / "responses.sqlite")
        model = Identity("openai", "http://127.0.0.1:9/v1", "m", "")
        for number in range(4000):
            cache.put(
                Request(model, GenerationParams(), f"prompt {number} " + "word " * 40),
                Completion("text", "stop", 44, 1),
            )
        cache.flush()

    def _small(self) -> None:
        write_questions(self.folder / "questions.jsonl", write_graph(self.folder / "small.tsv", 400), 60)
        rows = (self.folder / "small.tsv").read_text(encoding="utf-8").splitlines(keepends=True)
        (self.folder / "small-new.tsv").write_text(
            "".join(rows[n] for n in range(len(rows)) if n % 6), encoding="utf-8"
        )


def profile(place: Place, **sections: Any) -> str:
    """A profile whose rewriter and answerer send some thirty texts to the model; nothing is trained."""
    tree = {
        "name": "kills",
        "kg": {"name": "toy", "files": [str(place.folder / "small.tsv")]},
        "questions": {"name": "toy", "source": "jsonl", "path": str(place.inputs / "questions.jsonl")},
        "retrieval": {"retrievers": ["random", "oracle"]},
        "rewriter": {"base": "openai:m", "adapt": False, "max_new_tokens": 32},
        "answering": {"answerer": "openai:m", "knowledge": ["none", "random", "oracle/rewritten"], "limit": 8},
        "llm": {"base_url": place.base_url, "concurrency": CONCURRENCY},
        "evaluation": {"bootstrap": 100},
        **sections,
    }  # fmt: skip
    path = place.folder / "profile.yaml"
    path.write_text(yaml.safe_dump(tree), encoding="utf-8")
    return str(path)


def _with_small(place: Place) -> None:
    shutil.copy(place.inputs / "small.tsv", place.folder / "small.tsv")


def _with_home(place: Place) -> None:
    shutil.copytree(place.inputs / "home", place.home)


def _with_graph(place: Place) -> None:
    shutil.copytree(place.inputs / "kg", place.folder / "kg")


def _with_system(place: Place, name: str = "system", **sections: Any) -> None:
    """A home with a finished run of `profile`."""
    home = place.inputs / name
    if not (place.inputs / f"{name}.done").exists():
        _with_small(place)
        chosen = profile(place, **sections)
        done = kgqa("run", "--profile", chosen, "--home", home, "--json", env={"OPENAI_API_KEY": "none"})
        assert done.code == 0, done.err[-4000:]
        (place.inputs / f"{name}.done").touch()
    shutil.copytree(home, place.home)
    for record in place.home.glob("runs/*/run.json"):  # the inputs may be from an earlier test process, with its server
        run = json.loads(record.read_text(encoding="utf-8"))
        run["profile"]["llm"]["base_url"] = place.base_url
        record.write_text(json.dumps(run), encoding="utf-8")


def _with_trained(place: Place) -> None:
    """A home with a finished run that has trained a small hop_path."""
    small = {"encoder": "scratch", "scratch_width": 32, "epochs": 1}
    _with_system(place, "trained", retrieval={"retrievers": ["hop_path"]}, hop_path=small, answering=TRAINED_ANSWERING)


def _with_newer_dump(place: Place) -> None:
    _with_system(place)
    shutil.copy(place.inputs / "small-new.tsv", place.folder / "small.tsv")


def _with_ports(place: Place) -> None:
    (place.folder / "ports").write_text(f"{closed_port()} {closed_port()}")


def _sets(*settings: str) -> list[str]:
    return [word for setting in settings for word in ("--set", setting)]


def _ltgen(p: Place) -> list[str | Path]:
    settings = _sets(f"llm.base_url={p.base_url}", f"llm.concurrency={CONCURRENCY}", *LTGEN)
    graph = p.inputs / "ltgen/graph.nt"
    return ["ltgen", "build", "--kg", graph, "--out", "out", "--writer", "openai:m", "--json", *settings]


def _update(p: Place, out: str) -> list[str | Path]:
    return ["kg", "update", "kg", p.inputs / "new.tsv", "--format", "delimited", "--out", out]


def _export(p: Place, out: str) -> list[str | Path]:
    return ["kg", "export", out, "--kg", p.inputs / "kg", "--force"]


def _subset(p: Place) -> list[str | Path]:
    questions = ["--questions", p.inputs / "subset.jsonl", "--max-degree", "20"]
    return ["kg", "subset", p.inputs / "old.tsv", *DUMP, *questions, "--out", "out.nt", "--force"]


def _answerability(p: Place) -> list[str | Path]:
    files = ["--kg", p.inputs / "register/facts.tsv", "--questions", p.inputs / "register/questions.jsonl"]
    return ["answerability", "build", *files, "--out", "out", *_sets("answerability.largest_drop_share=0.9")]


def _evaluate(p: Place) -> list[str | Path]:
    parsers = ["--parsers", "rng", "--train", "A+U"]
    return ["answerability", "evaluate", p.inputs / "register/benchmark", *parsers, *_sets("parsing.rng.epochs=1")]


def _abstain(p: Place) -> list[str | Path]:
    settings = _sets(*ABSTAIN, f"llm.base_url={p.base_url}")
    return ["answerability", "abstain", p.inputs / "abstain/benchmark", *settings]


def _verify(p: Place) -> list[str | Path]:
    return ["answerability", "verify", p.inputs / "register/benchmark", "--kg", p.inputs / "register/kg", "--json"]


def _link(p: Place) -> list[str | Path]:
    return ["link", "Where does Bafa Bodi live?", "--kg", p.inputs / "kg", "--json"]


def _ui(p: Place) -> list[str | Path]:
    prefect, mlflow = (p.folder / "ports").read_text().split()
    return ["ui", "--prefect-port", prefect, "--mlflow-port", mlflow]


def _answer(p: Place) -> list[str | Path]:
    return [
        "answer",
        "--questions",
        p.inputs / "questions.jsonl",
        "--out",
        "out.jsonl",
        "--force",
        "--knowledge",
        "hop_path",
    ]


SECONDS = frozenset({"seconds", "load_seconds"})
DUMP = ("--format", "delimited")
_ALL = (
    Command("kg build", lambda p: ("kg", "build", p.inputs / "old.tsv", *DUMP, "--out", "out"), outputs=("out",)),
    Command("kg update", lambda p: _update(p, "out"), _with_graph, ("kg", "out")),
    Command("kg update in place", lambda p: _update(p, "kg"), _with_graph, ("kg",)),
    Command("kg dkg", lambda p: ("kg", "dkg", p.inputs / "kg", "--out", "out"), outputs=("out",)),
    Command("kg diff", lambda p: ("kg", "diff", p.inputs / "kg", p.inputs / "kg-new", "--out", "out", "--force"),
            outputs=("out/*",)),
    Command("kg subset", _subset, outputs=("out.nt",)),
    Command("kg export nt", lambda p: _export(p, "out.nt"), outputs=("out.nt",)),
    Command("kg export tsv", lambda p: _export(p, "out.tsv"), outputs=("out.tsv",)),
    Command("kg export parquet", lambda p: _export(p, "out.parquet"), outputs=("out.parquet",)),
    Command("link", _link, prints=SECONDS),
    Command("gc", lambda p: ("gc", "--yes", "--keep", "2"), _with_home, ("home/runs/*/*",)),
    Command("cache export", lambda p: ("cache", "export", "--out", "out.jsonl", "--force"), _with_home, ("out.jsonl",)),
    Command("cache clear", lambda p: ("cache", "clear", "--yes"), _with_home),
    Command("ltgen build", _ltgen, outputs=("out/*",), flow=True, pays=True),
    Command("answerability build", _answerability, outputs=("out", "out/kg"), flow=True),
    Command("answerability verify", _verify, prints=SECONDS),
    Command("answerability evaluate", _evaluate, flow=True),
    Command("answerability abstain", _abstain, flow=True, pays=True),
    Command("run", lambda p: ("run", "--profile", profile(p)), _with_small, flow=True, pays=True),
    Command("run alone", lambda p: ("run", "--profile", profile(p)), _with_small, pays=True),
    Command("refresh", lambda p: ("refresh", "--profile", profile(p)), _with_newer_dump, flow=True, pays=True),
    Command("forecast", lambda p: ("forecast", "--profile", profile(p), "--pilot", "6"), _with_small,
            flow=True, pays=True),
    Command("ui", _ui, _with_ports, stays=True),
    Command("answer", _answer, _with_trained, ("out.jsonl",), flow=True, pays=True),
)  # fmt: skip
COMMANDS = {one.name: one for one in _ALL}
"""By name.  `run alone` starts its own Prefect server."""

NEEDS = {
    "kg": ("graphs",),
    "link": ("graphs",),
    "gc": ("home",),
    "cache": ("home",),
    "ltgen": ("ltgen",),
    "answerability": ("register", "abstain"),
    "run": ("small",),
    "refresh": ("small",),
    "forecast": ("small",),
    "answer": ("small",),
    "ui": (),
}
"""Inputs by the first word of a command."""
