"""Questions whose answer is a set: wh-questions, noun phrases, imperatives, keywords."""

from __future__ import annotations

import re

from kgqa_core.builders.questions.noun import Noun, article, conjugated
from kgqa_core.builders.questions.phrases import FormPhrases
from kgqa_core.builders.questions.relation_words import PLACES, RelationWordings, is_person
from kgqa_core.logic.forms import And, Arg, Class, Entity, Form, Join, Minus, Nth
from kgqa_core.rewriting.phrases import plural


class SetQuestions:
    """Words forms that denote nodes."""

    def __init__(self, phrases: FormPhrases) -> None:
        self.phrases, self.lexicon = phrases, phrases.lexicon

    def question(self, form: Form) -> str:
        """A question whose answer is the set.  Raises FormError."""
        direct = self._direct(form)
        if direct and self.lexicon.rng.random() < 0.45:
            return self.lexicon.rng.choice(direct)
        style = self.lexicon.rng.random()
        noun = self.phrases.noun(form)
        known = noun.known or bool(noun.fixed)
        if style < 0.4 and not isinstance(form, (Class, Minus, Arg, Nth)) and self.subject(form, noun):
            return self._which(form, noun)
        if not known and not self.subject(form, noun):
            return f"{'who' if is_person(noun.head) else 'what'} {'are' if noun.many else 'is'} {noun.show()}"
        if style < 0.75:
            return self._wh(form, noun)
        if style < 0.86:
            return noun.show(article=self.lexicon.rng.random() < 0.6)
        verb = self.lexicon.rng.choice(("list", "name", "give me", "show me", "tell me", "find"))
        everything = (
            "all " if noun.many and not noun.pre and not noun.adjective and self.lexicon.rng.random() < 0.4 else ""
        )
        return f"{verb} {everything}{noun.show(article=not isinstance(form, Class))}"

    def _wh(self, form: Form, noun: Noun) -> str:
        be = "are" if noun.many else "is"
        if isinstance(form, Class):
            return self.lexicon.rng.choice(
                (
                    f"what {noun.show(article=False)} are there",
                    f"which {noun.show(article=False)} are there",
                    f"what are all the {noun.show(article=False)}",
                )
            )
        words = self._words(form)
        wh = (
            "who"
            if is_person(noun.head) or (words is not None and words.wh == "who" and self._outer_tail(form))
            else "what"
        )
        if noun.pre and wh == "what" and self.lexicon.rng.random() < 0.3:
            return f"what is {noun.show()}" if not noun.many else f"what are {noun.show()}"
        if isinstance(form, (Arg, Nth)) and noun.known and not noun.fixed:
            if self.lexicon.rng.random() < 0.5:
                return (
                    f"which {noun.head} is the {noun.adjective} {noun.post}".strip()
                    if noun.adjective and not (noun.post or noun.pre)
                    else f"{wh} {be} {noun.show()}"
                )
            return f"which is {noun.show()}"
        return f"{wh} {be} {noun.show()}"

    def _which(self, form: Form, noun: Noun) -> str:
        """`which countries border X`, `who directed X`, `what has X as its capital`."""
        many = noun.many
        predicate_form, head = form, ""
        if isinstance(form, And):
            classes = [part for part in form.parts if isinstance(part, Class)]
            others = [part for part in form.parts if not isinstance(part, Class)]
            if classes and others:
                head = self.lexicon.type_label(classes[0].key)
                predicate_form = others[0] if len(others) == 1 else And(tuple(others))
                many = True
        head = head or (noun.head if noun.known and not noun.fixed and self.end(form) == noun.head else self.end(form))
        predicate = self.phrases.predicate(predicate_form, many)
        words = self._words(form)
        who = is_person(head) if head else words is not None and words.wh == "who" and self._outer_tail(form)
        if who and (not head or self.lexicon.rng.random() < 0.7):
            return f"who {self.phrases.predicate(predicate_form, False)}"
        if not head:
            return f"what {self.phrases.predicate(predicate_form, False)}"
        if re.match(rf"(is|are) (the |an? )?({re.escape(head)}|{re.escape(plural(head))}) of ", predicate):
            return self._wh(form, noun)
        which = self.lexicon.rng.choice(("which", "which", "what"))
        return f"{which} {plural(head) if many else head} {predicate}"

    def subject(self, form: Form, noun: Noun) -> bool:
        """Whether a form has a predicate that a question can be made of."""
        if isinstance(form, Join):
            words = self.lexicon.words(form.path[0])
            if form.where:
                return False
            other = bool(noun.head) and noun.head not in words.nouns
            return bool(words.active or other and words.nouns) if form.path[0].inverse else True
        return isinstance(form, And) and not any(isinstance(part, Join) and part.where for part in form.parts)

    def end(self, form: Form) -> str:
        """What the members of a form are called, "" where nothing is known."""
        if isinstance(form, And):
            joins = [part for part in form.parts if isinstance(part, Join)]
            return self.end(joins[0]) if joins else ""
        if isinstance(form, Join):
            words = self.lexicon.words(form.path[0])
            return words.tail if form.path[0].inverse else words.head
        return ""

    def _outer_tail(self, form: Form) -> bool:
        return isinstance(form, Join) and form.path[0].inverse

    def _words(self, form: Form) -> RelationWordings | None:
        return self.lexicon.words(form.path[0]) if isinstance(form, Join) else None

    def _direct(self, form: Form) -> list[str]:
        """Whole questions for one relation of an entity or of a described thing."""
        if not isinstance(form, Join) or form.where:
            return []
        step, inner = form.path[0], form.of if len(form.path) == 1 else Join(form.path[1:], form.of)
        words = self.lexicon.words(step)
        noun = self.phrases.noun(inner)
        if noun.many:
            return []
        x, single = noun.show(), self.lexicon.profile.relations[step.relation].functional
        if not step.inverse:
            results = [text.replace("<x>", x) for text in words.entry.back]
            if words.nouns and words.head and isinstance(inner, Entity):
                a = "the" if single else article(words.nouns[0])
                results.append(f"{x} is {a} {words.nouns[0]} of which {words.head}")
            return results
        results = [text.replace("<x>", x) for text in words.entry.ask]
        sort = words.tail
        which = f"which {sort if single else plural(sort)}" if sort else "what"
        which = "who" if is_person(sort) or not sort and words.wh == "who" else which
        results += [f"{which} {conjugated(verb, not single and which.startswith('which'))} {x}"
                    for verb in words.active if not verb.startswith("is ")]  # fmt: skip
        for is_, participle in words.passive:
            start, _, last = participle.rpartition(" ")
            if self.lexicon.profile.relations[step.relation].dated:
                results.append(f"when {is_} {x} {start or participle}")
                continue
            results.append(f"{which} {is_} {x} {participle}")
            if last in ("in", "at"):
                results.append(f"where {is_} {x} {start}")
        for one, several in words.verbs:
            if one != several and not one.startswith(("is ", "has ", "was ")):
                results.append(f"{which} does {x} {several}")
            elif one.startswith("is ") and isinstance(inner, Entity):
                results.append(f"{f'which {sort}' if sort else 'what'} is {x} {one.removeprefix('is ')}")
        if sort in PLACES and words.nouns and single:
            results.append(f"where is the {words.nouns[0]} of {x}")
        return results
