"""`kgqa answerability …`: build a benchmark of what a graph can and cannot answer, verify it, show it, score on it."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast, get_args

import typer

from flows.cli import _session as common
from flows.cli._options import BuildSourceOption, ForceOption, ProfileOption, SetOption, graph_folder
from flows.cli._session import JsonSession, Session, TableSession, err, print_json, print_rows
from flows.cli.abstention import abstain
from flows.cli.usage import CommandApp
from kgqa_core.errors import ConfigError, InputError

if TYPE_CHECKING:
    from kgqa_core.config import Profile
    from kgqa_core.store.artifacts import ArtifactRef
    from kgqa_core.store.publish import FolderClaim

answerability_app = CommandApp(
    no_args_is_help=True, help="Build a benchmark of what a graph can and cannot answer, from any graph and questions."
)

FolderArgument = Annotated[Path, typer.Argument(help="Folder of a benchmark, with statistics.json.")]


@answerability_app.command("build")
def build(
    session: Session,
    kg: BuildSourceOption = None,
    questions: Annotated[
        Path | None, typer.Option("--questions", help="Question file (JSON lines).", show_default=False)
    ] = None,
    profile: ProfileOption = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder to copy the benchmark to as well.", show_default=False)
    ] = None,
    limit: Annotated[
        int | None, typer.Option("--limit", min=10, help="Questions to draw where there are more.", show_default=False)
    ] = None,
    settings: SetOption = None,
    force: ForceOption = False,
) -> None:
    """Take parts out of a graph until a share of the questions has no answer in it; label and split the questions."""
    graph = graph_folder(kg or [])
    chosen = _profile(profile, [] if graph else kg or [], questions, limit, settings or [], built=graph is not None)
    session.prepare()
    session.start_logging()
    with err.status("checking the inputs …"):
        from flows.answerability import build_answerability, check

        if graph is None:
            common.check_data(chosen)
        check(chosen, graph)
        claim = _claim(out, chosen, graph, force) if out is not None else None
    started = time.monotonic()
    data = build_answerability(chosen, graph)
    folder = data["made"].folder if claim is None else _copy(data["made"], claim)
    _show(_statistics(folder), to_stderr=session.as_json)
    if session.as_json:
        from kgqa_core.store.artifacts import read_manifest

        print_json(
            {
                "run_id": data["run_id"], "seconds": round(time.monotonic() - started, 2), "out": str(folder),
                "graph": str(folder / "kg"), "digest": data["made"].digest,
                "counts": read_manifest(data["made"].folder)["counts"],
            }
        )  # fmt: skip
    else:
        common.out.print(f"benchmark {folder}\ngraph     {folder / 'kg'}", soft_wrap=True, markup=False)


@answerability_app.command("verify")
def verify(
    session: TableSession,
    folder: FolderArgument,
    kg: Annotated[
        Path | None,
        typer.Option("--kg", help="The ideal graph, where it is not the one that the overlay names."),
    ] = None,
) -> None:
    """Run every question on both graphs, and check every label and every rule of the splits; exit 1 for a fault."""
    from kgqa_core.papers.grailqability.builder.verify import verify as check
    from tasks.engine.progress import StageMonitor

    session.start_logging()
    with StageMonitor("verify", lambda rows: None) as monitor:
        outcome = check(folder, kg=kg, monitor=monitor)
    rows = [{name: check_[name] for name in ("rule", "checked", "faults")} for check_ in outcome["checks"]]
    print_rows("Checks", rows, to_stderr=session.as_json)
    for rule in outcome["checks"]:
        for fault in rule["first"]:
            err.print(f"  {fault}", markup=False, highlight=False)
    if session.as_json:
        print_json(outcome)
    if not outcome["clean"]:
        raise typer.Exit(1)


@answerability_app.command("stats")
def stats(session: TableSession, folder: FolderArgument) -> None:
    """Show a benchmark's tables: splits, drops, and unanswerable questions by drop, split and level."""
    table = _statistics(folder)
    if session.as_json:
        print_json(table)
    else:
        _show(table)


@answerability_app.command("score")
def score(
    session: TableSession,
    folder: FolderArgument,
    predictions: Annotated[
        Path, typer.Option("--predictions", help='JSON lines: {"id": …, "s_expression": … or null, "answers": […]}.')
    ],
    split: Annotated[str, typer.Option("--split", help="train, dev or test.")] = "test",
) -> None:
    """Score somebody's forms and answers: F1(L), F1(R) and EM on A, U, NK, NA, by drop and by level."""
    from kgqa_core.errors import nearest
    from kgqa_core.papers.grailqability.builder.records import read_benchmark
    from kgqa_core.papers.grailqability.builder.score import check_predicted, read_predicted, table
    from kgqa_core.types import SPLITS

    if split not in SPLITS:
        raise InputError(f"there is no split {split!r}{nearest(split, SPLITS) or '; choose train, dev or test'}")
    benchmark, predicted = read_benchmark(folder), read_predicted(predictions)
    try:
        without = check_predicted(benchmark, predicted, split)
    except InputError as fault:
        raise InputError(f"{predictions}: {fault}") from None
    if without:
        err.print(f"{without:,} {split} questions have no prediction and score 0")
    rows = table(benchmark, predicted, split)
    print_rows(f"Scores on {split}", rows, to_stderr=session.as_json)
    if session.as_json:
        print_json({"split": split, "scores": rows})


def score_published(
    session: JsonSession, benchmark: str, predictions: Path, data: Path | None, split: str, ontology: Path | None,
    rules: str, untaken: Path | None = None,
) -> None:  # fmt: skip
    """Score forms and answers on the published files of GrailQAbility; see `kgqa evaluate --benchmark`.

    untaken: a question file or graph, which no benchmark takes.
    """
    from kgqa_core.errors import nearest
    from kgqa_core.papers.grailqability.builder.published import of_split, read_official_predictions, read_published
    from kgqa_core.papers.grailqability.builder.score import check_predicted, table
    from kgqa_core.papers.grailqability.freebase_match import evaluator
    from kgqa_core.papers.grailqability.metrics import Rules
    from kgqa_core.types import SPLITS

    for option, value, known in (
        ("benchmark", benchmark, ("grailqability",)),
        ("split", split, SPLITS),
        ("rules", rules, get_args(Rules)),
    ):
        if value not in known:
            raise InputError(f"--{option} {value!r} is not known{nearest(value, known)}; choose {' or '.join(known)}")
    if untaken is not None:
        raise InputError(f"--benchmark {benchmark} takes --data, not --questions or --kg: {str(untaken)!r}")
    if data is None:
        raise InputError("--benchmark grailqability needs --data, the folder of its files or one of them")
    read = read_published(data, split)
    gold, given = of_split(read, split), read_official_predictions(predictions)
    ids = {question.id for question in gold.questions}
    predicted = {key: prediction for key, prediction in given.items() if key in ids}
    without, other = check_predicted(gold, predicted, split), len(given) - len(predicted)
    for reject in read.rejects[:5]:
        err.print(f"left out: {reject}", markup=False, highlight=False, soft_wrap=True)
    notes = [
        (len(read.rejects), "rows of the benchmark cannot be read and are not scored"),
        (without, f"{split} questions have no prediction and score 0"),
        (other, f"predictions are of no {split} question and do not count"),
    ]
    for number, what in notes:
        if number:
            err.print(f"{number:,} {what}", soft_wrap=True)
    if ontology is None:
        err.print("forms are compared by their shape; --ontology DIR does as the published script", soft_wrap=True)
    rows = table(gold, predicted, split, evaluator(ontology, cast("Rules", rules)))
    print_rows(f"GrailQAbility, {split}", rows, to_stderr=session.as_json)
    if session.as_json:
        print_json(
            {
                "benchmark": benchmark, "split": split, "rules": rules, "ontology": ontology and str(ontology),
                "rejects": [str(reject) for reject in read.rejects], "without_prediction": without,
                "other_predictions": other, "scores": rows,
            }
        )  # fmt: skip


@answerability_app.command("evaluate")
def evaluate(
    session: Session,
    folder: FolderArgument,
    parsers: Annotated[
        str | None, typer.Option("--parsers", help="rng, decode, or both with a comma.", show_default=False)
    ] = None,
    train: Annotated[
        str | None,
        typer.Option("--train", help="A (answerable questions only), A+U, or both with a comma.", show_default=False),
    ] = None,
    topics: Annotated[
        str | None,
        typer.Option("--topics", help="linked (found in the modified graph) or gold.", show_default=False),
    ] = None,
    parsed: Annotated[
        list[str] | None,
        typer.Option(
            "--parsed", help="PARSER/TRAINING=FOLDER: score what was parsed already; repeat it.", show_default=False
        ),
    ] = None,
    profile: ProfileOption = None,
    settings: SetOption = None,
) -> None:
    """Train parsers on a benchmark, tune thresholds on dev, and score them as the paper's Table 3."""
    given = {"parsers": parsers and f"[{parsers}]", "training": train and f"[{train}]", "topics": topics}
    chosen = _evaluation(folder, profile, given, settings or [])
    there = dict(_pair(text) for text in parsed or ())
    session.prepare()
    session.start_logging()
    with err.status("checking the inputs …"):
        from flows.answerability import evaluate_parsers, parsed_in
        from tasks.benchmarks import benchmark_in

        benchmark_in(folder)
        for parsed_folder in there.values():
            parsed_in(Path(parsed_folder))
    started = time.monotonic()
    data = evaluate_parsers(chosen, str(folder), there)
    show_evaluation(data, started, session)


def show_evaluation(data: dict[str, Any], started: float, session: JsonSession) -> None:
    """The scores of parsers, and where their report and their predictions lie."""
    _show_scores(data["aggregates"], to_stderr=session.as_json)
    predictions = data["scores"].folder / "predictions"
    if session.as_json:
        print_json(
            {
                "run_id": data["run_id"], "seconds": round(time.monotonic() - started, 2), "report": data["report"],
                "digest": data["scores"].digest, "predictions": str(predictions),
                "systems": data["aggregates"]["systems"],
            }
        )  # fmt: skip
    else:
        lines = f"report       {Path(data['report']).as_uri()}\npredictions  {predictions}"
        common.out.print(lines, soft_wrap=True, markup=False)


def _evaluation(folder: Path, name: str | None, given: dict[str, str | None], settings: list[str]) -> Profile:
    """The profile of an evaluation; its graph and questions are the benchmark's, and have its name."""
    from kgqa_core.config import make_profile, parse_settings

    title = folder.expanduser().resolve().name
    more = [*settings, *(f"answerability.{key}={value}" for key, value in given.items() if value)]
    if not name:
        named = {"name": title}
        return make_profile(
            {"name": title, "kg": named, "questions": named}, parse_settings(more), origin="the options"
        )
    chosen = common.choose_profile(name, settings=more)
    return chosen.model_copy(
        update={part: getattr(chosen, part).model_copy(update={"name": title}) for part in ("kg", "questions")}
    )


def _pair(text: str) -> tuple[str, str]:
    name, equals, folder = text.partition("=")
    if not equals or name.count("/") != 1:
        raise ConfigError(f"--parsed {text!r} is not PARSER/TRAINING=FOLDER, as rng/A+U=parsed")
    return name, folder


def _show_scores(aggregates: dict[str, Any], *, to_stderr: bool = False) -> None:
    from kgqa_core.papers.grailqability.report import report_grids, threshold_rows
    from kgqa_core.report.tables import rich_table

    console = err if to_stderr else common.out
    for grid in report_grids(aggregates):
        if grid.rows:
            console.print(rich_table(grid, intervals=False, plain=True))
    if rows := threshold_rows(aggregates):
        print_rows("Thresholds, tuned on dev", rows, to_stderr)


def _profile(
    name: str | None, files: list[str], questions: Path | None, limit: int | None, settings: list[str], *, built: bool
) -> Profile:
    """The profile of a build: a profile's graph and questions, or those of the options."""
    more = [*settings, *([f"answerability.limit={limit}"] if limit else [])]
    if name or (files and questions):
        return common.choose_profile(name, files, questions, None, more)
    if not built or questions is None:
        raise ConfigError("give --kg FILE or FOLDER and --questions FILE.jsonl, or --profile NAME")
    from kgqa_core.config import make_profile, parse_settings

    layer = {
        "name": questions.stem,
        "questions": {"name": questions.stem, "source": "jsonl", "path": str(questions)},
    }
    return make_profile(layer, parse_settings(more), origin="the options")


def _claim(out: Path, profile: Profile, graph: str | None, force: bool) -> FolderClaim:
    """The folder of a copy."""
    from kgqa_core.store.publish import claim_folder, source_of

    files = [graph] if graph else list(profile.kg.files)
    questions = profile.questions.path or f"bundled:{profile.questions.source}"
    source = source_of("answerability build", kg=files, questions=questions)
    return claim_folder("answerability", out, source=source, inputs=(*files, questions), force=force)


def _copy(made: ArtifactRef, claim: FolderClaim) -> Path:
    """A copy of the benchmark in a folder of its own, with the graph under its overlay."""
    from kgqa_core.kg.overlay import carry_base
    from kgqa_core.papers.grailqability.builder.records import GRAPH

    return claim.publish_copy(made.folder, lambda folder: carry_base(folder / GRAPH, made.folder / GRAPH))


def _statistics(folder: Path) -> dict[str, Any]:
    path = folder / "statistics.json"
    if not path.is_file():
        raise InputError(f"{folder} is no answerability benchmark: it has no statistics.json")
    try:
        table: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as fault:
        raise InputError(f"{path} cannot be read: {fault}") from None
    if not isinstance(table, dict) or not {"splits", "drops", "goals"} <= set(table):
        raise InputError(f"{path} is not that of an answerability benchmark; `kgqa answerability build` makes one")
    return table


def _show(table: dict[str, Any], *, to_stderr: bool = False) -> None:
    from kgqa_core.papers.grailqability.builder.statistics import TABLES, ordered, shown, turned

    for name, title in TABLES.items():
        rows = [{key: shown(value) for key, value in row.items()} for row in ordered(table, name)]
        print_rows(title, turned(rows, "of") if name == "splits" else rows, to_stderr)
    if table["left_out"]:
        print_rows("Left out", [{"reason": why, "questions": n} for why, n in table["left_out"].items()], to_stderr)


answerability_app.command()(abstain)
