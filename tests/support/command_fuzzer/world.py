"""The files of a careless user: graphs, questions, benchmarks, sheets and a home with finished runs."""

from __future__ import annotations

import csv
import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

from kgqa_core.workspace import Workspace

USER, HOME, CASE = "user", "home", "case"
"""Folders of a world: the user's files, with the folder of the case in it, and the home."""
LIGHT = "KGQA_FUZZER_LIGHT"
"""In the environment where few cases of commands on graphs are run: they need no more of the world and of imports."""

PROFILE = """name: own
description: A user's own.
kg: {name: facts, files: [facts.tsv]}
questions: {name: questions, source: jsonl, path: questions.jsonl}
retrieval: {retrievers: [random]}
answering: {knowledge: [none], limit: 2}
evaluation: {bootstrap: 100}
"""


def make(root: Path, light: bool = False) -> None:
    """Make a world in the folder `root`: `user`, `home`, and a copy of both in `pristine`.

    light: without the benchmarks, which commands on graphs do not read.
    """
    from flows.cli.graph_folders import build_folder, export_folder
    from kgqa_core.linking.dictionary import build as build_mentions
    from tests.support.register_benchmark import write_inputs

    user = root / USER
    user.mkdir(parents=True)
    made_kg, questions = write_inputs(user)
    shutil.rmtree(made_kg)
    facts = (user / "facts.tsv").read_text(encoding="utf-8").splitlines(keepends=True)
    (user / "newer.tsv").write_text("".join(facts[:-20]) + "Kasi\tlives_in\tNowhere\n", encoding="utf-8")
    (user / "added.tsv").write_text("Kasi\tlives_in\tNowhere\n", encoding="utf-8")
    (user / "removed.tsv").write_text(facts[0], encoding="utf-8")
    (user / "ids.tsv").write_text("/m/0abc\tKasi\n", encoding="utf-8")
    (user / "paths.tsv").write_text("people.person.home\tlives_in\n", encoding="utf-8")
    columns = json.dumps(dict.fromkeys(facts[0].strip().split("\t"), {"datatype": "string"}))
    (user / "names.yaml").write_text("relations: {}\n", encoding="utf-8")
    (user / "map.yaml").write_text(f"tables: {{facts: {{file: facts.tsv, columns: {columns}}}}}\n", encoding="utf-8")
    delimited = {"format": "delimited", "delimiter": "\t"}
    build_folder([str(user / "facts.tsv")], user / "kg", delimited)
    build_folder([str(user / "newer.tsv")], user / "newer", delimited)
    export_folder(user / "kg", user / "dkg")
    (user / "mentions").mkdir()
    build_mentions(Workspace(user / "mentions"), kg=user / "kg")
    if not light:
        _benchmark(user, questions)
        _predictions(user)
        _published(user)
        _longtail(user)
        _pickled(user / "pickled")
    shutil.rmtree(questions)
    _lines(user / "labelled.jsonl", [{"question": "Where?", "answers": ["Oslo"], "output": "", "correct": False}])
    (user / "profile.yaml").write_text(PROFILE, encoding="utf-8")
    (user / "notes.txt").write_text("what I must not lose\n", encoding="utf-8")
    _home(root / HOME, user)
    for name in (USER, HOME):
        shutil.copytree(root / name, root / "pristine" / name, symlinks=True, ignore=shutil.ignore_patterns("*-shm"))
    (user / CASE).mkdir()


def _benchmark(user: Path, questions: Path) -> None:
    """`answerability`, as `kgqa answerability build --out` publishes it."""
    from kgqa_core.papers.grailqability.builder.build import build
    from kgqa_core.store.publish import publish_folder
    from tests.support.register_benchmark import OPTIONS

    def fill(folder: Path, work: Path) -> dict[str, Any]:
        return dict(build(Workspace(folder), kg=user / "kg", questions=questions, options=OPTIONS, seed=7))

    publish_folder("answerability", user / "answerability", fill)


def _predictions(user: Path) -> None:
    rows = [json.loads(line) for line in (user / "questions.jsonl").read_text(encoding="utf-8").splitlines()]
    for n, row in enumerate(rows):
        row.setdefault("id", f"q{n}")
    predicted = [{"id": row["id"], "prediction": str(row["answers"][0])} for row in rows if row["answers"]]
    _lines(user / "predictions.jsonl", predicted)
    test = [json.loads(line) for line in (user / "answerability" / "test.jsonl").read_text(encoding="utf-8").split("\n")
            if line]  # fmt: skip
    ids = [row.get("qid", row.get("id")) for row in test]
    _lines(user / "forms.jsonl", [{"id": one, "s_expression": None, "answers": []} for one in ids])


def _published(user: Path) -> None:
    """`grailqability` and `ontology`, as GrailQAbility's and GrailQA's authors publish them."""
    from kgqa_core.papers.grailqability.freebase_match import REVERSED, ROLES, TYPES
    from tests.unit.datasets.published.test_grailqability import files

    (user / "grailqability").mkdir()
    files(user / "grailqability")
    (user / "ontology").mkdir()
    rows = {ROLES: "film.film film.film.directed_by film.director", TYPES: "film.film x common.topic", REVERSED: ""}
    for name, text in rows.items():
        (user / "ontology" / name).write_text(f"{text}\n", encoding="utf-8")


def _pickled(folder: Path) -> None:
    """A folder of a model with pickled weights."""
    import torch

    folder.mkdir()
    (folder / "config.json").write_text("{}", encoding="utf-8")
    torch.save({"weight": torch.zeros(2)}, folder / "pytorch_model.bin")


def _longtail(user: Path) -> None:
    """`longtail` a graph, `longtail.nt` its file, `ltgen` a benchmark of it, and two filled sheets."""
    from flows.cli.graph_folders import build_folder
    from kgqa_core.config import LlmOptions, WritingOptions
    from kgqa_core.papers.ltgen.sheet import write_sheet
    from kgqa_core.papers.ltgen.write import write
    from tests.support.ltgen import make_graph, make_sample

    own = user / "making"
    kg = make_graph(own)
    shutil.copy(own / "graph.nt", user / "longtail.nt")
    build_folder([str(user / "longtail.nt")], user / "longtail", {})
    sample = make_sample(own, kg, 1, levels="absolute", thresholds=(1, 9, 12, 15, 100))
    (user / "ltgen").mkdir()
    write(
        Workspace(user / "ltgen", cache=own / "cache"),
        kg=kg,
        sample=sample,
        kind="qa",
        options=WritingOptions(writer="template"),
        llm=LlmOptions(),
        seed=7,
    )
    (own / "sheet").mkdir()
    write_sheet(own / "sheet", benchmark=user / "ltgen", kg=kg, share=0.5, seed=1)
    with (own / "sheet" / "sheet.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    for name, label in (("first", "correct"), ("second", "incorrect")):
        with (user / f"{name}.csv").open("w", encoding="utf-8-sig", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows([row | {"label": label if n else "correct"} for n, row in enumerate(rows)])
    shutil.rmtree(own)


def _home(root: Path, user: Path) -> None:
    """Two runs that can be compared, and one, `asked`, with a graph that can be queried."""
    from kgqa_core.config import DkgOptions
    from kgqa_core.dkg.export import export
    from kgqa_core.store.artifacts import Home, write_json
    from tests.support.finished import finished_run, questions

    home = Home(root)
    asked = questions([f"What is [bold]{n}[/bold]?" for n in range(12)])
    experiment = "rigel/triples/builtin"
    for run, right in (("20260101-000000-aaaa", 4), ("20260201-000000-bbbb", 9), ("asked", 1)):
        rows = {experiment: {one.id: {"exact": float(n < right)} for n, one in enumerate(asked)}}
        answers = {experiment: {one.id: f"answer {one.id}" for one in asked}}
        settings = {"retrieval": {"retrievers": ["random"]}, "answering": {"knowledge": ["none"]}}
        record = finished_run(home, run, rows, asked, answers, settings)
        for kind in ("kg", "dkg"):
            ref = _publish(home, kind, run, user / "kg", export, DkgOptions())
            record["stages"].append(_stage(kind, ref))
        record["aggregates"] = {"scores": {}}
        write_json(home.root / "runs" / run / "run.json", record)
        (home.root / "runs" / run / "report.html").write_text("<html></html>", encoding="utf-8")
    _completions(home.cache)
    _feedback(home.root / "serve")
    (root / "notes.txt").write_text("a file of the user in the home\n", encoding="utf-8")


def _publish(home: Any, kind: str, run: str, kg: Path, export: Any, options: Any) -> Any:
    def fill(out: Path, work: Path) -> dict[str, int]:
        if kind == "dkg":
            return dict(export(Workspace(out, work), kg=kg, options=options))
        shutil.copy(kg / "kg.duckdb", out / "kg.duckdb")
        return {"triples": 1}

    return home.compute(kind, f"{kind}{run}".ljust(24, "0"), fill, {"made_of": {}, "run_id": run})[0]


def _stage(kind: str, ref: Any) -> dict[str, Any]:
    return {
        "name": kind,
        "title": kind,
        "status": "computed",
        "seconds": 0.1,
        "counts": {},
        "artifact": ref.model_dump(),
    }


def _completions(folder: Path) -> None:
    """Some completions in the cache, so that there is something to export and to lose."""
    from kgqa_core.llm.cache import Identity, Request, open_cache
    from kgqa_core.llm.protocol import Completion, GenerationParams

    cache = open_cache(folder)
    for n in range(5):
        identity = Identity("openai", "http://127.0.0.1:9/v1", "stub", "")
        cache.put(Request(identity, GenerationParams(), f"prompt {n}"), Completion(f"[/bold] {n}"))
    cache.flush()


def _feedback(folder: Path) -> None:
    """Verdicts on one answer, so that there is something to confirm, to export and to lose."""
    from kgqa_core.serving.feedback import Feedback, FeedbackStore, IssuedAnswer

    store = FeedbackStore(folder)
    for name in store.issue([IssuedAnswer("What is [bold]0[/bold]?", ("Kasi",), ("no",))] * 4):
        store.confirm(store.add(Feedback(str(name), "down", ("[/bold] yes",)), "loopback").number)
    store.close()


def _lines(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


if __name__ == "__main__":
    make(Path(sys.argv[1]), LIGHT in os.environ)
