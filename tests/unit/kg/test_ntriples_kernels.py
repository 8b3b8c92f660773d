"""The compiled reader of N-Triples against one made of regular expressions, and what it does with each term."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgqa_core.kg.formats.base import REJECTS, empty
from kgqa_core.kg.formats.ntriples import read_chunk, why
from kgqa_core.kg.formats.ntriples_columns import LINE
from kgqa_core.kg.formats.source import Chunk, block_of
from tests.support import kg_oracles
from tests.support.examples import examples
from tests.unit.kg.conftest import GRAPH

COLUMNS = ("subject", "predicate", "object", "kind", "datatype")


def chunk(data: bytes) -> Chunk:
    return Chunk(data if data.endswith(b"\n") else data + b"\n", 1, 1.0, empty(REJECTS))


def rows(text: str, **options):
    """The statements of a text without rejects."""
    batch = read_chunk(chunk(text.encode()), **options)
    assert not batch.rejects.height
    return batch.statements.rows()


def same(data: bytes) -> None:
    """Both readers make the same of the bytes."""
    ours, theirs = read_chunk(chunk(data)), kg_oracles.read_block(block_of(chunk(data)))
    for left, right in (
        (ours.statements.select(COLUMNS).rows(), theirs.statements.select(COLUMNS).rows()),
        (ours.rejects.select("line", "text").rows(), theirs.rejects.select("line", "text").rows()),
    ):
        assert sorted(left, key=repr) == sorted(right, key=repr)
    assert ours.ignored == theirs.ignored
    assert ours.height == ours.statements.height
    assert all(ours.rejects["reason"])


SEEDS = [
    *GRAPH.splitlines(),
    '_:a.b-c <http://x/\\u00E9a> "a\\U0001F600b\\n"@en-GB-x1 .',
    "<http://é/ü> <a:> _:é·. .",
    '<a:b><c:d>"x"^^<http://x/y>.#c',
    '_:0 <a:b> "" . ',
    "_:a. <a:b> <c:d> .",
    '<a:b> <c:d> "\\\\\\"\\\'\\t" .\r<a:b> <c:d> <e:f> .',
    "<h\\u0074tp://x> <\\u0061:b> <c\\u003Ad> .",
]
PIECES = [
    *'<>"\\ .\t_:@^#u09é·£𝄞\0-\r',
    "\\u0041",
    "\\U00000042",
    "\\ud800",
    "\\u0020",
    "\\t",
    "^^<a:b>",
    "@en-",
    "\\u00",
]


@pytest.mark.parametrize("line", SEEDS)
def test_a_line_is_read_as_the_oracle_reads_it(line):
    same(line.encode())


@examples(150)
@given(st.randoms(use_true_random=False))
def test_mutated_lines_are_read_and_rejected_as_the_oracle_does(generator: random.Random):
    lines = []
    for _ in range(60):
        line = list(generator.choice(SEEDS))
        for _ in range(generator.randint(1, 3)):
            at, how = generator.randrange(len(line) + 1), generator.random()
            if how < 0.4:
                line.insert(at, generator.choice(PIECES))
            elif how < 0.7 and line:
                del line[min(at, len(line) - 1)]
            elif line:
                line[min(at, len(line) - 1)] = generator.choice(PIECES)
        data = "".join(line).encode()
        lines.append(data.replace(b"e", b"\xff", 1) if generator.random() < 0.05 else data)
    same(b"\n".join(lines))


@examples(100)
@given(st.binary(max_size=200) | st.text(st.sampled_from('<>"\\ ._:@^#ua1\r\né'), max_size=120).map(str.encode))
def test_any_bytes_are_read_without_loss(data):
    same(data)


def test_escapes_are_decoded_to_characters_of_every_length():
    [(subject, _, thing, _, _)] = rows(
        '<a:\\u00e9> <b:c> "\\u0041\\u00DF\\u20AC\\U0001F600\\t\\b\\n\\r\\f\\"\\\'\\\\x" .'
    )
    assert subject == "a:é" and thing == "Aß€😀\t\b\n\r\f\"'\\x"


def test_languages_are_folded_and_plain_strings_are_strings():
    found = rows('<a:b> <c:d> "x"@EN-gb .\n<a:b> <c:d> "x" .\n<a:b> <c:d> "x"^^<D:e> .')
    assert [row[4] for row in found] == ["@en-gb", "http://www.w3.org/2001/XMLSchema#string", "D:e"]


def test_prefixes_are_taken_off_where_something_is_left():
    text = "<http://w/e/Q1> <http://w/p/P2> <http://w/e/Q3> .\n<http://w/e/> <http://w/e/Q1> <http://w/e/s/Q3> .\n"
    text += '<http://w/p/P2> <http://w/p/P2> "http://w/e/Q9" .'
    found = rows(text, terms=("http://w/e/", "http://w/e/s/"), predicates=("http://w/p/",))
    assert [row[:3] for row in found] == [
        ("Q1", "P2", "Q3"),
        ("http://w/e/", "http://w/e/Q1", "Q3"),
        ("http://w/p/P2", "P2", "http://w/e/Q9"),
    ]


def test_a_fourth_term_is_a_graph_only_in_quads():
    text = '<a:b> <c:d> <e:f> <g:h> .\n<a:b> <c:d> "x"@en _:g .\n<a:b> <c:d> _:e .\n<a:b> <c:d> <e:\\u0066><g:\\u0068>.'
    batch = read_chunk(chunk(text.encode()), quads=True)
    assert batch.graphs.to_list() == ["g:h", "_:g", "", "g:h"] and not batch.rejects.height
    assert read_chunk(chunk(text.encode())).rejects["line"].to_list() == [1, 2, 4]


def test_statements_know_their_lines():
    batch = read_chunk(
        Chunk(b"\n<a:b> <c:d> <e:f> .\r<a:b> <c:d> <e:g> .\nbad\n<a:b> <c:d> <e:h> .\n", 7, 1.0, empty(REJECTS))
    )
    assert (batch.rows[:, LINE].astype(int) + batch.first_line).tolist() == [8, 8, 10] and batch.rejects[
        "line"
    ].to_list() == [9]
    assert np.array_equal(batch.rows[:, 8], [0, 0, 0])


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("<a:\\t> <b:c> <d:e> .", "bad escape \\t in the IRI of the subject"),
        ("<a:b> <b:c> \"x\"^^<d> .", "bad datatype"),
        ("<a:b> <\\u0062> <d:e> .", "the IRI of the predicate is not absolute"),
        ('<a:b> <c:d> "\\uD800"^^<\\uD801> .', "the escape \\uD800 is not a character"),
    ],
)  # fmt: skip
def test_the_first_fault_of_a_line_is_its_reason(line, reason):
    assert why(line) == reason
    assert read_chunk(chunk(line.encode())).rejects["reason"].to_list() == [reason]


def test_a_reader_may_say_reasons_of_its_own():
    batch = read_chunk(chunk(b"no statement\n"), reason=lambda line: f"not {line}")
    assert batch.rejects.rows() == [(1, "not no statement", "no statement")]
