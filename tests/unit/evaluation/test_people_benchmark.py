"""The benchmark of people's questions: what counts as right, and what the test set of a release consists of."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pytest

from benchmarks.answers import case_systems
from benchmarks.answers.people import PEOPLE, is_exact, main, measure
from benchmarks.answers.people_sets import OPERATIONS, check
from kgqa_core.answering.reply import Answer
from kgqa_core.datasets.derived.thesaurus import thesaurus


def row(kind: str | None, *answers: str) -> dict[str, Any]:
    empty = list(answers) in ([], ["0"], ["no"])
    return {"answerable": kind is not None, "answers": list(answers), "type": kind, "style": [], "empty": empty}


def reply(output: str | None, *answers: str, confidence: float | None = None) -> Answer:
    return Answer("1", "?", output, answers=answers, answerable=output is not None, confidence=confidence)


@pytest.mark.parametrize(
    ("kind", "gold", "given", "right"),
    [
        ("direct", ["Ann", "Bo"], reply("Ann, Bo", "Bo", "ann"), True),
        ("direct", ["Ann", "Bo"], reply("Ann", "Ann"), False),
        ("direct", [], reply("none"), True),
        ("direct", [], reply("none", "none"), True),
        ("direct", [], reply(None), False),
        ("direct", [], reply("Ann", "Ann"), False),
        ("count", ["0"], reply("0", "0"), True),
        ("count", ["0"], reply(None), False),
        ("average", ["186.3333333"], reply("186.3", "186.3"), True),
        ("average", ["186.3333333"], reply("188", "188"), False),
        ("share", ["66.66666667"], reply("66.7 %", "66.7 %"), True),
        ("share", ["66.66666667"], reply(None), False),
        ("group", ["Elm: 4", "Fir: 1.5"], reply("…", "Fir (1.50)", "Elm = 4"), True),
        ("group", ["Elm: 4", "Fir: 1.5"], reply("…", "Fir: 4", "Elm: 1.5"), False),
    ],
)
def test_an_answer_is_right_where_it_is_complete_and_an_empty_one_where_it_is_given(
    kind: str, gold: list[str], given: Answer, right: bool
) -> None:
    assert is_exact(row(kind, *gold), given) is right


def test_what_is_said_to_be_none_is_no_decline_and_is_wrong_where_the_graph_cannot_tell() -> None:
    rows = [row(None), row(None), row("direct"), row("direct", "Ann")]
    given = [
        reply("none", confidence=0.9),
        reply(None, confidence=0.9),
        reply("none"),
        reply("Bo", "Bo", confidence=0.7),
    ]
    figures = measure(rows, given, [0.1] * 4)
    assert figures["declined_of_unanswerable"]["share"] == 0.5 and figures["exact"]["share"] == 0.5
    assert figures["exact_if_empty"]["share"] == 1 and figures["wrong_above"]["0.8"]["share"] == 0.25


def test_the_test_set_of_a_release_has_the_shares_that_it_was_written_for() -> None:
    files = sorted((PEOPLE / "locked2").glob("*.jsonl"))
    checked = {path.stem: check(path, None, False) for path in files}
    assert not any(wrong for _, wrong in checked.values())
    counts = {name: own for name, (own, _) in checked.items()}
    elsewhere = sum(own["questions"] for name, own in counts.items() if name != "atlas")
    assert counts["atlas"]["questions"] >= 150 and elsewhere >= 150 and len(counts) == 6
    for own in counts.values():
        assert own["questions"] - own["answerable"] >= 0.2 * own["questions"]
        assert own["empty"] >= 0.15 * own["answerable"]
        assert own["styles"].get("typo", 0) <= 0.05 * own["questions"]
    assert {kind for own in counts.values() for kind in own["types"]} == {*OPERATIONS}
    assert {path.name for path in (PEOPLE / "locked2" / "graphs").iterdir()} == counts.keys() - {"atlas"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["locked2", "atlas=home", "--transcripts", "3"], "leave out --transcripts"),
        (["locked2", "ward=home", "wards=home"], "no questions over wards in locked2, which has atlas, dig"),
        (["dev", "atlas"], "no graph for atlas: say GRAPH=FILES, or GRAPH=HOME"),
    ],
)
def test_a_set_is_run_only_as_it_may_be(
    arguments: list[str], message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["people", *arguments])
    with pytest.raises(SystemExit):
        main()
    assert message in " ".join(capsys.readouterr().err.split())


def test_a_locked_set_is_run_from_a_clean_tree(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr("benchmarks.answers.people.conditions", lambda seed: {"commit": "0123456 with changes"})
    monkeypatch.setattr("sys.argv", ["people", "locked2", f"ward={tmp_path}"])
    with pytest.raises(SystemExit):
        main()
    assert "run from a clean tree" in capsys.readouterr().err


def test_a_case_is_answered_without_the_entries_for_its_graph(tmp_path: Path) -> None:
    table = tmp_path / "people.csv"
    table.write_text("name,boss,team\nAna,Dee,Red\nBo,Ana,Red\nCy,Ana,Blue\n", encoding="utf-8")
    job = {"files": [str(table)], "settings": [], "without_thesaurus": True}
    assert thesaurus().relation("boss") is not None
    with contextlib.ExitStack() as stack:
        case_systems.leaving_out(job, stack)
        assert thesaurus().relation("boss") is None and thesaurus().relation("capital") is not None
    assert thesaurus().relation("boss") is not None
    with contextlib.ExitStack() as stack:
        case_systems.leaving_out(job | {"without_thesaurus": False}, stack)
        assert thesaurus().relation("boss") is not None
