"""Noun phrases and predicates of forms: the parts that English questions are composed of.

A form of a set becomes a noun phrase (`the films directed by Ada`) or a predicate (`was directed by Ada`); a path nests
them (`the capitals of the countries that border Chad`).  What wording is taken of several is drawn.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from kgqa_core.builders.questions.noun import Noun, article, conjugated
from kgqa_core.builders.questions.question_words import QuestionWords
from kgqa_core.builders.questions.relation_words import RelationWordings, is_person
from kgqa_core.errors import FormError
from kgqa_core.logic.forms import And, Arg, Class, Compare, Entity, Form, Join, Literal, Minus, Nth, Or, Step
from kgqa_core.rewriting.phrases import is_plural, plural

_TRIES = 8
"""Wordings of a path that are drawn for one that ends in its entity."""
ORDINALS = {2: "second", 3: "third", 4: "fourth", 5: "fifth"}


class FormPhrases:
    """Noun phrases and predicates of forms over one graph."""

    def __init__(self, lexicon: QuestionWords) -> None:
        self.lexicon, self.profile = lexicon, lexicon.profile

    # -- noun phrases --------------------------------------------------------------------------------------------

    def noun(self, form: Form, head: str = "", many: bool | None = None) -> Noun:
        """The noun phrase of a form; head: what its members are; many: whether it is of several, where that is given.

        Raises FormError.
        """
        match form:
            case Entity():
                return Noun(fixed=self.lexicon.called(form))
            case Literal(text=text):
                return Noun(fixed=text.replace("_", " "))
            case Class(key=key):
                return Noun(head=self.lexicon.type_label(key), many=True)
            case Join():
                return self._joined(form, head, many)
            case And(parts=parts):
                return self._both(parts, head, many)
            case Or(parts=(Join(of=Entity() as x) as one, Join(of=Entity() as y) as other)) if one.path == other.path:
                for noun in (self.noun(one, head, True) for _ in range(_TRIES)):
                    if noun.post.endswith(self.lexicon.name(x.key)):
                        return replace(noun, post=f"{noun.post} or {self.lexicon.called(y)}")
                raise FormError(f"{form} has no noun phrase")
            case Or(parts=(one, other)):
                return Noun(fixed=f"{self.noun(one).show()} or {self.noun(other).show()}", many=True)
            case Minus(of=Join(path=(step, back), of=of), without=Entity() as without) if of == without:
                straight = (step.relation, step.inverse) == (back.relation, not back.inverse)
                if straight and self.lexicon.rng.random() < 0.65:
                    return self._alike(step, without, head)
                return replace(
                    self.noun(form.of, head, True), adjective=self.lexicon.rng.choice(("other", "other", ""))
                )
            case Minus(of=of, without=without):
                return self._without(self.noun(of, head, True), of, without)
            case Arg() | Nth():
                return self._best(form, head)
        raise FormError(f"{form} has no noun phrase")

    def _alike(self, step: Step, like: Entity, head: str) -> Noun:
        """What shares the end of a relation with an entity: `the other films with the same director as X`."""
        words, x = self.lexicon.words(step), self.lexicon.called(like)
        options: list[Noun] = []
        sort = head or (words.tail if step.inverse else words.head)
        if step.inverse:
            for noun in words.nouns[:2]:
                things = plural(words.head or "thing")
                options.append(Noun(sort or noun, f"that are {plural(noun)} of the same {things} as {x}", many=True))
                options.append(Noun(noun, f"of the {things} that {x} is {article(noun)} {noun} of", many=True))
            for verb in words.active[:2]:
                options.append(
                    Noun(
                        sort or "thing",
                        f"that {conjugated(verb, True)} the same {plural(words.head or 'thing')} as {x}",
                        many=True,
                    )
                )
        else:
            for noun in words.nouns[:3]:
                for post in (
                    f"with the same {noun} as {x}",
                    f"that have the same {noun} as {x}",
                    f"that share their {noun} with {x}",
                    f"with {x}'s {noun}",
                ):
                    options.append(Noun(sort or "thing", post, many=True))
            end = words.tail or "".join(words.nouns[:1])
            for is_, participle in words.passive if end else ():
                are = {"is": "are", "was": "were"}[is_]
                options.append(Noun(sort or "thing", f"{participle} the same {end} as {x}", many=True))
                options.append(Noun(sort or "thing", f"that {are} {participle} the same {end} as {x}", many=True))
            for _, several in words.verbs if end else ():
                if end not in several.split():
                    options.append(Noun(sort or "thing", f"that {several} the same {end} as {x}", many=True))
        if not options:
            raise FormError(f"{step} has no words")
        return replace(self.lexicon.pick(options), adjective=self.lexicon.rng.choice(("other", "")), known=bool(sort))

    def _joined(self, form: Join, head: str, given: bool | None) -> Noun:
        step, inner = form.path[0], form.of if len(form.path) == 1 else Join(form.path[1:], form.of)
        words = self.lexicon.words(step)
        inside = self.noun(inner, self._expected(words, step, inner))
        x = inside.show()
        noun = self._ends(step)(step, words, inside, x, head, given)
        for condition in form.where:
            label = self.profile.qualifiers[condition.relation]
            value = self.lexicon.value(condition.value)
            after = (
                f", {label} {value}",
                f"with {value} as {label}",
                f"whose {label} is {value}",
                f"({label} {value})",
            )
            noun = replace(noun, post=f"{noun.post} {self.lexicon.pick(after)}".strip().replace(" ,", ","))
        return noun

    def _expected(self, words: RelationWordings, step: Step, inner: Form) -> str:
        """What a relation calls the end at which a path stands that says nothing of its own of it; "" for others."""
        if not isinstance(inner, Join) or inner.path[0].inverse and self.lexicon.words(inner.path[0]).nouns:
            return ""
        return words.head if step.inverse else words.tail

    def _ends(self, step: Step) -> Callable[[Step, RelationWordings, Noun, str, str, bool | None], Noun]:
        return self._tails if step.inverse else self._heads

    def _tails(self, step: Step, words: RelationWordings, inside: Noun, x: str, head: str, given: bool | None) -> Noun:
        """What the relation leads to from x."""
        relation = self.profile.relations[step.relation]
        many = (inside.many or not relation.functional) if given is None else given
        options: list[Noun] = []
        for noun in words.nouns:
            many = many or is_plural(noun)
            if not head or head == words.tail or noun == words.nouns[0]:
                end = (
                    f"that {'are' if many else 'is'} a {head}"
                    if head and head not in noun and head != words.tail
                    else ""
                )
                end = end.replace("that are a ", f"that are {plural(head)} ").strip() if head else end
                options.append(Noun(noun, f"{words.link.strip()} {x} {end}".strip(), many=many))
                if inside.fixed and not inside.many and len(x.split()) < 5 and words.link == " of ":
                    options.append(Noun(noun, end, pre=f"{x}'{'' if x.endswith('s') else 's'}", many=many))
        tail = head or words.tail
        sort = tail or {"who": "person", "when": "date"}.get(words.wh, "thing")
        for verb in words.active:
            that = "who" if is_person(sort) else "that"
            options.append(Noun(sort, f"{that} {conjugated(verb, many)} {x}", many=many, known=bool(tail)))
        for one, several in words.verbs:
            options.append(Noun(sort, f"that {x} {several if inside.many else one}", many=many, known=bool(tail)))
        for is_, participle in words.passive:
            aux = {"is": "are", "was": "were"}[is_] if inside.many else is_
            options.append(Noun(sort, f"that {x} {aux} {participle}", many=many, known=bool(tail)))
        return self.lexicon.pick(options)

    def _heads(self, step: Step, words: RelationWordings, inside: Noun, x: str, head: str, given: bool | None) -> Noun:
        """What has the relation to x."""
        relation = self.profile.relations[step.relation]
        many = (inside.many or not relation.inverse_functional) if given is None else given
        known = head or words.head
        sort = known or "thing"
        options: list[Noun] = []
        for is_, participle in words.passive:
            aux = {"is": "are", "was": "were"}[is_] if many else is_
            options.append(Noun(sort, f"{participle} {x}", many=many, known=bool(known)))
            options.append(Noun(sort, f"that {aux} {participle} {x}", many=many, known=bool(known)))
        for verb in words.active[:2]:
            options.append(
                Noun(
                    sort,
                    f"{self.lexicon.rng.choice(('that ', ''))}{x} {conjugated(verb, inside.many)}",
                    many=many,
                    known=bool(known),
                )
            )
        for one, several in words.verbs:
            who = "who" if is_person(sort) else "that"
            options.append(Noun(sort, f"{who} {several if many else one} {x}", many=many, known=bool(known)))
        for noun in words.nouns[:2]:
            has, own = ("have", "their") if many else ("has", "its")
            short = (f"with {noun} {x}", f"with {x} as {noun}") if inside.fixed else ()
            one = f"one of {x}" if inside.many else x
            for post in (f"whose {noun} is {one}", *short, f"that {has} {one} as {own} {noun}"):
                options.append(Noun(sort, post, many=many, known=bool(known)))
        return self.lexicon.pick(options)

    def _with_text(self, parts: tuple[Form, ...], head: str, many: bool | None) -> Noun | None:
        """A set whose value is a text, or true or false: `red cars`, `products that are discontinued`."""
        valued = [part for part in parts if isinstance(part, Join) and isinstance(part.of, Literal)]
        if len(valued) != 1 or len(parts) != 2 or not isinstance(valued[0].of, Literal):
            return None
        [other] = [part for part in parts if part is not valued[0]]
        text, step = valued[0].of.text.replace("_", " "), valued[0].path[0]
        words, noun = self.lexicon.words(step), self.noun(other, head, True if many is None else many)
        label = self.profile.relations[step.relation].label.removeprefix("is ").removeprefix("has ")
        that, are = "who" if is_person(noun.head) else "that", "are" if noun.many else "is"
        if text.lower() in ("true", "false"):
            no = "" if text.lower() == "true" else "not "
            posts = [f"{that} {are} {no}{label}", f"{no}{label}", f"{are} {no}{label}"[len(are) + 1 :]]
            adjective = label if not no else f"non-{label}"
        else:
            own = words.nouns[0] if words.nouns else label
            posts = [f"with {own} {text}", f"whose {own} is {text}", f"{that} {are} {text}", f"with {text} {own}"]
            adjective = text
        if noun.fixed:
            return replace(noun, fixed=f"{noun.fixed} {self.lexicon.pick(posts)}")
        if not noun.adjective and self.lexicon.rng.random() < 0.45:
            return replace(noun, adjective=adjective)
        return replace(noun, post=f"{noun.post} {self.lexicon.pick(posts)}".strip())

    def _both(self, parts: tuple[Form, ...], head: str, many: bool | None) -> Noun:
        if (valued := self._with_text(parts, head, many)) is not None:
            return valued
        classes = [part for part in parts if isinstance(part, Class)]
        others = [part for part in parts if not isinstance(part, (Class, Compare))]
        bounds = [part for part in parts if isinstance(part, Compare)]
        label = self.lexicon.type_label(classes[0].key) if classes else head
        several = True if many is None else many
        if many is None and len(others) == 1 and isinstance(others[0], Join) and self._single(others[0].path[0]):
            several = False
        noun = self.noun(others[0], label, several) if others else Noun(label, many=several)
        clauses = [
            f"{'who' if is_person(noun.head) else 'that'} {self.predicate(part, noun.many)}" for part in others[1:]
        ]
        clauses += [self.lexicon.condition(part, noun.many) for part in bounds]
        clauses += [f"that are {plural(self.lexicon.type_label(part.key))}" for part in classes[1:]]
        if not clauses:
            return noun
        if noun.fixed:
            return replace(noun, fixed=f"{noun.fixed} {' and '.join(clauses)}")
        relative = re.search(r"\b(that|who|whose)\b", noun.post) and clauses[0].startswith(("that", "who"))
        joint = "and " if relative else ""
        return replace(noun, post=f"{noun.post} {joint}{' and '.join(clauses)}".strip())

    def _single(self, step: Step) -> bool:
        """Whether a step leads to one thing, mostly."""
        relation = self.profile.relations[step.relation]
        return relation.functional if step.inverse else relation.inverse_functional

    def _without(self, noun: Noun, of: Form, without: Form) -> Noun:
        same = isinstance(of, Join) and isinstance(without, Join) and of.path == without.path
        if (
            same
            and isinstance(without, Join)
            and isinstance(without.of, Entity)
            and noun.post.endswith(self.lexicon.name_of(of))
        ):
            return replace(noun, post=f"{noun.post} but not {self.lexicon.called(without.of)}")
        that = "who" if is_person(noun.head) else "that"
        if isinstance(without, Compare):
            return self._lacking(noun, without, that)
        sets = self.noun(without).show()
        post = self.lexicon.pick(
            (f"but not {sets}", f"except {sets}", f"{that} are not {sets}", f"without {sets}", f"excluding {sets}")
        )
        return replace(noun, post=f"{noun.post} {post}".strip(), many=True)

    def _lacking(self, noun: Noun, without: Compare, that: str) -> Noun:
        """What has nothing of a relation: `countries without a capital`, `employees who do not report to anybody`."""
        step = without.path[0]
        words, have = self.lexicon.words(step), "have" if noun.many else "has"
        things = self.lexicon.counted_noun(step, words)
        single = words.nouns[0] if words.nouns and not step.inverse else ""
        posts = [f"without {things}", f"with no {things}", f"{that} {have} no {things}", f"that do not have {things}"]
        if single:
            posts += [f"without {article(single)} {single}", f"with no {single}", f"{that} {have} no {single}",
                      f"that lack {article(single)} {single}", f"with unknown {single}"]  # fmt: skip
        else:
            for _, several in () if step.inverse else words.verbs:
                posts += [f"that do not {several} anything", f"{that} {several} nothing"]
        if noun.fixed:
            return replace(noun, fixed=f"{noun.fixed} {self.lexicon.pick(posts)}")
        return replace(noun, post=f"{noun.post} {self.lexicon.pick(posts)}".strip(), many=True)

    def _best(self, form: Arg | Nth, head: str) -> Noun:
        noun = self.noun(form.of, head, False)
        index = ORDINALS[form.n] if isinstance(form, Nth) else ""
        words, step = self.lexicon.words(form.path[0]), form.path[0]
        adjectives = () if form.counted else words.entry.most if form.best == "max" else words.entry.least
        if adjectives and not noun.fixed and self.lexicon.rng.random() < 0.8:
            return replace(noun, adjective=f"{index} {self.lexicon.pick(adjectives)}".strip(), many=False)
        ends = self.lexicon.extremes(step, words, form.best, form.counted, index, is_person(noun.head))
        if noun.fixed:
            return Noun(fixed=f"the one of {noun.fixed} {self.lexicon.pick(ends)}")
        if re.search(r"\b(that|who|whose)\b", noun.post):
            ends = ends[:1]
        return replace(noun, post=f"{noun.post} {self.lexicon.pick(ends)}".strip(), many=False)

    # -- predicates ----------------------------------------------------------------------------------------------

    def predicate(self, form: Form, many: bool) -> str:
        """What a form says of something, or with `many` of several things.  Raises FormError."""
        be = "are" if many else "is"
        match form:
            case Class(key=key):
                label = self.lexicon.type_label(key)
                return f"are {plural(label)}" if many else f"is {article(label)} {label}"
            case Compare():
                return self.lexicon.compared(form, many)
            case And(parts=parts):
                return " and ".join(self.predicate(part, many) for part in parts)
            case Join(path=(step,), of=Literal(text=text)) if text.lower() in ("true", "false"):
                label = self.profile.relations[step.relation].label.removeprefix("is ").removeprefix("has ")
                return f"{be} {'' if text.lower() == 'true' else 'not '}{label}"
            case Join(path=(step, *rest), of=of) if not form.where:
                words = self.lexicon.words(step)
                inside = self.noun(Join(tuple(rest), of) if rest else of)
                x = inside.show()
                options: list[str] = []
                if step.inverse:
                    options += [f"{conjugated(verb, many)} {x}" for verb in words.active]
                    for noun in words.nouns[:3]:
                        single = self.profile.relations[step.relation].functional
                        options.append(
                            f"are {plural(noun)} of {x}"
                            if many
                            else f"is {'the' if single else article(noun)} {noun} of {x}"
                        )
                    if not options:
                        options += [f"{be} what {x} {several if inside.many else one}" for one, several in words.verbs]
                        options += [f"{be} what {x} {is_} {part}" for is_, part in words.passive]
                else:
                    plural_aux = {"is": "are", "was": "were"}
                    options += [f"{plural_aux[is_] if many else is_} {part} {x}" for is_, part in words.passive]
                    options += [f"{several if many else one} {x}" for one, several in words.verbs]
                    has, own = ("have", "their") if many else ("has", "its")
                    one = f"one of {x}" if inside.many else x
                    options += [f"{has} {one} as {own} {noun}" for noun in words.nouns[:2]]
                return self.lexicon.pick(options)
        return f"{be} {self.noun(form).show()}"
