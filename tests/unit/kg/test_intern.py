"""Terms become integers: each once, in canonical order, whatever fits in memory."""

from __future__ import annotations

import random

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgqa_core.kg.ingest import intern, order_kernels
from kgqa_core.kg.ingest.intern import Interner, StringColumn, write_run
from tests.support.examples import examples

RANKS = np.array([0, 3, 1, 2, 4], dtype=np.int64)
"""The place of each tag in the order of tags."""


def numbered(interner, terms):
    """Ids of (text, tag) pairs."""
    column = StringColumn.of(pl.Series([text for text, _ in terms], dtype=pl.String))
    assert interner.fits(len(terms), len(column.data))
    return interner.column(column, np.array([tag for _, tag in terms], dtype=np.int32)).tolist()


def collected(call):
    """What a function hands to its sink, as (text, rank of tag), and what it returns."""
    found = []

    def sink(tid, offsets, text, tags):
        assert tid == len(found)
        raw = text.tobytes()
        found.extend((raw[a:b], int(t)) for a, b, t in zip(offsets, offsets[1:], tags, strict=False))

    return found, call(sink)


def expected(terms):
    return sorted({(text.encode(), int(RANKS[tag])) for text, tag in terms}, key=lambda t: (t[1] > 0, *t))


texts = st.text(st.sampled_from("ab\0é/ 𝄞\x7f"), max_size=20) | st.text(max_size=40).map(lambda t: "http://x/same/" + t)
pairs = st.lists(st.tuples(texts, st.integers(0, 4)), max_size=120)


@examples(60)
@given(pairs)
def test_equal_terms_have_equal_ids_and_others_others(terms):
    interner = Interner(1 << 30)
    ids = numbered(interner, terms)
    first = {}
    assert ids == [first.setdefault(term, len(first)) for term in terms]
    assert interner.count == len(first)
    assert interner.texts() == [text.encode() for text, _ in first]


@examples(60)
@given(pairs)
def test_terms_come_out_in_the_order_of_bytes_then_tags_entities_first(terms):
    interner = Interner(1 << 30)
    ids = numbered(interner, terms)
    order, entities = interner.order(RANKS)
    found, _ = collected(lambda sink: intern.emit(interner, order, RANKS, sink))
    canonical = intern.ranks_of_ids(order)
    assert found == expected(terms)
    assert [found[canonical[i]] for i in ids] == [(text.encode(), int(RANKS[tag])) for text, tag in terms]
    assert entities == sum(rank == 0 for _, rank in found)


@examples(40)
@given(st.lists(pairs, min_size=1, max_size=4), st.sampled_from([1 << 9, 1 << 20]))
def test_generations_on_disk_merge_to_the_same_as_one_in_memory(tmp_path_factory, generations, memory):
    folder = tmp_path_factory.mktemp("runs")
    interner, written, ids = Interner(1 << 30), [], []
    for number, terms in enumerate(generations):
        ids.append(numbered(interner, terms))
        written.append(write_run(interner, RANKS, folder / f"{number}.words", buffer=32))
        interner.clear()
    found, (maps, count, entities) = collected(lambda sink: intern.merge(written, RANKS, sink, memory))
    every = [term for terms in generations for term in terms]
    assert found == expected(every) and count == len(found)
    assert entities == sum(rank == 0 for _, rank in found)
    for terms, some, canonical in zip(generations, ids, maps, strict=True):
        assert [found[canonical[i]] for i in some] == [(text.encode(), int(RANKS[tag])) for text, tag in terms]


def test_large_groups_are_sorted_by_radix_as_small_ones_by_insertion():
    generator = random.Random(3)
    terms = [("http://x/" + "".join(generator.choices("ab\0", k=generator.randrange(24))), 0) for _ in range(4000)]
    terms += [("same", tag) for tag in range(5)] + [("x" * n, 1) for n in range(200)]
    terms += [("zero" + "\0" * n, tag) for n in range(40) for tag in (1, 2, 3, 4)]
    interner = Interner(1 << 30)
    numbered(interner, terms)
    order, _ = interner.order(RANKS)
    found, _ = collected(lambda sink: intern.emit(interner, order, RANKS, sink))
    assert found == expected(terms)


def test_a_table_that_grows_keeps_every_term():
    interner = Interner(1 << 30)
    ids = [numbered(interner, [(f"term {i}", i % 2) for i in range(a, a + 20_000)]) for a in range(0, 100_000, 20_000)]
    assert len(interner.table) > 1 << 16 and np.concatenate(ids).tolist() == list(range(100_000))
    assert numbered(interner, [(f"term {i}", i % 2) for i in range(100_000)]) == list(range(100_000))


def test_an_interner_says_when_its_budget_is_used_up_but_never_while_empty():
    interner = Interner(1000)
    assert interner.fits(10_000, 1 << 20)
    numbered(interner, [("a", 0)])
    assert not interner.fits(10_000, 1 << 20)
    interner.clear()
    assert interner.fits(10_000, 1 << 20) and interner.count == 0


def test_null_has_no_id():
    interner = Interner(1 << 20)
    column = StringColumn.of(pl.Series(["a", None, "a"]))
    interner.fits(3, 100)
    assert interner.column(column).tolist() == [0, -1, 0]


@pytest.mark.parametrize("value", [0x0102030405060708, 0xFF00000000000000, 0x00000000000000FF])
def test_a_word_turned_round_has_its_bytes_in_the_other_order(value):
    turned = int(order_kernels.swapped(np.uint64(value)))
    assert turned.to_bytes(8, "big") == value.to_bytes(8, "little")
