"""A form in the words that the label parser compares with a question: labels, in the order of a noun phrase.

Entities are written as their slots (`x`, `y`, `z`), so that equal phrases of different entities are encoded once.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeGuard

import numpy as np
from numpy.typing import NDArray

from kgqa_core.config import OwnNames
from kgqa_core.datasets.derived.thesaurus import RelationEntry, thesaurus
from kgqa_core.kg.ingest.own_names import META
from kgqa_core.logic import forms
from kgqa_core.logic.forms import BESTS, EVERY_WAY, Form, Step, is_computed, span_of
from kgqa_core.rewriting.phrases import phrase, plural
from kgqa_core.search.candidates import is_false
from kgqa_core.search.graph import LabelGraph
from kgqa_core.search.question_words import adjectives, entry_of

SLOTS = ("x", "y", "z", "w")
"""Words that stand for the mentions of a question, in the order of its text."""
SLOT = f"[{''.join(SLOTS)}]"
"""Pattern of such a word."""
NUMBER = "n"
"""Word that stands for a number or date of a question."""
_PREPOSITIONS = ("in", "of", "at", "for", "to", "from", "on", "with", "by")
_PLACES = {2: "second", 3: "third", 4: "fourth", 5: "fifth", 6: "sixth", 7: "seventh", 8: "eighth", 9: "ninth"}
_ENDS_OPEN = re.compile(r" (of|by|in|at|for|to|from|on|with|after)$")
"""Labels such as *owned by* and *part of*, which are followed by their tail."""
_OPS = {"lt": "less than", "le": "at most", "gt": "more than", "ge": "at least"}
_PARTICIPLE = re.compile(r"\w+ed")
MOST_HEADS = 0.6
"""Share of a relation's heads that other relations call by a noun, from which on this one's are called so, too."""
_LEADING = re.compile(r"^(has|have|is|in) ")
_NO_NOUN = re.compile(
    r"^(in|of|by|at|for|to|from|on|with|after|is|was|are|were|has|have|a|an|the) | (of|by|in|at|for|to|from|on|with)$"
)
_Ranking = forms.Arg | forms.Nth | forms.Greater | forms.CompareTo | forms.Aggregate
BIRTH = "date of birth"
"""The name of the relation to it in the thesaurus."""
_LONG = (("longest", "shortest"), ("longer", "shorter"))
DATED = 0.5
"""Share of a relation's tails that are dates, above which they are later or earlier and not larger or smaller."""
_AUXILIARIES = frozenset("is are was has have had can could does do did will".split())
MOST_OTHERS = 6
"""Other wordings of a direction of a relation that are compared with a question."""


@dataclass(frozen=True, slots=True)
class RelationWords:
    """How both directions of a relation are worded.

    noun: what it leads to, "" where its label is no noun and the thesaurus has none.  predicate: what follows its
    heads, as in `directed by` or `that borders`, "" where neither gives one.  head: what its heads are called, "" where
    nothing is known.  ahead, back: other wordings of it from head to tail and back, those of the thesaurus.
    adjectives: what has the most of it, the least, more than another, and less, as in `oldest`; "" where unknown.
    """

    noun: str
    predicate: str
    head: str
    ahead: tuple[str, ...] = ()
    back: tuple[str, ...] = ()
    adjectives: tuple[str, str, str, str] = ("", "", "", "")


def relation_words(label: str, head: str, entry: RelationEntry | None = None, tail: str = "") -> RelationWords:
    """The words of a relation by its label.  head, tail: what the types of the graph call its ends, "" where they do
    not.  entry: of the thesaurus, that of the label where it is None.

    >>> words = relation_words("directed by", "")
    >>> words.noun, words.predicate, words.head, relation_words("starred actors", "").noun
    ('director', 'directed by', 'film', 'actor')
    """
    entry = entry or thesaurus().relation(label) or RelationEntry()
    plain = _LEADING.sub("", label.lower())
    verb = (phrase(label).is_verb and "-" not in label) or any(label.lower() in pair for pair in entry.verb)
    own = "" if verb or _NO_NOUN.search(plain) or _PARTICIPLE.fullmatch(plain) else plain
    noun = own
    if entry.nouns and own not in entry.nouns and (not own or own not in entry.labels or own.endswith("s")):
        noun = entry.nouns[0]
    predicate, ends = "", {f"{word} {tail}" for word in _PREPOSITIONS} | {f"{head} of"}
    if tail and not noun and label.lower() in ends:  # `in bed` to beds, `planting of` from plantings to plants
        noun, predicate = tail, label.lower()
    elif verb or not noun:
        predicate = (
            label.lower() if _ENDS_OPEN.search(label.lower()) else f"that {entry.verb[0][0]}" if entry.verb else ""
        )
    ask = [text.replace("<x>", SLOTS[0]) for text in entry.ask]
    back = [text.replace("<x>", SLOTS[0]) for text in entry.back]
    ahead = dict.fromkeys([*entry.nouns[:2], *ask, *entry.active[:2], label.lower()])
    behind = dict.fromkeys([*(f"{many} {SLOTS[0]}" for _, many in entry.verb[:2]), *back, *entry.passive[:1]])
    ahead.pop(noun, None)
    first = [(entry_words or ("",))[0] for entry_words in (entry.most, entry.least, entry.more_than, entry.less_than)]
    return RelationWords(
        noun, predicate, head or entry.head, tuple(ahead)[:MOST_OTHERS], tuple(behind)[:MOST_OTHERS],
        (first[0], first[1], first[2], first[3]),
    )  # fmt: skip


def _heads(graph: LabelGraph, words: Sequence[RelationWords]) -> list[str]:
    """What the heads of each relation are called: as its words say, else as other relations call most of them."""
    called: dict[str, NDArray[np.bool_]] = {}
    heads = graph.heads()
    for relation, own in zip(words, heads, strict=True):
        if relation.head:
            called.setdefault(relation.head, np.zeros(graph.memory.entities, dtype=np.bool_))[own] = True
    results = []
    for relation, own in zip(words, heads, strict=True):
        shares = (
            {noun: float(mask[own].mean()) for noun, mask in called.items()} if len(own) and not relation.head else {}
        )
        best = max(sorted(shares), key=lambda noun: shares[noun], default="")
        results.append(best if best and shares[best] >= MOST_HEADS else relation.head)
    return results


class OwnWords:
    """Puts words of the graph in the place of its owner's (`KgOptions.names`), in singular and plural.

    A noun for a relation stands for its noun, or the type that it leads to; a verb stands for its label.  own: in place
    of those that the graph has.
    """

    def __init__(self, graph: LabelGraph, own: OwnNames | None = None) -> None:
        own = own or OwnNames.model_validate(graph.store.meta.get(META, {}))
        texts = {name: text for text, names in own.values.items() for name in names}
        for key, label, end in zip(graph.keys, graph.labels, graph.tail_type.tolist(), strict=True):
            for name in own.relations.get(key, ()):
                noun = relation_words(label, "").noun or (graph.type_labels[end] if end >= 0 else label.lower())
                texts[name] = noun if relation_words(name, "").noun else label.lower()
        for key, index in graph.type_of_key.items():
            texts |= dict.fromkeys(own.types.get(key, ()), graph.type_labels[index])
        texts = {plural(name): plural(text) for name, text in texts.items()} | texts
        longest = "|".join(map(re.escape, sorted(texts, key=len, reverse=True))) or "$^"
        self._pattern = re.compile(rf"(?<!\w)(?:{longest})(?!\w)", re.IGNORECASE)
        self._texts = {name.lower(): text for name, text in texts.items()}

    def read(self, text: str) -> str:
        """A text in the graph's words."""
        return self._pattern.sub(lambda found: self._texts[found[0].lower()], text)


class Phrases:
    """Writes forms of one graph.  slots: entity key → the word that stands for it."""

    def __init__(self, graph: LabelGraph) -> None:
        self.graph = graph
        words = [
            relation_words(label, self._noun_of(n), entry_of(graph, n), self._type(int(graph.tail_type[n])))
            for n, label in enumerate(graph.labels)
        ]
        self.relation_words = [replace(word, head=head) for word, head in zip(words, _heads(graph, words), strict=True)]

    def _noun_of(self, relation: int) -> str:
        """What the graph calls the heads of a relation; not by a type above theirs where the thesaurus fits or has no
        word for them."""
        known = entry_of(self.graph, relation).head
        above = known and known not in self.graph.types_by_words
        return self.graph.noun(relation) or (self.graph.noun_above(relation) if above else "")

    def write(self, form: Form, slots: Mapping[str, str]) -> str:
        """The phrase of a form; an entity without a slot is written `x`."""
        match form:
            case forms.Count(of=of):
                return f"number of {self._set(of, slots)}"
            case forms.Holds(of=of, one=one):
                return f"whether {self._set(one, slots)} is {self._set(of, slots)}"
            case forms.Share(of=of, one=one):
                part = self._set(one, slots)
                part = part.removeprefix(self._noun(one) or "").strip() or part
                return f"percentage of {self._set(of, slots)} that is {part.removeprefix('that is ')}"
            case forms.Aggregate():
                return self._aggregate(form, slots)
        return self._set(form, slots)

    def _aggregate(self, form: forms.Aggregate, slots: Mapping[str, str]) -> str:
        """`total area of countries in x`, `number of products of each category`, `population of each city`."""
        of, by, each = self._set(form.of, slots), "", ""
        if form.by:
            words = self.relation_words[self.graph.memory.relation_ids[form.by[-1].relation]]
            each = (words.head if form.by[-1].inverse else words.noun) or self._measure(form.by[-1:])
            by = f" of each {each}"
        if form.how == "count":
            if form.pick:
                return f"{each} with {'most' if form.pick == 'max' else 'fewest'} {of}"
            return f"number of {of}{by}"
        pair = ("latest", "earliest") if self._dated(form.path) else ("largest", "smallest")
        how = {"sum": "total", "avg": "average", "median": "median", "range": "difference in", "values": ""} | dict(
            zip(BESTS, pair, strict=True)
        )
        if form.how in forms.BEST_MEMBERS:
            return f"{self._adjective(form, slots)} {of} {self._best(form)}{by}".strip()
        measure = f"number of {self._measure(form.path)}" if form.counted else self._measure(form.path)
        if span := span_of(form.path):
            told = how[form.how] if form.how in EVERY_WAY else ""
            if measure.startswith("lived"):
                return f"{told} age of {of} at {self._label(span.until)}".strip()
            return f"{told} {span.unit} that {of} {measure}".strip()
        if form.pick:
            return f"{each} with {'highest' if form.pick == 'max' else 'lowest'} {how[form.how]} {measure} of {of}"
        return f"{how[form.how]} {measure} of {'each ' if form.how == 'values' else ''}{of}{by}".strip()

    def _dated(self, path: tuple[Step, ...]) -> bool:
        dated = len(path) == 1 and self.graph.dated[self.graph.memory.relation_ids[path[0].relation]] > DATED
        return bool(dated) and not span_of(path)

    def _set(self, form: Form, slots: Mapping[str, str]) -> str:
        match form:
            case forms.Entity(key=key):
                return slots.get(key) or self.graph.value_names.get(key, SLOTS[0])
            case forms.Class(key=key):
                return self._type(self.graph.type_of_key.get(key, -1)) or key
            case forms.Literal(text=text):
                return slots.get(text, NUMBER if text[:1].isdigit() else text)
            case forms.Join(path=(step,), of=forms.Compare(path=(other,), counted=True, op="ge")) if (
                step.inverse and not other.inverse and step.relation == other.relation and has_any(form.of)
            ):
                return self.relation_words[self.graph.memory.relation_ids[step.relation]].noun or self._label(
                    step.relation
                )
            case forms.Join(path=(Step(relation=key, inverse=False),), of=of) if self.graph.to_truths[
                relation := self.graph.memory.relation_ids[key]
            ] and isinstance(of, (forms.Entity, forms.Literal)):
                verb, _, rest = self.graph.labels[relation].lower().partition(" ")
                verb, rest = (verb, rest) if rest and verb in _AUXILIARIES else ("is", f"{verb} {rest}".strip())
                return f"{self.relation_words[relation].head} that {verb} {'not ' * is_false(of)}{rest}".strip()
            case forms.Join(path=path, of=of, where=where):
                text = self._path(path, self._set(of, slots))
                return " ".join([text, *(self._condition(one, slots) for one in where)])
            case forms.And(parts=parts):
                return self._both(parts, slots)
            case forms.Or(parts=parts):
                return " or ".join(dict.fromkeys(self._set(part, slots) for part in parts))
            case forms.Minus(of=of, without=without) if has_any(without):
                return f"{self._set(of, slots)} {self._without(without)}"
            case forms.Minus(of=of, without=without):
                return f"{self._set(of, slots)} but not {self._set(without, slots)}"
            case forms.Arg(of=of):
                return f"{self._adjective(form, slots)} {self._of_ranked(form, slots)} {self._best(form)}".strip()
            case forms.Nth(n=n, of=of):
                index = f"first {n}" if form.first else _PLACES.get(n, f"{n}th")
                ranked = self._of_ranked(form, slots)
                return f"{index} {self._adjective(form, slots)} {ranked} {self._best(form)}".replace("  ", " ")
            case forms.Greater(one=one, other=other):
                both = f"{self._set(one, slots)} or {self._set(other, slots)}"
                return f"{both} {self._adjective(form, slots)} {self._best(form)}".replace("  ", " ")
            case forms.CompareTo(one=one):
                told, best, another = self._adjective(form, slots), self._best(form), self._set(one, slots)
                comparative = told.partition(" ")[0].endswith(("er", "more", "less", "worse"))
                return f"{told} than {another} {best}" if comparative else f"{best} than {another}"
            case forms.Compare(path=path) if has_any(form):
                return f"thing with {self._measure(path)}"
            case forms.Compare(op=op, path=path):
                return f"with {self._measure(path)} {_OPS[op]} {NUMBER}"
            case forms.TimeConstraint(of=of):
                return f"{self._set(of, slots)} in {NUMBER}"
            case forms.Qualifier(relation=relation, of=of, one=one):
                of_one = "" if one is None else f"{self._set(one, slots)} "
                return f"{self._label(relation)} of {of_one}{self._set(of, slots)}"
            case forms.Count() | forms.Holds() | forms.Share() | forms.Aggregate():
                return self.write(form, slots)
        raise AssertionError(form)

    def _without(self, having: forms.Compare) -> str:
        """What lacks a relation: `without boss`, `that is boss of no person`, `that no paper cites`."""
        step, relation = having.path[-1], self.graph.memory.relation_ids[having.path[-1].relation]
        words, label = self.relation_words[relation], self.graph.labels[relation].lower()
        if not step.inverse:
            return f"without {words.noun}" if words.noun else f"not {label} anything"
        head = words.head or "thing"
        return f"that is {words.noun} of no {head}" if words.noun else f"that no {head} {label}"

    def _of_ranked(self, form: forms.Arg | forms.Nth, slots: Mapping[str, str]) -> str:
        """What is ranked: `team`, not `team of person`, where it is by how many persons have it."""
        match form.of:
            case forms.Join(path=path, of=forms.Class()) if form.counted and path == form.path and len(path) == 1:
                return self.relation_words[self.graph.memory.relation_ids[path[0].relation]].noun or self._set(
                    form.of, slots
                )
        return self._set(form.of, slots)

    def _condition(self, where: forms.Where, slots: Mapping[str, str]) -> str:
        if where.op in ("current", "first", "last"):
            return where.op
        value = NUMBER if isinstance(where.value, forms.Literal) else self._set(where.value, slots)
        return f"in {value}" if where.op == "at" else f"{self._label(where.relation)} {_OPS.get(where.op, '')} {value}"

    def _label(self, relation: str) -> str:
        return self.graph.labels[self.graph.memory.relation_ids[relation]]

    def _both(self, parts: tuple[Form, ...], slots: Mapping[str, str]) -> str:
        """Parts of an intersection, a class first as the noun, and the nouns of the others left out."""
        classes = [part for part in parts if isinstance(part, forms.Class)]
        others = [self._set(part, slots) for part in parts if not isinstance(part, forms.Class)]
        named = [self._set(part, slots) for part in classes]
        nouns = [self._noun(part) for part in parts if not isinstance(part, forms.Class)]
        apart = [part for part in parts if not isinstance(part, forms.Class)]
        for n, m, path in _ranges(apart):
            others[n] = f"with {self._measure(path)} between {NUMBER} and {NUMBER}"
            del others[m], nouns[m], apart[m]
        ranked = [n for n, part in enumerate(apart) if isinstance(part, (forms.Arg, forms.Nth))]
        if named and ranked and nouns[ranked[0]]:
            best = others.pop(ranked[0]).replace(str(nouns.pop(ranked[0])), named[0], 1)
            named = [best, *named[1:]]
        if named:
            others = [
                f"that is {text}" if noun is None else text.removeprefix(noun).strip()
                for text, noun in zip(others, nouns, strict=True)
            ]
        elif len(parts) > 1 and (first := self._noun(parts[0])):
            others = [others[0], *(text.removeprefix(f"{first} ") for text in others[1:])]
        return " ".join([*named, " and ".join(others)]).strip()

    def _noun(self, form: Form) -> str | None:
        """The noun that the phrase of a form begins with, which another may stand for; None where it has none."""
        match form:
            case forms.Compare() | forms.CompareTo():
                return ""
            case forms.Class():
                return self._set(form, {})
            case forms.Join(path=(Step(relation=key, inverse=False), *_)):
                return self.relation_words[self.graph.memory.relation_ids[key]].head
            case forms.Arg(of=of) | forms.Nth(of=of) | forms.Minus(of=of):
                return self._noun(of)
        return None

    def said(self, words: Sequence[str]) -> dict[str, str]:
        """Adjectives of a question, for `slots`: by the first label of the relation that each measures, and its end."""
        return {f" {label} {end}": word for word in words for label, ends in adjectives().get(word, {}).items()
                for end in ends if len(ends) == 1}  # fmt: skip

    def _adjective(self, form: _Ranking, slots: Mapping[str, str]) -> str:
        """What the question, or else the thesaurus, calls the one with the most or least by a measure, or with more or
        less; "" for none."""
        if is_computed(form) or len(form.path) != 1 or form.path[0].inverse:
            return ""
        relation = self.graph.memory.relation_ids[form.path[0].relation]
        index = (0 if form.best == "max" else 1) + 2 * isinstance(form, (forms.Greater, forms.CompareTo))
        return (
            slots.get(f" {entry_of(self.graph, relation).name} {form.best}")
            or self.relation_words[relation].adjectives[index]
        )

    def _best(self, form: _Ranking) -> str:
        """What the best is best by: `with largest population`, `with most cities`, `with earlier date of birth`."""
        more, measure = isinstance(form, (forms.Greater, forms.CompareTo)), self._measure(form.path)
        if span_of(form.path):
            return f"that {measure.replace(' ', ' ' + _LONG[more][form.best != 'max'] + ' ', 1)}"
        if form.counted:
            pair = ("more", "fewer") if more else ("most", "fewest")
        elif self._dated(form.path):
            pair = ("later", "earlier") if more else ("latest", "earliest")
        else:
            pair = ("larger", "smaller") if more else ("largest", "smallest")
        return f"with {pair[form.best != 'max']} {measure}"

    def _path(self, path: tuple[Step, ...], text: str) -> str:
        for place, step in reversed([*enumerate(path)]):
            if place and step.inverse and self.graph.to_blank[self.graph.memory.relation_ids[step.relation]]:
                continue  # `city of x`, of its address
            text = self.follow(self.graph.memory.relation_ids[step.relation], text, ahead=step.inverse)
        return text

    def follow(self, relation: int, text: str, *, ahead: bool) -> str:
        """What a relation leads to from `text`, or with `ahead` false what it leads from there.

        As `director of x` and `film directed by x`.
        """
        label, words = self.graph.labels[relation], self.relation_words[relation]
        if ahead:
            return f"{words.noun} of {text}" if words.noun else f"what {text} is {label}"
        verbal = words.predicate or (label if _ENDS_OPEN.search(label) and not words.noun else "")
        head = "" if verbal.startswith(f"{words.head} ") else words.head
        return f"{head} {verbal or f'with {words.noun or label}'} {text}".strip()

    def wordings(self, directed: int) -> tuple[str, ...]:
        """How a direction of a relation is worded, without where it starts: as in phrases, then in other words."""
        relation, back = directed % self.graph.relations, directed >= self.graph.relations
        words = self.relation_words[relation]
        if back:
            return (self.follow(relation, "", ahead=False).strip(), *words.back)
        return (words.noun or self.graph.labels[relation], *words.ahead)

    def answer(self, form: Form) -> str:
        """What the answer of a form is: a noun, `number`, or `yes or no`."""
        match form:
            case forms.Qualifier(relation=relation):
                return self._label(relation)
            case forms.Count():
                return "number"
            case forms.Share():
                return "percentage"
            case forms.Aggregate(by=(*_, step), pick=("max" | "min")):
                words = self.relation_words[self.graph.memory.relation_ids[step.relation]]
                return (words.head if step.inverse else words.noun) or "thing"
            case forms.Aggregate(how=("argmax" | "argmin"), of=of):
                return self.answer(of)
            case forms.Aggregate(how=how, path=path, counted=counted):
                return "number" if counted or how == "count" or span_of(path) else self._measure(path)
            case forms.Holds():
                return "yes or no"
            case forms.Class(key=key):
                return self._type(self.graph.type_of_key.get(key, -1)) or "thing"
            case forms.And(parts=parts):
                order = sorted(
                    parts,
                    key=lambda p: (isinstance(p, (forms.Compare, forms.CompareTo)), not isinstance(p, forms.Class)),
                )
                return self.answer(order[0])
            case forms.Minus(of=of) | forms.Arg(of=of) | forms.Nth(of=of) | forms.TimeConstraint(of=of):
                return self.answer(of)
            case forms.Or(parts=parts):
                return self.answer(parts[0])
            case forms.Join(path=(step, *_)):
                words = self.relation_words[self.graph.memory.relation_ids[step.relation]]
                return (words.noun if step.inverse else words.head) or "thing"
        return "thing"

    def _measure(self, path: tuple[Step, ...]) -> str:
        if span := span_of(path):
            birth = entry_of(self.graph, self.graph.memory.relation_ids[span.relation]).name == BIRTH
            verb = "lived" if birth else "lasted"
            return f"{verb} from {self._label(span.relation)} to {self._label(span.until)}"
        relations = [self.graph.memory.relation_ids[step.relation] for step in path]
        return " ".join(
            self.graph.labels[relation] if not step.inverse else self._inverse(relation)
            for step, relation in zip(reversed(path), reversed(relations), strict=True)
        )

    def _inverse(self, relation: int) -> str:
        return self.relation_words[relation].head or f"things with {self.graph.labels[relation]}"

    def _type(self, type_index: int) -> str:
        return self.graph.type_labels[type_index] if type_index >= 0 else ""


def has_any(form: Form) -> TypeGuard[forms.Compare]:
    """Whether a form finds all that have a relation at all."""
    return isinstance(form, forms.Compare) and form.counted and (form.op, form.value.text) == ("ge", "1")


def _ranges(parts: Sequence[Form]) -> list[tuple[int, int, tuple[Step, ...]]]:
    """Places of the first two parts that are the lower and the upper end of a measure, and its path."""
    ends = {
        (part.op, part.path): n for n, part in enumerate(parts) if isinstance(part, forms.Compare) and not part.counted
    }
    pairs = [(n, ends["le", path], path) for (op, path), n in ends.items() if op == "ge" and ("le", path) in ends]
    return pairs[:1]
