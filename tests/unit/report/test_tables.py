"""Score tables on the console."""

import io

from rich.console import Console

from kgqa_core.report.labels import gain_text, knowledge_label, seconds_text, split_experiment
from kgqa_core.report.tables import breakdown_table, score_tables, table_1
from kgqa_core.types import COMPLEXITY_TYPES

from .fake import fake_aggregates


def shown(aggregates: dict) -> str:
    console = Console(file=io.StringIO(), width=160, no_color=True)
    for table in score_tables(aggregates):
        console.print(table)
    return console.file.getvalue()  # type: ignore[attr-defined]


def test_the_console_shows_scores_intervals_gains_and_notes() -> None:
    text = shown(fake_aggregates())
    for part in ("Table 1 · Exact", "75.2 [73.5, 76.9]", "+795 %", "−4 %", "Retriever alone", "Table 2", "multi-hop"):
        assert part in text
    assert "yes/no" not in text, "a type without questions is left to the report"
    assert "7 test question(s) cannot be linked" in " ".join(text.split())
    assert "57 test question(s) were seen in training" in " ".join(text.split())


def test_table_1_has_the_papers_order_of_columns() -> None:
    grid = table_1(fake_aggregates(("builtin", "hf:a/b")), "exact")
    assert grid.columns == ("Answerer", "No knowledge", "Random facts", "Rigel facts", "Oracle facts")
    assert [name for name, _ in grid.rows] == ["builtin", "hf:a/b"]


def test_table_2_shows_types_without_questions_as_dashes() -> None:
    grid = breakdown_table(fake_aggregates(), "by_complexity", "builtin", "exact")
    assert tuple(name for name, _ in grid.rows)[:9] == COMPLEXITY_TYPES
    assert all(cell is None for cell in dict(grid.rows)["yes/no"])


def test_nothing_scored_gives_no_table() -> None:
    assert score_tables({}) == []
    assert score_tables({"scores": {}}) == []


def test_a_retriever_alone_gives_its_table() -> None:
    scores = {name: by for name, by in fake_aggregates()["scores"].items() if name.endswith("/-/-")}
    assert [str(table.title) for table in score_tables({"scores": scores})] == ["Retriever alone"]


def test_names_are_never_read_as_markup() -> None:
    aggregates = fake_aggregates(("[red]model[/red]",))
    assert "[red]model[/red]" in shown(aggregates)


def test_words() -> None:
    assert split_experiment("rigel/triples/hf:google/flan-t5") == ("rigel", "triples", "hf:google/flan-t5")
    assert knowledge_label("rigel/text/builtin") == "Rigel facts (text)"
    assert (gain_text(83.4), gain_text(-4.2), gain_text(None)) == ("+83 %", "−4 %", "from 0")
    assert (seconds_text(4.25), seconds_text(75.2), seconds_text(3700)) == ("4.2 s", "1 min 15 s", "1 h 1 min")


def test_predictions_of_somebody_else_get_their_tables() -> None:
    cells = fake_aggregates()["scores"]["none/none/builtin"]
    text = shown({"scores": {"-/-/predictions": cells}})
    assert "predictions" in text and "As given" in text
