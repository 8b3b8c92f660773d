"""How a form agrees with the grammar of a question: with the direction of its verbs and nouns, with which end of a
ranking it wants, and with what goes without saying."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np

from kgqa_core.linking.english import singulars
from kgqa_core.linking.words import FUNCTION_WORDS
from kgqa_core.logic.forms import Aggregate, Arg, Compare, Entity, Form, Greater, Holds, Join, Nth
from kgqa_core.rewriting.phrases import phrase
from kgqa_core.search.candidates import Candidate, LabelQuery, nodes_of
from kgqa_core.search.form_reading import root
from kgqa_core.search.graph import WORD, LabelGraph
from kgqa_core.search.question_words import adjectives, entry_of, is_measure, question_words
from kgqa_core.search.words import WordCover

RAREST = 8.0
"""Below e to the minus this no share is told from a smaller one."""
VERB, ACTIVE, NOUN, ROLE = "verb", "active", "noun", "role"
"""What a word says of a relation: its head does it; its tail does it; it names its tail; it names its head."""
LARGE = frozenset("most highest best last latest top max maximum more greater higher later over above after since "
                  "beyond exceeding exceeds".split())  # fmt: skip
SMALL = frozenset("least lowest worst first earliest min minimum less fewer fewest lower earlier under below before "
                  "until till".split())  # fmt: skip
BOTH_ENDS = 0.2
"""Share of the things at one end of a relation that are at the other one too, above which it is between things of one
kind."""
_WAYS = frozenset(("from", "to"))
_VERBAL = re.compile(r"\w+ed\b.* (?:to|from|in|at|on|into|for|with)$")
_DOER = re.compile(r"(?:ant|ent|er|or)s?$")
"""Nouns for what does something."""
_RANGES = frozenset("between up within s".split())
_SIGNS = re.compile(r"[<>≤≥=+-]")
_ENDS = {"gt": "max", "ge": "max", "lt": "min", "le": "min"}


class GrammarAgreement:
    """What the relations of one graph agree with."""

    def __init__(self, graph: LabelGraph) -> None:
        self.graph = graph
        self._roles: dict[int, dict[str, str]] = {}
        self._nouns: dict[int, set[str]] = {}

    def of(self, one: Candidate, query: LabelQuery, words: WordCover) -> tuple[float, float, float]:
        """Of a candidate how usual the relations are that no word names, below 0; whether the direction of its
        relations is that of the words for them, and whether its rankings want the end that the words want, -1 to 1."""
        usual = sum(self.usual[way] for way in one.ways if not words.names(way))
        told = [sign for _, _, sign in self._directions(one.form, query, words)]
        signs = [sign for node in nodes_of(one.form) for sign in self._signs(node, words)]
        return usual, sum(told) / max(sum(map(abs, told)), 1), sum(signs) / max(len(signs), 1)

    def reversed(self, candidates: Sequence[Candidate], query: LabelQuery, words: WordCover) -> set[int]:
        """Candidates that have a relation between things of a kind in the other direction than the question says, or
        count its other end where one of the others counts the one that it says: places in `candidates`."""
        told = [
            [one for one in self._directions(candidate.form, query, words) if self.directed[one[0]] or not one[1]]
            for candidate in candidates
        ]
        right = {(relation, key) for signs in told for relation, key, sign in signs if sign > 0}
        wrong = {n for n, signs in enumerate(told) if any(s < 0 and (key or (r, key) in right) for r, key, s in signs)}
        for n, one in enumerate(candidates):
            if self._finds_what_is_done(one.form, words) or _compares_otherwise(one.form, query, words):
                wrong.add(n)
        return wrong

    def _finds_what_is_done(self, form: Form, words: WordCover) -> bool:
        """Whether a form finds the tails of a relation whose heads are asked for: `who works with x`."""
        if not isinstance(form, Join) or not form.path[0].inverse:
            return False
        roles = self.roles(self.graph.memory.relation_ids[form.path[0].relation])
        behind = [*words.roots[1:], ""]
        return any(word == "who" and roles.get(verb) == VERB for word, verb in zip(words.words, behind, strict=True))

    @cached_property
    def directed(self) -> list[bool]:
        """Of each relation whether it is between things of a kind, and does not hold in both directions.

        Where a type is not known, those are of a kind where more than `BOTH_ENDS` of the things at the rarer end are
        at the other one too: names that two things share are at both ends of a few.
        """
        mutual, memory = question_words()["mutual"], self.graph.memory
        names = [WORD.findall(label.lower()) for label in self.graph.labels]
        alike = self.graph.head_type == self.graph.tail_type
        for relation in np.flatnonzero(np.minimum(self.graph.head_type, self.graph.tail_type) < 0).tolist():
            own = memory.relation == relation
            heads, tails = np.unique(memory.head[own]), np.unique(memory.tail[own])
            both = len(np.intersect1d(heads, tails, assume_unique=True))
            alike[relation] = both > BOTH_ENDS * min(len(heads), len(tails))
        return [one and mutual.isdisjoint(words) for one, words in zip(alike.tolist(), names, strict=True)]

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
        for n, word in enumerate(words.roots):
            if n != slot and word in roles:
                role = roles[word]
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
            if phrase(label).is_verb or _VERBAL.match(label) or any(label in pair for pair in entry.verb):
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
            if not isinstance(node, (Arg, Nth, Greater)) or not node.counted:
                continue
            step = node.path[-1]
            relation = self.graph.memory.relation_ids[step.relation]
            for n in range(len(words.words)):
                if _end_said(words.words, n):
                    behind = words.words[n + 1 :]
                    noun = (behind[2:] if behind[:2] == ["number", "of"] else behind)[:1]
                    heads = self._is_of_heads(relation, noun[0], words) if noun else None
                    if heads is not None:
                        yield relation, 1 if heads == step.inverse else -1

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
            case Arg(best=best, path=path) | Nth(best=best, path=path) | Greater(best=best, path=path):
                yield from self._end_told(best, path[-1].relation, words)
            case Aggregate(how=("max" | "min") as best, path=(*_, step)):
                yield from self._end_told(best, step.relation, words)
            case Compare(op=op, path=(*_, step)) if op in _ENDS:
                yield from self._end_told(_ENDS[op], step.relation, words)

    def _end_told(self, best: str, key: str, words: WordCover) -> Iterator[int]:
        labels, known = entry_of(self.graph, self.graph.memory.relation_ids[key]).labels, adjectives()
        for n, word in enumerate(words.words):
            if end := _end_said(words.words, n):
                yield 1 if end == best else -1
            elif (sides := known.get(word)) is not None:
                every = frozenset[str]().union(*sides.values())
                own = sides.get(labels[0], every) if labels else every
                if len(own) == 1:
                    yield 1 if best in own else -1


def _end_said(words: Sequence[str], n: int) -> str:
    """The end of a scale that a word is for, `max` or `min`; "" for other words."""
    word = words[n]
    if word not in LARGE and word not in SMALL:
        return ""
    bound = word in ("most", "least") and n > 0 and words[n - 1] == "at"
    return "max" if (word in LARGE) != bound else "min"


def _compares_otherwise(form: Form, query: LabelQuery, words: WordCover) -> bool:
    """Whether a form compares with a value where no word compares, or the other way than all words that do."""
    ops = {node.op for node in nodes_of(form) if isinstance(node, Compare) and not node.counted} & _ENDS.keys()
    if not ops or words.away.any() or _SIGNS.search(query.text):
        return False
    ends = {_end_said(words.words, n) for n in range(len(words.words))} - {""}
    if not ends:
        span = {"from", "to"} <= {*words.words}
        return not (span or any(is_measure(word) or word in _RANGES for word in words.words))
    return len(ends) == 1 and not ends.issuperset(_ENDS[op] for op in ops)


def _is_head(words: list[str], n: int, slot: int, role: str) -> bool | None:
    """Whether a word at `n` says that what stands at `slot` is the head of its relation; None where it does not."""
    between = words[min(n, slot) + 1 : max(n, slot)]
    if role in (VERB, ACTIVE):
        passive = "by" in words[n + 1 : n + 3]
        return ((slot < n) == (role == VERB)) != passive
    owner = slot < n and (slot + 1 == n or words[slot + 1] in ("s", "'s", "’s"))
    if slot > n:
        owner = "of" in between or "than" in between or words[slot + 1 : slot + 2] in (["have"], ["got"])
    elif not owner and "as" not in between and "of" not in words[n + 1 : n + 2]:
        return None
    return owner == (role == NOUN)
