"""Confirmed questions: one in the same words is answered by the forms that give their right answers, untrained."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Sequence

from kgqa_core.errors import KgqaError
from kgqa_core.logic.parser import parse
from kgqa_core.search.candidates import Candidate, LabelQuery, has_value, nodes_of
from kgqa_core.search.graph import WORD
from kgqa_core.search.reading import stem
from kgqa_core.symbolic.by_labels.calibrate import Choice, answer_key
from kgqa_core.symbolic.by_labels.examples import candidate_of
from kgqa_core.symbolic.by_labels.parser import LabelParser, answers_of
from kgqa_core.types import Question

SURE, LIKELY = 0.95, 0.7
"""Confidence in a form that was right; where several were, a mention means several, or one question had a number."""


class ConfirmedForms:
    """Forms of confirmed questions by their words, with marks for what they are about, and how many have them."""

    def __init__(self, parser: LabelParser) -> None:
        self.parser, self.graph = parser, parser.graph
        self._learnt: tuple[Sequence[Question], dict[str, tuple[list[str], int]]] = ((), {})

    def learn(self, examples: Sequence[Question], link: Callable[[Question], Question]) -> None:
        """Takes questions with what is right, if they are others than before; those not about this graph are left."""
        if examples == self._learnt[0]:
            return
        learnt: dict[str, tuple[list[str], int]] = {}
        linked = []
        for example in examples:
            with contextlib.suppress(KgqaError):
                linked.append(link(example))
        for question, ranked in zip(linked, self.parser.parse(linked), strict=True):
            query, texts = ranked.prepared.query, self.graph.store.resolve(question.answer_keys).items()
            right = {name for text, ids in texts for name in [*self.graph.store.names(ids).values()] or [text]}
            candidates = [one for one in ranked.candidates if right and self._gives(one, right)]
            with contextlib.suppress(KgqaError):
                stated = candidate_of(parse(question.s_expression or ""), query, self.graph)
                if stated is not None and (not right or self._gives(stated, right)):
                    candidates = [stated]
            whole = (one for one in candidates if _names_all(one, query))
            forms = [_swap(str(one.form), self._marks(query)) for one in whole]
            known, times = learnt.get(_words(query), (forms, 0))
            learnt[_words(query)] = [form for form in known if form in forms], times + 1
        self._learnt = examples, learnt  # at once, for other threads choose meanwhile

    def choose(self, queries: Sequence[LabelQuery]) -> tuple[LabelQuery, Choice] | None:
        """The answer to a question in words that are confirmed, with the confidence as its share; None for others."""
        for query in queries:
            forms, times = self._learnt[1].get(_words(query), ((), 0))
            back = {mark: text for text, mark in self._marks(query).items()}
            read = (candidate_of(parse(_swap(form, back)), query, self.graph) for form in forms)
            if made := [one for one in read if one is not None]:
                alone = len(set(map(answer_key, made))) == 1 and (made[0].nodes is not None or times > 1)
                several = any(rho > slot.entities[0][2] / 4 for slot in query.slots for _, _, rho in slot.entities[1:])
                return query, Choice(made[0], SURE if alone and not several else LIKELY, 0.0)
        return None

    def _marks(self, query: LabelQuery) -> dict[str, str]:
        named = {str(self.graph.named(*slot.entities[0][:2])): f"\0{slot.word}" for slot in query.slots}
        return named | {str(value): f"\0{number}" for number, value in enumerate(query.values)}

    def _gives(self, one: Candidate, right: set[str]) -> bool:
        nodes = [] if one.nodes is None else one.nodes.tolist()
        return len(nodes) in (0, len(right)) and set(answers_of(one, self.graph.store.names(nodes))) == right


def _names_all(one: Candidate, query: LabelQuery) -> bool:
    return len(one.slots) == len(query.slots) and any(map(has_value, nodes_of(one.form))) == bool(query.values)


def _words(query: LabelQuery) -> str:
    words = WORD.findall(query.text.lower())
    return " ".join(stem(word) for word in words if word not in ("a", "an", "the", "please"))


def _swap(form: str, texts: dict[str, str]) -> str:
    found = "|".join(map(re.escape, sorted(texts, key=len, reverse=True))) or "$^"
    return re.sub(rf"(?<![^\s()])(?:{found})(?![^\s()])", lambda part: texts[part[0]], form)
