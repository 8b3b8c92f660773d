"""Semantic parsers on forms as GrailQA writes them: candidates, and answerability benchmarks of forms with types.

    python -m benchmarks.papers.parsers --work DIR [--steps coverage,make,evaluate] [--sets atlas,wikidata]
        [--parsers rng,rng+generator,decode] [--train A,A+U] [--topics linked] [--json OUT]

coverage   share of gold forms among the candidates of rank and generate, topics given, with candidates and milliseconds
           a question: of GrailQA's sample of 1,000 (from its dev split) over the graph of its graph queries, and
           of the dev questions of the generated sets over their whole graphs.
make       question sets by `kgqa questions generate --set questions.generated.forms=grailqa` over Atlas and
           wikidata_mini, and the answerability benchmarks of them.
evaluate   parsers trained on A and A+U, with and without thresholds, as `kgqa answerability evaluate` scores them.

Each step is run in a process of its own; what is finished is found again in DIR/home.  OUT is read first, and only what
is measured now is replaced, with its own conditions.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import results_file
from benchmarks.conditions import DATA, RESULTS, conditions
from benchmarks.papers.query_graph import build_graph
from benchmarks.results_file import CONDITIONS
from kgqa_core.config import GeneratorOptions, KgOptions, RngOptions
from kgqa_core.datasets.published.grailqa import FILES as GRAILQA
from kgqa_core.datasets.published.grailqa import GrailQuestion
from kgqa_core.kg.build import build
from kgqa_core.kg.store import KgStore
from kgqa_core.logic.forms import Form
from kgqa_core.logic.memory import MemoryGraph
from kgqa_core.logic.normalise import normalise
from kgqa_core.logic.parser import parse
from kgqa_core.papers.grailqability.parsing.examples import ParseExample, Topic, read_examples
from kgqa_core.papers.grailqability.parsing.parsed_forms import Scored
from kgqa_core.papers.grailqability.parsing.rng.enumerate import Enumerator
from kgqa_core.papers.grailqability.parsing.rng.parse import RngParser
from kgqa_core.papers.grailqability.parsing.rng.readings import Readings, coverage
from kgqa_core.papers.grailqability.report import rule_of
from kgqa_core.runs.records import newest_run
from kgqa_core.store.artifacts import ArtifactRef, Home
from kgqa_core.workspace import Workspace

FIELDS = (*CONDITIONS, "coverage/...", "?sets/...")
"""What the result file holds (benchmarks/results_file.py)."""
SEED = 7
GRAPHS: Mapping[str, Sequence[str]] = {
    "atlas": ("bundled:atlas",),
    "wikidata": tuple(
        str(DATA / "wikidata_mini" / name) for name in ("triples.tsv", "labels.en.tsv", "qualifiers.tsv")
    ),
}
MAKE = (
    "questions.generated.forms=grailqa", "questions.generated.unanswerable=0", "questions.generated.noise.share=0.3",
    "questions.generated.shares.two_hops=40",
)  # fmt: skip
"""Settings of the generated sets: GrailQA's kinds of forms, half of them of two relations where the graph has them."""
SIZE = 4000
PARSERS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "rng": ("rng", ()),
    "rng+generator": ("rng", ("parsing.rng.generator.enabled=true",)),
    "decode": ("decode", ()),
    "decode+scratch": ("decode", ("parsing.decode.encoder=scratch",)),
}
SETTINGS: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("wikidata", "rng"): ("parsing.rng.epochs=6", "parsing.rng.hard_negative_epochs=2"),
    ("wikidata", "decode"): (
        "parsing.decode.relations=20", "parsing.decode.classes=12", "parsing.decode.retriever_epochs=12",
        "parsing.decode.encoder=minilm", "parsing.decode.epochs=40", "parsing.decode.patience=10",
        "parsing.decode.missing_relation_rate=0.05", "parsing.decode.beam=10",
    ),
}  # fmt: skip
"""Settings of a graph with many relations, chosen on dev, by set and kind of parser."""
LABELS = {"rng": "Rank only", "rng+generator": "Rank and generate", "decode": "Retrieve and decode",
          "decode+scratch": "Retrieve and decode, encoder from nothing"}  # fmt: skip


def kgqa(*words: str, home: Path | None) -> tuple[dict[str, Any], float]:
    """The JSON that a command prints last, and its seconds.  home: None for a command that takes none.

    Raises SystemExit where it failed.
    """
    started = time.monotonic()
    place = [] if home is None else ["--home", str(home)]
    done = subprocess.run(
        [sys.executable, "-m", "flows.cli", *words, "--json", *place], stdout=subprocess.PIPE, text=True
    )
    if done.returncode or not done.stdout.strip():
        raise SystemExit(f"{' '.join(words)} ended with {done.returncode}")
    return json.loads(done.stdout.strip().splitlines()[-1]), round(time.monotonic() - started, 1)


def artifact_folders(home: Path, run_id: str) -> dict[str, Path]:
    """Folders of a run's artifacts by kind; of several of one kind the last."""
    artifacts = [ArtifactRef.model_validate(own["artifact"]) for own in newest_run(Home(home), run_id)["stages"]]
    return {artifact.kind: artifact.folder for artifact in artifacts}


def make(name: str, work: Path) -> dict[str, Any]:
    """Counts of a question set and of its benchmark."""
    graph = [word for file in GRAPHS[name] for word in ("--kg", file)]
    settings = [word for setting in MAKE for word in ("--set", setting)]
    file = work / f"{name}.jsonl"
    made, _ = kgqa(
        "questions", "generate", *graph, "--out", str(file), "--size", str(SIZE), *settings, "--force",
        home=work / "home",
    )  # fmt: skip
    built, seconds = kgqa(
        "answerability", "build", *graph, "--questions", str(file), "--out", str(work / name), "--force",
        home=work / "home",
    )  # fmt: skip
    tables = json.loads((work / name / "statistics.json").read_text(encoding="utf-8"))
    return {
        "questions": made["counts"], "benchmark": built["counts"], "digest": built["digest"], "settings": list(MAKE),
        "splits": tables["splits"], "seconds": seconds, "conditions": conditions(SEED),
    }  # fmt: skip


def grailqa_examples(data: Path) -> tuple[list[GrailQuestion], list[ParseExample]]:
    """The questions of the sample, and the same for a parser, with their topics given."""
    rows = GRAILQA.records(data / "grailqa" / "tog" / "graliqa.json")
    questions = [row for _, row in rows if isinstance(row, GrailQuestion)]
    examples = []
    for question in questions:
        names = {node["id"]: node["friendly_name"] for node in (question.graph_query or {"nodes": ()})["nodes"]}
        topics = tuple(Topic(key, names.get(key, key), 1.0, n) for n, key in enumerate(question.topics))
        examples.append(ParseExample(question.id, question.text, topics=topics, form=question.s_expression, known=True))
    return questions, examples


def generated_examples(file: Path, split: str) -> list[ParseExample]:
    """The questions of one split of a generated set, with their topics given."""
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    return [
        ParseExample(
            row["id"], row["question"], form=row["s_expression"], known=True,
            topics=tuple(
                Topic(key, name, 1.0, n)
                for n, (key, name) in enumerate(zip(row["topic_entities"], row["mentions"], strict=False))
            ),
        )
        for row in rows if row["split"] == split
    ]  # fmt: skip


def covered(kg: Path, examples: Sequence[ParseExample], *, types: bool = True) -> dict[str, Any]:
    """Share of gold forms among the candidates; candidates and milliseconds a question."""
    options = RngOptions()
    with KgStore.open(kg) as store:
        enumerator = Enumerator(store, MemoryGraph(store), options, types=types)
        readings = Readings(enumerator, options)
        started = time.process_time()
        read = readings.of_all(examples)
        seconds = time.process_time() - started
    found = coverage(examples, read)
    return {
        **{key: found[key] for key in ("gold_forms", "found", "share", "candidates_median", "candidates_most")},
        "questions_cut": found["questions_cut"],
        "ms_per_question": round(1000 * seconds / max(1, len(examples)), 2),
        "distinct_forms": len(enumerator.forms.forms),
        "conditions": conditions(SEED),
    }


def measure_coverage(sets: Sequence[str], work: Path) -> dict[str, Any]:
    """The records of GrailQA's sample, with and without types, and of the generated sets."""
    record: dict[str, Any] = {}
    questions, examples = grailqa_examples(DATA)
    folder = work / "grailqa-queries"
    if not folder.exists():
        build_graph(questions, folder)
    record["grailqa"] = covered(folder, examples)
    record["grailqa_without_types"] = covered(folder, examples, types=False)
    for name in sets:
        if not (work / f"{name}.jsonl").is_file():
            raise SystemExit(f"{work / name}.jsonl is not there; run --steps make first")
        graph = work / f"{name}-kg"
        if not graph.exists():
            graph.mkdir()
            build(Workspace(graph), options=KgOptions(files=tuple(GRAPHS[name])))
        record[name] = covered(graph, generated_examples(work / f"{name}.jsonl", "dev"))
    return record


def evaluate(name: str, parser: str, training: str, topics: str, work: Path) -> dict[str, Any]:
    """Scores of one parser and training, without and with thresholds."""
    kind, settings = PARSERS[parser]
    settings = (*SETTINGS.get((name, kind), ()), *settings)
    options = [word for setting in settings for word in ("--set", setting)]
    found, seconds = kgqa(
        "answerability", "evaluate", str(work / name), "--parsers", kind, "--train", training, "--topics", topics,
        *options, home=work / "home",
    )  # fmt: skip
    row = {"systems": found["systems"], "settings": list(settings), "seconds": seconds, "conditions": conditions(SEED)}
    if parser == "rng+generator":
        row["dev"] = generator_on_dev(work, name, found["run_id"])
    return row


WEIGHTS = (0.0, 0.1, 0.3, 0.5, 0.7, 1.0)
"""Weights of the generator for which `generator_on_dev` measures the exact match."""


def generator_on_dev(work: Path, name: str, run_id: str) -> dict[str, Any]:
    """Shares of the dev questions that ranker, generator, and either are right of, and by weight of the generator.

    It is what happens before it counts whether a form finds something.
    """
    folders = artifact_folders(work / "home", run_id)
    options = RngOptions(generator=GeneratorOptions(enabled=True))
    examples = [one for one in read_examples(folders["examples"]) if one.split == "dev" and one.known]
    gold = [None if one.form is None else normalise(parse(one.form)) for one in examples]
    with KgStore.open(work / name / "kg") as store:
        parser = RngParser(store, folders["parser"], options)
        proposed = parser.proposed(parser.readings.of_all(examples))
        by_weight = {weight: [_first(forms) for forms in parser.mixed(proposed, weight)] for weight in WEIGHTS}
        chosen = parser.weights.generator
    right = {
        name: [_is_gold(form, wanted) for form, wanted in zip(forms, gold, strict=True)]
        for name, forms in {
            "ranker": [_first(one.ranked) for one in proposed],
            "generator": [_first(sorted(one.generated, key=lambda form: -form[1])) for one in proposed],
            **{str(weight): forms for weight, forms in by_weight.items()},
        }.items()
    }
    pairs = list(zip(right["ranker"], right["generator"], strict=True))

    def share(hits: Sequence[bool]) -> float:
        return round(sum(hits) / len(hits), 4)

    return {
        "questions": len(gold), "chosen": chosen, "ranker": share(right["ranker"]),
        "generator": share(right["generator"]), "either": share([a or b for a, b in pairs]),
        "generator_alone_right": sum(b and not a for a, b in pairs),
        "by_weight": {str(weight): share(right[str(weight)]) for weight in WEIGHTS},
    }  # fmt: skip


def _first(forms: Sequence[Scored]) -> Form | None | str:
    """The best form of a question, `""` where there is none."""
    return forms[0][0] if forms else ""


def _is_gold(form: Form | None | str, gold: Form | None) -> bool:
    if form == "" or form is None or gold is None:
        return form is None and gold is None
    return not isinstance(form, str) and normalise(form) == gold


COLUMNS = (
    ("all", "EM"), ("A", "EM"), ("A", "F1(R)"), ("U", "EM"), ("U", "F1(R)"), ("NK", "EM"), ("NA", "EM"),
    ("iid", "EM"), ("zero-shot", "EM"),
)  # fmt: skip


def tables(record: Mapping[str, Any]) -> str:
    """The markdown tables of a record: coverage, and scores by set."""
    lines = [
        "| gold forms | covered | share | candidates, median | most | ms a question |", "|---|---|---|---|---|---|",
    ]  # fmt: skip
    for name, one in record.get("coverage", {}).items():
        lines.append(
            f"| {name.replace('_', ' ')}, {one['gold_forms']:,} | {one['found']:,} | {one['share']:.4f} | "
            f"{one['candidates_median']:,} | {one['candidates_most']:,} | {one['ms_per_question']:.1f} |"
        )
    for name, own in record.get("sets", {}).items():
        if not own.get("evaluate"):
            continue
        heads = [" ".join(column) for column in COLUMNS]
        lines += ["", f"{name}:", "", "| | " + " | ".join(heads) + " |", "|---" * (len(heads) + 1) + "|"]
        for row, result in own["evaluate"].items():
            parser, training, _ = row.split("/")
            for system in result["systems"]:
                scores = system["scores"]["test"]
                cells = [
                    f"{100 * scores[group][metric]['value']:.1f}" if group in scores else "–"
                    for group, metric in COLUMNS
                ]
                label = f"{LABELS[parser]}, {training}{rule_of(system)}"
                lines.append(f"| {label} | " + " | ".join(cells) + " |")
        lines += generator_lines(own["evaluate"])
    return "\n".join(lines) + "\n"


def generator_lines(rows: Mapping[str, Any]) -> list[str]:
    """What the generator is right of on dev, where a row of a set has it."""
    lines: list[str] = []
    for row, result in rows.items():
        if (dev := result.get("dev")) is None:
            continue
        weights = "; ".join(f"{weight}: {100 * value:.1f}" for weight, value in dev["by_weight"].items())
        lines += [
            "",
            f"The generator on the {dev['questions']} dev questions, {row.split('/')[1]}: the ranker's best form is "
            f"right of {100 * dev['ranker']:.1f} % of them, the generator's of {100 * dev['generator']:.1f} %, one of "
            f"the two of {100 * dev['either']:.1f} %; {dev['generator_alone_right']} are right by the generator alone. "
            f"EM by its weight: {weights}. Chosen: {dev['chosen']}.",
        ]
    return lines


def main() -> None:
    """Runs the requested steps."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, help="folder of question sets, benchmarks and the home")
    parser.add_argument("--steps", default="make,coverage,evaluate")
    parser.add_argument("--sets", default="atlas,wikidata")
    parser.add_argument("--parsers", default="rng,rng+generator,decode")
    parser.add_argument("--train", default="A,A+U")
    parser.add_argument("--topics", default="linked", choices=("linked", "gold"))
    parser.add_argument("--json", type=Path, default=RESULTS / "parsers.json")
    given = parser.parse_args()
    record: dict[str, Any] = json.loads(given.json.read_text(encoding="utf-8")) if given.json.is_file() else {}
    if given.work is None:
        parser.error("--work DIR is needed to measure")
    given.work.mkdir(parents=True, exist_ok=True)
    sets, steps = given.sets.split(","), given.steps.split(",")
    record["conditions"] = conditions(SEED)
    for name in sets if "make" in steps else ():
        record.setdefault("sets", {}).setdefault(name, {})["made"] = make(name, given.work)
        _write(given.json, record)
    if "coverage" in steps:
        record.setdefault("coverage", {}).update(measure_coverage(sets, given.work))
        _write(given.json, record)
    for name in sets if "evaluate" in steps else ():
        own = record.setdefault("sets", {}).setdefault(name, {}).setdefault("evaluate", {})
        for one in given.parsers.split(","):
            for training in given.train.split(","):
                own[f"{one}/{training}/{given.topics}"] = evaluate(name, one, training, given.topics, given.work)
                _write(given.json, record)


def _write(path: Path, record: Mapping[str, Any]) -> None:
    results_file.write(path, record, FIELDS, sort_keys=True)


if __name__ == "__main__":
    main()
