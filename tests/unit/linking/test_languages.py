"""The language of a question, by its script and its words of grammar."""

from __future__ import annotations

import pytest

from benchmarks.answers import languages
from benchmarks.conditions import DATA
from kgqa_core.linking.languages import are_in, language_of

FOREIGN = {
    "Hauptstadt und Einwohnerzahl von Norwegen": "German",
    "wer ist der vorgesetzte von udo marx": "German",
    "Quel est le numéro de téléphone de Heike Sand ?": "French",
    "WIE VIELE MITARBEITER HAT DER EINKAUF?": "German",
    "¿Bella elige a Edward?": "Spanish",
    "Qual è la capitale della Norvegia?": "Italian",
    "Quantos habitantes tem a cidade?": "Portuguese",
    "Hoeveel inwoners heeft de stad?": "Dutch",
    "Кто написал Войну и мир?": "Russian",
    "Star Warsの監督は誰ですか？": "Japanese",
    "프랑스의 수도는 어디입니까?": "Korean",
    "ما هي عاصمة النرويج؟": "Arabic",
}
ENGLISH = (
    "Who wrote Les Misérables?",
    "Where is Der Spiegel published?",
    "who directed la vita è bella",
    "when was vincent van gogh born?",
    "What instrument did Павел Гинтов play?",
    "population of los angeles",
    "Does São Paulo border Rio de Janeiro?",
    "who is the wife of el cid",
)


@pytest.mark.parametrize(("text", "language"), FOREIGN.items())
def test_the_language_of_a_question_is_found(text: str, language: str) -> None:
    assert language_of(text) == language


@pytest.mark.parametrize("text", ENGLISH)
def test_an_english_question_with_foreign_names_is_english(text: str) -> None:
    assert language_of(text) in ("English", None)


def test_a_graph_with_labels_of_another_language_is_asked_in_it() -> None:
    english, german, chinese = ("member", "of", "manager"), ("mitglied", "vorgesetzter", "von"), ("成员", "manager")
    assert [are_in(words, "German") for words in (english, german)] == [False, True]
    assert [are_in(words, "Chinese") for words in (english, german, chinese)] == [False, False, True]


@pytest.mark.skipif(not (DATA / "mintaka").is_dir(), reason="the shared data are not here")
def test_languages_of_published_questions_are_found_and_english_is_not_taken_for_another() -> None:
    found = languages.figures(languages.mintaka(DATA))
    assert len(found) == 8 and min(row["not_english"] for row in found.values()) > 0.95
    assert [text for text in languages.english(DATA) if language_of(text) not in ("English", None)] == []
