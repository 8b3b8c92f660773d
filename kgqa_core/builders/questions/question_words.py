"""Words for what a graph names: its entities, types, relations and values, drawn of several where there are several."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from typing import TypeVar

from kgqa_core.builders.questions.noun import article, conjugated, spelled
from kgqa_core.builders.questions.relation_words import RelationWordings, relation_words
from kgqa_core.datasets.derived.thesaurus import thesaurus
from kgqa_core.errors import FormError
from kgqa_core.logic.forms import Compare, Entity, Form, Join, Literal, Step
from kgqa_core.rewriting.phrases import is_plural, plural
from kgqa_core.search.schema_profile import GraphProfile, base_label

T = TypeVar("T")
_THE = re.compile(
    r"(United|Republic|Kingdom|Democratic|Czech Republic|Dominican|Central African)\b|.*(Islands|States|Union)$"
)


class QuestionWords:
    """Words of one graph, drawn with `rng`, which is set anew for each question.  names: an entity's name by key."""

    def __init__(self, profile: GraphProfile, names: Callable[[str], str]) -> None:
        self.profile, self.name = profile, names
        self.rng = random.Random(0)
        self._words: dict[str, RelationWordings] = {}

    def pick(self, options: Sequence[T]) -> T:
        """One of several, the first twice as likely as another."""
        return self.rng.choice([options[0], *options])

    def words(self, step: Step) -> RelationWordings:
        """The words of a step's relation."""
        if step.relation not in self._words:
            if step.relation not in self.profile.relations:
                raise FormError(f"relation {step.relation!r} has no words in this graph")
            self._words[step.relation] = relation_words(self.profile.relations[step.relation], self.profile)
        return self._words[step.relation]

    def type_label(self, key: str) -> str:
        """A type's label, or another word for it."""
        if key not in self.profile.types:
            raise FormError(f"type {key!r} has no label in this graph")
        label = self.profile.types[key].label
        others = [word for word in thesaurus().type(label) if len(word.split()) < 3 and label not in word.split()]
        return self.rng.choice(others) if others and self.rng.random() < 0.25 else label

    def called(self, form: Entity) -> str:
        """An entity's name, with an article where English has one, mostly."""
        name = self.name(form.key)
        return f"the {name}" if _THE.match(name) and self.rng.random() < 0.6 else name

    def name_of(self, form: Form) -> str:
        """The name of the entity that a path starts at, "" where it is none."""
        return self.name(form.of.key) if isinstance(form, Join) and isinstance(form.of, Entity) else ""

    def extremes(
        self, step: Step, words: RelationWordings, best: str, counted: bool, index: str, person: bool
    ) -> list[str]:
        """`with the highest R`, `with the most Rs`: clauses after a noun."""
        that, rank = "who" if person else "that", f"{index} " if index else ""
        if counted:
            most = f"{rank}most" if best == "max" else f"{rank}fewest"
            things = self.counted_noun(step, words)
            return [f"with the {most} {things}", f"that has the {most} {things}", f"{that} has the {most} {things}"]
        dated = self.profile.relations[step.relation].dated
        if dated and not words.nouns and not index:
            return [f"{that} {self.happened(step, words, False)} {'last' if best == 'max' else 'first'}"]
        noun = self.noun(step, words)
        if dated:
            late = "latest" if best == "max" else "earliest"
            return [f"with the {rank}{late} {noun}", f"whose {noun} is the {rank}{late}"]
        much = ("highest", "largest", "greatest") if best == "max" else ("lowest", "smallest")
        return [f"with the {rank}{self.pick(much)} {noun}", f"{that} has the {rank}{self.pick(much)} {noun}"]

    def noun(self, step: Step, words: RelationWordings) -> str:
        """What a value of a relation is called.  Raises FormError where only a verb says the relation."""
        if not words.nouns:
            raise FormError(f"{step.relation} has no noun")
        return words.nouns[0]

    def happened(self, step: Step, words: RelationWordings, many: bool) -> str:
        """`was launched`, of a relation to a date that only a verb says: `launched on`.  Raises FormError."""
        said = [f"{aux} {part}" for aux, part in words.passive] + [one for one, _ in words.verbs]
        for text in said:
            if found := re.fullmatch(r"(.+) (?:on|in|at|since)", text):
                return conjugated(found[1], many)
        raise FormError(f"{step.relation} has no verb for a date")

    def counted_noun(self, step: Step, words: RelationWordings, many: bool = True) -> str:
        """What is counted along a step of a measure.  Raises FormError where the end that is counted has no name."""
        near, noun = (words.tail, words.head) if step.inverse else (words.head, words.tail)
        if words.nouns and not step.inverse:
            noun = self.pick(words.nouns)
        if noun in ("", near):
            raise FormError(f"what {step} leads to has no name of its own")
        return plural(noun) if many else noun

    def condition(self, form: Compare, many: bool) -> str:
        """A bound on a value as a clause after a noun: `with more than 5 million inhabitants`."""
        words, v = self.words(form.path[0]), self.value(form.value)
        entry = words.entry.more if form.op in ("gt", "ge") else words.entry.less
        if entry and not form.counted and self.rng.random() < 0.8:
            return self.pick(entry).replace("<v>", v)
        if self._only_happens(form, words):
            return f"that {self.compared(form, many)}"
        return self.pick(
            (f"with {self._bound(form, words, v)}", f"that {'have' if many else 'has'} {self._bound(form, words, v)}")
        )

    def compared(self, form: Compare, many: bool) -> str:
        """A bound on a value as a predicate: `have more than 5 million inhabitants`."""
        words, v = self.words(form.path[0]), self.value(form.value)
        if self._only_happens(form, words):
            when = "after" if form.op in ("gt", "ge") else "before"
            return f"{self.happened(form.path[0], words, many)} {when} {v}"
        has = "have" if many else "has"
        entry = words.entry.more if form.op in ("gt", "ge") else words.entry.less
        own = [text.removeprefix("with ") for text in entry if text.startswith("with ")]
        if own and not form.counted and self.rng.random() < 0.7:
            return f"{has} {self.pick(own).replace('<v>', v)}"
        return f"{has} {self._bound(form, words, v)}"

    def _only_happens(self, form: Compare, words: RelationWordings) -> bool:
        return not form.counted and not words.nouns and self.profile.relations[form.path[0].relation].dated

    def _bound(self, form: Compare, words: RelationWordings, v: str) -> str:
        up = form.op in ("gt", "ge")
        if form.counted:
            more = self.pick(("more than", "over")) if up else "fewer than"
            thing = self.counted_noun(form.path[0], words, v != "1")
            return f"{'more than' if v == '1' and up else more} {'one' if v == '1' else v} {thing}"
        noun = self.noun(form.path[0], words)
        a = "" if is_plural(noun) else article(noun) + " "
        if form.value.datatype.endswith(("gYear", "date")):
            return f"{a}{noun} {'after' if up else 'before'} {v}"
        more = self.pick(
            ("of more than", "above", "over", "greater than") if up else ("of less than", "below", "under")
        )
        return f"{a}{noun} {more} {v}"

    def value(self, value: Entity | Literal) -> str:
        """An entity's name, or a number or year as people write it, with its unit."""
        if isinstance(value, Entity):
            return self.called(value)
        text = value.text
        if not value.datatype.endswith(("gYear", "date")) and re.fullmatch(r"-?\d{4,}", text):
            text = self.pick(spelled(int(text)))
        unit = None if value.unit is None else base_label(value.unit) or self.profile.units.get(value.unit)
        return f"{text} {unit}" if unit else text
