"""What the words of a question demand of a form: to take something away, to find a number, a date, a person.

A form that does not meet a demand is no candidate, whatever its score.  Only what is certain counts: the kind of an
answer is judged by the types and datatypes that the graph states.  Words are English; others demand nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from kgqa_core.linking.english import singulars
from kgqa_core.linking.words import english_words
from kgqa_core.logic.forms import Aggregate, Arg, Compare, Count, Form, Greater, Minus, Nth, Qualifier
from kgqa_core.search.candidates import OR, Candidate, LabelQuery, inside, is_false, nodes_of, slots_of
from kgqa_core.search.graph import LONGEST_TEXT, LONGEST_TYPE, LabelGraph
from kgqa_core.search.phrases import Phrases
from kgqa_core.search.question_words import individuals, is_person, is_superlative, question_words

NUMBERED = "n|two|three|four|five|six|seven|eight|nine|ten|twenty|fifty|hundred"
"""Numbers as a query has them: masked, or in letters where a label of the graph has them so."""
_POSSESSED = frozenset("have has had any a an".split())
_DOER = re.compile(r"(?:er|or|ist|ian|ant|ent|ee|man|woman)$")
"""Endings of nouns for persons."""
_NUMBERED = re.compile(r"\d")
LOOKED_AT = 8
"""Things of an answer whose kinds are looked at."""
LAST_YEAR = 3000
"""Numbers below it may be years."""


@dataclass(frozen=True, slots=True)
class Cues:
    """What a question demands.

    negations: words that take something away, with their places in the text.  bound: such a word negates a comparison,
    as in `no more than 5`.  kind: what an answer must be, one of `number`, `time`, `person`, `place`, `part`, `reason`
    and `which` (no truth value), "" for any; words: those that tell.  wh: it asks by a question word and not for yes or
    no.
    several: the word for how many of a ranking it asks for, where it is not one.  judges: it asks for yes or no alone;
    truth: it may ask for that.  counts: it may ask how many there are; not where *what number* is a name.  timed: all
    its words of rankings are of time, such as *first*.
    """

    negations: tuple[tuple[int, str], ...] = ()
    bound: bool = False
    kind: str = ""
    words: str = ""
    wh: bool = False
    several: str = ""
    judges: bool = False
    truth: bool = True
    counts: bool = True
    timed: bool = False


_CONTRACTED = r"(?:is|are|was|were|do|does|did|has|have|had|ca|could|would|wo|should)"
_NOT = re.compile(rf"\b({_CONTRACTED})n['’]?t\b")
_TAG = re.compile(rf"(?:,|\?)?\s*{_CONTRACTED}(?:n['’]?t| not) (?:it|they|he|she|there|that|you|we)\s*\??\s*$", re.I)
_FIRST = re.compile(rf"^\W*(?:(?:and|so|but|hey|hi|ok|well) )*{_CONTRACTED}n['’]?t\b", re.I)
_BOUND = re.compile(
    r"\b(?:no|not|never) (?:more|less|fewer|later|earlier|older|younger|larger|smaller|higher|lower|"
    r"before|after|until|above|below|over|under|exceeding)\b"
)
_BUT = re.compile(r"\b(?:all|every\w*|any\w*|none|nothing|nobody) but\b|\bbut (?=(?:the |a |an )?[xyzw]\b)")
_NUMBER_SIGN = re.compile(r"\bno\.? (?=n\b|\d|of\b)|^no[,.!] ")
_NON = re.compile(r"\bnon[- ](?=\w)")
_ASKS = (
    r"(?:^\W*|[,.:;!?-] *|\b(?:me|us|you|know|wonder|wondering|out|ask|asking|say|guess|hey|hi|hello|ok|so|and|but|"
    r"well|then|now|please|pls|question|idea|sure|curious|remember|from|since|until) )"
)
"""What stands before a question word that asks; behind a noun it begins a relative clause."""
_AMOUNT = re.compile(
    r"\b(?P<number>how (?:many|much|long|tall|high|big|large|wide|deep|heavy|fast|far)|"
    r"what (?:number(?= of)|percentage))\b"
    r"|\b(?P<time>(?:what|which) (?:year|date|day|month|century))\b"
)
_WH = re.compile(
    r"\b(?:in|on|at|to|by|for|with|of|under) (?:(?P<in_which>which)|(?P<in_other>what|whose))\b"
    rf"|{_ASKS}(?:(?P<when>when)|(?P<person>who|whom)|(?P<place>where)|(?P<which>which)|"
    r"(?P<reason>why|how(?= (?:do|does|did|to|can|could|should|is|are|was|were|come)\b(?!.* (?:called|named)\b)))|"
    r"(?P<other>what|whose|how))"
    r"(?:['’]?s)?\b"
    r"|\b(?:(?P<last_when>when)|(?P<last_person>who|whom)|(?P<last_place>where)|(?P<last_other>what|which))\W*$"
)
_MAY_JUDGE = re.compile(r"\?\W*$|\b(?:if|that|whether|true|false|verify|confirm|check)\b")
_TIMED = frozenset("first last latest earliest oldest newest youngest".split())
_NUMBER_NAME = re.compile(r"\bwhat(?: is|['’]?s)?(?: the)? number\b(?! of)")
_COUNTED = re.compile(r"\b(?:how many|count|total|numbers? of)\b")
_QUANTITY = re.compile(r"how (?:much|long|tall|high|wide|deep|heavy|fast|far)\b")
"""What asks for a measure, and not for how many there are."""
_CONTENTS = re.compile(
    r"\bwhat(?: (?:is|are|was|were|goes|went)|['’]?s) (?:in|inside|into) (?:the |a |an |my |our )?[xyzw]\b"
    r"|\bwhat(?: (?:is|are|was|were)|['’]?s) (?:the |a |an )?[xyzw] about\b"
)
"""What asks for the parts or the subject of a thing, and for no number of it."""
ASKS_FOR_THING = re.compile(
    r"\W*(?:(?:who|what)(?:['’]?s| is| are| was| were)?|(?:please |can you )*(?:describe|info(?:rmation)? (?:on|about)|"
    r"tell (?:me|us)(?: something| more| all)? about))(?: an?| the)? [xyzw]\W*$"
)
"""What asks what a thing is, and nothing else of it."""
_SLOT = re.compile(r"\b[xyzw]\b")
_SEVERAL = re.compile(
    rf"(?<!\bat )\b(?:top|first|last|best|worst|most|least|\w{{3,}}est) (?P<a>{NUMBERED})\b"
    rf"|\b(?P<b>{NUMBERED}) (?:most|least|best|worst|top|\w{{3,}}est|\w{{3,}}most)\b"
)


@lru_cache(maxsize=1 << 12)
def cues_of(text: str, yes_no: bool) -> Cues:
    """The cues of a text with slots for its mentions and `n` for its numbers.  yes_no: whether it asks for that."""
    low = " ".join(text.lower().split())
    match = _AMOUNT.search(low) or _WH.search(low)
    kind = str(match.lastgroup).rpartition("_")[2] if match is not None and not yes_no else ""
    kind = {"other": "", "when": "time"}.get(kind, kind) or ("part" if _CONTENTS.search(low) else "")
    kind = "" if ASKS_FOR_THING.match(low) else kind  # somebody may be an engineer
    several = next((one["a"] or one["b"] for one in _SEVERAL.finditer(low) if _is_rank(one[0])), "")
    asks = match is not None and not yes_no
    words = match[0].strip() if match is not None else ""
    judges = yes_no and match is None and not OR.search(low.replace("or not", ""))
    truth = yes_no or not low.isascii() or _MAY_JUDGE.search(low) is not None
    counts = _NUMBER_NAME.search(low) is None or _COUNTED.search(low) is not None
    ranks = {word for word in low.replace("most recent", "latest").split() if is_superlative(word)}
    timed = bool(ranks) and ranks <= _TIMED
    return Cues(_negations(low), bool(_BOUND.search(low)), kind, words, asks, several, judges, truth, counts, timed)


def _is_rank(text: str) -> bool:
    return not question_words()["not_est"].intersection(text.split())


def _negations(low: str) -> tuple[tuple[int, str], ...]:
    low = _TAG.sub("", low)
    low = _FIRST.sub(lambda found: " " * len(found[0]), low)
    plain = _NOT.sub(r"\1 not", low)
    blank = re.compile(rf"\b(?:{'|'.join(sorted(question_words()['no_negations'], key=len, reverse=True))})\b")
    plain = blank.sub(lambda found: " " * len(found[0]), plain)
    plain = _NUMBER_SIGN.sub(lambda found: " " * len(found[0]), plain)
    words = "|".join(sorted(question_words()["negations"], key=len, reverse=True))
    found = [(one.start(), one[0]) for one in re.finditer(rf"\b(?:{words})\b", plain)]
    found += [(one.start(), "but") for one in _BUT.finditer(plain)]
    found += [(one.start(), "non") for one in _NON.finditer(plain)]
    return tuple(sorted(found))


def meets(candidate: Candidate, cues: Cues, query: LabelQuery, phrases: Phrases) -> bool:
    """Whether a candidate may answer a question with these cues.  phrases: of the graph."""
    graph = phrases.graph
    if isinstance(candidate.form, Count) and (not cues.counts or _QUANTITY.match(cues.words)):
        return False
    if cues.timed and any(isinstance(node, (Arg, Nth)) and node.counted for node in nodes_of(candidate.form)):
        return False
    if isinstance(candidate.value, bool):
        if cues.wh or not cues.truth:
            return False
    elif (
        cues.judges
        or cues.several
        and (
            any(isinstance(n, (Arg, Greater)) or isinstance(n, Nth) and not n.first for n in nodes_of(candidate.form))
            or (candidate.nodes is not None and len(candidate.nodes) == 1 and not _takes_first(candidate.form))
        )
    ):
        return False
    if (
        cues.kind == "which"
        and isinstance(candidate.form, Aggregate)
        and not candidate.form.pick
        and _wants_thing(query.text, graph)
    ):
        return False
    some = candidate.nodes[:LOOKED_AT] if candidate.nodes is not None else graph.memory.head[:0]
    if cues.wh and len(some) and graph.truths.keys() >= set(some.tolist()):
        return False  # one asks which, and not whether
    where = cues.kind == "place" and cues.words.startswith("where") and len(some) > 0
    if where and any(inside(some, graph.members(index)) for index, _ in query.types):
        return False  # one asks where these are
    certain = all(graph.memory.is_certain(node) for node in nodes_of(candidate.form) if isinstance(node, Greater))
    return certain and _negated_alike(candidate.form, cues, query) and _of_kind(candidate, cues.kind, phrases)


def _wants_thing(text: str, graph: LabelGraph) -> bool:
    """Whether a type follows *which*: an answer is one of its things, and no value of theirs."""
    behind = text.lower().partition("which ")[2].split()[:LONGEST_TYPE]
    spans = (" ".join(behind[: n + 1]) for n in range(len(behind)))
    return any(form in graph.types_by_words for span in spans for form in singulars(span))


def _takes_first(form: Form) -> bool:
    return any(isinstance(node, Nth) and node.first for node in nodes_of(form))


def _negated_alike(form: Form, cues: Cues, query: LabelQuery) -> bool:
    """Whether a form takes something away where the question does, and what it names behind the word for that."""
    nodes = nodes_of(form)
    away = [node for node in nodes if isinstance(node, Minus)]
    if not cues.negations:
        return not away
    if cues.bound and any(isinstance(node, Compare) for node in nodes):
        return True
    if not away:
        return any(map(is_false, nodes))
    out = {number for node in away for number in slots_of(node.without, query)}
    words = [word for _, word in cues.negations]
    first = cues.negations[0][0]
    order = [slot.word for slot in query.slots]
    indices = [(one.start(), order.index(one[0])) for one in _SLOT.finditer(query.text) if one[0] in order]
    behind = [number for index, number in indices if index > first]
    before = [number for index, number in indices if index < first]
    if "neither" in words or "nor" in words:
        return set(behind) <= out
    if behind and not before and not out and words[0] == "not" and _of_verb(query.text, first, indices[0][0]):
        return False
    return not out or not behind or behind[0] in out or bool(before and before[-1] in out)


def _of_verb(text: str, first: int, slot: int) -> bool:
    """Whether *not* is that of a verb whose object is a slot, as in `don't use x`; not `do not have an office in x`."""
    between = text[first:slot].lower().split()[1:]
    return len(between) <= 3 and _POSSESSED.isdisjoint(between)


def _does(label: str) -> bool:
    """Whether a type is of persons, or called by a noun for what does something that English does not have."""
    last = label.rpartition(" ")[2]
    return is_person(label) or (last not in english_words() and _DOER.search(last) is not None)


def _of_kind(candidate: Candidate, kind: str, phrases: Phrases) -> bool:
    """Whether what a candidate finds may be of a kind, by the graph's types and datatypes; by what its phrase calls it
    where things without types may be persons.
    """
    graph = phrases.graph
    if isinstance(candidate.value, bool):
        return True
    if candidate.nodes is not None and len(candidate.nodes) and graph.truths.keys() >= {*candidate.nodes[:2].tolist()}:
        return False  # true and false are what yes or no is asked for
    if not kind:
        return True
    if candidate.nodes is None:
        return kind in ("number", "which")
    memory, form, nodes = graph.memory, candidate.form, candidate.nodes[:LOOKED_AT]
    while not len(nodes) and isinstance(form, (Arg, Minus, Nth)):  # what it takes from
        form = form.of
        nodes = memory.nodes(form)[:LOOKED_AT]
    if not len(nodes):
        return True
    dims = memory.dim[nodes]
    if (dims >= 0).all():
        timed = bool(memory.is_date(nodes).all())
        if kind == "time":
            x = memory.x[nodes]
            return timed or bool(((x > 0) & (x < LAST_YEAR) & (x == x.round())).all())
        return kind == "which" or (kind == "number" and not timed)
    lists, typed = question_words(), graph.typed(nodes)
    if memory.literal[nodes].any():
        long = max(map(len, graph.store.names(nodes.tolist()).values())) > LONGEST_TEXT
        return kind != "person" or not (long or lists["no_person"] & {*phrases.answer(candidate.form).split()})
    if kind in ("time", "number") and not typed.any():
        return any(map(str.isdigit, "".join(graph.store.names(nodes.tolist()).values())))
    if kind in ("person", "place") and graph.value_nodes.issuperset(nodes.tolist()):
        return False  # no names of their own
    stated = isinstance(candidate.form, Qualifier)
    if (
        kind == "person"
        and not (stated or typed.any())
        and all(map(_NUMBERED.search, graph.store.names(nodes.tolist()).values()))
    ):
        return False
    if not typed.all() and (typed.any() or kind != "person"):
        return True
    types_found = {graph.type_labels[index] for node in nodes.tolist() for index in graph.types_of(node)}
    types = types_found or {phrases.answer(candidate.form)}
    named = {word for label in types for word in (label, *label.split())}
    match kind:
        case "number":
            return False
        case "which" | "reason" | "part":
            return True
        case "time":
            return not named.isdisjoint(lists["times"])
        case "person":
            plain = named.isdisjoint(lists["no_person"]) and not (individuals(graph) and types_found)
            return plain or not named.isdisjoint(lists["persons"]) or any(map(_does, types))
    return named.isdisjoint(lists["no_place"])
