"""Score tables on the console."""

import io

from rich.console import Console

from kgqa_core.evaluation.labels import gain_text, knowledge_label, p_text, seconds_text
from kgqa_core.report.tables import breakdown_table, overview_table, retriever_table, score_tables, table_1
from kgqa_core.types import COMPLEXITY_TYPES

from .fake import FORMATS, fake_aggregates


def shown(aggregates: dict, width: int = 160) -> str:
    console = Console(file=io.StringIO(), width=width, no_color=True)
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
    assert knowledge_label("hop_path/rewritten/builtin") == "HopPath facts (rewritten)"
    assert knowledge_label("kaping/triples/hf:a/b") == "KAPING facts"
    assert (knowledge_label("none/none/m"), knowledge_label("-/-/predictions")) == ("No knowledge", "As given")
    assert (p_text(0.0004), p_text(0.0132), p_text(0.049), p_text(1.0)) == (
        "p < 0.001",
        "p = 0.013",
        "p = 0.049",
        "p = 1",
    )
    assert (gain_text(83.4), gain_text(-4.2), gain_text(None)) == ("+83 %", "−4 %", "from 0")
    assert (seconds_text(4.25), seconds_text(75.2), seconds_text(3700)) == ("4.2 s", "1 min 15 s", "1 h 1 min")


def test_predictions_of_somebody_else_get_their_tables() -> None:
    cells = fake_aggregates()["scores"]["none/none/builtin"]
    text = shown({"scores": {"-/-/predictions": cells}})
    assert "predictions" in text and "As given" in text


def test_ten_kinds_of_knowledge_fit_a_hundred_columns() -> None:
    text = shown(fake_aggregates(("builtin", "openai:gpt"), FORMATS), width=100)
    lines = text.splitlines()
    assert max(map(len, lines)) <= 100 and "…" not in text
    row = next(line for line in lines if line.startswith(" H  HopPath facts (rewritten)"))
    assert row.split()[4:] == "76.8 [75.1, 78.5] 78.8 [77.2, 80.4] 77.8 [76.1, 79.5] 140".split()
    letters = next(line for line in lines if line.split()[:2] == ["Type", "n"])
    assert letters.split()[2:] == list("ABCDEFGHIJ")
    assert next(line for line in lines if line.split()[:1] == ["generic"]).split()[1:3] == ["300", "9.7"]
    assert "+208 −119  p < 0.001" in text


def test_the_letters_of_the_overview_are_those_of_the_breakdown() -> None:
    aggregates = fake_aggregates(experiments=FORMATS)
    rows = [name for name, _ in overview_table(aggregates, "builtin").rows]
    assert list(breakdown_table(aggregates, "by_hops", "builtin", "exact", alone=False).columns[2:]) == rows


def test_path_metrics_have_columns_only_where_a_retriever_predicts_paths() -> None:
    plain, paths = (retriever_table(fake_aggregates(experiments=given)) for given in (None, FORMATS))
    assert plain.columns == ("Retriever", "Hits@1", "Hits@5", "Recall of answers")
    assert paths.columns[4:] == ("Hop accuracy", "Path@1", "Path@5")
    assert [str(cell) for cell in dict(paths.rows)["HopPath"]][3:] == ["99.1", "96.2", "99.5"]
    assert dict(paths.rows)["Rigel"][3:] == (None, None, None)


def test_a_set_that_needs_no_reading_is_called_easy_on_page_and_console() -> None:
    cells = lambda hits, recall: {  # noqa: E731
        "test": {name: {"value": value, "low": 0, "high": 1, "n": 9} for name, value in
                 (("hits_at_1", hits), ("recall_of_answers", recall))}
    }  # fmt: skip
    hard = {"scores": {"random/-/-": cells(0.1, 0.2), "frequent/-/-": cells(0.1, 0.3), "oracle/-/-": cells(0.9, 0.9)}}
    assert retriever_table(hard).note == "Most frequent relation and Random do not read the question." or (
        retriever_table(hard).note == "Random and Most frequent relation do not read the question."
    )
    alone = {"scores": {name: own for name, own in hard["scores"].items() if not name.startswith("frequent")}}
    assert retriever_table(alone).note == "Random does not read the question."
    assert "easy" not in str(score_tables(hard)[-1].caption)
    easy = {"scores": hard["scores"] | {"random/-/-": cells(0.2, 0.858)}}
    expected = "An easy set: Random reaches Recall of answers 85.8 % without reading the question."
    assert retriever_table(easy).note == expected and expected in str(score_tables(easy)[-1].caption)
    assert retriever_table({"scores": {"oracle/-/-": cells(0.9, 0.9)}}).note == ""
