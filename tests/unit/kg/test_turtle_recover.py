"""After a fault in Turtle or TriG reading goes on at the next statement, and what is lost is counted."""

from __future__ import annotations

from pathlib import Path

import pytest

from kgqa_core.config import KgOptions
from kgqa_core.errors import KgInputError
from kgqa_core.kg.build import build
from kgqa_core.kg.formats import turtle_feed
from kgqa_core.workspace import Workspace
from tests.support.reading import Read, read_text

A = "http://a/"
PREFIX = "@prefix a: <http://a/> .\n"
MANY = [f"a:{number} a:p a:o . # c" for number in range(10_000)]


def ttl(tmp_path: Path, text: str, name: str = "graph.ttl", format: str = "turtle") -> Read:
    return read_text(tmp_path, text, name, format=format)


def subjects(found: Read) -> list[str]:
    return [triple[0].removeprefix(A) for triple in found.triples()]


FAULTS = [
    "a:x a:p bad . # c",
    'a:x a:p "never closed . # c',
    'a:x a:p """never closed . # c',
    "a:x a:p '''never closed . # c",
    'a:x a:p never opened""" . # c',
    "a:x a:p <http://never/closed . # c",
    "a:x a:p <http://a b> . # c",
    "a:x a:p [ a:q a:o . # c",
    "a:x a:p ( a:o . # c",
    "a:x a:p a:o ] . # c",
    "a:x a:p . # c",
    "} . # c",
    "<<<<<<< HEAD",
    "some words without an end # c",
    "@prefix b: <http://b/ c> . # c",
    "a:x nope:p a:o . # c",
    'a:x a:p "a \\q b. c" . # c',
    "a:x a:p a:o",
]


@pytest.mark.parametrize("bad", FAULTS)
def test_one_fault_in_ten_thousand_statements_that_end_in_comments_costs_about_one(bad: str, tmp_path: Path) -> None:
    found = ttl(tmp_path, PREFIX + "\n".join([*MANY[:100], bad, *MANY[100:]]) + "\n")
    others = {f"{number}" for number in range(10_000)} - {"100"}
    named = {subject for subject in subjects(found) if not subject.startswith("_:")}
    assert others <= named <= others | {"100", "x"}
    assert 1 <= len(found.rejects) <= 2 and found.unread <= 1


@pytest.mark.parametrize(
    "bad", [fault.removesuffix(" # c") for fault in FAULTS if fault.endswith(". # c") and "never closed ." not in fault]
)
def test_one_fault_among_statements_of_one_line_costs_about_one(bad: str, tmp_path: Path) -> None:
    line = [f'a:{number} a:p "o. " .' for number in range(100)]
    found = ttl(tmp_path, PREFIX + " ".join([*line[:50], bad, *line[50:]]) + "\n")
    others = {f"{number}" for number in range(100)} - {"50"}
    named = {subject for subject in subjects(found) if not subject.startswith("_:")}
    assert others <= named <= others | {"50", "x"}, found.rejects
    assert 1 <= len(found.rejects) <= 2 and all(number == 2 for number, _, _ in found.rejects)


def test_no_statement_is_made_of_what_a_string_or_a_comment_holds(tmp_path: Path) -> None:
    quoted = 'a:1 a:p """a:no a:p a:o .\na:no a:p a:o .\n""" bad .\n'
    comment = "a:2 a:p bad , # a:no a:p a:o . a:no a:p a:o .\n# a:no a:p a:o . a:no a:p a:o .\n a:o .\n"
    found = ttl(tmp_path, PREFIX + quoted + comment + "a:3 a:p a:o .\n")
    assert subjects(found) == ["3"] and [line for line, _, _ in found.rejects] == [4, 5]


def test_a_prefix_that_is_declared_anew_in_vain_is_no_longer_known(tmp_path: Path) -> None:
    for bad in ("@prefix a: <http://b/ c> .", "@prfix a: <http://b/> .", "@prefix a <http://b/> ."):
        found = ttl(tmp_path, f"{PREFIX}a:1 a:p a:o .\n{bad}\na:2 a:p a:o .\n<http://x> <http://y> <http://z> .\n")
        assert [row[0] for row in found.triples()] == [A + "1", "http://x"], bad
        assert [line for line, _, _ in found.rejects] == [3, 4]
    found = ttl(tmp_path, "@base <http://a/> .\n<1> <p> <o> .\n@base <http://b c> .\n<2> <p> <o> .\n")
    assert [row[0] for row in found.triples()] == [A + "1"] and len(found.rejects) == 2


def test_graphs_of_trig_stay_open_over_a_fault(tmp_path: Path) -> None:
    text = "a:g { a:1 a:p bad . a:2 a:p a:o . }\na:3 a:p a:o .\na:h bad { a:4 a:p a:o . a:5 a:p a:o }\na:6 a:p a:o .\n"
    found = ttl(tmp_path, PREFIX + text + "a:k { a:7 a:p bad } a:8 a:p a:o .\n", "g.trig", "trig")
    assert subjects(found) == ["2", "3", "4", "5", "6", "8"] and [line for line, _, _ in found.rejects] == [2, 4, 6]


def test_what_is_lost_with_a_statement_of_many_triples_fires_the_share(tmp_path: Path) -> None:
    text = PREFIX + "a:1 a:p bad,\n" + ",\n".join(f"a:o{number}" for number in range(5_000)) + " .\n"
    text += "\n".join(MANY[:5_000]) + "\n"
    assert 4_990 <= ttl(tmp_path, text).unread <= 5_010
    assert 4_990 <= ttl(tmp_path, text.replace(",\n", ", ")).unread <= 5_010
    (tmp_path / "out").mkdir()
    options = {"files": (str(tmp_path / "graph.ttl"),)}
    with pytest.raises(KgInputError, match=r"5,00\d of 10,00\d statements (so far|in all) are rejected"):
        build(Workspace(tmp_path / "out"), options=KgOptions(**options))
    counts = build(Workspace(tmp_path / "out"), options=KgOptions(**options, max_reject_share=0.6))
    assert counts["triples"] == 5_000 and counts["rejects"] == 1 and counts["unread"] >= 4_990


def test_the_rest_of_a_file_that_cannot_be_read_is_counted(tmp_path: Path) -> None:
    lines = [f"a:{number} a:p nope:o ," for number in range(500)]
    found = ttl(tmp_path, PREFIX + "a:1 a:p a:o .\n" * 500 + "a:2 a:p bad ,\n" + ",\n".join(lines))
    assert len(found.triples()) == 500 and len(found.rejects) == 1 and found.unread >= 499
    assert "nothing after it could be read" in found.rejects[0][1]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", " "])
def test_places_are_right_over_many_blocks_in_any_script_and_with_any_line_end(
    end: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turtle_feed, "BLOCK", 1_000)
    lines = [f'a:{number} a:p "é𝒳 {number}." , <http://a/ü> .' for number in range(500)]
    for bad in (3, 77, 78, 250, 498):
        lines[bad] = f"a:{bad} a:p bäd, a:𝒳 ."
    found = ttl(tmp_path, PREFIX + end.join(lines) + "\n")
    assert sorted(set(subjects(found)), key=int) == [f"{n}" for n in range(500) if n not in (3, 77, 78, 250, 498)]
    assert len(found.rejects) == 5
