"""Words of training questions: which stand for a relation, and which for none."""

from __future__ import annotations

from kgqa_core.symbolic.by_labels.learnt_words import SEEN, SEEN_ANYWHERE, learnt_words

AREA, SPEAKS, ON = (
    "(JOIN (R area) Chad)",
    "(JOIN language French)",
    "(AND (JOIN language French) (JOIN continent Africa))",
)


def test_words_stand_for_the_relations_that_they_always_come_with() -> None:
    rows = [("How much land does Chad cover?", AREA, {"Chad"})] * SEEN
    rows += [("African countries where one can hear French", ON, {"French", "Africa"})] * SEEN
    rows += [("where one can hear French", SPEAKS, {"French"})] * SEEN_ANYWHERE
    words = learnt_words(rows)
    assert words["cover"] == ["area"] and words["hear"] == ["language"]
    assert words["african"] == ["continent", "language"], "as long as no other question has it"
    words = learnt_words([*rows, *[("the African lands", "(JOIN continent Africa)", {"Africa"})] * SEEN])
    assert words["african"] == ["continent"], "a restriction is not read by what it restricts"
    assert not {"chad", "french", "the"} & set(words)


def test_words_that_come_with_many_relations_stand_for_none_and_rare_ones_for_nothing() -> None:
    rows = [(f"the {name} of Chad among others", f"(JOIN (R {name}) Chad)", {"Chad"}) for name in "abcdefghij"]
    assert learnt_words(rows)["among"] == []
    assert "among" not in learnt_words(rows[: SEEN_ANYWHERE - 1])
    corrected = learnt_words([row for row in rows[:2] for _ in range(SEEN_ANYWHERE)])
    assert "among" not in corrected, "copies of two corrected questions do not make it stand beside any relation"
    assert learnt_words(rows[:1] * SEEN)["among"] == ["a"]
