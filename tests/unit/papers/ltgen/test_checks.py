"""What is kept of questions and dialogues, and why the rest is not: cases made by hand."""

from __future__ import annotations

from collections import Counter

import pytest

from kgqa_core.papers.ltgen import conv, qa
from kgqa_core.papers.ltgen.parse import NameMatcher
from kgqa_core.papers.ltgen.records import EntityRelationPair, ReplyItems, Subject
from kgqa_core.types import INVERSE

Subjects = dict[str, Subject]


def pairs_of(subject: Subject, *names: str) -> list[EntityRelationPair]:
    """The pairs in which the subject has a relation, by the relation's name."""
    found = {pair.names[1]: pair for pair in subject.pairs if pair.forward}
    return [found[name] for name in names]


def read_qa(subjects: Subjects, text: str, *relations: str, key: str = "Q2", truncated: bool = False) -> ReplyItems:
    pairs = pairs_of(subjects[key], *relations)
    return qa.read_batch(subjects[key], pairs, 1, text, NameMatcher(), truncated=truncated)


def question(pair: str, text: str) -> str:
    return f"Entity Relation Pair: <<<{pair}>>>\nQuestion: <<<{text}>>>\n"


def reasons(batch: ReplyItems) -> list[str]:
    return [reject.reason for reject in batch.rejects]


def test_a_good_question_has_all_objects_as_answers(subjects: Subjects) -> None:
    batch = read_qa(subjects, question("(Bela Kun, occupation)", "What did Bela Kun work as?"), "occupation")
    (item,) = batch.items
    record = item.record("qa")
    assert record == {
        "id": "qa/Q2/01", "question": "What did Bela Kun work as?", "topic_entities": ["Q2"],
        "answers": ["Q120", "Q121"], "split": "test", "level": record["level"], "relation_path": [["P106"]], "hops": 1,
        "gold_triples": [["Q2", "P106", "Q120"], ["Q2", "P106", "Q121"]],
    }  # fmt: skip
    assert not batch.rejects


def test_dates_have_their_english_forms_as_aliases(subjects: Subjects) -> None:
    batch = read_qa(subjects, question("(Bela Kun, date of birth)", "When was Bela Kun born?"), "date of birth")
    assert batch.items[0].record("qa")["answer_aliases"] == {"1902-05-17": ["17 May 1902", "May 17, 1902"]}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (question("(Bela Kun, mayor)", "Who is the mayor of Bela Kun?"), qa.UNKNOWN_PAIR),
        (question("(Ada Byron, occupation)", "What did Ada Byron do?"), qa.UNKNOWN_PAIR),
        (question("(Bela Kun, occupation), (Bela Kun, place of birth)", "Who is Bela Kun?"), qa.UNKNOWN_PAIR),
        (question("(Bela Kun, occupation)", "What did she work as?"), qa.UNNAMED),
        (question("(Bela Kun, occupation)", "Did Bela Kun work as a poet?"), qa.GIVEN_AWAY),
        (question("(Bela Kun, occupation)", "Was Bela Kun a NURSE?"), qa.GIVEN_AWAY),
        (question("(Bela Kun, occupation)", ""), qa.NO_QUESTION),
        (question("(Bela Kun, occupation)", "Kun?"), qa.TOO_SHORT),
        ("Question: <<<What did Bela Kun work as?>>>", qa.NO_PAIR),
        ("Entity Relation Pair: <<<(Bela Kun, occupation)>>>", qa.NO_QUESTION),
        ("Entity Relation Pair: <<<(Bela Kun, occupation)>>>\nQuestion: <<<What did Bela Kun wo", qa.CUT),
        ("Entity Relation Pair: <<<(Bela Kun, occ", qa.CUT),
    ],
)
def test_bad_questions_are_rejected_with_their_reason(subjects: Subjects, text: str, reason: str) -> None:
    truncated = reason == qa.CUT
    batch = read_qa(subjects, text, "occupation", "place of birth", truncated=truncated)
    assert not batch.items and reasons(batch) == [reason]


def test_good_questions_of_a_bad_batch_are_kept(subjects: Subjects) -> None:
    text = (
        question("(Bela Kun, place of birth)", "Where was Bela Kun born?")
        + question("(Bela Kun, occupation)", "Was Bela Kun a poet?")
        + question("(Bela Kun, place of birth)", "In which town was Bela Kun born?")
        + question("(Bela Kun, notable work)", "What is Bela Kun known for?")
    )
    batch = read_qa(subjects, text, "occupation", "place of birth", "notable work")
    assert [item.number for item in batch.items] == [2, 3]
    assert [(each.reason, each.number) for each in batch.rejects] == [(qa.GIVEN_AWAY, 2), (qa.REPEATED, 3)]


def test_pairs_to_ask_are_seeded_forward_first_and_never_give_the_answer_away(subjects: Subjects) -> None:
    one, two = (qa.pairs_to_ask(subjects["Q1"], NameMatcher(), 7) for _ in range(2))
    other = qa.pairs_to_ask(subjects["Q1"], NameMatcher(), 8)
    assert one == two != other and Counter(map(id, one)) == Counter(map(id, other))
    assert [pair.forward for pair in one] == sorted((pair.forward for pair in one), reverse=True)
    backward = next(pair for pair in one if pair.names == ("Book 1", "author"))
    assert not backward.forward and backward.triples[0].tail.key == "Q1"


# -- dialogues ---------------------------------------------------------------------------------------------------------


def turn(user: str, agent: str, *triples: str) -> str:
    return f"User: <<<{user}>>>\nAgent: <<<{agent}>>>\nT: <<<{', '.join(triples)}>>>\n"


BORN = turn("Where was Bela Kun born?", "In Bern.", "(Bela Kun, place of birth, Bern)")
WORK = turn(
    "And what did he do?", "He was a poet and a nurse.", "(Bela Kun, occupation, poet)", "(Bela Kun, occupation, nurse)"
)


def read_conv(subjects: Subjects, text: str, key: str = "Q2", *, truncated: bool = False) -> ReplyItems:
    return conv.read_batch(subjects[key], text, NameMatcher(), truncated=truncated)


def test_good_turns_are_questions_with_their_history(subjects: Subjects) -> None:
    batch = read_conv(subjects, BORN + WORK)
    first, second = (item.record("conv") for item in batch.items)
    assert (first["id"], first["question"], first["answers"]) == ("conv/Q2/01", "Where was Bela Kun born?", ["Q102"])
    assert "dialogue" not in first and first["reference"] == "In Bern." and first["relation_path"] == [["P19"]]
    assert second["dialogue"] == [
        {"role": "user", "text": "Where was Bela Kun born?"}, {"role": "agent", "text": "In Bern."}
    ]  # fmt: skip
    assert second["answers"] == ["Q120", "Q121"] and second["topic_entities"] == ["Q2"]
    assert second["gold_triples"] == [["Q2", "P106", "Q120"], ["Q2", "P106", "Q121"]]
    assert not batch.rejects and [turn["question"] for turn in batch.turns] == [True, True]


def test_the_answer_is_the_end_that_the_query_does_not_name(subjects: Subjects) -> None:
    cases = [
        ("Who wrote Book 2?", "Bela Kun.", "(Book 2, author, Bela Kun)", ["Q202"], ["Q2"], [["P50"]]),
        ("What did Bela Kun write?", "Book 2.", "(Book 2, author, Bela Kun)", ["Q2"], ["Q202"], [[f"{INVERSE}P50"]]),
        ("Who is the spouse?", "It is Ada Byron.", "(Bela Kun, spouse, Ada Byron)", ["Q2"], ["Q1"], [["P26"]]),
    ]
    for query, reply, cited, topics, answers, paths in cases:
        record = read_conv(subjects, turn(query, reply, cited)).items[0].record("conv")
        assert (record["topic_entities"], record["answers"], record["relation_path"]) == (topics, answers, paths)


def test_a_date_may_be_told_in_words(subjects: Subjects) -> None:
    for reply in ("On 17 May 1902.", "In 1902.", "1902-05-17"):
        assert read_conv(
            subjects, turn("When was Bela Kun born?", reply, "(Bela Kun, date of birth, 1902-05-17)")
        ).items
    assert reasons(
        read_conv(subjects, turn("When was Bela Kun born?", "In 1903.", "(Bela Kun, date of birth, 1902-05-17)"))
    ) == [conv.UNTOLD]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (turn("Where did Bela Kun live?", "In Rome.", "(Bela Kun, home, Rome)"), conv.FOREIGN),
        (turn("Where was Bela Kun born?", "In Bern.", "(Bela Kun, place of birth, Bern)", "(Bela Kun, home, Rome)"),
         conv.FOREIGN),
        (turn("Where was Bela Kun born?", "In Bern.", "(Ada Byron, place of birth, Lima)"), conv.FOREIGN),
        (turn("Was Bela Kun born in Bern?", "Yes, in Bern.", "(Bela Kun, place of birth, Bern)"), conv.GIVEN_AWAY),
        (turn("Where was Bela Kun born?", "In Switzerland.", "(Bela Kun, place of birth, Bern)"), conv.UNTOLD),
        (turn("How are you?", "I am fine.", "None"), conv.NO_TRIPLE),
        (turn("", "In Bern.", "(Bela Kun, place of birth, Bern)"), conv.EMPTY_TEXT),
        (turn("Where was Bela Kun born?", "", "(Bela Kun, place of birth, Bern)"), conv.EMPTY_TEXT),
        ("User: <<<Where was Bela Kun born?>>>", conv.NO_REPLY),
        ("User: <<<Where was Bela Kun born?>>>\nT: <<<(Bela Kun, place of birth, Bern)>>>", conv.STRAY_TRIPLES),
        ("Agent: <<<Welcome!>>>", conv.AGENT_FIRST),
        ("User: <<<Where was Bela Kun born?>>>\nAgent: <<<In Be", conv.CUT),
        ("User: <<<Where was Bela Kun born?>>>\nAgent: <<<In Bern.>>>\nT: <<<(Bela Kun, place of", conv.CUT),
    ],
)  # fmt: skip
def test_bad_turns_are_rejected_with_their_reason(subjects: Subjects, text: str, reason: str) -> None:
    batch = read_conv(subjects, text)
    assert not batch.items and reason in reasons(batch)
    assert len(set(reasons(batch))) <= 2


def test_an_agent_that_speaks_first_or_twice_spoils_nothing_else(subjects: Subjects) -> None:
    batch = read_conv(subjects, "Agent: <<<Hello!>>>\n" + BORN + "Agent: <<<Anything else?>>>\n" + WORK)
    assert [item.dialogue for item in batch.items][0] == () and len(batch.items) == 2
    assert batch.items[1].dialogue == (("user", "Where was Bela Kun born?"), ("agent", "In Bern."))
    assert reasons(batch) == [conv.AGENT_FIRST, conv.NO_QUERY]


def test_a_reply_in_two_parts_and_triples_on_two_lines_are_one(subjects: Subjects) -> None:
    text = (
        "User: What did Bela Kun do?\nAgent: He was a poet\nAgent: and a nurse.\n"
        "T: (Bela Kun, occupation, poet)\nT: (Bela Kun, occupation, nurse)"
    )
    (item,) = read_conv(subjects, text).items
    assert item.reference == "He was a poet and a nurse." and len(item.triples) == 2


def test_a_query_that_nobody_answers_is_dropped_and_turns_still_alternate(subjects: Subjects) -> None:
    batch = read_conv(subjects, BORN + "User: <<<Are you there?>>>\n" + WORK)
    assert [role for role, _ in batch.items[1].dialogue] == ["user", "agent"]
    assert reasons(batch) == [conv.NO_REPLY]


def test_a_turn_that_fails_stays_in_the_history_of_the_next(subjects: Subjects) -> None:
    bad = turn("And where did he live?", "In Rome.", "(Bela Kun, home, Rome)")
    batch = read_conv(subjects, BORN + bad + WORK)
    assert [item.number for item in batch.items] == [1, 3]
    assert [text for _, text in batch.items[1].dialogue] == [
        "Where was Bela Kun born?", "In Bern.", "And where did he live?", "In Rome."
    ]  # fmt: skip
    assert [turn["why_not"] for turn in batch.turns] == [None, conv.FOREIGN, None]


def test_a_query_asked_twice_in_a_dialogue_counts_once(subjects: Subjects) -> None:
    batch = read_conv(subjects, BORN + WORK + BORN)
    assert len(batch.items) == 2 and reasons(batch) == [conv.DUPLICATE]


def test_what_was_said_before_the_cut_is_kept(subjects: Subjects) -> None:
    whole = BORN + WORK
    batch = read_conv(subjects, whole[: whole.rindex("nurse")], truncated=True)
    assert [item.number for item in batch.items] == [1] and reasons(batch) == [conv.CUT]


def test_nothing_usable_is_no_item(subjects: Subjects) -> None:
    assert read_conv(subjects, "I'm sorry, but I cannot help.") == ReplyItems()


def test_a_turn_about_an_entity_and_a_date_has_no_relation_path(subjects: Subjects) -> None:
    text = (
        "User: <<<Who wrote Book 8 and was born on 1908-05-17?>>>\nAgent: <<<Hal Roe.>>>\n"
        "T: <<<(Hal Roe, notable work, Book 8), (Hal Roe, date of birth, 1908-05-17)>>>"
    )
    (item,) = conv.read_batch(subjects["Q8"], text, NameMatcher()).items
    record = item.record("conv")
    assert (record["topic_entities"], record["answers"]) == (["Q208"], ["Q8"])
    assert "relation_path" not in record, "no date of birth leads to a book"
