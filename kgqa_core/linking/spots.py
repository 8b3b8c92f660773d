"""Where names occur in a text, how likely each is meant as a name, and which of those that overlap is preferred.

Link probability: TAGME counts how often a phrase is a hyperlink where it occurs.  A graph has no hyperlinks, so the
probability is a logistic function of features of the name and of how it is written.  The weights were fitted on
training texts of six data sets, see docs/linking.md.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field

from kgqa_core.linking.english import singulars
from kgqa_core.linking.fold import Folded, fold_text, is_unspaced
from kgqa_core.linking.mentions import (
    ACRONYM,
    ALIAS,
    CASED,
    FUNCTION,
    LABEL,
    NAMED_TYPE,
    NUMBER,
    PARTIAL,
    RELATION,
    RELATION_WORDS,
    MentionDictionary,
)
from kgqa_core.linking.mentions import PART as PARTS
from kgqa_core.linking.other_forms import ABBREVIATION, ADJECTIVE, OtherForm, adjective, other_forms
from kgqa_core.linking.typos import is_unknown, near_adjectives, near_names
from kgqa_core.linking.words import FUNCTION_WORDS, usualness

WEIGHTS: dict[str, float] = {
    "bias": 1.19,
    "words": 1.16,
    "signs": 0.22,
    "short": -2.35,
    "function": -1.26,
    "relation": -2.51,
    "relation_words": -1.64,
    "number": -2.58,
    "type": -0.66,
    "plain": -2.04,
    "capital": -0.4,
    "initial": -1.79,
    "small": -2.3,
    "flat": 0.05,
    "alias": -0.06,
    "part": -1.84,
    "usual": -3.42,
    "usual_capital": -1.52,
    "usual_inside": -1.5,
    "within": -0.68,
    "value": -0.5,
    "degree": 0.6,
    "exact": 0.7,
    "ambiguous": -0.03,
}
"""Weights of the logits of `features`.

usual_inside and value are held by hand nearer to 0 than the fit has them (-6.17, -1.26): it learnt them from what its
data sets leave unannotated, and in a small graph they would hide a country by its usual name.
"""
SCALE = 100_000
"""Names of a graph above which `within` is counted in proportion."""
_VALUES = tuple(WEIGHTS.values())


@dataclass(frozen=True, slots=True)
class Writing:
    """How a text uses capitals.  cased: some word but the first begins with one and some word does not."""

    cased: bool

    @classmethod
    def of(cls, text: str) -> Writing:
        """That of a text."""
        words = text.split()
        return cls(any(word[:1].isupper() for word in words[1:]) and any(word[:1].islower() for word in words))


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A name at a place of a text.

    surface: the text of the mention; at: its place.  atoms: words and characters of unspaced scripts.
    """

    surface: str
    at: int
    atoms: int
    name: int


def link_probability(values: list[float], more: float = 0.0) -> float:
    """In [0, 1], of the values that `features` gives; more: added to the logit."""
    return 1 / (1 + math.exp(-more - sum(weight * value for weight, value in zip(_VALUES, values, strict=True))))


def features(
    occurrence: Occurrence, writing: Writing, mentions: MentionDictionary, *, typo: bool = False
) -> list[float]:
    """What the link probability is made of, in the order of WEIGHTS.

    words: each word after the first, three at most; signs: the same of an unspaced script. short: one or two letters,
    or one sign. plain: the graph writes the name without capital. capital: written with one inside a sentence where
    other words are not; initial: the same where the sentence begins, but for an unknown word that is a part of names;
    small: without, where the graph has one; flat: the same in a text without capitals. alias, part: only an alias, only
    a part of a name. usual: how usual its words are, 1 the most, where it is written small; usual_capital,
    usual_inside: the same where it is not, at the beginning and later. within: logarithm of how many other names it
    occurs in. value: nothing but the value of others' relations. degree: logarithm of that of its most common entity.
    exact: written as the label of that. ambiguous: logarithm of the number of entities.
    typo: the name is written with typing errors, which make an unusual word of a usual one.
    """
    number = occurrence.name
    start, stop = int(mentions.rows[number]), int(mentions.rows[number + 1])
    name, entity = int(mentions.flags[number]), int(mentions.entity_flags[start])
    partial = name & PARTIAL > 0
    whole = stop - start if partial else mentions.whole_candidates(number)
    for index in range(start + 1, start + min(whole, 5)):
        entity |= int(mentions.entity_flags[index])
    first = int(mentions.entities[start])
    surface = occurrence.surface
    unspaced = sum(map(is_unspaced, surface))
    capital = any(word[0].isupper() or word[0].isdigit() for word in surface.split())
    small = not capital and not unspaced and entity & CASED > 0
    forward = mentions.is_head(first)
    degree = int(mentions.near_rows[first + 1]) - int(mentions.near_rows[first])
    usual = 0.0 if typo else int(mentions.usual[number]) / 255
    return [
        1.0,
        float(min(max(occurrence.atoms - unspaced - 1, 0), 3)),
        float(min(max(unspaced - 2, 0), 3)),
        float(occurrence.atoms < 2 if unspaced else len(surface) < 3),
        float(name & FUNCTION > 0),
        float(name & RELATION > 0),
        float(name & RELATION_WORDS > 0 and not name & (RELATION | FUNCTION)),
        float(name & NUMBER > 0),
        float(name & NAMED_TYPE > 0),
        float(not entity & CASED),
        float(writing.cased and capital and occurrence.at > 0),
        float(writing.cased and capital and occurrence.at == 0 and not (partial and usual == 0)),
        float(writing.cased and small),
        float(not writing.cased and small),
        float(not entity & LABEL and entity & ALIAS > 0),
        float(not entity & (LABEL | ALIAS)),
        0.0 if capital else usual,
        usual if capital and occurrence.at == 0 else 0.0,
        usual if capital and occurrence.at > 0 else 0.0,
        0.0 if partial else math.log1p(int(mentions.within[number]) * min(1.0, SCALE / mentions.n_whole)),
        float(not forward),
        math.log10(max(degree, 1)),
        float(surface == mentions.labels[first]),
        math.log(whole),
    ]


LEAST = 0.25
"""Link probability below which a stretch of text is no mention: it neither votes nor is voted for."""
CLEARLY = 0.3
"""Difference of link probability by which a longer mention displaces one to its left."""
FIRST, ALIAS_WEIGHT, PART_WEIGHT = 0.1, 0.5, 0.1
"""What a wrong first letter leaves of the weight of a mistyped name; weights of aliases and parts."""
PLACES, IN_RELATION, GRAMMAR, STATED = 0.8, 2.0, 0.09, 0.5
"""What the logit of a name gains by being that of a place to which relations lead; the same of one that labels of
relations have, as `place of origin (Switzerland)`; the link probability at most of words of grammar that are not
written with a capital inside a sentence, and at least of any word that is, as the label of an entity is."""
LESS, INITIALS = 0.5, 0.6
"""What is left of the less likely reading, where a word is typed wrongly for an adjective or for a name, or where
a part of a name stands beside another word of a name; and of initials."""
INFLECTED = 0.9
"""What a singular for a plural, or the other way round, leaves of the link probability."""
ERROR, USUAL = 0.8, 0.6
"""What a typing error leaves of the link probability, and a usual word that is taken for one."""
SHARE = 0.5
"""Share of a part's popularity from which on its entity is clearly the best known."""
NAME, PLURAL, PART, TYPO = "name", "plural", "part", "typo"
"""How a text names an entity beside ADJECTIVE and ABBREVIATION: by a whole name; by its plural or singular; by a
surname or another part of its name; with typing errors."""
WORDS = 4
"""Words of a name at most whose plural or singular is looked for."""
COMMON = 45
"""Usualness from which on a word is no part of a name by itself."""
_TIERS = {NAME: 0, PLURAL: 1, ADJECTIVE: 1, ABBREVIATION: 1, PART: 2, TYPO: 3}
_NOT_PARTS = FUNCTION | RELATION | RELATION_WORDS | NUMBER | NAMED_TYPE
"""Flags of names that are no parts of others."""


@dataclass(slots=True, eq=False)
class SpottedName:
    """A name in a text.

    start, end: place in the text of its turn.  turn: 0 for the text itself, 1 for the one before it.  name: its number.
    probability: that it is meant as a name.  candidates: (entity, commonness), the most common first.  errors: typing
    errors.  kind: NAME, ADJECTIVE, ….  tier: those of a lower one are chosen first.  chosen: it is likely enough, and
    longer than what it overlaps.
    """

    start: int
    end: int
    turn: int
    name: int
    probability: float
    candidates: list[tuple[int, float]] = field(default_factory=list)
    errors: int = 0
    kind: str = NAME
    tier: int = 0
    chosen: bool = False


def find_spots(text: str, turn: int, mentions: MentionDictionary, most: int, typos: int) -> list[SpottedName]:
    """Every name in a text in order of its place, overlapping ones too.

    most: candidates of each.  typos: errors allowed in a name where no name was found without.
    """
    folded, writing = fold_text(text), Writing.of(text)
    reader = _Reader(text, turn, mentions, most, folded, writing)
    rows = mentions.names.spots(folded)
    spots = [spot for first, last, name in rows if (spot := reader.exact(first, last, name)) is not None]
    by_span = {(spot.start, spot.end): spot for spot in spots if spot.kind == NAME}
    plurals = [reader.plural(first, last) for first, last in _stretches(folded)]
    spots += [spot for spot in plurals if spot is not None and (spot.start, spot.end) not in by_span]
    for form in other_forms(text, folded, mentions):
        spot = reader.other(form)
        same = by_span.get((spot.start, spot.end))
        if same is not None:
            if form.kind == ABBREVIATION and not form.preferred:
                continue
            if form.preferred:
                same.tier, spot.tier = spot.tier, same.tier
            else:
                same.probability = max(same.probability, spot.probability)
        spots.append(spot)
    spots.sort(key=_order)
    choose(spots)
    if reader.doubt_parts(spots):
        choose(spots)
    for usual in (False, True):
        if not typos or (usual and any(spot.chosen for spot in spots)):
            break
        chosen = [(spot.start, spot.end) for spot in spots if spot.chosen and spot.kind == NAME]
        near: dict[tuple[int, int], list[tuple[int, int]]] = {}
        for first, last, name, errors in near_names(folded, chosen, mentions, typos, usual=usual):
            near.setdefault((first, last), []).append((name, errors))
        wrong = {span: reader.typed_wrongly(*span, names, usual) for span, names in near.items()}
        if not usual:
            spots += reader.adjectives_typed_wrongly(near_adjectives(folded, chosen, mentions, typos), wrong)
        spots += wrong.values()
        spots.sort(key=_order)
        choose(spots)
    return spots


def _stretches(folded: Folded) -> list[tuple[int, int]]:
    """(first, last) atom of stretches that may be the singular or plural of a name."""
    atoms = folded.atoms()
    content = [atom not in FUNCTION_WORDS and len(atom) > 2 for atom in atoms]
    return [
        (first, last)
        for first in range(len(atoms))
        for last in range(first, min(first + WORDS, len(atoms)))
        if content[first]
        and content[last]
        and (last > first or atoms[last].endswith("s") or not usualness(atoms[last]))
    ]


def choose(spots: list[SpottedName]) -> None:
    """Marks as chosen, from the left, the longest spot that begins where the last chosen one has ended.

    One that begins later and overlaps takes its place when it is longer and more likely by CLEARLY.  Names of a higher
    tier are chosen after those of a lower one, and those with typing errors only where they touch no other, or hold it.
    """
    apart: list[SpottedName] = []  # they lie apart, from the left
    likely = [spot for spot in spots if spot.probability >= LEAST]
    for spot in sorted(likely, key=_preference):
        low = bisect_right(apart, spot.start, key=lambda other: other.end)
        high = bisect_left(apart, spot.end, key=lambda other: other.start)
        touched = apart[low:high]
        longer = all(spot.end - spot.start > other.end - other.start for other in touched)
        likelier = all(spot.probability > other.probability + CLEARLY for other in touched)
        if touched and spot.errors:
            likelier = all(_holds(spot, other) for other in touched)
        if touched and not (longer and likelier):
            continue
        apart[low:high] = [spot]
    chosen = set(apart)
    for spot in spots:
        spot.chosen = spot in chosen


def _holds(spot: SpottedName, other: SpottedName) -> bool:
    return spot.start <= other.start and other.end <= spot.end


def _order(spot: SpottedName) -> tuple[int, int, int, int, int]:
    return spot.start, spot.end, spot.tier, spot.errors, spot.name


def _preference(spot: SpottedName) -> tuple[int, int, int, int, int, float, int]:
    long = spot.start - spot.end if spot.errors else 0
    return spot.tier, long, spot.errors, spot.start, -spot.end, -spot.probability, spot.name


@dataclass(frozen=True, slots=True)
class _Reader:
    """Makes the spots of one text."""

    text: str
    turn: int
    mentions: MentionDictionary
    most: int
    folded: Folded
    writing: Writing

    def exact(self, first: int, last: int, name: int) -> SpottedName | None:
        """That of a name as it is written; None where it is a part of names that means nobody."""
        spot = self._spot(first, last, name)
        flags = int(self.mentions.flags[name])
        if flags & PARTIAL:
            start = int(self.mentions.rows[name])
            if flags & _NOT_PARTS:
                return None
            if int(self.mentions.entity_flags[start]) & ACRONYM:
                surface = self.text[spot.start : spot.end]
                if not (surface.isupper() and self.writing.cased) and self.mentions.usual[name]:
                    return None
                spot.probability *= INITIALS
            elif first == last and max(map(usualness, singulars(self.folded.slice(first, last)))) >= COMMON:
                return None
            spot.kind, spot.tier = PART, _TIERS[PART]
            spot.probability *= min(1.0, spot.candidates[0][1] / SHARE)
        return spot

    def doubt_parts(self, spots: Sequence[SpottedName]) -> bool:
        """Makes chosen parts of names less likely beside another word of a name, as in `Elaine Zorn`; whether any is.

        That is a word with a capital, or in a text without capitals an unknown one, in no chosen name and not parted
        from them by a sign.
        """
        changed = False
        folded, covered = self.folded, [(spot.start, spot.end) for spot in spots if spot.chosen]
        atoms = folded.atoms()
        for spot in spots:
            if not spot.chosen or spot.kind != PART:
                continue
            for at in range(len(atoms)):
                start, end = int(folded.first[at]), int(folded.last[at])
                gap = self.text[end : spot.start] if end <= spot.start else self.text[spot.end : start]
                beside = (end <= spot.start or start >= spot.end) and gap.isspace() and len(gap) == 1
                if not beside or any(a < end and start < b for a, b in covered) or atoms[at] in FUNCTION_WORDS:
                    continue
                if self.text[start].isupper() and start if self.writing.cased else is_unknown(atoms[at], self.mentions):
                    spot.probability *= LESS
                    changed = True
                    break
        return changed

    def plural(self, first: int, last: int) -> SpottedName | None:
        """That of words whose singular or plural is a name; None where neither is, and of usual English words."""
        words, mentions = self.folded.slice(first, last), self.mentions
        forms = singulars(words)[1:]
        if not words.endswith("s"):
            forms = (*forms, words + "s")
        for form in forms:
            number = mentions.names.find(form)
            if number < 0 or mentions.flags[number] & _NOT_PARTS:
                continue
            at = int(mentions.rows[number])
            cased = int(mentions.entity_flags[at]) & CASED
            if first == last and usualness(words) + (int(mentions.usual[number]) if cased else 0) >= COMMON:
                continue
            entity = int(mentions.entities[at])
            if (
                first == last
                and not cased
                and (not words.endswith("s") or not (mentions.is_head(entity) or mentions.types_of(entity)))
            ):
                continue  # the value of a column
            spot = self.exact(first, last, number)
            if spot is not None:
                spot.probability *= INFLECTED
                spot.kind, spot.tier = PLURAL, max(spot.tier, _TIERS[PLURAL])
            return spot
        return None

    def other(self, form: OtherForm) -> SpottedName:
        """That of an adjective or abbreviation."""
        start, end = int(self.folded.first[form.first]), int(self.folded.last[form.last])
        return SpottedName(
            start, end, self.turn, form.name, form.probability, list(form.candidates), 0, form.kind, _TIERS[form.kind]
        )

    def typed_wrongly(self, first: int, last: int, names: Sequence[tuple[int, int]], usual: bool) -> SpottedName:
        """That of names with typing errors, with the candidates of all of them by their popularity.

        names: (name, errors).  usual: they make a usual word of it.
        """
        mentions, weights, best = self.mentions, dict[int, float](), (0.0, names[0][0], names[0][1], 1.0)
        letter = self.folded.data[self.folded.begin[first]]
        for name, errors in names:
            start = int(mentions.rows[name])
            other = 1.0 if mentions.names.blob[int(mentions.names.offsets[name])] == letter else FIRST
            whole = mentions.whole_candidates(name) or self.most
            for index, (entity, share) in enumerate(mentions.candidates(name, self.most)[:whole]):
                degree = int(mentions.near_rows[entity + 1]) - int(mentions.near_rows[entity])
                flags = int(mentions.entity_flags[start + index])
                part = PART_WEIGHT * share if flags & PARTS else 1.0 if flags & LABEL else ALIAS_WEIGHT
                weight = (degree + 1) * other * part
                weights[entity] = max(weights.get(entity, 0.0), weight)
                if weight > best[0]:
                    best = weight, name, errors, min(1.0, share / SHARE) if flags & PARTS else 1.0
        _, name, errors, share = best
        spot = self._spot(first, last, name, typo=True)
        total = sum(weights.values())
        order = sorted(weights.items(), key=lambda item: (-item[1], item[0]))[: self.most]
        spot.candidates = [(entity, weight / total) for entity, weight in order]
        spot.errors, spot.kind, spot.tier = errors, TYPO, _TIERS[TYPO]
        spot.probability *= ERROR**errors * (USUAL if usual else 1.0) * share
        return spot

    def adjectives_typed_wrongly(
        self, near: Sequence[tuple[int, int, str, int]], names: dict[tuple[int, int], SpottedName]
    ) -> list[SpottedName]:
        """Those of (first atom, last atom, adjective, errors).

        names: what the same atoms are typed wrongly for as a name; less likely where the adjective is preferred.
        """
        results, atoms = [], self.folded.atoms()
        for first, last, words, errors in near:
            same = names.get((first, last))
            form = adjective(first, last, words, atoms, self.mentions)
            if form is None or (same is not None and same.errors < errors):
                continue
            spot = self.other(form)
            spot.errors, spot.tier = errors, _TIERS[TYPO]
            spot.probability *= ERROR**errors
            if same is not None and form.preferred:
                same.probability *= LESS
            elif same is not None:
                spot.probability *= LESS
            results.append(spot)
        return results

    def _more(self, name: int, atoms: int) -> float:
        """What speaks for a name beside its features: that places are called so, and no other kind of thing."""
        flags, start = int(self.mentions.flags[name]), int(self.mentions.rows[name])
        if flags & (_NOT_PARTS | PARTIAL) & ~RELATION_WORDS:
            return 0.0
        if not self.mentions.place_flags[self.mentions.entities[start]]:
            return 0.0
        capital = int(self.mentions.entity_flags[start]) & CASED
        return PLACES if not flags & RELATION_WORDS else IN_RELATION if capital else 0.0

    def _label(self, name: int) -> str:
        """The label of the most common entity of a name."""
        return str(self.mentions.labels[int(self.mentions.entities[int(self.mentions.rows[name])])])

    def _spot(self, first: int, last: int, name: int, *, typo: bool = False) -> SpottedName:
        start, end = int(self.folded.first[first]), int(self.folded.last[last])
        occurrence = Occurrence(self.text[start:end], start, last - first + 1, name)
        flags = int(self.mentions.flags[name])
        values = features(occurrence, self.writing, self.mentions, typo=typo)
        probability = link_probability(values, self._more(name, last - first + 1))
        inside = self.writing.cased and occurrence.surface[:1].isupper() and start > 0
        if flags & FUNCTION and not inside:
            probability = min(probability, GRAMMAR)
        elif inside and not flags & (_NOT_PARTS & ~FUNCTION) and occurrence.surface == self._label(name):
            words = self.text.split()  # Go in `which Go services`, in no title with a capital in every word
            if 2 * sum(word[:1].isupper() for word in words) <= len(words):
                probability = max(probability, STATED)
        return SpottedName(start, end, self.turn, name, probability, self.mentions.candidates(name, self.most))
