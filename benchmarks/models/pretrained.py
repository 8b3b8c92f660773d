"""A pretrained language model behind `hf:` in the stages that take one: it reads facts, words them, and chooses plans.

    OMP_NUM_THREADS=1 python -m benchmarks.models.pretrained FOLDER --work DIR [--questions 150] [--json OUT]

FOLDER holds the model, as docs/models.md says how to make one; its name is the model's in the record.  Reader: a seeded
sample of Atlas' test questions with no facts, random ones, those of each retriever and of the gold paths, as triples
and as sentences; beside it the builtin reader, and the same model without its chat template, in bf16 and in int8.  The
facts of a row are the same for every reader; rows of one are compared with its row of hop_path's triples, question by
question, by whether a gold answer stands in the output on token boundaries.  Writer: sentences by rule, by the builtin
model with LoRA trained on sentences by rule, and by the model as it is.  Chooser: people/dev over Atlas, answered by
`auto` with and without it.  Retrievers are those of profile atlas, Rigel with an encoder learnt from the questions.
What is finished lies in --work, so that a run that was killed goes on.
"""

from __future__ import annotations

import argparse
import json
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from benchmarks import results_file
from benchmarks.answers import people
from benchmarks.conditions import PROFILES, conditions
from benchmarks.papers import rra_published
from benchmarks.papers.rra_work import RraWork, SetPlan
from benchmarks.results_file import CONDITIONS
from kgqa_core.config import make_profile, read_profile
from kgqa_core.llm.hf_load import revision_of
from kgqa_core.metrics.significance import mcnemar, three_digits
from kgqa_core.system import System

FIELDS = (*CONDITIONS, "model/*", "questions", "readers/*/*/...", "chooser/...")
"""What the result file holds (benchmarks/results_file.py)."""

SEED = 7
PLAN = SetPlan("atlas", training=12_000, pairs=800)
BASE = rra_published.PUBLISHED | rra_published.OURS | {"on_unfaithful": "keep", "format": "triples"}
ROWS: dict[str, dict[str, Any]] = {
    "hop_path": {},
    "no facts": {"format": "none"},
    "random facts": {"retriever": "random"},
    "KAPING": {"retriever": "kaping"},
    "Rigel": {"retriever": "rigel"},
    "gold paths": {"retriever": "oracle"},
    "hop_path, sentences by rule": {"format": "template"},
    "hop_path, sentences of the trained rewriter": {"format": "rewritten"},
    "hop_path, sentences of the pretrained model": {"format": "rewritten", "zero_shot": ""},
    "the same, triples where they invent": {"format": "rewritten", "zero_shot": "", "on_unfaithful": "replace"},
}
"""What each row has other than `ours` with triples; the first is what the others are compared with."""
FEW = ("hop_path", "no facts", "gold paths")
"""Rows of the model without its chat template and in other numbers."""


def without_template(model: Path, folder: Path) -> Path:
    """A folder with links to the files of a model but for its chat template."""
    folder.mkdir(parents=True, exist_ok=True)
    for file in model.iterdir():
        if file.name != "chat_template.jinja" and not (folder / file.name).exists():
            (folder / file.name).symlink_to(file)
    return folder


def read(work: RraWork, model: Path, count: int, once: Callable[..., Any]) -> dict[str, Any]:
    """Figures of each reader by row."""
    bare = without_template(model, work.folder / "without_template")
    spec = {"answerer": f"hf:{model}"}
    readers = {
        "builtin": {"answerer": "builtin"}, model.name: spec,
        f"{model.name} without chat template": {"answerer": f"hf:{bare}"},
        f"{model.name} in bf16": spec | {"dtype": "bf16"}, f"{model.name} in int8": spec | {"dtype": "int8"},
    }  # fmt: skip
    found: dict[str, Any] = {}
    for number, (reader, options) in enumerate(readers.items()):
        rows = {}
        for name in FEW if number > 1 else ROWS:
            row = BASE | ROWS[name] | options
            if "zero_shot" in row:
                row["zero_shot"] = f"hf:{model}"
            rows[name] = once(
                f"{reader}: {name}", lambda row=row: rra_published.measure_row(work, row, count, "hit_rra")
            )
        base = next(iter(rows.values()))["hits"]
        found[reader] = {name: figures(rra_published._compared(row, base)) for name, row in rows.items()}
    return found


def figures(row: Mapping[str, Any]) -> dict[str, Any]:
    """What of a row is in the record."""
    hits = {metric: row["hit_at_1"][f"{metric}, all"] for metric in ("boundaries", "exact")}
    return hits | {name: row[name] for name in ("fixed", "broken", "p", "sentences", "cpu_seconds")}


def choose(model: Path, home: Path) -> dict[str, Any]:
    """Figures of `auto` over people/dev of Atlas without and with the model as chooser."""
    rows, found, good = people.rows_of("dev", "atlas"), {}, {}
    for name, chooser in (("without", None), ("with", f"hf:{model}")):
        system = System.from_graph("bundled:atlas", home=home, settings={"symbolic": {"chooser": chooser}})
        _, replies, seconds = people.ask(rows, system)
        made = people.measure(rows, replies, seconds)
        kept = ("questions", "answerable", "exact", "declined_of_unanswerable", "wrongly_declined", "wrong_above")
        found[name] = {key: made[key] for key in kept} | {"mean_seconds": round(sum(seconds) / len(seconds), 2)}
        good[name] = [
            bool(row["answerable"]) and people.is_exact(row, own) for row, own in zip(rows, replies, strict=True)
        ]
        if system.calculator is not None and system.calculator.solver.chooser is not None:
            found["choices"] = dict(system.calculator.solver.chooser.counts)
    pairs = list(zip(good["without"], good["with"], strict=True))
    fixed, broken = pairs.count((False, True)), pairs.count((True, False))
    return found | {"fixed": fixed, "broken": broken, "p": three_digits(mcnemar(fixed, broken))}


def main() -> None:
    """Runs it and writes the record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, help="folder of the model")
    parser.add_argument("--work", type=Path, required=True, help="folder of what is finished")
    parser.add_argument("--questions", type=int, default=150, help="questions that are answered")
    parser.add_argument("--json", type=Path, help="file that the record is written to")
    given = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    given.model = given.model.absolute()
    profile = read_profile(PROFILES / "atlas.yaml")
    profile["rigel"]["encoder"] = "scratch"
    work = RraWork(PLAN, given.work, make_profile(profile))
    file = work.folder / "rows.json"
    done: dict[str, Any] = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}

    def once(name: str, make: Callable[[], Any]) -> Any:
        if name not in done:
            logging.info(name)
            done[name] = make()
            file.write_text(json.dumps(done), encoding="utf-8")
        return done[name]

    record = {
        "conditions": conditions(SEED),
        "model": {"name": given.model.name, "revision": revision_of(str(given.model), None)},
        "questions": given.questions,
        "readers": read(work, given.model, given.questions, once),
        "chooser": once("chooser", lambda: choose(given.model, given.work / "home")),
    }
    if given.json:
        results_file.write(given.json, record, FIELDS)
    print(json.dumps(record, indent=1))


if __name__ == "__main__":
    main()
