"""ComplexWebQuestions: answers with aliases, forms and paths of the query, types of composition."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kgqa_core.config import QuestionsOptions
from kgqa_core.datasets.files.question import read_questions
from kgqa_core.datasets.load import read_raw, read_source
from kgqa_core.datasets.published.cwq import FILES, ComplexQuestion
from tests.unit.datasets.published.official import graph, loaded, stored

QUERY = """PREFIX ns: <http://rdf.freebase.com/ns/>
SELECT DISTINCT ?x
WHERE {
FILTER (?x != ?c)
FILTER (!isLiteral(?x) OR lang(?x) = '' OR langMatches(lang(?x), 'en'))
?c ns:sports.sports_team.team_mascot ns:m.01 .
?c ns:sports.sports_team.arena ?x .
?x ns:location.location.containedby ns:g.02 .
}
"""


def question(name: str, **more: Any) -> dict[str, Any]:
    return {
        "ID": name,
        "webqsp_ID": "WebQTrn-1",
        "webqsp_question": "where does the team play?",
        "machine_question": "where does the team with mascot Lou play and is in Ohio",
        "question": "In which stadium of Ohio does the team with the mascot Lou play?",
        "sparql": QUERY,
        "compositionality_type": "composition",
        "answers": [
            {"answer": "Big Arena", "answer_id": "m.09", "aliases": ["The Arena", "Big Arena"]},
            {"answer": None, "answer_id": "m.10", "aliases": []},
        ],
        "created": "2018-02-13T00:30:11",
        **more,
    }


def options(path: Path, **more: Any) -> QuestionsOptions:
    return QuestionsOptions(source="cwq", path=str(path), **more)


def test_a_row_becomes_a_question_with_the_form_and_paths_of_its_query(tmp_path: Path) -> None:
    stored(tmp_path / "ComplexWebQuestions_dev.json", [question("WebQTrn-1_ab")])
    (row,) = read_raw(options(tmp_path), 7)
    assert (row["id"], row["split"], row["complexity"], row["answer_type"]) == (
        "WebQTrn-1_ab",
        "dev",
        "multi-hop",
        "entities",
    )
    assert sorted(row["topic_entities"]) == ["g.02", "m.01"]
    assert dict(zip(row["topic_entities"], row["relation_paths"], strict=True)) == {
        "m.01": ["<inv>-sports.sports_team.team_mascot", "sports.sports_team.arena"],
        "g.02": ["<inv>-location.location.containedby"],
    }
    assert (row["answers"], row["answer_aliases"]) == (["m.09", "m.10"], [["Big Arena", "The Arena"], []])
    assert row["s_expression"].startswith("(AND (JOIN ") and row["sparql"] == QUERY.strip()
    ((_, record),) = FILES.records(tmp_path)
    assert isinstance(record, ComplexQuestion)
    assert (record.webqsp_id, record.composition) == ("WebQTrn-1", "composition")
    assert record.machine_question == "where does the team with mascot Lou play and is in Ohio"


def test_types_of_composition_are_complexity_types_and_values_have_no_id(tmp_path: Path) -> None:
    year = [{"answer": "1999", "answer_id": None, "aliases": None}]
    rows = [
        question("a", compositionality_type="conjunction"),
        question("b", compositionality_type="superlative", answers=year),
        question("c", compositionality_type="comparative", sparql=QUERY.replace("ns:g.02", "?d . FILTER(?d IN (1))")),
    ]
    stored(tmp_path / "ComplexWebQuestions_train.json", rows)
    first, second, third = read_raw(options(tmp_path), 7)
    assert [row["complexity"] for row in (first, second, third)] == ["intersection", "superlative", "comparative"]
    assert (second["answers"], second["answer_type"]) == (["1999"], None)
    assert third["s_expression"] is None and third["without_form"].startswith("sparql: ")
    assert third["topic_entities"] == ["m.01"]


def test_test_without_answers_is_read_only_to_be_answered(tmp_path: Path) -> None:
    hidden = {name: value for name, value in question("t").items() if name != "answers"}
    stored(tmp_path / "ComplexWebQuestions_dev.json", [question("d")])
    stored(tmp_path / "ComplexWebQuestions_test.json", [hidden, question("u")])
    assert [(row["id"], row["split"]) for row in read_raw(options(tmp_path), 7)] == [("d", "dev"), ("u", "test")]
    assert len(read_raw(options(tmp_path, unscored=True), 7)) == 3


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (question("b", compositionality_type="other"), "compositionality_type"),
        (question("b", answers=[{"aliases": []}]), "neither answer_id nor answer"),
        (question("b", answers=[{"answer_id": "m.1", "aliases": "x"}]), "'answers[0].aliases' must be a list"),
        ({"ID": "b", "question": "q"}, "field 'answers' is missing"),
        ({"question": "q"}, "field 'ID' is missing"),
    ],
)
def test_a_bad_row_is_rejected_and_the_others_stay(tmp_path: Path, row: Any, reason: str) -> None:
    stored(tmp_path / "ComplexWebQuestions_train.json", [row, question("a")])
    rows, rejects = read_source(options(tmp_path), 7)
    assert [row["id"] for row in rows] == ["a"]
    assert rejects[0].row.startswith("row 1") and reason in rejects[0].reason


def test_the_stage_links_topics_answers_and_aliases(tmp_path: Path) -> None:
    kg = graph(
        tmp_path,
        "m.05\tsports.sports_team.team_mascot\tm.01\nm.05\tsports.sports_team.arena\tm.09\n"
        "m.09\tlocation.location.containedby\tg.02\n",
    )
    stored(tmp_path / "cwq" / "ComplexWebQuestions_train.json", [question("a")])
    out, counts = loaded(tmp_path, kg, source="cwq", path=str(tmp_path / "cwq"))
    (record,) = read_questions(out)
    assert (len(record.topic_entities), len(record.relation_paths), record.unlinkable) == (2, 2, None)
    assert {"Big Arena", "The Arena"} <= set(record.answer_names[0])
    assert counts["answers_missing"] == 1 and "rejects" not in counts
