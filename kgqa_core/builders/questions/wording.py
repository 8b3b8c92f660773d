"""Questions in English from forms: the kind of question is chosen by the form, its words are drawn."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import dataclass

from kgqa_core.builders.questions.aggregates import AggregateQuestions
from kgqa_core.builders.questions.phrases import FormPhrases
from kgqa_core.builders.questions.question_words import QuestionWords
from kgqa_core.builders.questions.set_questions import SetQuestions
from kgqa_core.builders.questions.value_questions import ValueQuestions
from kgqa_core.logic.forms import Aggregate, Count, Entity, Form, Greater, Holds, Nth, Share, elements
from kgqa_core.search.schema_profile import GraphProfile


@dataclass(frozen=True, slots=True)
class WordedQuestion:
    """A question's text, and the names in it that stand for entities, in the order of the form's keys."""

    text: str
    mentions: tuple[str, ...]


class English:
    """Words forms of one graph.  names: an entity's name by its key."""

    def __init__(self, profile: GraphProfile, names: Callable[[str], str]) -> None:
        self.names, self.lexicon = names, QuestionWords(profile, names)
        phrases = FormPhrases(self.lexicon)
        self.sets = SetQuestions(phrases)
        self.values, self.aggregates = ValueQuestions(phrases, self.sets), AggregateQuestions(phrases)

    def write(self, form: Form, seed: str) -> WordedQuestion:
        """A question whose answer the form is.  Raises FormError for a form that this grammar does not write."""
        self.lexicon.rng = random.Random(seed)
        text = re.sub(r"\bthe the\b", "the", re.sub(r"\s+", " ", self._question(form))).strip().replace(" ,", ",")
        text = re.sub(r"\b(who ha(?:s|ve) [^,]*?) as its ", r"\1 as their ", text)
        mentions = tuple(self.names(key) for key in elements(form).entities)
        ends = "" if re.match(r"(list|name|give|show|tell|find|count)\b", text) or not _asks(text) else "?"
        starts_with_name = any(text.startswith(name) for name in mentions)
        return WordedQuestion(f"{text if starts_with_name else text[:1].upper() + text[1:]}{ends}", mentions)

    def _question(self, form: Form) -> str:
        match form:
            case Count(of=of):
                return self.values.count(of)
            case Holds(of=Greater() as greater, one=Entity() as one):
                return self.values.more(greater, one)
            case Holds(of=of, one=one) if of == one:
                return self.values.exists(of)
            case Holds(of=of, one=one):
                return self.values.holds(of, one)
            case Aggregate() | Share() | Nth(first=True):
                return self.aggregates.question(form)
            case Greater():
                return self.values.greater(form)
        return self.sets.question(form)


def _asks(text: str) -> bool:
    asks = r"(who|whose|where|is|are|was|were|does|do|did|has)\b|.*\b(what|which|when|how|right|true)\b|.*, who\b"
    return bool(re.match(asks, text))
