"""Sentences by rule from the names of triples: the `template` teacher, format, and length estimate.

Nothing is known of a graph but the labels of its relations.  Triples that share head and relation, or relation and
tail, make one sentence; a chain may become one; a nameless node (CVT) is described by what hangs on it.  Every sentence
names its entities to the letter.  Which of several wordings is used follows from a digest of the triples and the
number of the variant, so that the same triples always read the same.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass

from kgqa_core.kg.verbalise import is_cvt
from kgqa_core.rewriting.phrases import RelationPhrase, is_plural, phrase, plural, words
from kgqa_core.types import INVERSE

Named = tuple[str, str, str]
"""A triple by the names of head, relation and tail."""


@dataclass(frozen=True, slots=True)
class TemplateSentence:
    """One sentence, and the indices of the triples that it states."""

    text: str
    triples: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Group:
    """Triples of one sentence: some heads, one relation, some tails, one of both being single."""

    heads: tuple[str, ...]
    relation: str
    tails: tuple[str, ...]
    triples: tuple[int, ...]


def sentences(triples: Sequence[Named], language: str = "en", variant: int = 0) -> list[TemplateSentence]:
    """Sentences that state every triple, in the order of the first triple of each.

    triples: (head, relation, tail) by name; `<inv>-` before a relation means that it was walked against its direction.
    language: `zh` for Chinese, else English.  variant: another wording where there is one.

    >>> [each.text for each in sentences([("Oslo", "capital of", "Norway"), ("Norway", "borders", "Sweden")])]
    ['Oslo is the capital of Norway.', 'Norway borders Sweden.']
    """
    stored = [_stored(triple) for triple in triples]
    choice = _digest(stored) + variant
    chinese = language.partition("-")[0] == "zh"
    wording = _Chinese(choice) if chinese else _English(choice)
    hidden = [index for index, (head, _, tail) in enumerate(stored) if is_cvt(head) or is_cvt(tail)]
    plain = [index for index in range(len(stored)) if index not in set(hidden)]
    made = wording.groups(_grouped(stored, plain)) + _compound(wording, stored, hidden)
    return sorted(made, key=lambda each: each.triples[0])


def paragraph(made: Sequence[TemplateSentence], language: str = "en") -> str:
    """The sentences as one text; Chinese ones stand without blanks between."""
    return ("" if language.partition("-")[0] == "zh" else " ").join(each.text for each in made)


def _stored(triple: Named) -> Named:
    """A triple as the graph stores it."""
    head, relation, tail = triple
    return (tail, relation[len(INVERSE) :], head) if relation.startswith(INVERSE) else triple


def _digest(stored: Sequence[Named]) -> int:
    return hashlib.sha256(json.dumps(stored, ensure_ascii=False).encode()).digest()[0]


def _grouped(stored: Sequence[Named], indices: Sequence[int]) -> list[_Group]:
    """Triples by head and relation; what stays alone there, by relation and tail."""
    by_head: dict[tuple[str, str], list[int]] = {}
    for index in indices:
        by_head.setdefault(stored[index][:2], []).append(index)
    groups = []
    alone: dict[tuple[str, str], list[int]] = {}
    for (head, relation), indices_of in by_head.items():
        tails = tuple(dict.fromkeys(stored[index][2] for index in indices_of))
        if len(tails) > 1:
            groups.append(_Group((head,), relation, tails, tuple(indices_of)))
        else:
            alone.setdefault((relation, tails[0]), []).extend(indices_of)
    for (relation, tail), indices_of in alone.items():
        heads = tuple(dict.fromkeys(stored[index][0] for index in indices_of))
        groups.append(_Group(heads, relation, (tail,), tuple(sorted(indices_of))))
    return sorted(groups, key=lambda group: group.triples[0])


def _compound(wording: _English | _Chinese, stored: Sequence[Named], hidden: Sequence[int]) -> list[TemplateSentence]:
    """Sentences on nameless nodes: each anchored by the triple that leads to it, described by those that leave it."""
    anchors: dict[str, int] = {}
    for index in hidden:
        head, _, tail = stored[index]
        if is_cvt(tail) and tail not in anchors and head != tail:
            anchors[tail] = index
    parts: dict[str, list[int]] = {}
    for index in hidden:
        head, _, tail = stored[index]
        if anchors.get(tail) != index:
            parts.setdefault(head if is_cvt(head) else tail, []).append(index)
    made = []
    merged: dict[tuple[str, str], list[tuple[str, list[int]]]] = {}
    for node, indices in parts.items():
        where, behind = _anchor(wording, stored, anchors, node)
        tails: dict[str, list[str]] = {}
        for index in indices:
            head, relation, tail = stored[index]
            name = tail if head == node else head
            if not is_cvt(name):
                tails.setdefault(relation, []).append(name)
        facts = [(relation, tuple(dict.fromkeys(names))) for relation, names in tails.items()]
        if where and len(indices) == len(facts) == 1:
            merged.setdefault((where, facts[0][0]), []).append((facts[0][1][0], sorted({*behind, *indices})))
        elif where and facts:
            made.append(TemplateSentence(wording.within(where, facts), tuple(sorted({*behind, *indices}))))
        elif len(indices) > 1 and facts:
            made.append(TemplateSentence(wording.together(facts), tuple(indices)))
    for (where, relation), facts_of in merged.items():
        names = tuple(dict.fromkeys(tail for tail, _ in facts_of))
        behind_all = tuple(sorted({index for _, indices in facts_of for index in indices}))
        made.append(TemplateSentence(wording.within(where, [(relation, names)]), behind_all))
    covered = {index for each in made for index in each.triples}
    return made + [TemplateSentence(wording.bare(stored[index]), (index,)) for index in hidden if index not in covered]


def _anchor(
    wording: _English | _Chinese, stored: Sequence[Named], anchors: dict[str, int], node: str
) -> tuple[str, list[int]]:
    """`the marriage of Ada` for a nameless node, and the triples behind it; empty where nothing named leads there."""
    chain: list[int] = []
    while is_cvt(node):
        index = anchors.get(node)
        if index is None or index in chain:
            return "", []
        chain.append(index)
        node = stored[index][0]
    text = node
    for index in reversed(chain):
        text = wording.part_of(stored[index][1], text)
    return text, chain


class _English:
    """English wordings; `choice` takes one of them."""

    def __init__(self, choice: int) -> None:
        self.choice = choice

    def groups(self, groups: Sequence[_Group]) -> list[TemplateSentence]:
        """One sentence for each group, or for a chain of two."""
        made: list[TemplateSentence] = []
        clauses = [self._clause(group) for group in groups]
        index = 0
        while index < len(groups):
            here, after = groups[index], groups[index + 1] if index + 1 < len(groups) else None
            chain = after is not None and len(here.heads) == len(here.tails) == 1 and after.heads == here.tails
            if chain and after is not None and here.relation != after.relation and self.choice % 2:
                then = clauses[index + 1]
                own = not any(then.startswith(name) for name in (*after.heads, *after.tails))
                then = "the " + then[4:] if own and then.startswith("The ") else then
                made.append(
                    TemplateSentence(f"{clauses[index]}, and {then}.", tuple(sorted({*here.triples, *after.triples})))
                )
                index += 2
            else:
                made.append(TemplateSentence(f"{clauses[index]}.", here.triples))
                index += 1
        return made

    def within(self, where: str, facts: Sequence[tuple[str, Sequence[str]]]) -> str:
        """`In the marriage of Ada, the spouse is Bob and the start is 1999.`"""
        if len(facts) == 1:
            relation, names = facts[0]
            noun, verb = self._noun(relation, len(names))
            if self.choice % 2:
                return f"The {noun} in {where} {verb} {_listed(names)}."
        return f"In {where}, {self._stated(facts)}."

    def together(self, facts: Sequence[tuple[str, Sequence[str]]]) -> str:
        """What hangs on a node that nothing named leads to."""
        return f"Together, {self._stated(facts)}."

    def _stated(self, facts: Sequence[tuple[str, Sequence[str]]]) -> str:
        parts = []
        for relation, names in facts:
            noun, verb = self._noun(relation, len(names))
            parts.append(f"the {noun} {verb} {_listed(names)}")
        return _listed(parts)

    def part_of(self, relation: str, text: str) -> str:
        """`the marriage of Ada`."""
        return f"the {words(relation)} of {text}"

    def bare(self, triple: Named) -> str:
        """A triple of a nameless node that nothing else mentions."""
        head, relation, tail = triple
        if is_cvt(head) and is_cvt(tail):
            return f"There is a record of {words(relation)}."
        return f"There is a record of the {words(relation)} of {tail if is_cvt(head) else head}."

    def _noun(self, relation: str, count: int) -> tuple[str, str]:
        noun = words(relation).removeprefix("has ").removeprefix("the ")
        if count > 1:
            return plural(noun), "are"
        return noun, "include" if is_plural(noun) else "is"

    def _clause(self, group: _Group) -> str:
        relation = phrase(group.relation)
        return self._verb_clause(relation, group) if relation.is_verb else self._noun_clause(relation, group)

    def _verb_clause(self, relation: RelationPhrase, group: _Group) -> str:
        heads, tails = _listed(group.heads), _listed(group.tails)
        if relation.active and self.choice // 2 % 2:
            contain = relation.active == "contains" and len(group.tails) > 1
            return f"{tails} {'contain' if contain else relation.active} {heads}"
        return f"{heads} {relation.one if len(group.heads) == 1 else relation.many} {tails}"

    def _noun_clause(self, relation: RelationPhrase, group: _Group) -> str:
        heads, tails = _listed(group.heads), _listed(group.tails)
        many = len(group.tails) > 1
        noun = plural(relation.noun) if many else relation.noun
        several = is_plural(noun)
        wording = self.choice % 3
        if relation.link == " for ":
            return f"For {heads}, the {noun} {'include' if several else 'is'} {tails}"
        if relation.link != " of " or wording == 0 or relation.rest or (several and not many):
            verb = "are" if many else "include" if several else "is"
            return f"The {noun}{relation.link}{heads}{relation.rest} {verb} {tails}"
        if wording == 1:
            return f"{tails} {'are' if many else 'is'} the {noun} of {heads}"
        return f"{heads} {'has' if len(group.heads) == 1 else 'have'} the {noun} {tails}"


class _Chinese:
    """Chinese wordings; `choice` takes one of them."""

    def __init__(self, choice: int) -> None:
        self.choice = choice

    def groups(self, groups: Sequence[_Group]) -> list[TemplateSentence]:
        """One sentence for each group, or for a chain of two."""
        made: list[TemplateSentence] = []
        index = 0
        while index < len(groups):
            here, after = groups[index], groups[index + 1] if index + 1 < len(groups) else None
            same = after is not None and len(here.heads) == 1 and after.heads in (here.heads, here.tails)
            if same and after is not None and self.choice % 2:
                text = f"{self._clause(here)}，{self._clause(after)}。"
                made.append(TemplateSentence(text, tuple(sorted({*here.triples, *after.triples}))))
                index += 2
            else:
                made.append(TemplateSentence(f"{self._clause(here)}。", here.triples))
                index += 1
        return made

    def within(self, where: str, facts: Sequence[tuple[str, Sequence[str]]]) -> str:
        """`甲的婚姻中，配偶是乙，开始时间是1999。`"""
        return f"在{where}中，{self._stated(facts)}。"

    def together(self, facts: Sequence[tuple[str, Sequence[str]]]) -> str:
        """What hangs on a node that nothing named leads to."""
        return f"在同一条记录中，{self._stated(facts)}。"

    def _stated(self, facts: Sequence[tuple[str, Sequence[str]]]) -> str:
        return "，".join(f"{words(relation)}{self._is(names)}{_listed_chinese(names)}" for relation, names in facts)

    def part_of(self, relation: str, text: str) -> str:
        """`甲的婚姻`."""
        return f"{text}的{words(relation)}"

    def bare(self, triple: Named) -> str:
        """A triple of a nameless node that nothing else mentions."""
        head, relation, tail = triple
        if is_cvt(head) and is_cvt(tail):
            return f"有一条关于{words(relation)}的记录。"
        return f"有一条关于{tail if is_cvt(head) else head}的{words(relation)}的记录。"

    def _is(self, names: Sequence[str]) -> str:
        return "是" if len(names) == 1 else "包括"

    def _clause(self, group: _Group) -> str:
        heads, tails = _listed_chinese(group.heads), _listed_chinese(group.tails)
        noun = words(group.relation)
        wording = self.choice // 2 % 3
        if wording == 2:
            return f"{tails}是{heads}的{noun}"
        is_ = ("是" if wording == 0 else "为") if len(group.tails) == 1 else ("有" if wording == 0 else "包括")
        return f"{heads}的{noun}{is_}{tails}"


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _listed_chinese(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{'、'.join(names[:-1])}和{names[-1]}"
