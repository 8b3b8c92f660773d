"""The second phase's text: families, forms, determinism, and that its sentences say what the triples say."""

from __future__ import annotations

import re
from collections import Counter
from random import Random

import pytest
import torch

from kgqa_core import prompts
from tools.builtin_reader import mixture
from tools.builtin_reader.batches import FIRST_TOKEN, REWRITTEN, SECOND, encode, make_batch
from tools.builtin_reader.corpus import END, Sample
from tools.builtin_reader.evaluate import judge
from tools.builtin_reader.names import Names
from tools.builtin_reader.sentences import tell
from tools.builtin_reader.tokens import learn, letter_pieces

pytestmark = pytest.mark.slow  # by default its text is held to be that of the shipped weights (test_builtin_corpus.py)

FACT = re.compile(r"\((.+?), (.+?), (.+?)\)(?=, \(|$)")
RANKED = ("comparative", "superlative")


def drawn(count: int, seed: int = 5, level: int = 2) -> list[Sample]:
    return list(mixture.samples(seed, 0, count, level=level))


@pytest.mark.parametrize("form", ["triples", "sentences"])
@pytest.mark.parametrize("family", mixture.FAMILIES)
def test_every_family_is_asked_on_triples_and_on_sentences(form: str, family: str) -> None:
    for level in (0, 1, 2):
        random = Random(level)
        sample = mixture.draw(random, Names(random), level, form, family, chinese=False)
        assert sample.items[0][0] == family and not sample.chinese
        assert sample.context.startswith("(") == (form == "triples" and family != "no facts")


@pytest.mark.parametrize("family", mixture.HAN_FAMILIES)
def test_chinese_questions_have_chinese_contexts_and_answers(family: str) -> None:
    random = Random(2)
    sample = mixture.draw(random, Names(random), 2, "sentences", family, chinese=True)
    assert sample.chinese and "的" in sample.context and sample.context.endswith("。")
    if family == "yes/no":
        assert sample.items[0][2] in ("是", "不是")


def test_both_prompts_and_every_form_are_met() -> None:
    seen = Counter((sample.template, sample.chinese) for sample in drawn(400))
    assert set(seen) == {(name, han) for name in ("sen2023", "rra2023", "rewrite") for han in (False, True)}
    for sample in drawn(200):
        text = sample.text()
        assert text.startswith(f"{sample.prompt()} {sample.items[0][2]}{END}")
        assert text.count(END) == len(sample.items)


def test_prompts_are_those_of_the_pipeline() -> None:
    for sample in drawn(200):
        if sample.template == "rewrite":
            before, after = prompts.rewrite_prompt("\0", "zh" if sample.chinese else "en").split("\0")
            assert sample.prompt().startswith(before + "(") and sample.prompt().endswith(")" + after)
        else:
            assert sample.prompt() == prompts.answer_prompt(sample.items[0][1], sample.context, sample.template)


def test_relations_are_spelled_as_graphs_spell_them() -> None:
    random = Random(4)
    names = Names(random)
    labels = [fact[1] for _ in range(300) for fact in mixture.facts_to_tell(random, names, chinese=False)]
    for form in (r"\w+\.\w+\.\w+", r"<inv>-.+", r"[a-z]+_[a-z_]+", r"[a-z]+ [a-z ]+"):
        assert any(re.fullmatch(form, label) for label in labels), form


@pytest.mark.parametrize("chinese", [False, True])
def test_the_sentences_to_learn_are_faithful(chinese: bool) -> None:
    random = Random(6)
    names = Names(random)
    for number in range(400):
        facts = mixture.facts_to_tell(random, names, number % 3, chinese=chinese)
        assert 1 <= len(facts) <= 12
        told = tell(facts, chinese=chinese)
        assert judge(facts, told, chinese=chinese).faithful, (facts, told)


def test_drilled_answers_follow_from_the_triples() -> None:
    """Counts and bare yes or no; the names that are compared stand in the context and differ in their numbers."""
    checked = Counter[str]()
    for sample in drawn(400):
        facts = [match.groups() for match in FACT.finditer(sample.context)]
        for family, question, answer in sample.items:
            if family == "count":
                groups = Counter(fact[:2] for fact in facts)
                assert answer.isdecimal() and (not facts or int(answer) in groups.values()), question
            elif family == "yes/no":
                assert answer in ("yes", "no", "是", "不是")
            elif family in RANKED and sample.context:
                assert answer in sample.context or answer in ("yes", "no")
            checked[family] += 1
    assert all(checked[family] > 20 for family in ("count", "yes/no", *RANKED)), checked


def test_yes_and_no_are_even() -> None:
    for level in (0, 2):
        answers = Counter(
            item[2] for sample in drawn(1500, level=level) for item in sample.items if item[0] == "yes/no"
        )
        for yes, no in (("yes", "no"), ("是", "不是")):
            assert 0.4 < answers[yes] / (answers[yes] + answers[no]) < 0.6, answers


def test_held_out_samples_are_not_in_the_training_text() -> None:
    held = {sample.prompt() for _, sample in mixture.held_out(SECOND.seed, (), 4)}
    random = Random(f"{SECOND.seed}/step 0")
    names = Names(random)
    assert not held & {mixture.draw(random, names).prompt() for _ in range(500)}


def test_some_batches_have_longer_rows() -> None:
    tokenizer = learn((sample.text() for sample in drawn(300)), 1500)
    pieces = letter_pieces(tokenizer)
    short, long = (make_batch(SECOND, step, tokenizer, pieces) for step in (6, 7))
    assert short.ids.shape == (8, 512) and long.ids.shape == (4, 1024)
    assert int(long.positions.max()) > 512
    assert set(short.weights.unique().tolist()) == {0.0, *torch.tensor([0.2, 0.7, 1.5, 4.0]).tolist()}


def test_the_first_token_of_an_answer_weighs_most() -> None:
    tokenizer = learn((sample.text() for sample in drawn(300)), 1500)
    random = Random(3)
    sample = mixture.draw(random, Names(random), 0, "triples", "yes/no", chinese=False)
    ids, weights = encode(sample, tokenizer, 4000, 0.0, FIRST_TOKEN)
    firsts = [tokenizer.decode([token]) for token, weight in zip(ids, weights, strict=True) if weight == FIRST_TOKEN]
    assert len(firsts) == len(sample.items)
    assert all(f" {item[2]}".startswith(first) for first, item in zip(firsts, sample.items, strict=True))
    told = mixture.rewriting(random, Names(random), chinese=False)
    _, weights = encode(told, tokenizer, 4000, 0.0, FIRST_TOKEN)
    assert set(weights) == {0.0, REWRITTEN}
