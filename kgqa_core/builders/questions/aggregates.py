"""Sums, averages, largest values, shares, the first of a ranking and groups: how their forms are drawn and worded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from kgqa_core.builders.questions.draft import Draft
from kgqa_core.builders.questions.phrases import FormPhrases
from kgqa_core.builders.questions.relation_words import is_person
from kgqa_core.logic.forms import Aggregate, Compare, Form, Join, Nth, Share, Step, Steps
from kgqa_core.logic.measures import TIME
from kgqa_core.logic.memory import Ints
from kgqa_core.rewriting.phrases import plural

if TYPE_CHECKING:
    from kgqa_core.builders.questions.operations import MeasuredSet, Operations

_GROUPS, _MEMBERS = 12, 25
"""Rows of a table by a relation, and members whose values are listed, at most."""
_KINDS = {"total": "sum", "average": "avg", "greatest_value": "max", "least_value": "min"}
_HOW = {
    "sum": ("total", "total", "combined", "overall", "sum of the"), "avg": ("average", "average", "mean", "typical"),
    "max": ("highest", "maximum", "largest", "greatest"), "min": ("lowest", "minimum", "smallest", "least"),
    "last": ("latest", "most recent", "last"), "first": ("earliest", "oldest", "first"),
}  # fmt: skip


class Aggregates:
    """Makes drafts over the sets and measures of `operations`."""

    def __init__(self, operations: Operations) -> None:
        self.operations, self.rng, self.graph = operations, operations.rng, operations.graph
        makers = {kind: partial(self._number, kind) for kind in _KINDS}
        makers |= {"share": self._share, "first_k": self._first, "group": self._group}  # type: ignore[dict-item]
        self.makers: Mapping[str, Callable[[], Draft | None]] = {k: partial(self._over, v) for k, v in makers.items()}

    def _over(self, make: Callable[[Form, Ints, MeasuredSet], Draft | None]) -> Draft | None:
        """A draft over a set with a measure that several members have."""
        own = self.operations
        drawn = self.rng.choice((own.base, own.of_type, own.of_type, own.typed_path))()
        measured = None if drawn is None else own.measure(drawn[1])
        return make(*drawn, measured) if drawn and measured is not None and len(measured.values) > 1 else None

    def _number(self, kind: str, form: Form, nodes: Ints, measured: MeasuredSet) -> Draft | None:
        if measured.dimension == TIME if _KINDS[kind] in ("sum", "avg") else measured.counted:
            return None
        return Draft(kind, Aggregate(_KINDS[kind], form, measured.path, (), measured.counted))

    def _hop(self, nodes: Ints) -> tuple[Steps, Ints] | None:
        """A relation to named things that a member of a set has, and what all members have by it."""
        walker = self.operations.walker
        hops = walker.around(int(nodes[self.rng.randrange(len(nodes))]))
        if (hop := walker.pick([hop for hop in hops if hop.relation.entities and not hop.relation.is_type])) is None:
            return None
        path = (Step(hop.relation.key, inverse=hop.backward),)
        reached = self.graph.pairs(nodes, path)[1]
        return path, np.unique(reached[self.operations.profile.askable[reached]])

    def _share(self, form: Form, nodes: Ints, measured: MeasuredSet) -> Draft | None:
        part: Form | None = None
        if self.rng.random() < 0.4 and (bound := self.operations.bound(measured)) is not None:
            part = Compare(bound[0], measured.path, bound[1], measured.counted)
        elif (hop := self._hop(nodes)) is not None and len(hop[1]):
            part = Join(hop[0], self.operations.walker.entity(int(self.rng.choice(hop[1].tolist()))))
        if part is None or not 0 < len(np.intersect1d(nodes, self.graph.nodes(part))) < len(nodes):
            return None
        return Draft("share", Share(form, part))

    def _first(self, form: Form, nodes: Ints, measured: MeasuredSet) -> Draft | None:
        n, best = self.rng.choices((2, 3, 4, 5, 10), (2, 5, 1, 4, 2))[0], self.rng.choice(("max", "max", "min"))
        first = Nth(n, best, form, measured.path, measured.counted, first=True)
        fits = len(measured.values) > n and len(self.graph.ranked(nodes, first)) == n
        return Draft("first_k", first) if fits else None

    def _group(self, form: Form, nodes: Ints, measured: MeasuredSet) -> Draft | None:
        if len(nodes) <= _MEMBERS and self.rng.random() < 0.3:
            return Draft("group", Aggregate("values", form, measured.path, (), measured.counted))
        hop = self._hop(nodes)
        if hop is None or not 1 < len(hop[1]) <= min(_GROUPS, len(nodes) - 1):
            return None
        if measured.dimension == TIME or measured.counted or self.rng.random() < 0.6:
            return Draft("group", Aggregate("count", form, (), hop[0]))
        return Draft("group", Aggregate(self.rng.choice(tuple(_KINDS.values())), form, measured.path, hop[0]))


class AggregateQuestions:
    """Words these forms."""

    def __init__(self, phrases: FormPhrases) -> None:
        self.phrases, self.lexicon = phrases, phrases.lexicon

    def question(self, form: Aggregate | Share | Nth) -> str:
        """A question whose answer is the number, the table or the first few.  Raises FormError."""
        noun = self.phrases.noun(form.of, many=True)
        xs, bare, that = noun.show(), noun.show(article=False), "who" if is_person(noun.head) else "that"
        if isinstance(form, Share):
            says = self.phrases.predicate(form.one, True)
            own = [
                f"{what} of {xs} {says}"
                for what in ("what percentage", "what percent", "what share", "what part in percent")
            ]
            own += [
                f"{what} of {bare} {that} {says}" for what in ("percentage", "what is the percentage", "proportion")
            ]
        elif isinstance(form, Nth):
            own = self._first(form, bare, "" if noun.fixed else that)
        elif form.how == "count":
            by = self._noun(form.by[0])
            own = [f"{many}{bare} {each} {by}" for many in ("how many ", "number of ", "what is the number of ", "")
                   for each in ("per", "in each", "for each", "by")]  # fmt: skip
            own += [f"how many {bare} does each {by} have", f"for each {by}, how many {bare} are there"]
        else:
            own = self._computed(form, xs, bare, self._noun(form.path[0], form.counted))
        return self.lexicon.rng.choice(own)

    def _computed(self, form: Aggregate, xs: str, bare: str, value: str) -> list[str]:
        if form.how == "values":
            return [f"what is the {value} of each of {xs}", f"list {xs} with their {plural(value)}",
                    f"{bare} with {value}", f"show {bare} and their {plural(value)}"]  # fmt: skip
        dated = not form.counted and self.lexicon.profile.relations[form.path[0].relation].dated
        how = self.lexicon.rng.choice(_HOW[{"max": "last", "min": "first"}[form.how] if dated else form.how])
        value = f"{how} {plural(value) if how.endswith(' the') and not form.counted else value}"
        if form.by:
            return [f"{what}{value} of {xs} {each} {self._noun(form.by[0])}" for what in ("what is the ", "")
                    for each in ("per", "for each", "by")]  # fmt: skip
        own = [f"{what}{value} of {xs}" for what in ("what is the ", "what's the ", "", "tell me the ", "find the ")]
        end = {"sum": "in total", "avg": "on average"}.get(form.how)
        much = value.removeprefix(f"{how} ")
        much = much.replace("number of", "how many") if form.counted else f"what {much}"
        return own if end is None else [*own, f"{much} do {xs} have {end}", f"{much} do {xs} have {end}"]

    def _first(self, form: Nth, xs: str, that: str) -> list[str]:
        """that: `who` or `that` for the members, "" where an adjective cannot stand before them."""
        words, rng = self.lexicon.words(form.path[0]), self.lexicon.rng
        n = rng.choice((str(form.n), {2: "two", 3: "three", 4: "four", 5: "five"}.get(form.n, "ten")))
        adjectives = () if form.counted or not that else words.entry.most if form.best == "max" else words.entry.least
        ends = self.lexicon.extremes(form.path[0], words, form.best, form.counted, "", that == "who")
        verbs = ("what are the ", "which are the ", "list the ", "name the ", "the ", "")
        if adjectives and rng.random() < 0.6:
            return [f"{verb}{n} {self.lexicon.pick(adjectives)} {xs}" for verb in verbs]
        top = f"{'top' if form.best == 'max' else 'bottom'} {n} {xs} by {self._noun(form.path[0], form.counted)}"
        return [top, *(f"{verb}{n} {xs} {self.lexicon.pick(ends)}" for verb in verbs)]

    def _noun(self, step: Step, counted: bool = False) -> str:
        """What a step leads to, in one: a measure, or the name of a group."""
        words = self.lexicon.words(step)
        if counted:
            return f"number of {self.lexicon.counted_noun(step, words)}"
        return (words.head if step.inverse else words.nouns[0] if words.nouns else words.tail) or words.wh
