"""How English says a relation from either end: by the shape of its label, and by the thesaurus where that has it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from kgqa_core.builders.questions.noun import conjugated
from kgqa_core.datasets.derived.thesaurus import RelationEntry, thesaurus
from kgqa_core.rewriting.phrases import is_plural, phrase, plural
from kgqa_core.search.schema_profile import GraphProfile, RelationProfile

PERSONS = frozenset(
    "person human people man woman actor actress director writer author singer musician politician scientist player "
    "athlete artist painter poet composer producer employee student teacher founder parent child spouse".split()
)
"""Types whose members are somebody: `who` instead of `what`."""

PLACES = frozenset(
    "place city town village country state region continent location municipality district county province island "
    "building venue stadium airport".split()
)

_AUXILIARY = re.compile(r"(is|was) (\S+(?: \S+)*)")
_VERBAL = re.compile(r"(\w*[^\Wsui]s)((?: \w+)? (?:on|to|in|with|from|at|into|through))")
"""A verb of one with its preposition: `depends on`, `stores data in`."""
_NO_AGENT = re.compile(r"(caus|affect|follow|preced|replac|succeed|power|trigger|driv|us|surround|border)\w* by")
"""What is done by a thing rather than by somebody."""
_COUNTED = re.compile(r"(.+) (minutes|seconds|hours|days|weeks|months|years|metres|meters|km|kg|percent)")
_UNCHANGED = frozenset("series species headquarters news politics physics mathematics economics sports".split())


@dataclass(frozen=True, slots=True)
class RelationWordings:
    """Words for one relation; `head HAS it TO tail`.

    nouns: the tail is the noun of the head, in one.  link: what stands between that noun and the head.  passive: pairs
    of auxiliary and participle, head first.  active: verbs, tail first.  verbs: (one, several), head first.
    head, tail: what things at either end are called, "" where nothing is known.  wh: who, when, where, how many or
    what.
    """

    nouns: tuple[str, ...]
    link: str
    passive: tuple[tuple[str, str], ...]
    active: tuple[str, ...]
    verbs: tuple[tuple[str, str], ...]
    head: str
    tail: str
    wh: str
    entry: RelationEntry


def relation_words(relation: RelationProfile, profile: GraphProfile) -> RelationWordings:
    """The words for a relation of a graph, those of its own label first."""
    entry = thesaurus().relation(relation.label) or RelationEntry()
    nouns: dict[str, None] = {}
    passive: dict[tuple[str, str], None] = {}
    verbs: dict[tuple[str, str], None] = {}
    active: dict[str, None] = {}
    parts, link = phrase(relation.label), " of "
    head, tail = _end(relation, profile, "domain", entry.head), _end(relation, profile, "range", entry.tail)
    pair = re.fullmatch(r"(\w+) to (\w+)", relation.label)
    if pair:
        nouns[pair[2]] = None
        head, tail = head or pair[1], tail or pair[2]
    elif _VERBAL.fullmatch(relation.label):
        verbs[relation.label, conjugated(relation.label, True)] = None
    elif relation.entities and re.fullmatch(r"\w+[^e]ed", relation.label):  # affected
        verbs[relation.label, relation.label] = None
    elif relation.dimensions and not relation.dated and not parts.is_verb:
        nouns[_COUNTED.sub(r"\1 in \2", relation.label)] = None
    elif parts.is_verb:
        passive_words = _AUXILIARY.fullmatch(parts.one)
        if passive_words and not re.match(r"(an?|the) ", passive_words[2]):
            state = "is" if passive_words[1] == "is" else _auxiliary(passive_words[2])
            passive[state, passive_words[2]] = None
        else:
            verbs[parts.one, parts.many] = None
        if parts.active:
            active[parts.active] = None
    else:
        whole = singular(f"{parts.noun}{parts.rest}")
        nouns.update(dict.fromkeys((singular(parts.noun), whole) if entry.labels else (whole,)))
        link = parts.link
    nouns.update(dict.fromkeys(entry.nouns))
    passive.update(dict.fromkeys((_auxiliary(text), text) for text in entry.passive))
    active.update(dict.fromkeys(entry.active))
    verbs.update(dict.fromkeys(entry.verb))
    if not nouns and not tail and not verbs and not passive:
        nouns[relation.label] = None
    wh = entry.wh or ("when" if relation.dated else "")
    if not wh:
        agent = not tail and any(part.endswith(" by") and not _NO_AGENT.match(part) for _, part in passive)
        place = re.match(r"(place|location) ", relation.label)
        wh = "who" if agent or is_person(tail) else "where" if place else "what"
    return RelationWordings(tuple(nouns), link, tuple(passive), tuple(active), tuple(verbs), head, tail, wh, entry)


def is_person(noun: str) -> bool:
    """Whether a type's label is that of somebody."""
    return bool(PERSONS & set(noun.casefold().split()))


def singular(noun: str) -> str:
    """A noun phrase in one, where its label has it in several.

    >>> singular("starred actors"), singular("countries"), singular("cast"), singular("series")
    ('starred actor', 'country', 'cast', 'series')
    """
    words = noun.split()
    last = words[-1]
    if last in _UNCHANGED or not is_plural(last) or not last.endswith("s") or plural(last[:-1]) == plural(last) + "es":
        return noun
    for one in ((last[:-3] + "y") if last.endswith("ies") else "", last[:-2], last[:-1]):
        if one and len(one) > 2 and plural(one) == last:
            return " ".join([*words[:-1], one])
    return noun


def _end(relation: RelationProfile, profile: GraphProfile, end: str, usual: str) -> str:
    key = getattr(relation, end)
    label = profile.types[key].label if key in profile.types else ""
    if label.casefold() == "human":
        label = "person"
    sure = getattr(relation, f"{end}_sure")
    return label if sure and label else usual or label


def _auxiliary(participle: str) -> str:
    states = ("located", "situated", "based", "set", "found", "made of", "made from", "named", "used", "connected",
              "headquartered", "described", "tagged", "buried", "owned", "operated", "written in", "assigned",
              "employed", "led", "run", "managed", "supervised", "caused", "treated", "coached")  # fmt: skip
    return "is" if participle.startswith(states) else "was"
