"""Reading model output: whatever the form, the same questions and turns come out, and nothing raises."""

from __future__ import annotations

import re
import time
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kgqa_core.papers.ltgen.parse import AGENT, TRIPLES, USER, QaField, read_conv, read_qa
from tests.support.examples import examples
from tests.support.ltgen import FAULTS, HARMLESS

WORDS = st.lists(
    st.from_regex(r"[A-Za-zäöüéÅ][a-zäöüé0-9]{0,9}", fullmatch=True), min_size=1, max_size=8
).map(" ".join).filter(lambda text: not re.search(r"(?i)turn|round|note|output", text))  # fmt: skip
CHINESE = st.text(alphabet="巴黎挪威首都作者书城市河流的是在", min_size=1, max_size=12)
NAMES = st.one_of(WORDS, CHINESE)
SENTENCES = st.builds(lambda words, end: words + end, NAMES, st.sampled_from([".", "?", "!", "。"]))
TRIPLE = st.builds(lambda head, relation, tail: f"({head}, {relation}, {tail})", NAMES, NAMES, NAMES)
TURN = st.tuples(SENTENCES, SENTENCES, st.lists(TRIPLE, min_size=1, max_size=3).map(", ".join))
FORMS = tuple(name for name in HARMLESS if name not in ("other case", "bars", "small talk"))
"""Faults of form that leave the texts as they are."""
EXAMPLES = 40
"""Of texts that cost much to draw."""


def blocks(turns: list[tuple[str, str, str]]) -> list[list[tuple[str, str]]]:
    return [[("User", query), ("Agent", reply), ("T", cited)] for query, reply, cited in turns]


@given(st.lists(TURN, min_size=1, max_size=5), st.sampled_from(FORMS), st.integers(0, 9))
@examples(EXAMPLES)
def test_a_dialogue_is_read_back_from_every_form(turns: list[tuple[str, str, str]], form: str, seed: int) -> None:
    text = FAULTS[form](blocks(turns), Random(seed))
    fields, cut = read_conv(text)
    found = [(field.label, field.text) for field in fields]
    assert found == [pair for turn in turns for pair in zip((USER, AGENT, TRIPLES), turn, strict=True)]
    assert not cut


@given(st.lists(st.tuples(NAMES, NAMES, SENTENCES), min_size=1, max_size=5), st.sampled_from(FORMS), st.integers(0, 9))
@examples(EXAMPLES)
def test_questions_are_read_back_from_every_form(rows: list[tuple[str, str, str]], form: str, seed: int) -> None:
    pairs = [(f"({entity}, {relation})", question) for entity, relation, question in rows]
    text = FAULTS[form](
        [[("Entity Relation Pair", pair), ("Question", question)] for pair, question in pairs], Random(seed)
    )
    assert read_qa(text) == [QaField(pair, question, False) for pair, question in pairs]


@given(st.lists(TURN, min_size=1, max_size=4), st.floats(0, 1))
@examples(EXAMPLES)
def test_what_comes_before_the_cut_is_read_as_without_it(turns: list[tuple[str, str, str]], share: float) -> None:
    whole = FAULTS["never opened"](blocks(turns), Random(0)).replace(": ", ": <<<")
    end = int(len(whole) * share)
    fields, cut = read_conv(whole[:end], truncated=True)
    complete = [(field.label, field.text) for field in read_conv(whole)[0]]
    sure = fields[:-1] if cut else fields
    assert [(field.label, field.text) for field in sure] == complete[: len(sure)]
    assert len(fields) >= whole[:end].count(">>>")


@given(st.text(max_size=400))
@settings(deadline=None)
def test_no_text_makes_the_readers_raise(text: str) -> None:
    assert all(field.label in (USER, AGENT, TRIPLES) for field in read_conv(text)[0])
    assert all(isinstance(field, QaField) for field in read_qa(text, truncated=True))


@given(
    st.lists(st.sampled_from(["User:", "Agent: ", "T:", "<<<", ">>>", "\n", "```", " a b ", "(a, b, c)", "> ", "1. "]))
)
@settings(deadline=None)
def test_no_heap_of_labels_and_brackets_makes_the_readers_raise(parts: list[str]) -> None:
    text = "".join(parts)
    for field in read_conv(text)[0]:
        assert "<<<" not in field.text or ">>>" not in field.text
    read_qa(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("User: <<<Hi\nthere?>>>\nAgent: <<<Yes.>>>\nT: <<<(a, b, c)\n(d, e, f)>>>",
         [(USER, "Hi there?"), (AGENT, "Yes."), (TRIPLES, "(a, b, c)\n(d, e, f)")]),
        ("**User:** Hi?\n**Assistant:** Yes.\n**Selected triples:** (a, b, c)",
         [(USER, "Hi?"), (AGENT, "Yes."), (TRIPLES, "(a, b, c)")]),
        ("1) USER : «« Hi? »»\n2) AGENT : «« Yes. »»\n3) TRIPLES : «« a | b | c »»",
         [(USER, "Hi?"), (AGENT, "Yes."), (TRIPLES, "a | b | c")]),
        ("用户：《《《他在哪里？》》》\n代理：《《《在奥斯陆。》》》\n三元组：《《《（他，出生地，奥斯陆）》》》",
         [(USER, "他在哪里？"), (AGENT, "在奥斯陆。"), (TRIPLES, "（他，出生地，奥斯陆）")]),
        ("User: &lt;&lt;&lt;Hi?&gt;&gt;&gt;\nAgent: \\<\\<\\<Yes.\\>\\>\\>", [(USER, "Hi?"), (AGENT, "Yes.")]),
        ("> User: <<<Hi?>>>\n> Agent: <<<Yes.>>>", [(USER, "Hi?"), (AGENT, "Yes.")]),
        ("| User: \"Hi?\"\n| Agent: 'Yes.'", [(USER, "Hi?"), (AGENT, "Yes.")]),
        ("User 1: <<<Hi?>>> Agent 1: <<<Yes.>>> T1: <<<(a, b, c)>>>",
         [(USER, "Hi?"), (AGENT, "Yes."), (TRIPLES, "(a, b, c)")]),
        ("T: <<<(a, b, c)>>>, <<<(d, e, f)>>>", [(TRIPLES, "(a, b, c)\n(d, e, f)")]),
        ("Turn 1\nUser: Hi?\nAgent: Yes.\n\nLet me know if I can help!", [(USER, "Hi?"), (AGENT, "Yes.")]),
        ("Certainly, my dear user: here it comes\nUser: <<<Hi?>>>", [(USER, "Hi?")]),
        ("User: <<<What is the T: the one?>>>", [(USER, "What is the T: the one?")]),
        ("", []),
        ("I cannot do that.", []),
    ],
)  # fmt: skip
def test_hand_made_outputs_are_read(text: str, expected: list[tuple[str, str]]) -> None:
    assert [(field.label, field.text) for field in read_conv(text)[0]] == expected


@pytest.mark.parametrize(
    ("text", "truncated", "cut"),
    [
        ("User: <<<Hi?>>>\nAgent: <<<Yes, it is in the nor", False, True),
        ("User: <<<Hi?>>>\nAgent: <<<Yes, it is.", False, False),
        ("User: <<<Hi?>>>\nAgent: <<<Yes, it is.", True, True),
        ("User: Hi?\nAgent: Yes, it is in the nor", False, False),
        ("User: Hi?\nAgent: Yes, it is in the nor", True, True),
        ("User: <<<Hi?>>>\nAgent: <<<Yes.>>>", True, False),
    ],
)
def test_a_cut_is_seen_where_brackets_or_the_token_limit_tell(text: str, truncated: bool, cut: bool) -> None:
    assert read_conv(text, truncated=truncated)[1] is cut


def test_pairs_and_questions_that_lack_each_other_stay_apart() -> None:
    text = (
        "Question: <<<Who?>>>\nEntity Relation Pair: <<<(a, b)>>>\nEntity-Relation Pair: <<<(c, d)>>>\n"
        "Question: <<<What?>>>\nPair: <<<(e, f)>>>"
    )
    assert read_qa(text) == [
        QaField("", "Who?", False), QaField("(a, b)", "", False), QaField("(c, d)", "What?", False),
        QaField("(e, f)", "", False),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "User: <<<Who is it?>>>" + " " * 30_000 + "x",
        "User: <<<Who is it?>>>" + "|" * 30_000 + "x",
        "_" * 30_000 + "x",
        "User: a" + "*" * 30_000 + "b",
        "User: " + "<<< " * 15_000,
        " / " * 15_000,
    ],
    ids=["blanks", "bars", "lines", "stars", "brackets", "slashes"],
)
def test_a_model_that_repeats_itself_to_its_token_limit_is_read_at_once(text: str) -> None:
    started = time.process_time()
    read_conv(text, truncated=True)
    read_qa(text, truncated=True)
    assert time.process_time() - started < 2, "it took minutes: each blank was tried with each"


def test_what_a_model_thinks_aloud_is_no_dialogue() -> None:
    draft = "User: <<<Draft?>>>\nAgent: <<<No.>>>\nT: <<<(a, b, c)>>>"
    good = "User: <<<Hi?>>>\nAgent: <<<Yes.>>>"
    for text in (f"<think>{draft}</think>{good}", f"Let me see.\n{draft}\n</think>\n{good}"):
        assert [field.text for field in read_conv(text)[0]] == ["Hi?", "Yes."]
    assert read_conv(f"<think>\n{draft}", truncated=True)[0] == []
