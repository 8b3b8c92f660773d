"""Statements with qualifiers as WD50K writes them."""

from __future__ import annotations

import pytest

from kgqa_core.errors import KgInputError
from kgqa_core.kg.formats import source as source_module
from tests.support.reading import read_text

GOOD = ["Q1,P2,Q3", "Q1,P2,Q4,P5,Q6,P7,Q8", "", "# a note", "L7-F1,P31,Q9,P5,1952"]
BAD = ["Q1,P2", "Q1,P2,Q3,P5", "Q1,P2,,P5,Q1", "Q1,P2,Q3,P5,Q\0"]
LINES = "\n".join([*GOOD, *BAD, ""])


@pytest.mark.parametrize("cut", [",", "\t"])
@pytest.mark.parametrize("size", [16, 1 << 20])
def test_pairs_after_the_object_are_qualifiers_of_their_statement(tmp_path, monkeypatch, cut, size):
    monkeypatch.setattr(source_module.Source.blocks, "__defaults__", (size,))
    name = "train.txt" if cut == "," else "q.tsv"
    found = read_text(tmp_path, LINES.replace(",", cut), name, format="statements")
    assert found.triples() == [("Q1", "P2", "Q3"), ("Q1", "P2", "Q4"), ("L7-F1", "P31", "Q9")]
    assert found.qualifiers.select("row", "statement", "predicate", "object").rows() == [
        (1, None, "P5", "Q6"),
        (1, None, "P7", "Q8"),
        (2, None, "P5", "1952"),
    ]
    assert found.ignored == 2
    assert [(line, reason) for line, reason, _ in found.rejects] == [
        (6, "2 field(s) instead of 3 and pairs of qualifiers"),
        (7, "4 fields: the last qualifier has no value"),
        (8, "an empty field"),
        (9, "a NUL or a carriage return within the line"),
    ]


def test_they_are_found_by_their_keys(tmp_path):
    assert read_text(tmp_path, "Q1,P2,Q3\nQ1,P2,Q4,P5,Q6\n", "a.txt").format == "statements"
    assert read_text(tmp_path, "Q1,P2,Q3\n", "a.csv").format == "statements"
    assert read_text(tmp_path, "Q1\tP2\tQ3\tP4\tQ5\n", "a.tsv").format == "statements"
    assert read_text(tmp_path, "Q1\tP2\tQ3\n", "a.tsv").format == "delimited"
    with pytest.raises(KgInputError, match="kg.table says nothing about its columns"):
        read_text(tmp_path, "Paris,France,capital,Q4\n", "a.csv")


def test_spaces_around_fields_are_taken_off_and_crlf_is_a_line_end(tmp_path):
    found = read_text(tmp_path, "Q1 , P2 ,Q3, P4 , Q5\r\n", "a.txt")
    assert found.triples() == [("Q1", "P2", "Q3")]
    assert found.qualifiers.select("predicate", "object").rows() == [("P4", "Q5")]


def test_a_file_without_delimiter_is_an_error_that_says_what_was_tried(tmp_path):
    with pytest.raises(KgInputError, match="neither commas nor tabs cut .* 'a b c'"):
        read_text(tmp_path, "a b c\n", "a.txt", format="statements")
    found = read_text(tmp_path, "a;r;b;q;v\n", "a.txt", format="statements", delimiter=";")
    assert found.triples() == [("a", "r", "b")] and found.qualifiers.height == 1
