from __future__ import annotations

from pathlib import Path

import pytest

from kgqa_core.config import KgOptions
from kgqa_core.kg.formats.ntriples import NQuads
from tests.support.reading import Read, read_text

T = ("a:s", "a:p", "a:o")


def nq(tmp_path: Path, text: str | bytes) -> Read:
    return read_text(tmp_path, text, "graph.nq", format="nquads")


def test_the_statement_of_a_quad_is_a_triple(tmp_path: Path) -> None:
    found = nq(
        tmp_path,
        "<a:s> <a:p> <a:o> <a:g> .\n<a:s> <a:p> <a:o> _:g.\n<a:s><a:p><a:o><a:g>.#c\n<a:s> <a:p> <a:o> .\n"
        '_:s <a:p> "x <a:y> . "@EN <a:g> . # comment\n_:s <a:p> "1"^^<a:t> _:g.1 .\n# comment\n',
    )
    assert found.rejects == []
    assert found.ignored == 1
    assert found.triples() == [T, T, T, T, ("_:s", "a:p", "x <a:y> . "), ("_:s", "a:p", "1")]
    assert found.rows("datatype")[-2:] == [("@en",), ("a:t",)]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('<a:s> <a:p> <a:o> "g" .', "'\"g\" .' where the final '.' is due"),
        ("<a:s> <a:p> <a:o> <a:g> <a:h> .", "'<a:g> <a:h> .' where the final '.' is due"),
        ("<a:s> <a:p> <a:o> <g> .", "the IRI of the graph is not absolute"),
        ("<a:s> <a:p> <a:o> <a:{> .", "'{' in the IRI of the graph"),
        ('<a:s> <a:p> "\\q" <a:g> .', "bad escape \\q in the literal"),
        ("<a:s> _:p <a:o> <a:g> .", "the predicate is not an IRI in <>"),
        ("<a:s> <a:p> <a:o> <a:g>", "'<a:g>' where the final '.' is due"),
        ("<a:s> <a:p> <a:g> <a:h", "'<a:h' where the final '.' is due"),
    ],
)
def test_what_is_no_quad_is_a_reject_with_its_line_and_reason(line: str, reason: str, tmp_path: Path) -> None:
    found = nq(tmp_path, f"<a:s> <a:p> <a:o> <a:g> .\n{line}\n<a:s> <a:p> <a:o> <a:g> .\n")
    assert found.triples() == [T, T]
    assert found.rejects == [(2, reason, line)]


def test_a_statement_in_two_graphs_is_one_triple_and_a_duplicate(make) -> None:  # type: ignore[no-untyped-def]
    _, counts = make("<a:s> <a:p> <a:o> <a:g> .\n<a:s> <a:p> <a:o> <a:h> .\n", "graph.nq", format="nquads")
    assert (counts["statements"], counts["triples"], counts["duplicates"]) == (2, 1, 1)


def test_quads_are_told_from_triples() -> None:
    options = KgOptions()
    assert (
        NQuads().sniff(["<a:s> <a:p> <a:o> <a:g> .", "<a:s> <a:p> <a:o> .", "a\tb\tc", "<a:s> <a:p>"], options) == 0.5
    )
