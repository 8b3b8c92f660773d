"""The comparison of runs, as tables of a terminal and as one self-contained HTML page.

Everything comes from `runs.diff.compare_runs`.  Names and answers are somebody else's text: the terminal prints
them as they are, without markup; the page escapes them and allows no script.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import RenderableType
from rich.table import Table

from kgqa_core.config import Experiment
from kgqa_core.evaluation.labels import (
    knowledge_label,
    p_text,
    percent,
    retriever_label,
)
from kgqa_core.evaluation.paired import points
from kgqa_core.metrics.registry import improvement, metric_label, metrics_shown
from kgqa_core.report.page import is_safe_link, make_environment, without_unseen
from kgqa_core.report.terminal import VisibleText, titled_table
from kgqa_core.retrieval.registry import TRAINED
from kgqa_core.runs.changes import shown

WHAT = {"kg": "Graph", "dkg": "Differentiable graph", "questions": "Questions"}
PARTS = {str(spec.artifact): spec.artifact_label for spec in TRAINED.values()} | {"rewriter": "Rewriter"}
LIMIT = 10


def letters(found: Mapping[str, Any]) -> list[str]:
    """What tables call the runs: `A`, `B`, …"""
    number = len(found["runs"])
    return [chr(ord("A") + index) if number <= 26 else str(index + 1) for index in range(number)]


def run_tables(found: Mapping[str, Any], limit: int = LIMIT) -> list[RenderableType]:
    """What a terminal shows of a comparison; limit: questions of each list."""
    names = letters(found)
    parts: list[RenderableType] = [_runs(found, names)]
    for title, rows in (("Options", option_rows(found)), ("Data", data_rows(found)), ("Trained", trained_rows(found))):
        parts.append(_grid(title, ("", *names), rows) if rows else VisibleText(f"{title}: no difference", style="dim"))
    code = [(name, [reason]) for name, reason in code_rows(found, names)]
    if code:
        parts.append(_grid("Stages that are not the same", ("stage", "why, against A"), code))
    else:
        parts.append(VisibleText("Stages: all the same", style="dim"))
    for index, name in enumerate(names[1:]):
        headline_rows = [row for row in score_rows(found, index) if row["metric"] in metrics_shown("run_comparison")]
        changed = [row for row in headline_rows if row["moved"]]
        if changed:
            parts.append(_score_table(changed, name, found["level"]))
        if len(changed) < len(headline_rows):
            parts.append(
                VisibleText(
                    f"{len(headline_rows) - len(changed)} scores of {name} are those of A, question by question", "dim"
                )
            )
    for one in found["questions"]:
        parts += _question_tables(found, one, names, limit)
    parts += [VisibleText(f"note: {note}", style="yellow") for note in found["notes"]]
    return parts


def write(path: Path, found: Mapping[str, Any], created: str = "") -> Path:
    """Writes the page and returns its path."""
    path.write_text(render(found, created), encoding="utf-8")
    return path


def render(found: Mapping[str, Any], created: str = "") -> str:
    """The page as text."""
    environment = make_environment()
    environment.filters.update(points=points, experiment=experiment_label, metric=metric_label)
    names = letters(found)
    text = environment.get_template("runs.html.j2").render(
        found=found,
        created=created,
        names=names,
        options=option_rows(found),
        data=data_rows(found),
        trained=trained_rows(found),
        code=code_rows(found, names),
        scores=[(names[index + 1], score_rows(found, index)) for index in range(len(names) - 1)],
        questions=[(names[_place(found, one)], one) for one in found["questions"]],
        reports=[
            run["report"] if run["report"] and is_safe_link(str(run["report"])) else None for run in found["runs"]
        ],
        level=level_text(found["level"]),
    )
    return without_unseen(text)


def option_rows(found: Mapping[str, Any]) -> list[tuple[str, list[str]]]:
    """Options that differ: (dotted key, value in each run)."""
    return [(row["key"], [shown(value) for value in row["values"]]) for row in found["configuration"]]


def data_rows(found: Mapping[str, Any]) -> list[tuple[str, list[str]]]:
    """Digests of what was read, and the counts that differ."""
    rows = []
    for one in found["data"]:
        rows.append((WHAT.get(one["what"], one["what"]), _digests(one)))
        rows += [(f"  {row['name'].replace('_', ' ')}", [_number(v) for v in row["values"]]) for row in one["counts"]]
    return rows


def trained_rows(found: Mapping[str, Any]) -> list[tuple[str, list[str]]]:
    """Digests of trained parts."""
    return [(PARTS.get(one["what"], one["what"]), _digests(one)) for one in found["trained"]]


def code_rows(found: Mapping[str, Any], names: Sequence[str]) -> list[tuple[str, str]]:
    """Stages whose key differs, and why."""
    rows = []
    for row in found["code"]["stages"]:
        headline_rows = [(name, "; ".join(why)) for name, why in zip(names[1:], row["why"][1:], strict=True) if why]
        rows.append(
            (row["stage"], "; ".join(f"{name}: {why}" if len(names) > 2 else why for name, why in headline_rows))
        )
    return rows


def score_rows(found: Mapping[str, Any], place: int) -> list[dict[str, Any]]:
    """Differences of one other run; `sure`: better (up) or worse (down), where the interval leaves out 0."""
    rows = []
    for row in found["scores"]:
        difference = row["others"][place]
        if difference is not None:
            metric = row["metric"]
            low, high = improvement(metric, difference["low"], difference["high"])
            sure = "up" if low > 0 else "down" if high < 0 else ""
            moved = bool(difference["won"] or difference["lost"])
            named = {"name": row["experiment"], "metric": metric, "label": metric_label(metric)}
            rows.append({**named, "sure": sure, "moved": moved, **difference})
    return rows


def experiment_label(experiment: str) -> str:
    """`rigel/triples/builtin` → `Rigel facts · builtin`."""
    model = Experiment.parse(experiment).answerer
    return f"{knowledge_label(experiment)} · {model}" if model != "-" else f"{retriever_label(experiment)} alone"


def level_text(level: float) -> str:
    """0.95 → `95 %`."""
    return f"{100 * level:g} %"


def _runs(found: Mapping[str, Any], names: Sequence[str]) -> Table:
    table = titled_table("Runs", ("", "run", "status", "graph / questions", "profile", "commit"), overflow="fold")
    for name, run in zip(names, found["runs"], strict=True):
        cells = (run["run_id"], run["status"], f"{run['kg']} / {run['questions']}", run["profile"], run["commit"])
        table.add_row(VisibleText(name, style="bold"), *(VisibleText(str(cell)) for cell in cells))
    return table


def _grid(title: str, heads: Sequence[str], rows: Sequence[tuple[str, Sequence[str]]]) -> Table:
    return titled_table(title, heads, ((name, *cells) for name, cells in rows), overflow="fold")


def _score_table(rows: Sequence[Mapping[str, Any]], name: str, level: float) -> Table:
    title = f"Scores of {name} against A, points with {level_text(level)} intervals"
    numbers = ("A", name, "difference", "won", "lost", "n")
    table = titled_table(title, ("experiment", "metric", *numbers), right=numbers)
    for row in rows:
        change = f"{points(row['value'])} [{points(row['low'])}, {points(row['high'])}]"
        change += f" {p_text(row['p'])}" if row["p"] is not None else ""
        style = {"up": "bold green", "down": "bold red"}.get(row["sure"], "")
        counts = (f"{row['won']:,}", f"{row['lost']:,}", f"{row['n']:,}")
        cells = (percent(row["before"]), percent(row["after"]))
        table.add_row(
            VisibleText(experiment_label(row["name"])), row["label"], *cells, VisibleText(change, style=style), *counts
        )
    return table


def _question_tables(
    found: Mapping[str, Any], one: Mapping[str, Any], names: Sequence[str], limit: int
) -> list[RenderableType]:
    name = names[_place(found, one)]
    what = f"{experiment_label(one['experiment'])}, {metric_label(one['metric'])}"
    parts: list[RenderableType] = []
    for word in ("won", "lost"):
        rows = one[word]
        if not rows:
            parts.append(VisibleText(f"Questions {word} by {name} against A ({what}): none", style="dim"))
            continue
        count = f"{len(rows):,}" if len(rows) <= limit else f"{limit:,} of {len(rows):,}"
        cells = (
            (row["text"], ", ".join(row["gold"]), row["answer_before"] or "–", row["answer_after"] or "–")
            for row in rows[:limit]
        )
        lines = ([without_unseen(shown(cell)) for cell in row] for row in cells)
        title = f"Questions {word} by {name} against A ({what}): {count}"
        parts.append(titled_table(title, ("question", "gold", "A", name), lines, overflow="fold"))
    return parts


def _place(found: Mapping[str, Any], one: Mapping[str, Any]) -> int:
    return next(index for index, run in enumerate(found["runs"]) if index and run["run_id"] == one["run_id"])


def _digests(one: Mapping[str, Any]) -> list[str]:
    first = one["digests"][0]
    return [
        "–" if digest is None else "the same" if index and digest == first else str(digest)[:12]
        for index, digest in enumerate(one["digests"])
    ]


def _number(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return shown(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"
