"""A question as the label parser reads it: slots for mentions, types that it names, values, a place of a ranking."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from kgqa_core.datasets.derived.thesaurus import thesaurus
from kgqa_core.kg.text_numbers import units
from kgqa_core.kg.vocabulary import RDFS, XSD
from kgqa_core.linking.english import singulars, type_words
from kgqa_core.linking.words import FUNCTION_WORDS, english_words, usualness
from kgqa_core.logic.forms import Literal
from kgqa_core.metrics.normalise import is_cjk
from kgqa_core.rewriting.phrases import plural
from kgqa_core.search.candidates import LabelQuery, Slot
from kgqa_core.search.cues import ASKS_FOR_THING
from kgqa_core.search.demands import IN_NAMES
from kgqa_core.search.graph import LONGEST_TYPE, WORD, LabelGraph
from kgqa_core.search.phrases import NUMBER, SLOT, SLOTS, OwnWords
from kgqa_core.search.question_reader import MarkedMention, mark_mentions, ordinal_in
from kgqa_core.search.question_words import PERSONS, adjectives, individuals, is_mutual, question_words
from kgqa_core.types import Question

_SCALES = {
    "hundred": 1e2, "thousand": 1e3, "k": 1e3, "million": 1e6, "mio": 1e6, "mil": 1e6, "m": 1e6, "billion": 1e9,
    "bn": 1e9, "b": 1e9, "trillion": 1e12,
}  # fmt: skip
_NUMBERS = {
    "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10,
    "eleven": 11, "twelve": 12, "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "hundred": 100, "thousand": 1000,
    "million": 1_000_000, "billion": 1_000_000_000,
}  # fmt: skip
_MONTHS = "january february march april may june july august september october november december".split()
_MONTH = rf"(?:{'|'.join(_MONTHS)}|{'|'.join(month[:3] for month in _MONTHS)}|sept)\b\.?"
_VALUE = re.compile(
    rf"\b(?:(?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?: of)? )?(?P<month>{_MONTH}),? (?:of )?(?P<year>[12]\d{{3}})\b"
    rf"|\b(?P<month_first>{_MONTH}) (?P<its_day>\d{{1,2}})(?:st|nd|rd|th)?,? (?P<its_year>[12]\d{{3}})\b"
    r"|\b(?P<iso>[12]\d{3}-[01]\d(?:-[0-3]\d)?)\b"
    r"|(?P<sign>(?<=\s)[-−–])?(?<![\w.])(?P<digits>\d{1,3}(?:[,' ]\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?)\s*"
    rf"(?P<scale>(?:{'|'.join(sorted(_SCALES, key=len, reverse=True))})(?<!\sm))?\b(?!st\b|nd\b|rd\b|th\b)"
    r"(?:\s*(?P<era>(?-i:BCE?|B\.C\.(?:E\.)?|AD|A\.D\.|CE)(?!\w)))?"
    rf"|\b(?P<word>{'|'.join(_NUMBERS)})(?: (?P<word_scale>hundred|thousand|million|billion))?\b",
    re.IGNORECASE,
)
_RANGE_END = re.compile(r"^\s*(?:and|to|or|-|–)\s*\d[\d.,]*(?=\s)")
_COMPARED = re.compile(r"\b(?:than|least|most|exactly|precisely|only|just|over|under) $", re.IGNORECASE)
_NUMBERED = re.compile(r"\b(?P<word>[^\W\d_]+) (?:(?:no\.?|nr\.?|number) )?#?(?P<number>\d+)\b", re.IGNORECASE)
_CODE = re.compile(r"(?<![\w-])(?=[\w-]*\d)[A-Za-z]{1,6}-?\d[\w-]*(?![\w-])")
"""A code with letters, as of an order."""
_INITIALS = re.compile(r"(?<![\w-])[A-Za-z]{2,4}(?![\w-])")
_CONSONANTS = re.compile(r"(?<=.)[aeiou]")
"""What is left out of a word to shorten it."""
_NUMBER_OF = re.compile(
    r"\b(?:(?P<large>largest|highest|greatest|biggest)|smallest|lowest) (?:number|amount|count) of\b", re.IGNORECASE
)
_OUT_OF = re.compile(r"\bout of (\w+)", re.IGNORECASE)
_DECADE = re.compile(r"\b(?:(?:in|during|from|of) )?(?:the )?(1\d|20)(\d)0['’]?s\b", re.IGNORECASE)
_TENS = {"twenties": 2, "thirties": 3, "forties": 4, "fifties": 5, "sixties": 6, "seventies": 7, "eighties": 8,
         "nineties": 9}  # fmt: skip
_IN_DECADE = re.compile(rf"\b(?:in|during|from|of) the ({'|'.join(_TENS)})\b", re.IGNORECASE)
_PLACED = re.compile(r"\b(\d+(?:st|nd|rd|th)|first|second|third|fourth|fifth|sixth) ([a-z]{3,})\b", re.IGNORECASE)
_CENTURY = re.compile(r"\b(?:(?:in|during|from|of) )?(?:the )?(\d{1,2})(?:st|nd|rd|th)[ -]century\b", re.IGNORECASE)
_ABSENT = re.compile(
    r"\b(?:whose|with(?: the| its| their)?|where the|for wh(?:ich|om) the) (?P<a>(?:[\w-]+ ){1,4}?)"
    r"(?:(?:is|are|was|were) )?(?P<how>missing|unknown|blank|not (?:given|known|recorded|stated|set))\b"
    r"|\b(?:for wh(?:ich|om)|where|with) no (?P<b>(?:[\w-]+ ){1,4}?)"
    r"(?:is|are|was|were) (?:given|known|recorded|stated|listed|set|there)\b",
    re.IGNORECASE,
)
"""Things of which something is not known: `with the cost missing`, `for which no habitat is given`."""
_PLAINER = tuple(
    (re.compile(rf"\b(?:{pattern})\b", re.IGNORECASE), plainer)
    for pattern, plainer in (
        (r"wernt", "were not"),
        (r"who else has (\S+) ?['’]s (\w+)", r"who has the same \2 as \1"),
        (r"under the same", "with the same"),
        (r"(are|do|does|did|is|was|were|has|have|had)nt", r"\1 not"),
        (r"^(?:the )?number for", "phone number of"),
        (r"that no (?:other )?(\w+) (?:(\w+?)e?s|(\w+)ed)(?=\W*$)", r"that are not \2\3ed by any \1"),
        (r"(?:that )?(?:nobody|no one|no-one) (?:(?:has )?ever )?(\w+ed)(?=\W*$)", r"that are not \1 by anybody"),
        (r"(how|what|when|where|who)['’]?s", r"\1 is"),
        (r"won['’]t", "will not"),
        (r"wich|whitch|wihch", "which"),
        (r"head ?count", "number of people"),
        (r"of them all", "of all"),
        (r"nothing (?:but|other than|except)", "only"),
        (r"((?:the |an? )?\S+) (?:and|but) (?:no other [a-z]+|nothing else|nobody else|no one else)", r"only \1"),
        (r"else (is|are|was|were|works?|lives?) in the ([a-z]+) (?:with|of)", r"\1 in the same \2 as"),
        (r"i mean,?", ""),
        (r"brothers? (?:and|or) sisters?|sisters? (?:and|or) brothers?", "siblings"),
        (r"what did (.+?) die (?:of|from)", r"what was the cause of death of \1"),
        (r"how old did (.+?) (?:get|become|grow)", r"how old was \1 at death"),
        (r"(\w+) ?['’]s direct reports", r"people who report to \1"),
        (r"direct reports of", "people who report to"),
        (r"(can)(?:t|not)", r"\1 not"),
        (r"since when", "when"),
        (r"(?:since|from|dating (?:from|back to)) before", "before"),
        (r"(more|less|fewer|[a-z]{3,}er) ((?:\S+ ){0,6})then", r"\1 \2than"),
        (r"(?:(?:in|from|since|as of|starting(?: in| from)?) )?([12]\d{3}) (?:and |or )?onwards?", r"in \1 or later"),
        (r"(?<=\d )up to(?= \d)", "to"),
        (r"(?:up to and including|up to|no later than|not later than)(?= \d)", "at most"),
        (r"half an? (?=million|billion)", "0.5 "),
        (r"all told|(?:add(?:s|ed)?|summed|sum) (?:up|together)(?: to)?", "altogether"),
        (
            r"leaving out|not (?:counting|including)|with the exception of|save for|bar(?= (?:the|those|any|all)\b)",
            "except",
        ),
        (r"or else|or alternatively", "or"),
        (
            r"(?:has|have|had|did|does|do|was|were|is|are) (?:nobody|no one|no-one|nothing) (?:ever )?(\w+)",
            r"are not \1",
        ),
        (r"(\w+) nowhere", r"not \1"),
        (r"(?:do|does|did)(?:n['’]?t| not) have (?:a single|any|an?)", "have no"),
        (r"(?:be )?able to", "can"),
        (r"(\w+est|most|least)-(\w+)", r"\1 \2"),
    )
)
"""Wordings and plainer ones that say the same."""
_KIN = {
    "grandchild": ("child", "child"), "grandkid": ("child", "child"), "grandson": ("child", "son"),
    "granddaughter": ("child", "daughter"), "grandparent": ("parent", "parent"), "grandfather": ("parent", "father"),
    "grandmother": ("parent", "mother"), "great grandchild": ("child", "child", "child"),
    "great grandparent": ("parent", "parent", "parent"), "parent in law": ("spouse", "parent"),
    "mother in law": ("spouse", "mother"), "father in law": ("spouse", "father"), "son in law": ("child", "husband"),
    "daughter in law": ("child", "wife"), "aunt": ("parent", "sister"), "uncle": ("parent", "brother"),
    "niece": ("sibling", "daughter"), "nephew": ("sibling", "son"), "sibling": ("parent", "child"),
}  # fmt: skip
_COMPANIONS = {
    "colleague": ("team", "department", "group", "lab", "company", "employer", "office", "ward", "unit"),
    "co-worker": ("team", "department", "group", "company", "employer", "office", "ward", "unit"),
    "coworker": ("team", "department", "group", "company", "employer", "office", "ward", "unit"),
    "workmate": ("team", "department", "company", "employer"), "teammate": ("team", "club", "squad"),
    "team mate": ("team", "club", "squad"), "classmate": ("class", "course", "school"),
    "bandmate": ("band", "group"), "roommate": ("room",), "flatmate": ("flat", "apartment"),
    "housemate": ("house", "building"), "labmate": ("lab", "group"), "shipmate": ("ship",),
    "compatriot": ("nationality", "country", "citizenship"),
}  # fmt: skip
"""Words for those who have something in common, with what it may be called."""
_COMPANY = "|".join(sorted(_COMPANIONS, key=len, reverse=True))
_COMPANION = re.compile(
    rf"(?:\b(?P<owner>{SLOT}) *['’]s? *)?\b(?P<word>{_COMPANY})s?\b(?P<of> of)?"
    rf"|\b(?P<works>work(?:s|ed|ing)? (?:together |alongside )?(?:with|alongside))(?= +{SLOT}\b)",
    re.IGNORECASE,
)
_KIN_PLURALS = {plural(kin): kin for kin in _KIN} | {
    "grandchildren": "grandchild", "great grandchildren": "great grandchild", "parents in law": "parent in law",
    "mothers in law": "mother in law", "fathers in law": "father in law", "sons in law": "son in law",
    "daughters in law": "daughter in law",
}  # fmt: skip
_KINS = "|".join(sorted((*_KIN, *_KIN_PLURALS), key=len, reverse=True)).replace(" ", "[ -]")
_UNDER = re.compile(
    rf"\b(?:is|are|works?|working|placed) (?:directly )?(?:under|below|beneath)(?= +{SLOT}\b)", re.IGNORECASE
)
_BOSSES = frozenset("manager managers boss supervisor supervised reports report superior".split())
_SHARES = re.compile(r"\b(?:shares?|sharing) (?:an?|the|his|her|their|its) (\w+) with\b", re.IGNORECASE)
_RELATIVE = re.compile(rf"(?P<owner>['’]s )?\b(?P<kin>{_KINS})\b", re.IGNORECASE)
_AMOUNT = re.compile(r"\b(?:(?:more|less|fewer) than|at (?:least|most)|exceeding)\W*$", re.IGNORECASE)
"""Words before a number that is no year."""
_LASTS = re.compile(r"(\b(?:do|does|did|will|would)\b[^?]*? )last\b(?=\W*$| in | for )", re.IGNORECASE)
"""The verb *last*, which is no place of a ranking."""
_IN_LETTERS = {str(value): word for word, value in _NUMBERS.items() if value <= 20}
_MOST_OTHERS = re.compile(
    r"\b((?:which|what) (\w+)\b.*? (?:do|does|did|are|is) )(?:the )?most (?:of the )?others\b", re.IGNORECASE
)
_TOKEN = re.compile(r"(?<!\w)[+.@#]?\w[\w.+/:-]*")
_NAME_WORD = re.compile(r"[^\W_](?:[\w.'’-]*\w)?|\S")
PLAIN, MOST_READINGS = 40, 3
"""`usualness` of a word above which it may be no name, and readings of a question beside the first."""
ABOVE = frozenset((f"{RDFS}subClassOf", "P279"))
"""Relations from a type to one above it."""
NAME_LIKE = 0.5
"""Sum of the words of a text from which on they are a name."""
CONTENT_FREE = frozenset(
    "a an the of in on at to for from by with and or is are was were be been do does did has have had what which who "
    "whom whose where when how why that this these those it its there many much me my you please tell can could would "
    "give list name show find all any each some than as if not no x y z w n s t".split()
)
"""Words of a question that say nothing of what it asks for, the words of slots among them."""
_WH_WORD = r"(?:who|what|when|where|which|how|whose)"
_TWO_QUESTIONS = re.compile(
    rf"^\W*(?P<first>(?:please )?{_WH_WORD}\b.+?),? and (?P<then>{_WH_WORD}(?:['’]?s)?\b.+)$", re.IGNORECASE
)
_BACK = re.compile(
    r"\b(?:(?P<own>its|his|their|her(?= \w))|it|he|him|she|her|they|them|(?P<there>there(?=\W*$)))\b", re.IGNORECASE
)
"""Pronouns for the one thing that a question was about."""
_ITSELF = re.compile(
    r"(?<=\w )(?P<has>(?:do|does) )?(?(has)|(?:there )?in )(?:the|this|your|my) (?:knowledge )?"
    r"(?P<thing>graph|ontology|thesaurus|vocabulary|database|data|file)"
    r"(?(has) (?:know|have|contain|list|hold|include)(?: of| about)?)(?=\W*$)",
    re.IGNORECASE,
)
"""Words about the graph itself: *does the ontology know*, *in the graph*."""
_OURS = re.compile(
    r" (?:of (?:the|this)|(?:of|in|at|to|by|for) our) (?P<thing>company|firm|business|shop|store|school|university|"
    r"college|institute|museum|gallery|library|hospital|clinic|hotel|club|zoo|farm|city|town)(?=\W*$)",
    re.IGNORECASE,
)
"""Those whose data it is: *the youngest pupil of the school*."""
MOST_SLOTS = 3
LONGEST_MENDED, MOST_MENDED = 32, 24
"""Letters of a word whose typing errors are mended, and such words of a question: all words one edit away are made."""
MOST_VALUES = 6
"""Numbers of a question that forms compare with."""
OTHER_WORD = 0.8
"""Confidence in a type by another usual word for it."""


def read_query(
    question: Question,
    keys: Mapping[int, str],
    names: Mapping[int, Sequence[str]],
    graph: LabelGraph,
    words: OwnWords | None = None,
) -> LabelQuery:
    """A question with its mentions as slots.  keys, names: of its topic entities, by id.  words: of one's own."""
    question = _without(question, _operation_words(question) | _type_words(question, graph))
    marked, mentions = mark_mentions(question, keys, names)
    mentions = _each_once(mentions, len(marked))
    unseen = [mention for mention in mentions if mention.entities and mention.mark not in marked]
    if len(unseen) == 1 and (span := name_span(marked, graph)) is not None:
        marked = f"{marked[: span[0]]} {unseen[0].mark} {marked[span[1] :]}"
        mentions.sort(key=lambda one: (marked.find(one.mark) % (len(marked) + 1), one.mark))
    slots = []
    mentioned = dict(zip(question.topic_entities, question.topic_keys, strict=False)) if question.topic_weights else {}
    for number, one in enumerate(mentions):
        if number < MOST_SLOTS and one.entities:
            own = one.entities[0][0]
            named = tuple(name for entity, _, _ in one.entities for name in names.get(entity, ()))
            slots.append(Slot(SLOTS[number], one.entities, mentioned.get(own, ""), named))
        marked = marked.replace(one.mark, f" {SLOTS[min(number, MOST_SLOTS)]} " if one.entities else " ")
    marked = " ".join((words.read(marked) if words is not None else marked).split())
    marked = _LASTS.sub(r"\1lasted", marked)
    marked = _MOST_OTHERS.sub(lambda found: f"{found[1]}most {plural(singulars(found[2].lower())[-1])}", marked)
    marked = _PLACED.sub(lambda found: _numbered_value(found, graph), marked)
    marked = _OUT_OF.sub(lambda found: _not_in(found, graph), marked)
    marked = _plainer(marked, graph)
    marked = _NUMBER_OF.sub(lambda found: "most" if found["large"] else "fewest", marked)
    itself = _ITSELF.search(marked)
    if itself is not None and itself["thing"].lower() not in graph.label_words:
        marked = f"{marked[: itself.start()]}{'are there' if itself['has'] else 'there'}{marked[itself.end() :]}"
    ours = _OURS.search(marked)
    if ours is not None and ours["thing"].lower() not in graph.label_words:
        marked = marked[: ours.start()] + marked[ours.end() :]
    marked = _INITIALS.sub(lambda found: _spelled_out(found[0], graph), marked)
    rank = ordinal_in(marked)
    marked = corrected(marked, graph)
    if len(slots) < MOST_SLOTS:
        marked = _numbered(marked, slots, graph)
    if len(slots) < MOST_SLOTS:
        marked = _literal_slots(marked, slots, graph)
    masked, values = mask_values(marked, graph.label_words)
    text, used = " ".join(masked.split()), tuple(slots)
    query = LabelQuery(text, used, types_in(masked, graph), rank, values)
    if used and not question.topic_weights:
        return query  # topics that are given with the question leave no doubt about names
    strange = sum(_is_strange(word, graph) for word in _LATIN.findall(masked.lower()))
    return replace(query, strange=strange, cut=is_cut(text, used, graph))


def _is_strange(word: str, graph: LabelGraph) -> bool:
    """Whether a word is no usual English and in no label."""
    return len(word) > 2 and not usualness(word) and graph.label_words.isdisjoint((word, stem(word)))


def is_cut(text: str, slots: Sequence[Slot], graph: LabelGraph) -> bool:
    """Whether a slot stands directly beside a capital within the text, or beside a word that nobody knows.

    In a text all of whose words have capitals these tell nothing.
    """
    tokens = text.split()
    own = {slot.word for slot in slots}
    capitals = any(token.isalpha() and token.islower() for token in tokens[1:] if token not in own)
    for index, token in enumerate(tokens):
        if token not in own:
            continue
        for beside in (index - 1, index + 1):
            word = tokens[beside] if 0 <= beside < len(tokens) else ""
            if not (word.isascii() and word.isalpha()) or word in own or word in SLOTS:
                continue
            if (beside > 0 and capitals and word[0].isupper() and not word.isupper()) or _is_strange(
                word.lower(), graph
            ):
                return True
    return False


def other_readings(question: Question) -> list[tuple[Question, float, frozenset[str]]]:
    """The question without mentions that may be plain words: each alone, and all.

    With each the linker's confidence in what is gone, and the words of it that say something.

    For a name such as *Network* or *The Road* may be a word of the question: a mention is doubtful where it was linked
    in the text, is written in small letters and is made of usual words of English, or means what another mention does.
    """
    doubtful: dict[int, float] = {}
    first = {number: index for index, number in reversed([*enumerate(question.topic_mentions)])}
    meant = Counter(question.topic_entities[index] for index in first.values())
    for index, number in enumerate(question.topic_mentions):
        words = question.topic_keys[index].split()
        twice = meant[question.topic_entities[first[number]]] > 1
        plain = all((usualness(word.lower()) > PLAIN or twice) and word.islower() for word in words)
        if plain and question.topic_keys[index] in question.text:
            doubtful[number] = max(doubtful.get(number, 0.0), question.topic_weights[index])
    gone = [{number} for number in doubtful] + ([set(doubtful)] if len(doubtful) > 1 else [])
    readings: list[tuple[Question, float, frozenset[str]]] = []
    for numbers in gone[:MOST_READINGS]:
        one = _without(question, numbers)
        texts = {
            key for key, number in zip(question.topic_keys, question.topic_mentions, strict=True) if number in numbers
        }
        dropped = frozenset(
            stem(word) for text in texts for word in WORD.findall(text.lower()) if word not in CONTENT_FREE
        )
        readings.append((one, sum(doubtful[number] for number in numbers), dropped))
    return readings


def two_questions(question: Question) -> tuple[Question, Question] | None:
    """Two questions that an *and* joins, the second with the mention of the first in place of its pronoun, as in `who
    coaches x and where do they play`.  None for another question."""
    found = _TWO_QUESTIONS.match(question.text)
    back = _BACK.search(found["then"]) if found else None
    if found is None or back is None:
        return None
    names = dict(reversed([*zip(question.topic_mentions, question.topic_keys, strict=False)]))
    if len(names) != 1 or (name := names.popitem()[1]) not in found["first"] or name in found["then"]:
        return None
    said = f"{name}'s" if back["own"] else f"of {name}" if back["there"] else name
    then = found["then"][: back.start()] + said + found["then"][back.end() :]
    return replace(question, text=found["first"]), replace(question, text=then)


def _operation_words(question: Question) -> set[int]:
    """Mentions that are words of a ranking, a comparison, a count or a negation, written as such: *most* is no town;
    and words that names are asked to have."""
    lists = question_words()
    plain = lists["superlatives"] | lists["comparatives"] | lists["counting"] | lists["negations"]
    keys = [(number, question.topic_keys[index]) for index, number in enumerate(question.topic_mentions)]
    first, part = question.text.lstrip(), IN_NAMES.search(question.text.lower())
    within = part["word"] if part else None
    said = {n for n, key in keys if key.lower() in plain and (key.islower() or first.startswith(key))}
    return said | {n for n, key in keys if key.lower() == within}


def _type_words(question: Question, graph: LabelGraph) -> set[int]:
    """Mentions that are words for types which the graph says nothing of: *enclosure* of a table of animals."""
    nodes = {int(node) for node in graph.type_ids}
    found = set()
    first = dict(reversed([*zip(question.topic_mentions, question.topic_entities, strict=False)]))
    mentions = zip(question.topic_mentions, question.topic_entities, question.topic_keys, strict=False)
    for number, entity, key in mentions:
        if entity == first[number] and entity in nodes and key.islower() and key in question.text:
            ways = graph.directed_relations(np.array([entity]))
            relations = [way % graph.relations for way in ways.tolist()]
            told = ASKS_FOR_THING.match(question.text.lower().replace(key, "x"))  # which its description tells
            plain = (one for one in relations if told or graph.to_entities(one))
            if all(graph.is_type[one] or graph.keys[one] in ABOVE for one in plain):
                found.add(number)
    return found


def _without(question: Question, numbers: set[int]) -> Question:
    """The question without some of its mentions, by their numbers."""
    if not numbers:
        return question
    kept = [index for index, number in enumerate(question.topic_mentions) if number not in numbers]
    renumbered = {old: new for new, old in enumerate(dict.fromkeys(question.topic_mentions[p] for p in kept))}
    return replace(
        question,
        topic_keys=tuple(question.topic_keys[index] for index in kept),
        topic_entities=tuple(question.topic_entities[index] for index in kept),
        topic_weights=tuple(question.topic_weights[index] for index in kept),
        topic_mentions=tuple(renumbered[question.topic_mentions[index]] for index in kept),
    )


def name_span(text: str, graph: LabelGraph) -> tuple[int, int] | None:
    """Start and end of what in a text is likest a name that the graph does not have, None where nothing is.

    For an entity that is given with a question and has no label: the run of words of the largest sum, where words that
    English hardly has and capitals count for a name, those of grammar and of the graph's labels against it.
    """
    words = list(_NAME_WORD.finditer(text))
    best, span, total, start = NAME_LIKE, None, 0.0, 0
    for index, match in enumerate(words):
        if total <= 0:
            total, start = 0.0, index
        total += _name_likeness(match[0], index == 0, graph)
        if total > best:
            possessive = 2 if match[0][-2:] in ("'s", "’s") else 0
            best, span = total, (words[start].start(), match.end() - possessive)
    return span


def _name_likeness(word: str, first: bool, graph: LabelGraph) -> float:
    """How much a word counts for a name; below 0 it counts against it."""
    low = word.lower()
    if not word[0].isalnum():
        return -100.0 if ord(word[0]) >= 0xE000 else 0.0  # a mention, or a sign
    if low in CONTENT_FREE or low in FUNCTION_WORDS or is_cjk(word[0]):
        return -1.0
    if word[0].isupper() and not first:
        return 2.0
    if not graph.label_words.isdisjoint((low, stem(low))) or not thesaurus().vocabulary.isdisjoint((low, stem(low))):
        return -1.0
    return 1.5 - usualness(low) / 128


def _each_once(mentions: Sequence[MarkedMention], end: int) -> list[MarkedMention]:
    """Mentions in their order, of those that overlap and mean the same the one that stands in the text.

    end: place of a mention that does not.  An entity's other mentions go.
    """
    best: dict[int, MarkedMention] = {}
    for one in sorted((m for m in mentions if m.entities), key=lambda m: (m.place == end, -m.entities[0][2])):
        best.setdefault(one.entities[0][0], one)
    kept = {one.mark for one in best.values()}
    return [mention for mention in mentions if mention.mark in kept or not mention.entities or mention.place < end]


def _literal_slots(text: str, slots: list[Slot], graph: LabelGraph) -> str:
    """The text with a slot's word for a code or other short text of the graph; the slots get one more.

    A word counts that is no word of English and of no label: in capitals, or with a sign or a digit.
    """
    for match in _TOKEN.finditer(text):
        token = match[0].rstrip(".,;:?!)")
        plain = token.isalpha() and not token.isupper()
        if (
            len(token) < 2
            or token in SLOTS
            or (plain and (usualness(token.lower()) or token.lower() in graph.label_words))
        ):
            continue
        nodes = graph.texts.get(token.lower())
        if nodes and not re.fullmatch(r"\d{1,4}", token):
            word = next(word for word in SLOTS if all(word != slot.word for slot in slots))
            slots.append(Slot(word, tuple((node, graph.text_of(node), 1.0) for node in nodes[:3])))
            return f"{text[: match.start()]} {word} {text[match.start() + len(token) :]}"
    return text


def _numbered(text: str, slots: list[Slot], graph: LabelGraph) -> str:
    """The text with a slot's word for the number of a thing behind its type, or behind the relation that has it, as in
    `order 104`; the slots get it."""
    for match in _NUMBERED.finditer(text):
        words, number = singulars(match["word"].lower()), match["number"]
        types = {index for form in words for index in graph.types_by_words.get(form, ())}
        found = graph.store.resolve([number])[number] if types else []
        own = [node for node in found if types.intersection(graph.types_of(node))]
        keys = graph.store.entity_keys(own)
        for relation in () if own else (n for n, label in enumerate(graph.labels) if label.lower() in words):
            nodes = graph.texts.get(number, ())[:1]
            heads = graph.follow(np.array(nodes, dtype=np.int64), relation + graph.relations) if nodes else ()
            keys = graph.store.entity_keys([*heads] if len(heads) == 1 else nodes)
        if keys:
            word = next(word for word in SLOTS if all(word != slot.word for slot in slots))
            slots.append(Slot(word, tuple((node, key, 1.0) for node, key in [*keys.items()][:3]), number))
            return f"{text[: match.start()]}{word}{text[match.end() :]}"
    for match in _CODE.finditer(text):  # `SO-1030`, which is the name of an order behind its type
        named = graph.store.resolve(
            [f"{label} {one}" for label in graph.type_labels for one in {match[0], match[0].upper()}]
        )
        keys = graph.store.entity_keys(sorted({node for nodes in named.values() for node in nodes}))
        if len(keys) == 1:
            word = next(word for word in SLOTS if all(word != slot.word for slot in slots))
            slots.append(Slot(word, tuple((node, key, 1.0) for node, key in keys.items()), match[0]))
            return f"{text[: match.start()]}{word}{text[match.end() :]}"
    return text


def mask_values(text: str, words: Collection[str] = ()) -> tuple[str, tuple[Literal, ...]]:
    """The text with `n` for each number written in it, and these numbers; one of four digits may be a year too, and
    dates are one value.

    words: of the labels of the graph; a number that is among them stays, in letters where they have it so.

    >>> " ".join(mask_values("more than 5 million people")[0].split())
    'more than n people'
    >>> [value.text for value in mask_values("from July 2026 to 1 August 2026")[1]]
    ['2026-07', '2026-08-01']
    """
    values: list[Literal] = []

    def mask(found: re.Match[str]) -> str:
        if (date := _date(found)) is not None:
            values.append(date)
            return f" {NUMBER} "
        written = found[0].strip().lower()
        for same in (written, _IN_LETTERS.get(written, "")):
            if same in words:
                return f" {same} "
        if found["digits"]:
            number = float(re.sub(r"[,' ]", "", found["digits"])) * _SCALES.get((found["scale"] or "").lower(), 1)
            told = found["era"] or text[: found.start()].rstrip().lower().endswith(" year")
            year = re.fullmatch(r"\d{1,4}" if told else r"1\d{3}|20\d{2}", found["digits"]) and not found["scale"]
            number *= -1 if found["sign"] or (found["era"] or "").startswith("B") else 1
        else:
            number, year = float(_NUMBERS[found["word"].lower()]), None
            number *= _SCALES.get((found["word_scale"] or "").lower(), 1)
            if number == 1 and not _COMPARED.search(text[: found.start()]):
                return found[0]
        behind = _RANGE_END.sub("", text[found.end() :])  # `between 2 and 3 hours` has its unit behind the second
        after = behind.split()[:2]
        spellings = (" ".join(after), *after[:1])
        unit = next((units()[one] for one in (w.lower().strip(".,?!") for w in spellings) if one in units()), None)
        if unit is not None:
            values.append(Literal(f"{number * unit[2]:.15g}", f"{XSD}decimal", unit[1]))
        values.append(Literal(f"{number:.10g}" if number % 1 else str(int(number)), f"{XSD}decimal"))
        if year and not _AMOUNT.search(text[: found.start()]):
            values.append(Literal(f"{'-' * (number < 0)}{found['digits']:0>4}", f"{XSD}gYear"))
        return f" {NUMBER} "

    return _VALUE.sub(mask, text), tuple(values[:MOST_VALUES])


def _date(found: re.Match[str]) -> Literal | None:
    """The day or month that a value is written as, None where it is a number."""
    year, month, day = found["year"] or found["its_year"], found["month"] or found["month_first"], found["day"]
    text = found["iso"] or ""
    if year:
        number = next(n for n, name in enumerate(_MONTHS, 1) if name.startswith(month.lower()[:3]))
        text = "-".join((year, f"{number:02}", *(f"{int(one):02}" for one in (day or found["its_day"],) if one)))
    return Literal(text, f"{XSD}{'date' if text.count('-') > 1 else 'gYearMonth'}") if text else None


def types_in(text: str, graph: LabelGraph) -> tuple[tuple[int, float], ...]:
    """Types of the graph that a text names, also in the plural or by another usual word: (place, confidence).

    In the order of the text; longer stretches count before shorter ones, a label before other words for it.
    """
    words = WORD.findall(text.lower())
    index = graph.types_by_words
    results: dict[int, tuple[int, float]] = {}
    covered: set[int] = set()
    for length in range(LONGEST_TYPE, 0, -1):
        for start in range(len(words) - length + 1):
            span = range(start, start + length)
            if covered.intersection(span):
                continue
            forms = singulars(" ".join(words[start : start + length]))
            named = [(position, 1.0) for form in forms for position in index.get(form, ())]
            if not named:
                others = [other for form in forms for other in type_words().get(form, ())]
                named = [(position, OTHER_WORD) for other in others for position in index.get(other, ())]
            if not named and length == 1 and (own := {*forms} & graph.types_by_head.keys()):
                named = [(graph.types_by_head[form], OTHER_WORD) for form in own]
            if not named and length == 1 and words[start] in PERSONS and len(persons := individuals(graph)) == 1:
                named = [(persons[0], OTHER_WORD)]
            if named:
                covered.update(span)
                for position, confidence in named[:2]:
                    results.setdefault(position, (start, confidence))
    order = sorted(results.items(), key=lambda one: one[1][0])
    return tuple((position, confidence) for position, (_, confidence) in order)


def _not_in(found: re.Match[str], graph: LabelGraph) -> str:
    """`out of stock` as `not in stock`, where a relation is called so."""
    label = f"in {found[1].lower()}"
    return f"not {label}" if label in (one.lower() for one in graph.labels) else found[0]


def _plainer(text: str, graph: LabelGraph) -> str:
    """The text with decades and centuries as ranges of years, and with plainer words for absence and arithmetic."""
    text = _IN_DECADE.sub(lambda found: f"in the 19{_TENS[found[1].lower()]}0s", text)
    text = _DECADE.sub(lambda found: f"between {found[1]}{found[2]}0 and {found[1]}{found[2]}9", text)
    if "century" not in graph.label_words:
        text = _CENTURY.sub(lambda found: f"between {int(found[1]) - 1}01 and {found[1]}00", text)

    def absent(found: re.Match[str]) -> str:
        value = (found["how"] or "").lower()
        known = value in graph.texts or value in graph.values_by_name
        return found[0] if known else f"without {found['a'] or found['b']}"

    text = _ABSENT.sub(absent, text)
    for pattern, plainer in _PLAINER:
        text = pattern.sub(plainer, text)
    if any(not _BOSSES.isdisjoint(label.lower().replace("_", " ").split()) for label in graph.labels):
        text = _UNDER.sub("reports to", text)
    text = _COMPANION.sub(lambda found: _companions(found, graph), text)
    text = _SHARES.sub(lambda found: _same(found, graph), text)
    return _RELATIVE.sub(lambda found: _along_relatives(found, graph), text)


def _companions(found: re.Match[str], graph: LabelGraph) -> str:
    """`colleagues of x` as `people with the same team as x`, where a relation is called *team*, and nothing so."""
    words = {label.lower() for label in (*graph.labels, *graph.type_labels)}
    word = (found["word"] or "colleague").lower()
    shared = next((noun for noun in _COMPANIONS[word] if noun in words), None)
    own = {word, f"{word}s"} if found["word"] else {"works", "worked", "working", "work", "colleague", "colleagues"}
    if shared is None or not (found["owner"] or found["of"] or found["works"]) or not words.isdisjoint(own):
        return found[0]
    if found["works"]:
        return f"has the same {shared} as"
    return f"people with the same {shared} as {found['owner'] or ''}".rstrip()


def _spelled_out(word: str, graph: LabelGraph) -> str:
    """The label of the only relation that a word which English hardly has abbreviates: *hp* for *hit points*, *lvl* for
    *level*."""
    low = word.lower()
    known = low in FUNCTION_WORDS or (usualness(low) > PLAIN and _is_listed(low))
    if known or low in SLOTS or low in graph.label_words or low in graph.texts:
        return word
    labels = {label.lower() for label in graph.labels if not label.startswith("http")}
    short = {label: ("".join(part[0] for part in label.split()), _CONSONANTS.sub("", label)) for label in labels}
    meant = [label for label, forms in short.items() if low in forms]
    return meant[0] if len(meant) == 1 else word


def _same(found: re.Match[str], graph: LabelGraph) -> str:
    """`share a boss with` as `have the same boss as`, where a relation is called so that does not hold both ways."""
    noun = singulars(found[1].lower())
    named = [n for n, label in enumerate(graph.labels) if any(one in label.lower().split() for one in noun)]
    return f"have the same {found[1]} as" if named and not any(is_mutual(graph, n) for n in named) else found[0]


def _numbered_value(found: re.Match[str], graph: LabelGraph) -> str:
    """`5th floor` as `floor 5` where a relation to numbers is called *floor*, and no type is."""
    noun = singulars(found[2].lower())
    labels = [label.lower() for label in graph.labels]
    known = any(graph.is_measure(n) and graph.dated[n] == 0 for n, label in enumerate(labels) if label in noun)
    named = any(one in graph.types_by_words for one in noun)
    return f"{found[2]} {ordinal_in(found[1]) or 0}" if known and not named else found[0]


def _along_relatives(found: re.Match[str], graph: LabelGraph) -> str:
    """`grandchildren` as `children of the children`, and `x 's grandchildren` as `x 's children 's children`, where no
    relation of the graph is called so."""
    kin = found["kin"].lower().replace("-", " ")
    one = _KIN_PLURALS.get(kin, kin)
    if not graph.label_words.isdisjoint((stem(kin), stem(one), kin.split()[-1] * (" in law" in one))):
        return found[0]
    steps = [plural(step) if step != "child" else "children" for step in _KIN[one]]
    if one == kin:
        steps[-1] = _KIN[one][-1]
    return "".join(f"'s {step} " for step in steps).rstrip() if found["owner"] else " of the ".join(reversed(steps))


def corrected(text: str, graph: LabelGraph) -> str:
    """The text with its typing errors mended: words of no language, one edit away from English or from a label."""
    own, mended = graph.label_words, 0

    def mend(found: re.Match[str]) -> str:
        nonlocal mended
        word = found[0].lower()
        known = (
            word in own
            or stem(word) in own
            or word in adjectives()
            or any(one in graph.texts or one in graph.values_by_name for one in singulars(word))
        )
        if not 5 <= len(word) <= LONGEST_MENDED or known or usualness(word) or _is_listed(word):
            return found[0]
        mended += 1
        if mended > MOST_MENDED:
            return found[0]
        near = [
            (
                not own.isdisjoint((other, stem(other))) or (len(other) > len(word) and other in adjectives()),
                usualness(other),
                other,
            )
            for other in _edits(word)
        ]  # a letter is missing, as in `bigest`
        english = _is_english(word)  # by its ending alone, as `employes`
        best = max((one for one in near if one[0] or (one[1] and not english)), default=None)
        if best is None:
            return found[0]
        return best[2].capitalize() if found[0].istitle() else best[2]

    return _LATIN.sub(mend, text)


def _is_english(word: str) -> bool:
    """Whether a word, or what an ending of English is added to, is usual.

    >>> _is_english("fewest"), _is_english("populous"), _is_english("headquaters")
    (True, True, False)
    """
    if usualness(word):
        return True
    endings = [ending for ending in _ENDINGS if len(word) > len(ending) + 2]
    return any(map(usualness, _without_endings(word, endings)))


def _is_listed(word: str) -> bool:
    """Whether a word, or what an ending of English is added to, is in the list of English words.

    >>> _is_listed("kilos"), _is_listed("sowed"), _is_listed("captian")
    (True, True, False)
    """
    return not english_words().isdisjoint((word, *_without_endings(word, ("s", "es", "ed", "ing"))))


def _without_endings(word: str, endings: Sequence[str]) -> Iterator[str]:
    """A word without each of some endings that it has, and the same with a mute e."""
    return (word.removesuffix(one) + more for one in endings if word.endswith(one) for more in ("", "e"))


_ENDINGS = ("est", "er", "ed", "ing", "ly", "ness", "s", "es")
_LATIN = re.compile(r"(?<![\w'’])[A-Za-z]+(?![\w'’])")
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def _edits(word: str) -> set[str]:
    """Words one letter away: left out, swapped with the next, another one, one more."""
    cuts = [(word[:n], word[n:]) for n in range(len(word) + 1)]
    edits = {a + b[1:] for a, b in cuts if b} | {a + b[1] + b[0] + b[2:] for a, b in cuts if len(b) > 1}
    edits |= {a + c + b[1:] for a, b in cuts if b for c in _LETTERS}
    return edits | {a + c + b for a, b in cuts for c in _LETTERS}


def stems(texts: Iterable[str]) -> set[str]:
    """The words of some texts, in lower case and without the endings of plurals."""
    return {stem(word) for text in texts for word in WORD.findall(text.lower())}


@lru_cache(maxsize=1 << 14)
def stem(word: str) -> str:
    """A word without the ending of its plural.

    >>> stem("cities"), stem("countries"), stem("churches"), stem("glass")
    ('city', 'country', 'church', 'glass')
    """
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("ches", "shes", "xes", "sses")):
        return word[:-2]
    if word.endswith("s") and not word.endswith(("ss", "us", "is")) and len(word) > 3:
        return word[:-1]
    return word
