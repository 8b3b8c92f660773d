"""How a form agrees with the grammar of a question: with the direction of its verbs and nouns, with which end of a
ranking it wants, and with what goes without saying."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from kgqa_core.linking.english import singulars
from kgqa_core.linking.words import FUNCTION_WORDS
from kgqa_core.logic.forms import (
    Aggregate,
    And,
    Arg,
    Class,
    Compare,
    CompareTo,
    Count,
    Entity,
    Form,
    Greater,
    Holds,
    Join,
    Literal,
    Minus,
    Nth,
    Or,
    Share,
    Step,
)
from kgqa_core.rewriting.phrases import phrase
from kgqa_core.search.candidates import Candidate, LabelQuery, classes_of, lacks, nodes_of, slots_of
from kgqa_core.search.cues import ASKS_FOR_THING
from kgqa_core.search.demands import SAME, demanded, returns
from kgqa_core.search.form_reading import root, roots
from kgqa_core.search.graph import WORD, LabelGraph
from kgqa_core.search.phrases import DATED, has_any
from kgqa_core.search.question_words import (
    PERSONS,
    adjectives,
    entry_of,
    grammar_of,
    is_mutual,
    is_superlative,
    question_words,
)
from kgqa_core.search.words import SIGNS, WordCover, end_said

RAREST = 8.0
"""Below e to the minus this no share is told from a smaller one."""
VERB, ACTIVE, NOUN, ROLE = "verb", "active", "noun", "role"
"""What a word says of a relation: its head does it; its tail does it; it names its tail; it names its head."""
FEW_HEADS = 1_000
"""Heads of a relation whose types are looked at."""
_WAYS = frozenset(("from", "to"))
_VERBAL = re.compile(r"\w+ed\b.* (?:to|from|in|at|on|into|for|with)$")
_DOER = re.compile(r"(?:ant|ent|er|or)s?$")
"""Nouns for what does something."""
_OPEN, _CLOSED = ("gt", "lt"), ("ge", "le")
_INCLUDED = re.compile(
    r"\bat (?:least|most)\b|\bor (?:more|less|fewer|after|before|above|below|over|under|\w+er)\b|\bsince\b|\bon or\b"
    r"|\b(?:no|not) (?:more|less|fewer|later|earlier|\w+er)\b|\bup to\b|\bm(?:ax|in)(?:imum)?\b|\bfrom n\b"
)
"""Words with which a limit itself fulfils a condition."""
_OR_MORE = re.compile(r"\bn or (?:more|less|fewer|after|before|above|below|over|under|\w{2,}er)\b")
"""A limit that is one end of an open range."""
_STRICT = re.compile(r"\b(?:more|less|fewer|\w+er) than n\b|\b(?:over|under|above|below|after|before|exceeding) n\b")
_ASKS_TYPE = re.compile(
    r"\b(?:type|kind|sort|class|categor|genus|famil|species|classif)\w*|\bwhat [xyzw] (?:is|are|was|were)\b"
)
_ASKS_FOR_KIND = re.compile(
    r"\W*(?:what|which) (?:kind|type|sort)s? of (?:\w+ ){1,2}(?:is|are|was|were) (?:an? |the )?[xyzw]\W*$"
)
_OF_KINDS = re.compile(r"\W*(?:what|which|how many)(?: different)? (?:kind|type|sort)s? of (\w+)")
_KINDS = frozenset("kind kinds type types sort sorts".split())
_SAYS_WHAT = frozenset(("description", "tag", "occupation", "job title"))
"""Labels of relations in the thesaurus to what tells what a thing or somebody is."""
_ASKS_WHAT = re.compile(r"\W*what(?:['’]?s| is| are| was| were| has| have| had| do| does| did| will| can) (?!the\b)")
_BEST_AS_OBJECT = re.compile(
    r"\W*(?:what|who) (?!is\b|are\b|was\b|were\b|has\b|have\b|had\b|do\b|does\b|did\b|got\b|gets\b)[a-z]+ the "
    r"(?:\w+est|worst|first|last) (?!of\b)\w+"
)
"""What asks who does something to the best of a set: `who wrote the longest book`."""
_BEHIND_HEAD = re.compile(r" (?:in|of|per|for|at|from|to)\b")
_ENDS_OPEN = re.compile(r" (?:in|at|for|to|from|on|with|after)$")
_BEFORE_KINDS = frozenset("which what the all any list show name me give find how many every".split())
"""Words before the kind that a question asks for."""
_ROLE = re.compile(r"\w+(?<!ed)(?<!sts)(?<!de)(?<!wn) of")
"""A label by which a head is something of its tail: `child of`, and not `made of`."""
_RELATIVES = frozenset(("who", "that", "which"))
_SHARE = re.compile(r"\b(?:share|proportion|fraction) of\b|\bper ?cent", re.IGNORECASE)
_TO_WHICH = re.compile(r"\W*(?:into|to|from|at|in|on) (?:which|what) ")
_BEFORE_LACKED, _NOBODY = frozenset(("not", "never")), frozenset(("nobody", "noone", "no one", "nothing"))
_BEING_DONE = frozenset("is are was were be been".split())
_DOING = frozenset("do does did any anyone anybody anything a".split())
"""Words beside verbs by which something is done to what they are said of, and by which it does something."""
_NUMBERS_OF = (["how", "many"], ["number", "of"])
_HOW = re.compile(r"\bhow (long|tall|deep|heavy|wide|fast|old|hot|cold)\b")
_HAVING, _ANY = frozenset("with without having have has".split()), frozenset("a an any no".split())
_TURNING = frozenset("bad former ex previous failed rejected excluded forbidden banned".split())
"""Words of labels that say the opposite of the others."""
_BEING = frozenset(("is", "are", "was", "were"))
_BEHIND_ASKED = frozenset("has have had in on that with without which who".split())
"""Words next to the noun for what is asked for that tell more of it: *cities in x that are on no river*."""
_TIED = frozenset(("in", "on", "at", "by", "with", "from", "for", "under"))
_ENDS = {"gt": "max", "ge": "max", "lt": "min", "le": "min"}


class GrammarAgreement:
    """What the relations of one graph agree with."""

    def __init__(self, graph: LabelGraph) -> None:
        self.graph = graph
        self._roles: dict[int, dict[str, str]] = {}
        self._nouns: dict[int, set[str]] = {}
        self._types: dict[int, set[int]] = {}

    def of(self, one: Candidate, query: LabelQuery, words: WordCover) -> tuple[float, float, float]:
        """Of a candidate how usual the relations are that no word names, below 0; whether the direction of its
        relations is that of the words for them, and whether its rankings want the end that the words want, -1 to 1."""
        usual = sum(self.usual[way] for way in one.ways if not words.names(way))
        told = [sign for _, _, sign in self._directions(one.form, query, words)]
        signs = [sign for node in nodes_of(one.form) for sign in self._signs(node, words)]
        return usual, sum(told) / max(sum(map(abs, told)), 1), sum(signs) / max(len(signs), 1)

    def reversed(self, candidates: Sequence[Candidate], query: LabelQuery, words: WordCover) -> set[int]:
        """Candidates against the grammar of the question: places in `candidates`.

        They have a relation between things of a kind in the other direction than the question says, or count its other
        end where one of the others counts the one that it says; they compare, count, measure, group or take away
        otherwise; or they lack groups, values or alternatives that another candidate has.
        """
        told = [
            [one for one in self._directions(candidate.form, query, words) if self.directed[one[0]] or not one[1]]
            if not (words.asks(SAME) and returns(candidate.form)) else []
            for candidate in candidates
        ]  # fmt: skip
        right = {(relation, key) for signs in told for relation, key, sign in signs if sign > 0}
        wrong = {n for n, signs in enumerate(told) if any(s < 0 and (key or (r, key) in right) for r, key, s in signs)}
        english = grammar_of(query.text) is question_words()["grammar"]
        text, of_kinds = query.text.lower(), self._asks_kinds(query)
        best_as_object = _BEST_AS_OBJECT.match(text) is not None
        asks_what = ASKS_FOR_THING.match(text) is not None
        asks_kind = _ASKS_FOR_KIND.match(text) is not None
        asks_which = words.words[:1] in (["which"], ["who"], ["what"])
        to_which, how = _TO_WHICH.match(text) is not None, _HOW.search(text)
        for n, one in enumerate(candidates):
            if (
                self._finds_what_is_done(one.form, words)
                or self._compares_otherwise(one.form, query, words)
                or self._finds_other_end(one.form, words)
                or self._counts_otherwise(one.form, words)
                or _finds_no_kind(one.form, words)
                or (best_as_object and _finds_best(one.form) and self._are_of(one, query))
                or (of_kinds and not self._tells_kind(one, words))
                or ((asks_what or asks_kind) and not self._says_what(one, query if asks_kind else None))
                or self._finds_what_it_is_with(one.form, words)
                or self._turns_about(one, words)
                or (to_which and self._finds_doer(one.form))
                or (how is not None and self._measures_otherwise(one.form, how))
                or self._measures_unasked(one, query)
                or self._leads_unasked(one, query, words)
                or self._shares_otherwise(one.form, query, words)
                or self._is_in_type(one.form, words)
                or _groups_otherwise(one.form, self.graph, words)
                or _takes_away_otherwise(one.form, query, words)
                or self._lacks_twice(one.form, words)
                or _averages_twice(one.form, words)
                or self._finds_lacked(one.form, words)
                or (
                    isinstance(one.form, Greater)
                    and english
                    and not (words.compare.any() or words.rank.any() or words.ends_said or asks_which)
                )
                or (isinstance(one.form, Count) and english and not words.count.any())
            ):
                wrong.add(n)
        return wrong | self._lacking(candidates, query, words)

    def _to_tails(self, form: Form) -> int:
        """The relation whose tails a form finds, -1 of another form."""
        leads = isinstance(form, Join) and form.path[0].inverse
        return self.graph.memory.relation_ids[form.path[0].relation] if leads else -1  # type: ignore[attr-defined]

    def _found(self, one: Candidate) -> set[int]:
        """The types of the first thing that a form finds."""
        return {*self.graph.types_of(int(one.nodes[0]))} if one.nodes is not None and len(one.nodes) else set()

    def _asks_kinds(self, query: LabelQuery) -> bool:
        """Whether a question asks for kinds of the things of a type: `what kinds of games`."""
        match = _OF_KINDS.match(query.text.lower())
        labels = {self.graph.type_labels[index] for index, _ in query.types}
        return match is not None and not labels.isdisjoint(singulars(match[1]))

    def _tells_kind(self, one: Candidate, words: WordCover) -> bool:
        """Whether a form has the relation of things to their types, or one that is called *kind* and the like."""
        places = [n for n, word in enumerate(words.words) if word in _KINDS]
        ways = {way % self.graph.relations for way in one.ways}
        return any(self.graph.is_type[way] or words.relations[way, places].max(initial=0.0) > 0.5 for way in ways)

    def _says_what(self, one: Candidate, query: LabelQuery | None) -> bool:
        """Whether a form finds the types of a thing or a text that tells what it is; query: what asks for its kind, so
        that other things will do, but for the type that it names."""
        graph, relation = self.graph, self._to_tails(one.form)
        if relation < 0 or not isinstance(one.form.of, Entity):  # type: ignore[attr-defined]
            return False
        first = one.nodes[:1].tolist() if one.nodes is not None else []
        if query is not None:
            named = {int(graph.type_ids[index]) for index, _ in query.types}
            return not (graph.alike[relation] or graph.is_measure(relation)) and named.isdisjoint(first)
        if graph.is_type[relation]:
            return PERSONS.isdisjoint(graph.store.names(first).values())
        return not _SAYS_WHAT.isdisjoint(entry_of(graph, relation).labels)

    def _lacking(self, candidates: Sequence[Candidate], query: LabelQuery, words: WordCover) -> set[int]:
        """Candidates without what the question demands and another candidate has: groups, values, alternatives, a
        difference, a comparison of what has the measure that is compared, or the heads of the verb behind *who*."""
        forms = [one.form for one in candidates]
        places = [_places(form, query, words) for form in forms]
        judges = words.words[:1] and words.words[0] in _BEING and "or" in words.words  # `is x male or female`
        demands = []
        group = words.aggregates["group"]
        told = any(own and word in ("by", "per") for own, word in zip(group, words.words, strict=True))
        told |= words.words[:2] == ["how", "many"] and not words.grouped.isdisjoint(words.index.kinds)
        if told:
            demands.append([_groups(form) for form in forms])
        stated = [run for run in words.texts if not run.inside]
        if group.any():
            demands.append([self._groups_by(form, words) for form in forms])
            demands.append([self._counts_of(form, query, words) for form in forms])
        runs = {run.first for run in stated if not words.explained(slice(run.first, run.last))}
        if runs and not judges:
            demands.append([runs <= own for own in places])
        if not judges and (sides := words.alternatives):
            unions = [[node for node in nodes_of(form) if isinstance(node, Or)] for form in forms]
            either = [any(_places(one, query, words) == sides for one in own) for own in unions]
            either = either if any(either) else [bool(own) for own in unions]
            either = [has or sides <= _taken_away(form, query, words) for form, has in zip(forms, either, strict=True)]
            if any(has and sides <= own for own, has in zip(places, either, strict=True)):
                demands.append([
                    has or isinstance(one.value, bool) or isinstance(one.form, Greater)
                    for one, has in zip(candidates, either, strict=True)
                ])  # fmt: skip
        if _SHARE.search(query.text) and "share" not in self.graph.label_words:
            demands.append([isinstance(form, Share) for form in forms])
        demands += demanded(query.text, candidates, words)
        if words.by_how_much:
            demands.append([isinstance(form, Aggregate) and form.how == "range" for form in forms])
        demands += self._named_exactly(candidates, words)
        noun, types = self._asked_types(query, words)
        if types:
            demands.append([self._is_about(one, types, noun) for one in candidates])
            if query.text.lower().startswith("which "):
                demands.append([not self._finds_numbers(one, noun) for one in candidates])
            first = not words.weights[: max(words.asked, 0)].any()  # not `capital of the province with`
            if first and not _BEHIND_ASKED.isdisjoint(words.words[words.asked + 1 : words.asked + 2]):
                found = (one.nodes is None or one.finds_nothing or self._found(one) for one in candidates)
                demands.append([own is True or not types.isdisjoint(own) for own in found])
        nameless = [self._finds_nameless(one, query) for one in candidates]
        if any(nameless):
            demands.append([not one for one in nameless])
        if _OR_MORE.search(query.text):
            demands.append([any(isinstance(node, Compare) for node in nodes_of(form)) for form in forms])
        bounds = [_bounds(form) for form in forms]
        if any(own and not other for own, other in filter(None, bounds)):
            demands.append([bound is None or not bound[1] for bound in bounds])
        if (done := self._done(words)) is not None:
            demands.append([_finds_heads(form, done) for form in forms])
        return {n for met in demands if any(met) for n, has in enumerate(met) if not has}

    def _named_exactly(self, candidates: Sequence[Candidate], words: WordCover) -> list[list[bool]]:
        """Of each word that is the whole label of a relation which candidates: those that have this relation, or none
        of those whose labels have the word beside others: *manager*, where there are *account managers*."""
        found, labels = [], [label.lower() for label in self.graph.labels]
        told = [said for said, weight in zip(words.words, words.weights, strict=True) if weight]
        for word in {one for said in told for one in singulars(said)}:
            own = {n for n, label in enumerate(labels) if label == word}
            others = {n for n, label in enumerate(labels) if word in label.split() and label != word}
            others = {n for n in others if not {*labels[n].split()} <= {*words.words}}
            if own and others and word not in self.graph.types_by_words:
                ways = [{way % self.graph.relations for way in one.ways} for one in candidates]
                found.append([not own.isdisjoint(way) or others.isdisjoint(way) for way in ways])
        return found

    def _asked_types(self, query: LabelQuery, words: WordCover) -> tuple[str, set[int]]:
        """The noun for what is asked for, and the types that it is the whole label of."""
        at = words.asked
        if at < 0:  # `our priciest flight`
            at = next((n + 1 for n, word in enumerate(words.words[:-1]) if is_superlative(word)), -1)
        noun = singulars(words.words[at]) if at >= 0 else ()
        first = self.graph.type_labels[query.types[0][0]] if query.types else ""
        types = {index for index, _ in query.types if self.graph.type_labels[index] == first}
        types = types if first.rpartition(" ")[2] in noun or first in noun else set()
        return words.roots[at] if types else "", types

    def _finds_numbers(self, one: Candidate, noun: str) -> bool:
        """Whether a form finds numbers or dates, none of which is called by a noun."""
        if one.nodes is None or not len(one.nodes) or not (self.graph.memory.dim[one.nodes] >= 0).all():
            return False
        return not any(noun in roots(self.graph.labels[way % self.graph.relations]) for way in one.ways)

    def _is_about(self, one: Candidate, types: set[int], noun: str) -> bool:
        """Whether a form has a type, finds things of it, or has a relation to or from them, if the noun for them stands
        within the label of one of its relations: not *flight hours* where flights are asked for."""
        graph, ways = self.graph, [way % self.graph.relations for way in one.ways]
        heads = (_BEHIND_HEAD.split(graph.labels[way].lower())[0] for way in ways)  # `area` of `area in km2`
        if not any(noun in map(root, WORD.findall(head)[:-1]) for head in heads):
            return True
        if any(isinstance(node, Class) and graph.type_of_key.get(node.key) in types for node in nodes_of(one.form)):
            return True
        if not types.isdisjoint(self._found(one)):
            return True
        return any(int(end[way]) in types for way in ways for end in (graph.head_type, graph.tail_type))

    def _are_of(self, one: Candidate, query: LabelQuery) -> bool:
        """Whether a form finds things of a type that the question names."""
        return not {index for index, _ in query.types}.isdisjoint(self._found(one))

    def _finds_nameless(self, one: Candidate, query: LabelQuery) -> bool:
        """Whether a form finds records without names, of a type that the question does not name or whose owners it
        asks for, as in `whose visits`."""
        form, nodes = one.form, one.nodes
        if isinstance(form, Aggregate) and form.how == "values":
            nodes = self.graph.memory.nodes(form.of)
        if nodes is None or not len(nodes):
            return False
        types = [index for index in self.graph.types_of(int(nodes[0])) if self.graph.is_nameless(index)]
        named = {index for index, _ in query.types}
        return bool(types) and (named.isdisjoint(types) or "whose" in query.text.lower().split()[:2])

    def _finds_what_it_is_with(self, form: Form, words: WordCover) -> bool:
        """Whether a form finds what things of a type have where these are asked for, `patients with an insurance`, or
        those at the other end of the relation: `games with a sequel` by `sequel of`."""
        for node in nodes_of(form):
            if isinstance(node, Compare) and node.counted and not node.path[-1].inverse:
                roles = self.roles(self.graph.memory.relation_ids[node.path[-1].relation])
                if any(roles.get(word) == ROLE for word in words.roots):
                    return True
        relation, of = self._to_tails(form), getattr(form, "of", None)
        if relation < 0 or not isinstance(of, Class):
            return False
        own, named = words.index.type_words(self.graph.type_of_key.get(of.key, -1)), words.relations[relation]
        return any(
            word in _HAVING and words.roots[n - 1] in own and named[n + 1 : n + 2 + (words.words[n + 1] in _ANY)].any()
            for n, word in enumerate(words.words[:-1])
            if n
        )

    def _measures_otherwise(self, form: Form, asked: re.Match[str]) -> bool:
        """Whether a form finds another measure than *how long* and the like ask for."""
        relation = self._to_tails(form)
        if relation < 0:
            return False
        entry, fitting = entry_of(self.graph, relation), adjectives().get(f"{asked[1].removesuffix('e')}est", {})
        if not self.graph.is_measure(relation) or self.graph.dated[relation] > DATED or not (entry.most or entry.least):
            return False
        return entry.name not in fitting and not any(text.startswith(asked[0]) for text in entry.ask)

    def _lacks_twice(self, form: Form, words: WordCover) -> bool:
        """Whether a form uses the relation that something is to lack once more, and one word alone names it."""
        nodes = nodes_of(form)
        having = [node.without for node in nodes if lacks(node)]  # type: ignore[attr-defined]
        lacked = {one.path[-1].relation for one in having}
        used = {step.relation for node in nodes if node not in having for step in getattr(node, "path", ())}
        known = (self.roles(self.graph.memory.relation_ids[key]) for key in lacked & used)
        return any(sum(word in own for word in words.roots) < 2 for own in known)

    def _finds_lacked(self, form: Form, words: WordCover) -> bool:
        """Whether a form finds things of the type that others are to be without: `people without a project`."""
        at = int(words.away.argmax()) if words.away.any() else len(words.roots)
        bases = (node.of for node in nodes_of(form) if lacks(node))  # type: ignore[attr-defined]
        called = map(words.index.type_words, classes_of(bases, self.graph))
        return any(own & {*words.roots[at + 1 : at + 3]} and not own & {*words.roots[:at]} for own in called)

    def _finds_doer(self, form: Form) -> bool:
        """Whether a form finds by whom something is done, which *into*, *to*, *from* or *at which* does not ask for."""
        relation = self._to_tails(form)
        return relation >= 0 and self.graph.labels[relation].lower().endswith(" by")

    @cached_property
    def _turning(self) -> frozenset[int]:
        """Relations whose labels have a word such as *bad* or *former*."""
        labels = enumerate(self.graph.labels)
        return frozenset(n for n, label in labels if not _TURNING.isdisjoint(WORD.findall(label.lower())))

    def _turns_about(self, one: Candidate, words: WordCover) -> bool:
        """Whether the label of a relation has a word such as *bad* or *former* and the question has none of these, nor
        a negation; or takes away what has such a relation."""
        if self._turning.isdisjoint(way % self.graph.relations for way in one.ways):
            return False
        return _TURNING.isdisjoint(words.words) and (
            not words.away.any() or any(isinstance(node, Minus) for node in nodes_of(one.form))
        )

    def _groups_by(self, form: Form, words: WordCover) -> bool:
        """Whether a form has rows for no other type than that behind the word for groups, `sales by region`, and for
        nothing else than what a relation of that name leads to: `people per occupation`."""
        said = words.grouped
        named = words.groups_named
        for node in nodes_of(form):
            if isinstance(node, Aggregate) and node.how == "values" and node.counted:  # `games per genre` count games
                counted = self.graph.labels[self.graph.memory.relation_ids[node.path[-1].relation]]
                return roots(counted).isdisjoint(said)
            if isinstance(node, Aggregate) and node.how == "values" and named:
                kinds = map(words.index.type_words, classes_of(nodes_of(node.of), self.graph))
                return not all(said.isdisjoint(own) for own in kinds)
            if isinstance(node, Aggregate) and node.by:
                by = self.graph.directed_relation(node.by[0])
                end = self.graph.end_type(by)
                typed = end >= 0 and not words.index.type_words(end).isdisjoint(said)
                return typed or by in named or not (named or (end >= 0 and not words.index.kinds.isdisjoint(said)))
        return True

    def _counts_of(self, form: Form, query: LabelQuery, words: WordCover) -> bool:
        """Whether a form by groups or things counts what is of the type behind *how many* or *number of*, or has a
        number of that name."""
        at = next((n for n in range(2, len(words.words)) if words.words[n - 2 : n] in _NUMBERS_OF), -1)
        types = {one for one, _ in query.types if at > 0 and words.roots[at] in words.index.type_words(one)}
        if not isinstance(form, Aggregate) or form.how not in ("count", "values") or not types:
            return True
        if form.how == "values":
            way = self.graph.directed_relation(form.path[-1])
            named = words.roots[at] in roots(self.graph.labels[way % self.graph.relations])
            return named or (form.counted and self.graph.end_type(way) in types)
        members = self.graph.memory.nodes(form.of)[:1].tolist()
        return any(not types.isdisjoint(self.graph.types_of(node)) for node in members)

    def _done(self, words: WordCover) -> str | None:
        """The relation whose whole label is the verb behind *who*, as in `who painted x`."""
        verb = next((b for a, b in pairwise(words.words) if a == "who"), "")
        labels = [label.lower() for label in self.graph.labels]
        return self.graph.keys[labels.index(verb)] if labels.count(verb) == 1 else None

    def _compares_otherwise(self, form: Form, query: LabelQuery, words: WordCover) -> bool:
        """Whether a form compares with a value where no word compares, or the other way than all words that do."""
        compared = [node for node in nodes_of(form) if isinstance(node, Compare) and not node.counted]
        compared = [node for node in compared if node.op in _ENDS]
        if not compared or SIGNS.search(query.text):
            return False
        ends = words.ends_said
        if words.away.any():
            return not words.may_compare
        if ends:
            if len(ends) == 1 and not ends.issuperset(_ENDS[node.op] for node in compared):
                return True
            included = _INCLUDED.search(query.text) is not None
            strict = not included and _STRICT.search(query.text) is not None
            return len(compared) == 1 and compared[0].op in (_OPEN if included else _CLOSED if strict else ())
        if not words.may_compare:
            return True
        signs = [one for node in compared for one in self._end_told(_ENDS[node.op], node.path[-1].relation, words)]
        return bool(signs) and max(signs) < 0

    def _finds_other_end(self, form: Form, words: WordCover) -> bool:
        """Whether a form finds the heads of a relation by whose name, a noun, its tails are asked for."""
        while isinstance(form, (And, Minus, Arg, Nth, Count)) or (isinstance(form, Aggregate) and not form.by):
            if isinstance(form, And) and any(isinstance(part, Class) for part in form.parts):
                return False
            form = form.parts[-1] if isinstance(form, And) else form.of
        if isinstance(form, Or):
            return any(self._finds_other_end(part, words) for part in form.parts)
        if words.asked < 0 or not isinstance(form, Join):
            return False
        relation, noun = self.graph.memory.relation_ids[form.path[0].relation], words.roots[words.asked]
        if form.path[0].inverse:  # books, where authors are asked for
            entry = entry_of(self.graph, relation)
            others = roots(self.graph.labels[relation], entry.tail, *entry.nouns)
            asked = {"who", "whom", "where", "when"}.isdisjoint(words.words)
            return asked and self.graph.tail_type[relation] < 0 and noun == root(entry.head) and noun not in others
        if noun not in words.index.own[relation] or self.roles(relation).get(noun) != NOUN:
            return False
        if self.graph.to_truths[relation]:  # `patients smoke` by `smoker`
            return False
        ends = [int(table[relation]) for table in (self.graph.head_type, self.graph.tail_type)]
        return ends[1] < 0 and not (ends[0] >= 0 and noun in words.index.type_words(ends[0]))

    def _counts_otherwise(self, form: Form, words: WordCover) -> bool:
        """Whether a form counts by a relation where the noun for what is counted is that of a number: `most members`
        by `number of members`."""
        labels = [
            self.graph.labels[self.graph.memory.relation_ids[node.path[-1].relation]]
            for node in nodes_of(form)
            if isinstance(node, (Arg, Nth, Greater, Aggregate)) and node.path and node.counted
        ]
        if not labels:
            return False
        size = range(len(words.words))
        places = [n for n in size if end_said(words.words, n) or words.words[n - 1 : n + 1] == ["number", "of"]]
        for n in places:
            behind = next((one for one in words.roots[n + 1 : n + 4] if one not in ("numb", "of")), "")
            known = (one for one in words.index.relations.get(behind, ()) if self.graph.is_measure(one))
            measured = any(behind in roots(self.graph.labels[one]) or behind in self.roles(one) for one in known)
            if measured and any(behind not in roots(label) for label in labels):
                return True
        return False

    def _measures_unasked(self, one: Candidate, query: LabelQuery) -> bool:
        """Whether a form measures things of a type that the question does not name, where one that it names or finds
        has that measure: `menus for less than n` have a price of their own."""
        wanted, graph, form = {index for index, _ in query.types}, self.graph, one.form
        wanted = wanted or self._found(one)
        for node in nodes_of(form):
            if isinstance(node, (Arg, Nth, Compare)) and not node.counted and len(node.path) == 1:
                own = nodes_of(form) if isinstance(node, Compare) else (node.of,)
                found = classes_of(own, graph)
                relation = graph.memory.relation_ids[node.path[0].relation]
                if found and not found & wanted and wanted & self._measured_types(relation):
                    return True
        return False

    def _is_in_type(self, form: Form, words: WordCover) -> bool:
        """Whether a form asks if a thing is of a type before which a preposition stands: `was x in an incident`."""
        if not isinstance(form, Holds) or not isinstance(form.of, Class):
            return False
        own = words.index.type_words(self.graph.type_of_key.get(form.of.key, -1))
        before = [word for word in words.words if word not in ("a", "an", "the", "any", "some")]
        return any(a in _TIED and root(b) in own for a, b in pairwise(before))

    def _shares_otherwise(self, form: Form, query: LabelQuery, words: WordCover) -> bool:
        """Whether a form has the share of other things than those of which the question asks it: `share of flats`."""
        if not isinstance(form, Share):
            return False
        places = [n for n, word in enumerate(words.words) if word == "of"]
        behind = {n + 1 + (words.words[n + 1 : n + 2] == ["the"]) for n in places}
        named = _places(form, query, words) & behind
        if not named <= _places(form.of, query, words):
            return True  # `of the dragons`
        first = min(behind, default=0)
        verb = next((n for n, word in enumerate(words.words) if n > first > 0 and word in (*_BEING, "has", "have")), 0)
        if verb and max(words.said(form.of) | _places(form.of, query, words), default=0) > verb:
            return True  # `of the works is on display`
        kinds = [way for way in np.flatnonzero(self.graph.to_truths).tolist() if "among" not in words.words
                 and any(words.relations[way, n : n + 1].max(initial=0.0) == 1.0 for n in behind)]  # fmt: skip
        steps = {step.relation for node in nodes_of(form.of) for step in getattr(node, "path", ())}
        if kinds and steps.isdisjoint(self.graph.keys[way] for way in kinds):
            return True  # `share of bosses`
        nouns = [words.words[n + 1 : n + 4] for n in places]
        said = {form for noun in nouns for word in noun for form in singulars(word)}
        named = {index for index, _ in query.types if self.graph.type_labels[index] in said}
        own = classes_of(nodes_of(form.of), self.graph)
        return bool(named) and named.isdisjoint(own)

    def _leads_unasked(self, one: Candidate, query: LabelQuery, words: WordCover) -> bool:
        """Whether a form leads to types though no word asks for these, to dates though *what* is asked alone, or to the
        values by which it narrows its things."""
        if not isinstance(one.form, Join) or not one.form.path[0].inverse or one.nodes is None or not len(one.nodes):
            return False
        relation, text = self.graph.memory.relation_ids[one.form.path[0].relation], query.text.lower()
        if any(
            isinstance(node, Compare) and not node.counted or isinstance(node, Join) and isinstance(node.of, Literal)
            for node in nodes_of(one.form)
            if getattr(node, "path", ())[-1:] == (replace(one.form.path[0], inverse=False),)
        ):
            return True  # the dates of what has a date
        if self.graph.is_type[relation]:  # types of things
            english = grammar_of(query.text) is question_words()["grammar"]
            said = not roots(self.graph.labels[relation]).isdisjoint(words.roots)
            return english and not (said or _ASKS_TYPE.search(text) or ASKS_FOR_THING.match(text))
        if words.names(relation) and not self.graph.is_nameless(int(self.graph.head_type[relation])):
            return False
        if _ASKS_WHAT.match(text) is None:
            return False
        kind = int(self.graph.head_type[relation])
        if self.graph.is_nameless(kind) and root(self.graph.type_labels[kind]) in words.roots:  # `what did x pick`
            objects = self._objects(kind)
            return bool(objects) and relation not in objects
        return bool(self.graph.dated[relation] > DATED)

    def _objects(self, kind: int) -> set[int]:
        """The relations from records to what they are records of: `picking of`."""
        label = f"{self.graph.type_labels[kind]} of"
        return {
            n for n, own in enumerate(self.graph.labels) if own.lower() == label and self.graph.head_type[n] == kind
        }

    def _measured_types(self, relation: int) -> set[int]:
        """Types of at least some of whose things a relation tells something."""
        if relation not in self._types:
            heads = self.graph.heads_of(relation)[:FEW_HEADS].tolist()
            self._types[relation] = {index for head in heads for index in self.graph.types_of(head)}
        return self._types[relation]

    def _finds_what_is_done(self, form: Form, words: WordCover) -> bool:
        """Whether a form finds the tails of a relation whose heads are asked for, `who works with x` and `who were
        killed by somebody`, or its heads where a noun for what is done asks for the tails, `paintings in x`."""
        if not isinstance(form, Join):
            return False
        relation = self.graph.memory.relation_ids[form.path[0].relation]
        roles, label = self.roles(relation), self.graph.labels[relation].lower()
        for before, be, verb in zip(words.words, words.words[1:], words.roots[2:], strict=False):
            if before in _RELATIVES and be in _BEING and (role := roles.get(verb)) in (VERB, ACTIVE):
                heads = role == ACTIVE or _ENDS_OPEN.search(label) is not None  # `killed by`, `born in`
                return heads == form.path[0].inverse
        if not form.path[0].inverse:
            asked = words.asked if words.words[words.asked].endswith(("ing", "ings")) else -1
            return asked >= 0 and roles.get(words.roots[asked]) == VERB
        behind = [*words.roots[1:], ""]
        return any(word == "who" and roles.get(verb) == VERB for word, verb in zip(words.words, behind, strict=True))

    @cached_property
    def directed(self) -> list[bool]:
        """Of each relation whether it is between things of a kind, and does not hold in both directions."""
        return [alike and not is_mutual(self.graph, n) for n, alike in enumerate(self.graph.alike.tolist())]

    def _directions(self, form: Form, query: LabelQuery, words: WordCover) -> list[tuple[int, str, int]]:
        """(relation, key, sign) of each mention at an end of a relation, as `_told` gives it; of counts with key ""."""
        keys = {key: number for number, slot in enumerate(query.slots) for _, key, _ in slot.entities}
        told = [
            (relation, key, self._told(words, relation, words.slots[keys[key]], head))
            for key, relation, head in self._ends(form)
            if keys.get(key) in words.slots
        ]
        return told + [(relation, "", sign) for relation, sign in self._counted(form, words)]

    @cached_property
    def usual(self) -> list[float]:
        """Of each directed relation the log share of the things of a kind that it leads to; of one to values, that of
        the things that have it."""
        graph, rows = self.graph, []
        heads, tails = graph.end_counts.tolist()
        for numbers, types in ((tails, graph.tail_type), (heads, graph.head_type)):
            most = max(numbers, default=1)
            sizes = [len(graph.members(t)) if t >= 0 else most for t in types.tolist()]
            rows.append([number / max(size, 1) for number, size in zip(numbers, sizes, strict=True)])
        ahead = [h if to < 0.5 else t for t, h, to in zip(*rows, graph.entity_tails.tolist(), strict=True)]
        return [max(math.log(max(share, 1e-9)), -RAREST) / RAREST if share < 1 else 0.0 for share in (*ahead, *rows[1])]

    # -- direction ---------------------------------------------------------------------------------------------

    def _ends(self, form: Form) -> Iterator[tuple[str, int, bool]]:
        """(key, relation, whether it is the head) of each entity at an end of a relation."""
        for node in nodes_of(form):
            match node:
                case Join(path=(*_, step), of=Entity(key=key)):
                    yield key, self.graph.memory.relation_ids[step.relation], step.inverse
                case Holds(of=Join(path=(step, *_)), one=Entity(key=key)):
                    yield key, self.graph.memory.relation_ids[step.relation], not step.inverse

    def _told(self, words: WordCover, relation: int, slot: int, head: bool) -> int:
        """1 where the question has a thing at this end of a relation, -1 at the other one, 0 where it does not say."""
        roles, before = self.roles(relation), words.words[slot - 1] if slot else ""
        last = self.graph.labels[relation].lower().rpartition(" ")[2]
        if {before, last} <= _WAYS:
            return 1 if (before != last) == head else -1
        for n in sorted(range(len(words.roots)), key=lambda n: (abs(n - slot), n)):  # the nearest word tells
            if n != slot and words.roots[n] in roles:
                role = roles[words.roots[n]]
                if role in (NOUN, ROLE):
                    role = self._noun_role(relation, role, words, n)
                told = _is_head(words.words, n, slot, role) if role else None
                return 0 if told is None else 1 if told == head else -1
        return 0

    def _noun_role(self, relation: int, role: str, words: WordCover, n: int) -> str:
        """The role of a word by a noun of its relation: that of the noun; of the verb of which a noun for a doer is
        made, as in `who manages x` and `who does x mentor`; "" of another verb, which does not say who does it."""
        if relation not in self._nouns:
            texts = (self.graph.labels[relation].lower(), *entry_of(self.graph, relation).nouns)
            self._nouns[relation] = {one for text in texts for noun in WORD.findall(text) for one in singulars(noun)}
        nouns = self._nouns[relation]
        asked = n > 0 and words.words[n - 1] in ("who", "what", "that")
        asked |= n > 1 and words.words[n - 2] in ("do", "does", "did")
        if not asked and not nouns.isdisjoint(singulars(words.words[n])):
            return role
        if any(root(noun) == words.roots[n] for noun in nouns if _DOER.search(noun)):
            return ACTIVE if role == NOUN else VERB
        return ""

    def roles(self, relation: int) -> dict[str, str]:
        """Roots of the words of a relation, each with what it says."""
        if relation not in self._roles:
            label = self.graph.labels[relation].lower()
            entry = entry_of(self.graph, relation)
            if _ROLE.fullmatch(label):
                texts = [(label, ROLE)]
            elif phrase(label).is_verb or _VERBAL.match(label) or any(label in pair for pair in entry.verb):
                texts = [(label, ACTIVE if label.endswith(" by") else VERB)]
            else:
                texts = [(label, ROLE if label.endswith(" of") else NOUN)]
            texts += [(noun, NOUN) for noun in entry.nouns]
            texts += [(text, ACTIVE) for text in entry.active]
            texts += [(text, ACTIVE if " by" in text else VERB) for pair in entry.verb for text in pair[:1]]
            self._roles[relation] = {}
            for text, role in reversed(texts):
                content = [word for word in WORD.findall(text.lower()) if word not in FUNCTION_WORDS]
                for word in content[-1:] if role in (NOUN, ROLE) else content[:1]:
                    ends = (0, 1, 2, 3) if role in (VERB, ACTIVE) and word[3:].endswith("ed") else (0,)  # transfer-red
                    self._roles[relation] |= {root(word[: len(word) - end]): role for end in ends}
        return self._roles[relation]

    def _counted(self, form: Form, words: WordCover) -> Iterator[tuple[int, int]]:
        """Of each ranking by a count its relation, and 1 where it counts the end that the noun for it says, as in `most
        films` and `most followers`, -1 where it counts the other one."""
        for node in nodes_of(form):
            if lacks(node):
                yield from self._lacked(node.without.path[-1], words)  # type: ignore[attr-defined]
            if not isinstance(node, (Arg, Nth, Greater)) or not node.counted:
                continue
            step = node.path[-1]
            relation = self.graph.memory.relation_ids[step.relation]
            for n in range(len(words.words)):
                if end_said(words.words, n):
                    behind = words.words[n + 1 :]
                    verbs = (role for word, role in self.roles(relation).items() if word in words.roots[n + 1 :])
                    if n and words.words[n - 1] in ("do", "does", "did") and VERB in verbs:
                        yield relation, 1 if step.inverse else -1  # `which service do most others depend on`
                        continue
                    noun = (behind[2:] if behind[:2] == ["number", "of"] else behind)[:1]
                    if noun and noun[0].endswith("ed") and self.roles(relation).get(root(noun[0])) == VERB:
                        yield relation, 1 if step.inverse else -1  # `the most cited paper`
                        continue
                    heads = self._is_of_heads(relation, noun[0], words) if noun else None
                    if heads is not None:
                        yield relation, 1 if heads == step.inverse else -1

    def _lacked(self, step: Step, words: WordCover) -> Iterator[tuple[int, int]]:
        """The same of a relation between things of a kind that something is to lack: *not cited*, *never cite any*."""
        relation, said = self.graph.memory.relation_ids[step.relation], words.words
        for n in range(1, len(said)) if self.directed[relation] else ():
            role, before, behind = (
                self.roles(relation).get(words.roots[n]),
                said[max(n - 3, 0) : n],
                said[n + 1 : n + 4],
            )
            if role not in (VERB, ACTIVE):
                continue
            negated = not _BEFORE_LACKED.isdisjoint(before[-2:])
            passive = negated and (not _BEING_DONE.isdisjoint(before) or behind[:1] == ["by"])
            passive |= not _NOBODY.isdisjoint((*before[-1:], " ".join(before[-2:])))
            active = negated and not _DOING.isdisjoint((*before, *behind[:1]))
            active |= not _NOBODY.isdisjoint((*behind[:2], " ".join(behind[:2]), " ".join(behind[1:])))
            if passive or active:
                yield relation, 1 if step.inverse == (passive == (role == VERB)) else -1

    def _is_of_heads(self, relation: int, noun: str, words: WordCover) -> bool | None:
        """Whether a noun is for the heads of a relation, by its types or words; None where it is for neither end."""
        ends = [int(table[relation]) for table in (self.graph.head_type, self.graph.tail_type)]
        named = [end >= 0 and root(noun) in words.index.type_words(end) for end in ends]
        if named[0] != named[1]:
            return named[0]
        roles, verb = self.roles(relation), root(_DOER.sub("", noun))
        role = roles.get(root(noun))
        if role in (NOUN, ROLE):
            return role == ROLE
        return roles[verb] == VERB if verb in roles and _DOER.search(noun) else None

    # -- rankings ----------------------------------------------------------------------------------------------

    def _signs(self, node: Form, words: WordCover) -> Iterator[int]:
        match node:
            case (
                Arg(best=best, path=path)
                | Nth(best=best, path=path)
                | Greater(best=best, path=path)
                | CompareTo(best=best, path=path)
            ):
                yield from self._end_told(best, path[-1].relation, words)
            case Aggregate(how=("argmax" | "argmin"), best=best, path=(*_, step)):
                yield from self._end_told(best, step.relation, words)
            case Aggregate(how=("max" | "min") as best, path=(*_, step)):
                yield from self._end_told(best, step.relation, words)
            case Compare(op=op, path=(*_, step)) if op in _ENDS:
                yield from self._end_told(_ENDS[op], step.relation, words)

    def _end_told(self, best: str, key: str, words: WordCover) -> Iterator[int]:
        labels, known = entry_of(self.graph, self.graph.memory.relation_ids[key]).labels, adjectives()
        for n, word in enumerate(words.words):
            if end := end_said(words.words, n):
                yield 1 if end == best else -1
            elif (sides := known.get(word)) is not None:
                every = frozenset[str]().union(*sides.values())
                own = sides.get(labels[0], every) if labels else every
                if len(own) == 1:
                    yield 1 if best in own else -1


def _finds_no_kind(form: Form, words: WordCover) -> bool:
    """Whether a form narrows something else by the kind that a question asks for: `generals who were killed`."""
    run = min((run for run in words.texts if not run.inside), key=lambda one: one.first, default=None)
    if run is None or words.words[run.last : run.last + 1] not in (["who"], ["that"], ["which"]):
        return False
    if not _BEFORE_KINDS.issuperset(words.words[: run.first]):
        return False
    values = {value for value, _ in run.values}
    if values.isdisjoint(nodes_of(form)):
        return False
    while isinstance(form, (Arg, Minus, Nth, Count)) or (isinstance(form, Aggregate) and not form.by):
        form = form.of
    parts = form.parts if isinstance(form, (And, Or)) else (form,)
    return not any(isinstance(part, Join) and len(part.path) == 1 and part.of in values for part in parts)


def _averages_twice(form: Form, words: WordCover) -> bool:
    """Whether a form compares with more averages than the question names."""
    bounds = [node for node in nodes_of(form) if isinstance(node, CompareTo) and isinstance(node.one, Aggregate)]
    return len(bounds) > max(1, sum(word in ("average", "mean", "median") for word in words.words))


def _finds_best(form: Form) -> bool:
    """Whether a form finds the best of a set itself, and not what has to do with it."""
    return isinstance(form, (Arg, Nth)) or (isinstance(form, And) and any(map(_finds_best, form.parts)))


def _groups_otherwise(form: Form, graph: LabelGraph, words: WordCover) -> bool:
    """Whether a form counts by groups what each of is asked for: `animals per enclosure` are grouped by enclosure."""
    if not isinstance(form, Aggregate) or form.how != "count" or not isinstance(form.of, Class):
        return False
    at = int(words.aggregates["group"].argmax()) + 1
    own = words.index.type_words(graph.type_of_key.get(form.of.key, -1))
    return bool(words.aggregates["group"].any()) and at < len(words.roots) and words.roots[at] in own


def _bounds(form: Form) -> tuple[set[str], set[str]] | None:
    """Of a form that compares things which have a relation at all: these relations by which it compares, and others
    that it does not use again; None of another form."""
    for node in nodes_of(form):
        parts = node.parts if isinstance(node, And) else ()
        base = {part.path[0].relation for part in parts if has_any(part)}
        used = {step.relation for part in parts if not has_any(part) for n in nodes_of(part)
                for step in getattr(n, "path", ())}  # fmt: skip
        if base and any(isinstance(part, Compare) and not part.counted for part in parts):
            return base & used, base - used
    return None


def _finds_heads(form: Form, relation: str) -> bool:
    """Whether a form finds heads of a relation."""
    match form:
        case Join(path=(step, *_)):
            return (step.relation, step.inverse) == (relation, False)
        case And(parts=parts):
            return any(_finds_heads(part, relation) for part in parts)
        case Minus(of=of) | Arg(of=of) | Nth(of=of):
            return _finds_heads(of, relation)
        case Or(parts=parts):
            return all(_finds_heads(part, relation) for part in parts)
    return False


def _groups(form: Form) -> bool:
    """Whether a form has a row for each group or thing."""
    return any(isinstance(node, Aggregate) and (node.by or node.how == "values") for node in nodes_of(form))


def _places(form: Form, query: LabelQuery, words: WordCover) -> set[int]:
    """Places of the mentions and texts that a form has."""
    nodes = nodes_of(form)
    texts = {run.first for run in words.texts if any(node == one for node in nodes for one, _ in run.values)}
    return texts | {words.slots[number] for number in slots_of(form, query) if number in words.slots}


def _taken_away(form: Form, query: LabelQuery, words: WordCover) -> set[int]:
    """Places of the mentions and texts of what a form takes away."""
    parts = (node.without for node in nodes_of(form) if isinstance(node, Minus))
    return {place for part in parts for place in _places(part, query, words)}


def _takes_away_otherwise(form: Form, query: LabelQuery, words: WordCover) -> bool:
    """Whether a form takes away what stands before the word for that, also where something else stands behind it."""
    at = int(words.away.argmax()) if words.away.any() else -1
    last = max(_places(form, query, words), default=-1)
    for node in nodes_of(form) if at >= 0 else ():
        if not isinstance(node, Minus):
            continue
        out = _places(node.without, query, words)
        if out and min(out) < at and (at < last or words.states_behind(node.of, at)):
            return True
        out = words.said(node.without) | out
        if out and max(out) < at < max(words.said(form) - out, default=-1):
            return True  # `peaks that are no volcanoes`: not volcanoes but peaks
    return False


def _is_head(words: list[str], n: int, slot: int, role: str) -> bool | None:
    """Whether a word at `n` says that what stands at `slot` is the head of its relation; None where it does not."""
    between = words[min(n, slot) + 1 : max(n, slot)]
    if role in (VERB, ACTIVE):
        passive = "by" in words[n + 1 : n + 3]
        return ((slot < n) == (role == VERB)) != passive
    owner = slot < n and (slot + 1 == n or words[slot + 1] in ("s", "'s", "’s"))
    if slot > n:
        owner = not {"of", "than", "has", "have", "had"}.isdisjoint(between) or words[slot + 1 : slot + 2] in (
            ["have"],
            ["got"],
        )
    elif not owner and "as" not in between and "of" not in words[n + 1 : n + 2]:
        return None
    return owner == (role == NOUN)
