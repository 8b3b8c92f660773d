"""Questions whose answer is a value, or one of two: how many, whether, is there any, which has more."""

from __future__ import annotations

import re

from kgqa_core.builders.questions.noun import article
from kgqa_core.builders.questions.phrases import FormPhrases
from kgqa_core.builders.questions.relation_words import PLACES, RelationWordings, is_person
from kgqa_core.builders.questions.set_questions import SetQuestions
from kgqa_core.errors import FormError
from kgqa_core.logic.forms import And, Class, Entity, Form, Greater, Join
from kgqa_core.rewriting.phrases import is_plural, plural


class ValueQuestions:
    """Words forms that count, hold or compare.  sets: words of the sets that they are about."""

    def __init__(self, phrases: FormPhrases, sets: SetQuestions) -> None:
        self.phrases, self.lexicon, self.sets = phrases, phrases.lexicon, sets

    def count(self, of: Form) -> str:
        """How many a set has."""
        if isinstance(of, Join) and of.path[0].inverse and not of.where:
            words = self.lexicon.words(of.path[0])
            rest = of.path[1:]
            noun = self.phrases.noun(Join(rest, of.of) if rest else of.of)
            if words.nouns and not noun.many and self.lexicon.rng.random() < 0.5:
                things = plural(self.lexicon.pick(words.nouns))
                if self.lexicon.rng.random() < 0.3:
                    return f"how many {things} are there {'in' if words.head in PLACES else 'for'} {noun.show()}"
                return f"how many {things} does {noun.show()} have"
        noun = self.phrases.noun(of)
        style = self.lexicon.rng.random()
        if isinstance(of, (Join, And)) and style < 0.45 and (isinstance(of, And) or self.sets.subject(of, noun)):
            head = self.sets.end(of)
            classes = [part for part in of.parts if isinstance(part, Class)] if isinstance(of, And) else []
            if classes:
                head = self.lexicon.type_label(classes[0].key)
            others = tuple(part for part in of.parts if part not in classes) if isinstance(of, And) else (of,)
            if others:
                predicate = self.phrases.predicate(others[0] if len(others) == 1 else And(others), True)
                return f"how many {plural(head or 'thing')} {predicate}"
        several = noun.show(article=False, many=True)
        if re.match(r"(that|who|whose)\b", noun.post):
            return self.lexicon.rng.choice((f"how many {several} are there", f"what is the number of {several}"))
        if noun.fixed or noun.pre:
            return self.lexicon.rng.choice((f"what is the number of {several}", f"count {several}"))
        return self.lexicon.rng.choice(
            (f"how many {several} are there", f"how many {several} are there", f"what is the number of {several}",
             f"count the {several}", f"how many {several} exist")
        )  # fmt: skip

    def exists(self, of: Form) -> str:
        """Whether a set has any."""
        several = self.lexicon.rng.random() < 0.5
        noun = self.phrases.noun(of, many=several)
        if noun.fixed or noun.pre:
            raise FormError(f"{of} has no question whether it is there")
        text = noun.show(article=False)
        if several:
            return self.lexicon.rng.choice((f"are there any {text}", f"are there {text}"))
        return self.lexicon.rng.choice((f"is there {article(text)} {text}", f"is there any {text}"))

    def holds(self, of: Form, one: Form) -> str:
        """Whether something is in a set."""
        subject = self.phrases.noun(one).show()
        if isinstance(of, Class):
            label = self.lexicon.type_label(of.key)
            return f"is {subject} {article(label)} {label}"
        if isinstance(of, Join) and of.path[0].inverse and not of.where and self.lexicon.rng.random() < 0.5:
            swapped = self._swapped(of, subject)
            if swapped:
                return swapped
        predicate = self.phrases.predicate(of, False)
        verb = re.match(r"(is|was|are|were|can) (.*)", predicate)
        if verb:
            return f"{verb[1]} {subject} {verb[2]}"
        verb = re.match(r"has (.*)", predicate)
        if verb:
            return f"does {subject} have {verb[1]}"
        words = self.lexicon.words(of.path[0]) if isinstance(of, Join) else None
        for first, several in (
            words.verbs if words is not None and isinstance(of, Join) and not of.path[0].inverse else ()
        ):
            if first != several and predicate.startswith(first + " "):
                return f"does {subject} {several}{predicate.removeprefix(first)}"
        return self.lexicon.rng.choice(
            (f"is it true that {subject} {predicate}", f"{subject} {predicate}, right",
             f"true or false: {subject} {predicate}", f"{subject} {predicate}, is that true")
        )  # fmt: skip

    def _swapped(self, of: Join, subject: str) -> str:
        """The question from the other end: `does X border Y`, `was X directed by Y`, `is Y the capital of X`."""
        step, rest = of.path[0], of.path[1:]
        words = self.lexicon.words(step)
        noun = self.phrases.noun(Join(rest, of.of) if rest else of.of)
        if noun.many:
            return ""
        x = noun.show()
        options = [f"{is_} {x} {participle} {subject}" for is_, participle in words.passive]
        options += [
            f"does {x} {several} {subject}"
            for one, several in words.verbs
            if one != several and not one.startswith(("is ", "was "))
        ]
        options += [f"is {x} {one.removeprefix('is ')} {subject}" for one, _ in words.verbs if one.startswith("is ")]
        options += [
            f"does {x} have {subject} as {self.lexicon.rng.choice(('its', 'a', 'the'))} {words.nouns[0]}"
            for _ in words.nouns[:1]
        ]
        options += [f"is {subject} the {noun_} of {x}" for noun_ in words.nouns[:2]]
        return self.lexicon.pick(options) if options else ""

    def greater(self, form: Greater) -> str:
        """Which of two has more, or less."""
        one, other = (self.phrases.noun(part).show() for part in (form.one, form.other))
        if self.lexicon.rng.random() < 0.5:
            one, other = other, one
        step = form.path[0]
        words = self.lexicon.words(step)
        wh = "who" if is_person(words.head) and not step.inverse else "which"
        entry = words.entry.more_than if form.best == "max" else words.entry.less_than
        if entry and not form.counted and self.lexicon.rng.random() < 0.75:
            adjective = self.lexicon.pick(entry)
            return self.lexicon.rng.choice(
                (f"{wh} is {adjective}, {one} or {other}", f"is {one} or {other} {adjective}",
                 f"which is {adjective}: {one} or {other}", f"{one} or {other}, which is {adjective}",
                 f"{wh} is {adjective} {one} or {other}", f"between {one} and {other}, {wh} is {adjective}")
            )  # fmt: skip
        more = self._much(form, words)
        return self.lexicon.rng.choice(
            (f"{wh} has {more}, {one} or {other}", f"which of {one} and {other} has {more}",
             f"does {one} or {other} have {more}", f"{one} or {other}: which has {more}",
             f"{wh} has {more}: {one} or {other}")
        )  # fmt: skip

    def _much(self, form: Greater, words: RelationWordings) -> str:
        up, step = form.best == "max", form.path[0]
        if form.counted:
            return f"{'more' if up else 'fewer'} {self.lexicon.counted_noun(step, words)}"
        noun = self.lexicon.noun(step, words)
        if self.lexicon.profile.relations[step.relation].dated:
            return f"the {'later' if up else 'earlier'} {noun}"
        return f"the {self.lexicon.pick(('higher', 'larger', 'greater') if up else ('lower', 'smaller'))} {noun}"

    def more(self, form: Greater, one: Entity) -> str:
        """Whether one of two has more, or less."""
        other = form.other if form.one == one else form.one
        a, b = self.phrases.noun(one).show(), self.phrases.noun(other).show()
        words = self.lexicon.words(form.path[0])
        entry = words.entry.more_than if form.best == "max" else words.entry.less_than
        if entry and not form.counted:
            return f"is {a} {self.lexicon.pick(entry)} than {b}"
        more = self._much(form, words).removeprefix("the ")
        a_more = more if form.counted or is_plural(more) else f"{article(more)} {more}"
        return f"does {a} have {a_more} than {b}"
