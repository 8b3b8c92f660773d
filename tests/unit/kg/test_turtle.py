from __future__ import annotations

import random
from pathlib import Path

import pytest

from kgqa_core.config import KgOptions
from kgqa_core.kg.formats import turtle, turtle_feed
from kgqa_core.kg.formats.source import Source
from kgqa_core.kg.formats.turtle import TriG, Turtle
from tests.support.reading import Read, read_text

A = "http://a/"
PREFIX = "@prefix a: <http://a/> .\n"
STRING = "http://www.w3.org/2001/XMLSchema#string"


def ttl(tmp_path: Path, text: str | bytes, name: str = "graph.ttl") -> Read:
    return read_text(tmp_path, text, name, format="turtle")


def test_turtle_means_what_it_says(tmp_path: Path) -> None:
    found = ttl(
        tmp_path,
        "@base <http://b/> .\nPREFIX a: <http://a/>\n"
        'a:s a a:T ; a:p a:o, "x"@EN, "1"^^a:d, 1, true .\n<s> <#p> <../o> .\n',
    )
    assert found.rejects == []
    assert found.rows("subject", "predicate", "object", "kind", "datatype") == [
        (A + "s", "http://www.w3.org/1999/02/22-rdf-syntax-ns#type", A + "T", 0, None),
        (A + "s", A + "p", A + "o", 0, None),
        (A + "s", A + "p", "x", 1, "@en"),
        (A + "s", A + "p", "1", 1, A + "d"),
        (A + "s", A + "p", "1", 1, "http://www.w3.org/2001/XMLSchema#integer"),
        (A + "s", A + "p", "true", 1, "http://www.w3.org/2001/XMLSchema#boolean"),
        ("http://b/s", "http://b/#p", "http://b/o", 0, None),
    ]


def test_collections_and_unlabelled_nodes_are_numbered_in_order_of_appearance(tmp_path: Path) -> None:
    text = PREFIX + "a:s a:p ( a:x ), [ a:q a:y ] ." * 50 + "_:n a:p _:n ."
    first, again = ttl(tmp_path, text).triples(), ttl(tmp_path, text).triples()
    assert first == again
    scope = first[-1][0].removesuffix("_n")
    assert scope.startswith("_:") and first[-1] == (f"{scope}_n", A + "p", f"{scope}_n")
    blank = {s for triple in first for s in (triple[0], triple[2]) if s.startswith("_:")}
    assert blank == {f"{scope}_n", *(f"{scope}-{number}" for number in range(100))}
    assert first[0][0] == f"{scope}-0"


def test_blank_nodes_of_two_files_are_different_nodes(tmp_path: Path) -> None:
    one, two = (ttl(tmp_path, PREFIX + "_:n a:p [ ] .", name).triples()[0] for name in ("one.ttl", "two.ttl"))
    assert not {one[0], one[2]} & {two[0], two[2]}


def test_a_literal_that_looks_like_a_blank_node_stays(tmp_path: Path) -> None:
    assert ttl(tmp_path, PREFIX + '_:n a:p "_:n" .').triples()[0][2] == "_:n"


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ("a:s a:p bad .", "bad is not a valid RDF object"),
        ("a:s nope:p a:o .", "The prefix nope: has not been declared"),
        ('a:s a:p "\\q" .', "Unexpected escape character '\\q'"),
        ('a:s a:p "never closed .', "a literal or an IRI that does not end"),
        ('a:s a:p """never closed .', "a literal or an IRI that does not end"),
        ("a:s a:p .", ". is not a valid RDF object"),
        ("} .", "} is not a valid subject or graph name"),
    ],
)
def test_a_bad_statement_is_one_reject_with_its_line_and_all_others_stay(bad: str, reason: str, tmp_path: Path) -> None:
    found = ttl(tmp_path, f"{PREFIX}a:1 a:p a:o .\n{bad}\na:2 a:p a:o .\na:3 a:p a:o .\n")
    [(line, why, text)] = found.rejects
    assert (line, why.split("; ")[0], text) == (3, reason, bad)
    assert [row[0] for row in found.triples()] == [A + "1", A + "2", A + "3"]


def test_bytes_that_are_no_utf8_reject_their_statement(tmp_path: Path) -> None:
    found = ttl(tmp_path, PREFIX.encode() + b'a:1 a:p "\xff" .\na:2 a:p a:o .\n')
    assert [(line, text) for line, _, text in found.rejects] == [(2, 'a:1 a:p "�" .')]
    assert "UTF-8" in found.rejects[0][1]
    assert found.triples() == [(A + "2", A + "p", A + "o")]


def test_a_missing_dot_invents_no_statement(tmp_path: Path) -> None:
    found = ttl(tmp_path, PREFIX + "a:1 a:p a:o\na:2 a:p a:o .\na:3 a:p a:o .\n")
    assert found.triples() == [(A + "1", A + "p", A + "o"), (A + "3", A + "p", A + "o")]
    assert [(line, text) for line, _, text in found.rejects] == [(3, "a:2 a:p a:o .")]


def test_prefixes_and_base_hold_after_a_fault(tmp_path: Path) -> None:
    found = ttl(
        tmp_path,
        "@base <http://b/> .\n@prefix : <http://c/> .\n@prefix a: <http://a/> .\na:1 a:p x x .\n"
        "@prefix a: <http://z/> .\na:1 a:p bad .\na:2 :p <o> .\n",
    )
    assert [line for line, _, _ in found.rejects] == [4, 6]
    assert found.triples() == [("http://z/2", "http://c/p", "http://b/o")]


def test_a_statement_over_several_lines_is_skipped_to_its_end_and_says_so(tmp_path: Path) -> None:
    found = ttl(tmp_path, PREFIX + "a:1 a:p a:x ;\n  a:q bad bad ;\n  a:r a:y .\na:2 a:p a:o .\n")
    reason = "bad is not a valid RDF object; skipped to line 4 (21 bytes, about 2 statements)"
    assert found.rejects == [(3, reason, "  a:q bad bad ;")] and found.unread == 1
    assert found.triples() == [(A + "1", A + "p", A + "x"), (A + "2", A + "p", A + "o")]


def test_a_file_that_is_cut_off_loses_its_last_statement_alone(tmp_path: Path) -> None:
    found = ttl(tmp_path, PREFIX + "a:1 a:p a:o .\na:2 a:p")
    assert found.triples() == [(A + "1", A + "p", A + "o")]
    assert found.rejects == [(3, "Unexpected end; nothing after it could be read", "a:2 a:p")]


def test_an_iri_beyond_rfc_3987_is_kept_with_the_rest_of_its_statement(tmp_path: Path) -> None:
    found = ttl(
        tmp_path,
        PREFIX + 'a:1 a:p a:x ;\n  a:q <http://a/%zz>, <http://a/[> ; a:r "x"@en-u ;\n  a:s _:b .\na:2 a:p a:o .\n',
    )
    assert found.rejects == []
    scope = found.triples()[4][2].removesuffix("_b")
    assert found.triples() == [
        (A + "1", A + "p", A + "x"),
        (A + "1", A + "q", "http://a/%zz"),
        (A + "1", A + "q", "http://a/["),
        (A + "1", A + "r", "x"),
        (A + "1", A + "s", scope + "_b"),
        (A + "2", A + "p", A + "o"),
    ]


def test_an_iri_that_ntriples_forbids_too_is_a_reject_and_the_rest_of_its_statement_stays(tmp_path: Path) -> None:
    found = ttl(tmp_path, PREFIX + "a:1 a:p <http://a b>, <rel>, a:o .\na:2 a:p a:o .\n")
    assert found.triples() == [(A + "1", A + "p", A + "o"), (A + "2", A + "p", A + "o")]
    assert {reason for _, reason, _ in found.rejects} == {
        "the IRI of the object is not absolute (at or shortly before this line)",
        "' ' in the IRI of the object (at or shortly before this line)",
    }
    assert all(2 <= line <= 4 for line, _, _ in found.rejects)


def test_an_iri_or_a_string_that_is_not_closed_swallows_no_line(tmp_path: Path) -> None:
    text = PREFIX + 'a:1 a:p <http://a/o .\na:2 a:p <http://a/o> .\na:3 a:p "x .\na:4 a:p "x" .\n'
    found = ttl(tmp_path, text + "a:5 a:p 'x .\na:6 a:p 'x' .\n")
    assert [row[0] for row in found.triples()] == [A + "2", A + "4", A + "6"]
    assert [line for line, _, _ in found.rejects] == [2, 4, 6]


def test_lines_that_end_with_a_carriage_return_alone_are_counted(tmp_path: Path) -> None:
    found = ttl(tmp_path, (PREFIX + "a:1 a:p a:o .\na:2 a:p bad .\na:3 a:p a:o .\n").replace("\n", "\r"))
    assert [row[0] for row in found.triples()] == [A + "1", A + "3"]
    assert [(line, text) for line, _, text in found.rejects] == [(3, "a:2 a:p bad .")]


MARKS = (
    "<",
    ">",
    '"',
    "'",
    '"""',
    "\\",
    ".",
    ";",
    ",",
    "[",
    "]",
    "(",
    ")",
    "_:",
    "@",
    "^^",
    "%",
    "a:",
    "{",
    "}",
    " ",
    "\x00",
)


def test_one_damaged_line_costs_no_other_statement(tmp_path: Path) -> None:
    choice = random.Random(17)
    rejected = 0
    lines = [f'a:{number} a:p a:o, <http://a/é>, "x y"@en, _:b .' for number in range(30)]
    clean = set(ttl(tmp_path, PREFIX + "\n".join(lines) + "\n").triples())
    for _ in range(300):
        at = choice.randrange(30)
        line = lines[at].removesuffix(" .")
        for _ in range(choice.choice((1, 1, 2))):
            place = choice.randrange(len(line) + 1)
            line = line[:place] + choice.choice(MARKS) + line[place + choice.choice((0, 0, 1)) :]
        damaged = [*lines[:at], line + " .", *lines[at + 1 :]]
        found = ttl(tmp_path, PREFIX + "\n".join(damaged) + "\n")
        rejected += bool(found.rejects)
        assert all(number == at + 2 for number, reason, _ in found.rejects if "shortly" not in reason), line
        others = {row for row in clean if row[0] != f"{A}{at}"}
        assert others <= set(found.triples()), line
        # Nothing is invented for the lines that are whole.
        assert {row for row in found.triples() if row[0] in {f"{A}{n}" for n in range(30) if n != at}} == others, line
    assert rejected > 150


def test_lines_of_rejects_are_right_far_into_a_file_of_many_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turtle_feed, "BLOCK", 1000)
    monkeypatch.setattr(turtle, "CHUNK", 64)
    lines = [f"a:{number} a:p a:o ." for number in range(1000)]
    bad = (7, 250, 251, 252, 600, 998)
    for number in bad:
        lines[number] = f'a:{number} a:p "never closed .' if number % 2 else f"a:{number} a:p x ."
    found = ttl(tmp_path, PREFIX + "\n".join(lines) + "\n")
    assert [line for line, _, _ in found.rejects] == [number + 2 for number in bad]
    assert [row[0] for row in found.triples()] == [f"{A}{n}" for n in range(1000) if n not in bad]


def test_rejects_alone_end_a_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turtle, "MAX_REJECTS", 10)
    path = tmp_path / "bad.ttl"
    path.write_text("x .\n" * 35)
    sizes = [batch.rejects.height for batch in Turtle().read(Source(path, "bad.ttl"), KgOptions())]
    assert sizes == [10, 10, 10, 5]


def test_statements_of_all_graphs_are_read_and_the_names_of_graphs_are_qualifiers(tmp_path: Path) -> None:
    text = (
        PREFIX + "a:1 a:p a:o .\na:g { a:2 a:p a:o }\nGRAPH _:h {\n a:3 a:p bad .\n a:4 a:p a:o .\n}\na:5 a:p a:o .\n"
    )
    found = read_text(tmp_path, text, "graph.trig", format="trig")
    assert [row[0] for row in found.triples()] == [A + "1", A + "2", A + "4", A + "5"]
    assert [line for line, _, _ in found.rejects] == [5]
    assert found.qualifiers.select("row", "predicate", "object").rows() == [(1, "graph", A + "g")]


def test_turtle_is_told_from_other_formats() -> None:
    options = KgOptions()
    lines = ["@prefix a: <http://a/> .", "a:s a:p a:o ;", "  a:q 1 .", "a:cut a:p"]
    assert Turtle().sniff(lines, options) == 1.0
    assert Turtle().sniff(["a,b,c", "d,e,f"], options) == 0.0
    graphs = ["@prefix a: <http://a/> .", "a:g { a:s a:p a:o }", "a:h { a:s a:p a:o }"]
    assert TriG().sniff(graphs, options) == 1.0 > Turtle().sniff(graphs, options)


def test_a_byte_order_mark_and_windows_line_ends_are_no_fault(tmp_path: Path) -> None:
    found = ttl(tmp_path, b"\xef\xbb\xbf" + (PREFIX + "a:1 a:p a:o .\n").replace("\n", "\r\n").encode())
    assert (found.rejects, found.triples()) == ([], [(A + "1", A + "p", A + "o")])


def test_a_fault_at_the_last_byte_is_a_reject_and_nothing_is_read_after_it(tmp_path: Path) -> None:
    found = read_text(tmp_path, "{\n  BASE <http://example/>\n}", "g.trig", format="trig")
    assert (found.statements.height, len(found.rejects)) == (0, 1)
