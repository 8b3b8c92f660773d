"""Prompts to the letter of the paper."""

from __future__ import annotations

from kgqa_core.prompts import answer_prompt, prompt_digest, triple_form


def test_prompt_with_facts_is_the_papers() -> None:
    context = triple_form([("Paris", "<inv>-capital of", "France"), ("France", "currency", "Euro")])
    assert context == "(Paris, <inv>-capital of, France), (France, currency, Euro)"
    assert answer_prompt("What is the currency of France", context) == (
        'Given the following context: "(Paris, <inv>-capital of, France), (France, currency, Euro)" '
        "Answer the question: What is the currency of France. Answer:"
    )


def test_prompt_without_facts_is_the_papers() -> None:
    assert answer_prompt("Who wrote it?") == "Question: Who wrote it? Answer:"
    assert (
        answer_prompt("Who wrote it?", "") == answer_prompt("Who wrote it?", "  \n") == answer_prompt("Who wrote it?")
    )


def test_a_question_keeps_its_mark() -> None:
    assert answer_prompt("Who?", "(a, b, c)").endswith("Answer the question: Who?. Answer:")


def test_braces_in_texts_stay() -> None:
    prompt = answer_prompt("Is {context} {question}?", "({question}, r, {context})")
    assert prompt == (
        'Given the following context: "({question}, r, {context})" '
        "Answer the question: Is {context} {question}?. Answer:"
    )


def test_digest_tells_prompts_apart() -> None:
    assert len(prompt_digest("a")) == 16 and prompt_digest("a") != prompt_digest("b")
