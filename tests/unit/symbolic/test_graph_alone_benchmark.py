"""The benchmark of a graph alone: what is shown of an output, which answer it has, and a transcript without paths."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks.answers import graph_alone_text as text
from benchmarks.answers.graph_alone_data import GRAPHS, OWN, complete
from kgqa_core.types import INVERSE
from tests.support.toy import write_graph

RUN = """\
Stages · 85 s in all
┏━━━━━━━┓
┃ stage ┃
┡━━━━━━━┩
│ kg    │
└───────┘
Note         These scores are on questions that were generated from the graph itself
Table 1 · Exact
┏━━━━━━━━━━┓
┃ Answerer ┃
┡━━━━━━━━━━┩
│ auto     │
└──────────┘
Linked topics
┏━━━━┓
┃ F1 ┃
└────┘
Table 2 · Exact by complexity
type

 Type     n      A
 ─────────────────
 generic  1  100.0

Answered by  auto, HopPath facts: labels 3 (100.0 % exact); 2 declined
Report       file:///somewhere/home/runs/1/report.html
"""
ANSWERED = """\
linked Biba Suma (link score 0.46)
Bubofa Ltd, Vimo Ltd   confidence 1.00, about Biba Suma, 0.31 s
by (JOIN founded_by <Biba Suma>)
Proof
┌─────────────────────────────────────┐
│ (Bubofa Ltd, founded_by, Biba Suma) │
│ (Vimo Ltd, founded_by, Biba Suma)   │
└─────────────────────────────────────┘
"""
DECLINED = """\
linked Mevetu (link score 0.43)
not in this graph: no such relation: mayor (nearest: based_in of), confidence 1.00   about Mevetu,
0.35 s
"""


def test_of_a_run_the_scores_are_shown() -> None:
    lines = text.trim_run(RUN).splitlines()
    assert [line for line in lines if line[0] not in text.DRAWN] == [
        "…",
        "Note         These scores are on questions that were generated from the graph itself",
        "Table 1 · Exact",
        "…",
        "Table 2 · Exact by complexity",
        "type",
        "Answered by  auto, HopPath facts: labels 3 (100.0 % exact); 2 declined",
        "…",
    ]
    assert (
        "│ auto     │" in lines and " generic  1  100.0" in lines and "┃ F1 ┃" not in lines and "│ kg    │" not in lines
    )


def test_of_a_long_proof_the_first_triples_are_shown() -> None:
    assert text.trim_ask(ANSWERED) == ANSWERED.strip()
    rows = "".join(f"│ (a, b, c{n}) │\n" for n in range(9))
    lines = text.trim_ask("a   about a, 0.1 s\nProof (9 of 40)\n┌───┐\n" + rows + "└───┘\n").splitlines()
    assert lines[1:4] == ["Proof (9 of 40)", "┌───┐", "│ (a, b, c0) │"]
    assert lines[-3:] == ["│ (a, b, c5) │", "│ … 3 lines more", "└───┘"]


@pytest.mark.parametrize(
    ("printed", "answers"),
    [
        (ANSWERED, ["Bubofa Ltd", "Vimo Ltd"]),
        (DECLINED, None),
        ("not in this graph: entity not found: Acme\nLtd   0.1 s", None),
        (
            "linked A (link score 0.40), B by “b” (link score 0.30)\nyes\nabout A, B, 0.1 s\ncomputed yes by (IS A)",
            ["yes"],
        ),
        ("Paris   0.01 s", ["Paris"]),
        ("Paris   confidence not calibrated, 0.01 s", ["Paris"]),
    ],
)
def test_the_answer_is_read_from_what_is_printed(printed: str, answers: list[str] | None) -> None:
    assert text.answers_in(printed) == answers


def test_an_answer_is_as_expected_where_it_is_the_whole_set_in_any_order() -> None:
    assert text.as_expected(ANSWERED, ("vimo ltd", "Bubofa Ltd"))
    assert not text.as_expected(ANSWERED, ("Vimo Ltd",)) and not text.as_expected(ANSWERED, ())
    assert text.as_expected(DECLINED, ()) and not text.as_expected(DECLINED, ("Ann",))
    assert text.as_expected("Kiss Me, Stupid, Picnic   about X, 0.1 s", ("Picnic", "Kiss Me, Stupid"))


def test_the_longest_path_is_replaced_first() -> None:
    places = {"/w": ".", "/w/home-tsv": "home"}
    assert text.without_paths("/w/home-tsv/runs and /w/a.tsv", places) == "home/runs and ./a.tsv"


def test_a_command_can_be_typed_as_it_is_shown() -> None:
    assert text.command(["kgqa", "ask", "who was Ada's aunt"]) == '$ kgqa ask "who was Ada\'s aunt"'
    assert text.command(["--set", "kg.delimiter=|", "a $b"]) == "$ --set 'kg.delimiter=|' 'a $b'"


def test_a_transcript_has_commands_output_and_times() -> None:
    ask: dict[str, Any] = {
        "command": "$ kgqa ask a", "printed": "b   about a, 0.1 s", "expected": ["b"], "as_expected": True,
    }  # fmt: skip
    stages = [
        {"title": "kg graph", "status": "cached", "seconds": 0.5},
        {"title": "label_parser", "status": "computed", "seconds": 60},
    ]
    entry: dict[str, Any] = {
        "description": "A graph.", "files": {"graph.tsv": 1200}, "few": 20,
        "conditions": {"commit": "c0ffee", "date": "2026-11-23", "cores": 2, "threads": None, "seed": 7},
        "run": {"command": "$ kgqa run --kg graph.tsv", "printed": "…", "seconds": 71.04, "stages": stages},
        "asks": [
            ask | {"seconds": 8.0},
            ask | {"seconds": 9.0, "expected": [], "as_expected": False},
            ask | {"seconds": 8.2},
        ],
    }  # fmt: skip
    lines = text.transcript("tsv_few", entry).splitlines()
    assert lines[0] == "# `tsv_few`: from a graph and 20 own questions to answers"
    assert "A graph. `graph.tsv` (1,200 lines)." in lines
    assert "| of that in stages (2, 1 cached) | 60.5 |" in lines
    assert "| `kgqa ask`, one question in a new process, median of 3 | 8.2 |" in lines
    assert "| label_parser | computed | 60.0 |" in lines
    assert "2 of 3 questions are answered, or declined, as expected." in lines
    assert "**Not as expected**: not in this graph; 9.0 s." in lines and "As expected; 8.2 s." in lines
    assert lines.count("```console") == 4 and lines.count("```") == 4


def test_own_questions_and_those_that_are_put_differ_and_the_answers_are_those_of_the_graph(tmp_path: Path) -> None:
    triples = write_graph(tmp_path / "graph.tsv", 200)
    for question, topic, answers, path in OWN:
        reached = {topic}
        for step in path.split():
            back = step.startswith(INVERSE)
            key = step.removeprefix(INVERSE)
            reached = {
                head if back else tail for head, relation, tail in triples
                if relation == key and (tail if back else head) in reached
            }  # fmt: skip
        assert sorted(answers.split(", ")) == sorted(reached), question
    assert len(OWN) == len({question for question, *_ in OWN}) == 20
    for graph in GRAPHS.values():
        assert len(graph.asks) == 6 and sum(not ask.expected for ask in graph.asks) == 2
        assert not {ask.question for ask in graph.asks} & {question for question, *_ in OWN}


def test_few_questions_of_the_tsv_are_drawn_by_the_seed(tmp_path: Path) -> None:
    graph = GRAPHS["tsv"]
    assert graph.few(5, tmp_path, 7) == graph.few(5, tmp_path, 7) != graph.few(5, tmp_path, 8)
    assert len(graph.few(20, tmp_path, 7)) == 20
    with pytest.raises(ValueError, match="21 own questions are asked for, but there are 20"):
        graph.few(21, tmp_path, 7)


def test_a_question_of_one_hop_gets_everything_that_its_relation_leads_to() -> None:
    rows = [
        {"topic_entities": ["a"], "relation_paths": [["r"]], "answers": ["c"]},
        {"topic_entities": ["a"], "relation_paths": [["<inv>-r"]], "answers": ["z"]},
    ]
    triples = [("a", "r", "b"), ("a", "r", "c"), ("a", "s", "d"), ("y", "r", "a"), ("z", "r", "a")]
    assert [row["answers"] for row in complete(rows, triples)] == [["c", "b"], ["z", "y"]]
