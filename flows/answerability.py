"""Flows of answerability benchmarks: one is built from any graph and questions, parsers are scored on it."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from prefect import flow

from kgqa_core.config import Profile
from kgqa_core.datasets.load import input_files
from kgqa_core.errors import ArtifactError
from kgqa_core.papers.grailqability.report import metric_rows, paper_table, write
from kgqa_core.store.artifacts import ArtifactRef, verify
from tasks.benchmarks import (
    benchmark_examples,
    benchmark_in,
    benchmark_questions,
    build_benchmark,
    published_benchmark,
    score_parsers,
)
from tasks.engine.prefect_pages import show_page, table
from tasks.engine.run import Run, completed, tracked_run
from tasks.kg import build_kg, check_graph, given_graph
from tasks.linking import build_mentions, link_questions
from tasks.questions import load_questions
from tasks.secrets import load_secrets
from tasks.tracking.tracker import RunFile, RunValues


@flow(name="kgqa-answerability", flow_run_name="answerability {profile.kg.name}/{profile.questions.name}")
def build_answerability(profile: Profile, graph: str | None = None) -> dict[str, Any]:
    """Build a benchmark of questions of which a graph, with parts taken out, answers a part.

    Args:
        profile: Every parameter of a run; the graph, the questions, `answerability` and the seed count here.
        graph: Folder of a graph that is built already, in place of the files in the profile's section `kg`.
    """
    with tracked_run(profile) as run:
        kg = given_graph(graph, profile.kg)
        questions = load_questions(kg, profile.questions, profile.seed)
        made = build_benchmark(kg, questions, profile.answerability, profile.seed)
        run.save(status="made")
        data = {"run_id": run.id, "kg": kg, "questions": questions, "made": made}
        return completed(f"answerability over {profile.kg.name}", data)


@flow(name="kgqa-answerability-scores", flow_run_name="answerability scores {profile.kg.name}")
def evaluate_parsers(profile: Profile, benchmark: str, parsed: dict[str, str] | None = None) -> dict[str, Any]:
    """Train parsers on a benchmark, tune their thresholds on dev, and score them with and without.

    Args:
        profile: Every parameter of a run; `answerability`, `linking`, `parsing` and the seed count here.
        benchmark: Folder of the benchmark.
        parsed: `parser/training` and a folder with what it parsed already, in place of training.
    """
    with tracked_run(profile) as run:
        made, kg = benchmark_in(Path(benchmark))
        run.home.use_folder(made.folder)
        forms = {name: parsed_in(Path(folder)) for name, folder in (parsed or {}).items()}
        forms = forms or parse_all(made, kg, profile)
        scores = score_parsers(made, forms, profile.seed, profile.answerability.ontology)
        data = publish(run, profile, scores)
        return completed(f"{len(forms)} parsers on {profile.kg.name}", data)


@flow(name="kgqa-grailqability", flow_run_name="GrailQAbility over {profile.kg.name}")
def run_published(profile: Profile) -> dict[str, Any]:
    """Train parsers on GrailQAbility's own files over a part of Freebase, and score them as the paper's Table 3.

    Args:
        profile: Every parameter of a run; `kg`, `questions`, `answerability`, `linking`, `parsing` and the seed count.
    """
    with tracked_run(profile) as run:
        kg = build_kg(profile.kg)
        made = published_benchmark(profile.questions)
        forms = parse_all(made, kg, profile)
        scores = score_parsers(made, forms, profile.seed, profile.answerability.ontology)
        data = publish(run, profile, scores)
        return completed(f"{len(forms)} parsers on {profile.questions.name}", data)


def parse_all(benchmark: ArtifactRef, kg: ArtifactRef, profile: Profile) -> dict[str, ArtifactRef]:
    """What each parser says of the dev and test questions, by `parser/training`."""
    from tasks.parsing import train_and_parse

    options = profile.answerability
    questions = benchmark_questions(benchmark, kg)
    linked = None
    if options.topics == "linked":
        linked = link_questions(kg, build_mentions(kg), questions, profile.linking)
    examples = {
        training: benchmark_examples(benchmark, kg, questions, training, linked) for training in options.training
    }
    return {
        f"{parser}/{training}": train_and_parse(parser, kg, examples[training], profile)
        for parser in options.parsers
        for training in options.training
    }


def parsed_in(folder: Path) -> ArtifactRef:
    """A parser's predictions, in a folder.  Raises ArtifactError where that is none."""
    ref = verify(folder.expanduser().resolve())
    if ref.kind != "parsed":
        raise ArtifactError(f"{folder} holds an artifact of kind {ref.kind}, not the predictions of a parser (parsed)")
    return ref


def publish(run: Run, profile: Profile, scores: ArtifactRef) -> dict[str, Any]:
    """Write the run's report and record, and show both in Prefect and MLflow; run_id, report and aggregates."""
    aggregates = json.loads((scores.folder / "aggregates.json").read_text(encoding="utf-8"))
    run.folder.mkdir(parents=True, exist_ok=True)
    facts = [("Benchmark", profile.kg.name), ("Topics", profile.answerability.topics), ("Seed", str(profile.seed))]
    created = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
    report = write(run.folder, aggregates=aggregates, title=profile.kg.name, facts=facts, created=created)
    run.tracker.record(
        RunValues(run.tracked, metrics=[(name, value, 0) for name, value in metric_rows(aggregates)]),
        RunFile(run.tracked, str(report)),
        *(RunFile(run.tracked, str(scores.folder / name), "scores") for name in ("aggregates.json", "scores.parquet")),
    )
    grid = paper_table(aggregates)
    rows: list[Mapping[str, Any]] = [
        dict(zip(grid.columns, (name, *map(str, cells)), strict=True)) for name, cells in grid.rows
    ]
    show_page("kgqa-answerability", [f"## {profile.kg.name}", grid.note, table(rows)], f"Table 3 of {profile.kg.name}")
    run.save(status="done", report=str(report), aggregates=aggregates)
    return {"run_id": run.id, "report": str(report), "scores": scores, "aggregates": aggregates}


def check(profile: Profile, graph: str | None = None) -> None:
    """Raise the first fault of what a build needs: the graph, and the question files.

    Raises KgInputError, ArtifactError, InputError or QuestionFileError.
    """
    load_secrets(profile)
    check_graph(graph, profile.kg)
    input_files(profile.questions)
