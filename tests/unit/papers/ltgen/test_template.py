"""The rules write questions and dialogues that pass the checks that a model's must pass."""

from __future__ import annotations

from kgqa_core.papers.ltgen import conv, qa, template
from kgqa_core.papers.ltgen.parse import NameMatcher
from kgqa_core.papers.ltgen.records import Subject


def test_every_question_by_rule_is_good(subjects: dict[str, Subject]) -> None:
    for subject in subjects.values():
        pairs = qa.pairs_to_ask(subject, NameMatcher(), 7)
        batch = qa.read_batch(subject, pairs, 1, template.qa_text(pairs), NameMatcher())
        assert len(batch.items) == len(pairs) > 0 and not batch.rejects


def test_every_turn_by_rule_is_good_and_names_the_entity_first(subjects: dict[str, Subject]) -> None:
    said_it = 0
    for subject in subjects.values():
        batch = conv.read_batch(subject, template.conv_text(subject, 7), NameMatcher())
        groups = {(triple.head == subject.end, triple.relation) for triple in subject.triples}
        assert not batch.rejects
        if not batch.items:
            assert len(groups) == 1 and len(subject.triples) > template.MOST_CITED
            continue
        assert subject.end.name in batch.items[0].text
        assert all(1 <= len(item.triples) <= template.MOST_CITED for item in batch.items)
        assert len(batch.items) <= template.TURNS
        said_it += sum(subject.end.name not in item.text for item in batch.items)
    assert said_it > 0, "some queries need the dialogue before them"


def test_wording_follows_the_seed(subjects: dict[str, Subject]) -> None:
    subject = subjects["Q1"]
    texts = {seed: template.conv_text(subject, seed) for seed in (1, 2, 3)}
    assert texts[1] == template.conv_text(subject, 1) and len(set(texts.values())) > 1


def test_chinese_relations_are_asked_in_chinese() -> None:
    assert template.about_tail("奥斯陆", "国家") == "奥斯陆的国家是什么？"
    assert template.about_head("国家", "挪威") == "什么的国家是挪威？"
