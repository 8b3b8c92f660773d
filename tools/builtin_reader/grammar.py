"""How people ask: questions and noun phrases about a relation, in English and Chinese.

`{x}` is the given entity or a noun phrase that stands for it, `{n}` the noun of the relation, `{k}` a word for the kind
of answer, `{y}` a candidate answer.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

from tools.builtin_reader.names import KINDS, WORDS, Names
from tools.builtin_reader.relations import CHINESE, ENGLISH, NUMERIC, Relation

FORWARD = (
    "what is the {n} of {x}|what is the {n} of {x}|what is the {n} of {x}|what is {x}'s {n}|which {n} does {x} have|"
    "what {n} does {x} have|name the {n} of {x}|tell me the {n} of {x}|give the {n} of {x}|{x} has which {n}|"
    "the {n} of {x} is what|do you know the {n} of {x}|I want to know the {n} of {x}|can you name the {n} of {x}|"
    "find the {n} of {x}|what's the {n} of {x}|please state the {n} of {x}|which {n} belongs to {x}|list the {n} "
    "of {x}|"
    "what was the {n} of {x}|what are the {ns} of {x}|who or what is the {n} of {x}|{x}: what is its {n}|"
    "what is listed as {n} of {x}|which is the {n} of {x}|of {x}, what is the {n}|what is known as the {n} of {x}"
).split("|")
INVERSE = (
    "{x} is the {n} of what|{x} is the {n} of which {k}|which {k} has {x} as its {n}|what has {x} as {n}|"
    "whose {n} is {x}|for which {k} is {x} the {n}|name a {k} whose {n} is {x}|what {k} has the {n} {x}|"
    "which {k} has the {n} {x}|find a {k} with the {n} {x}|of which {k} is {x} the {n}|what {ks} have {x} as {n}|"
    "which {ks} have the {n} {x}|name the {k} that has {x} as its {n}"
).split("|")
FORWARD_NOUN = ("the {n} of {x}", "the {n} of {x}", "{x}'s {n}", "the {ns} of {x}")
INVERSE_NOUN = (
    "the {k} whose {n} is {x}|the {k} with the {n} {x}|the {k} that has {x} as its {n}|the {ks} whose {n} is {x}|"
    "{ks} with {n} {x}"
).split("|")
YES_NO = (
    "is {y} the {n} of {x}|is {y} a {n} of {x}|does {x} have {y} as its {n}|is the {n} of {x} {y}|is it true "
    "that the {n}"
    " of {x} is {y}|does {x} have the {n} {y}|is {x}'s {n} {y}|was {y} the {n} of {x}|would you say that {y} is "
    "the {n} of "
    "{x}|is {y} one of the {ns} of {x}"
).split("|")
COUNT = (
    "how many {ns} does {x} have|how many {ns} are there for {x}|what is the number of {ns} of {x}|count the "
    "{ns} of {x}|"
    "how many {ns} has {x}|{x} has how many {ns}|in total, how many {ns} does {x} have|how many different {ns} has {x}"
).split("|")
COUNT_INVERSE = (
    "how many {ks} have {x} as {n}|for how many {ks} is {x} the {n}|how many {ks} have the {n} {x}|count the "
    "{ks} with the "
    "{n} {x}"
).split("|")
GREATER = ("larger", "greater", "bigger", "higher", "more")
SMALLER = ("smaller", "lower", "lesser", "less")
COMPARE = (
    "which has a {c} {n}, {x} or {z}|what has the {c} {n}, {x} or {z}|of {x} and {z}, which has the {c} {n}|is "
    "the {n} of "
    "{x} or that of {z} {c}|between {x} and {z}, which has a {c} {n}|who has the {c} {n}: {x} or {z}|which {k} "
    "has a {c} "
    "{n}, {x} or {z}"
).split("|")
COMPARE_YES_NO = (
    "does {x} have a {c} {n} than {z}|is the {n} of {x} {c} than that of {z}|is the {n} of {x} {c} than the {n} of {z}"
).split("|")
MOST = ("largest", "greatest", "biggest", "highest", "most")
LEAST = ("smallest", "lowest", "least")
SUPERLATIVE = (
    "which of {x} has the {c} {n}|among {x}, which has the {c} {n}|out of {x}, which one has the {c} {n}|what "
    "has the {c} "
    "{n} among {x}|of {x}, which has the {c} {n}|name the one of {x} with the {c} {n}"
).split("|")
BOTH = (
    "which {k} is {x} and also {z}|what is both {x} and {z}|which {k} belongs to both {x} and {z}|what do {x} "
    "and {z} have"
    " in common|name something that is {x} and {z}"
).split("|")
BUT_NOT = "what is {x} but not {z}|which {k} is {x} but not {z}|name {x} that are not {z}".split("|")

HAN_FORWARD = (
    "{x}的{n}是什么|{x}的{n}是什么|{x}的{n}|什么是{x}的{n}|请问{x}的{n}是什么|告诉我{x}的{n}|你知道{x}的{n}吗|"
    "{x}有哪些{n}|"
    "{x}的{n}是|{x}的{n}叫什么|{x}是什么{n}|{x}的{n}有哪些|关于{x}的{n}|{x}{n}是什么"
).split("|")
HAN_BY_KIND = {
    "person": ("{x}的{n}是谁", "谁是{x}的{n}", "{x}的{n}有谁"),
    "place": ("{x}的{n}在哪", "{x}的{n}是哪里", "{x}的{n}在哪里"),
    "measure": ("{x}的{n}是多少", "{x}的{n}有多少", "{x}{n}多少"),
    "date": ("{x}的{n}是什么时候", "{x}的{n}是哪天", "什么时候是{x}的{n}"),
}
HAN_INVERSE = "谁的{n}是{x}|{n}是{x}的是什么|{n}是{x}的有哪些|哪个的{n}是{x}|什么的{n}是{x}|{n}为{x}的是谁".split("|")
HAN_INVERSE_NOUN = "{n}是{x}的人|{n}为{x}的项目|{n}是{x}的东西".split("|")
HAN_YES_NO = "{x}的{n}是{y}吗|{y}是{x}的{n}吗|{x}的{n}是不是{y}".split("|")
HAN_COUNT = "{x}有多少个{n}|{x}有几个{n}|{x}的{n}有多少个|{x}一共有几个{n}".split("|")

KIND_WORDS = {
    "place": ("country", "city", "place", "region", "state", "nation"),
    "person": ("person", "man", "woman", "people"),
    "work": ("film", "movie", "book", "work", "song", "show"),
    "thing": ("thing", "company", "team", "group", "entity", "one"),
}

VERBS = "made used held kept built led known run sold taken carried shown drawn formed backed served fed moved".split()
PREPOSITIONS = "by in for of at on with from to".split()


@dataclass(frozen=True, slots=True)
class Use:
    """A relation as one graph uses it: its label there and the nouns that people use for it.  direction: +1 or -1."""

    relation: Relation
    label: str
    nouns: tuple[str, ...]
    direction: int = 1

    @property
    def target(self) -> str:
        """Kind of the entity that this edge leads to."""
        return self.relation.tail if self.direction > 0 else self.relation.head

    @property
    def shown(self) -> str:
        """The label in triple-form text."""
        return self.label if self.direction > 0 else "<inv>-" + self.label

    def turned(self) -> Use:
        """The same relation in the other direction."""
        return replace(self, direction=-self.direction)


def plural(noun: str) -> str:
    """A rough English plural."""
    if noun.endswith(("s", "x", "ch", "sh")):
        return noun if noun.endswith("s") else noun + "es"
    if noun.endswith("y") and noun[-2:-1] not in tuple("aeiou"):
        return noun[:-1] + "ies"
    if " of " in noun:
        first, _, rest = noun.partition(" of ")
        return f"{plural(first)} of {rest}"
    return noun + "s"


def draw_use(random: Random, names: Names, style: str, *, chinese: bool, used: set[int]) -> Use:
    """A relation for one graph, of a line of the tables that is not in `used`, or an invented one."""
    table = CHINESE if chinese else ENGLISH
    if random.random() < (0.2 if chinese else 0.3):
        return _invented(random, names, style, chinese=chinese)
    free = [index for index in range(len(table)) if index not in used]
    index = random.choice(free)
    used.add(index)
    relation = table[index]
    label = random.choice(relation.labels[:2] if random.random() < 0.5 else relation.labels)
    words = set(label.replace("of", "").split())
    near = tuple(noun for noun in relation.nouns if words & set(noun.split()) or (chinese and noun[0] in label))
    nouns = near if near and random.random() < 0.75 else relation.nouns
    return Use(relation, styled(label, style), nouns)


def _invented(random: Random, names: Names, style: str, *, chinese: bool) -> Use:
    kinds = ("thing", "person", "place", "number", "date", "code") if not chinese else ("thing", "person", "measure")
    tail = random.choice(kinds)
    if chinese:
        label = "".join(character for character in names.han(2, 3) if character.isalpha())[:4]
        return Use(Relation((label,), "thing", tail, (label,), chinese=True), label, (label,))
    roll = random.random()
    if roll < 0.35:
        noun = f"{random.choice(WORDS)} {random.choice(KINDS)}"
    elif roll < 0.6:
        noun = names.word(1, 3).lower()
    elif roll < 0.8:
        noun = f"{names.word(1, 2).lower()} {random.choice(KINDS)}"
    else:
        verb, preposition = random.choice((*VERBS, names.word(1, 2).lower() + "ed")), random.choice(PREPOSITIONS)
        label = f"{verb} {preposition}"
        asks = (f"what is {{x}} {label}", f"{label} what is {{x}}", f"{{x}} is {label} whom or what")
        back = (f"what is {label} {{x}}", f"which things are {label} {{x}}")
        relation = Relation((label,), "thing", tail, (), asks, back, (f"things {label} {{x}}",))
        return Use(relation, styled(label, style), ())
    label = (
        noun if random.random() < 0.6 else random.choice(("has " + noun, noun + " of", "main " + noun, noun + " name"))
    )
    return Use(Relation((label,), "thing", tail, (noun,)), styled(label, style), (noun,))


def styled(label: str, style: str) -> str:
    """A label as some graph spells it: `plain`, `snake`, `camel` or `title`."""
    if style == "snake":
        return label.replace(" ", "_")
    if style == "camel":
        first, *rest = label.split(" ")
        return first + "".join(word.capitalize() for word in rest)
    return label.capitalize() if style == "title" else label


def fill(random: Random, form: str, use: Use, x: str, *, y: str = "", z: str = "", c: str = "", kind: str = "") -> str:
    """A form with its places filled."""
    noun = random.choice(use.nouns) if use.nouns else use.label
    k = random.choice(KIND_WORDS.get(kind or use.relation.head, KIND_WORDS["thing"]))
    parts = {"{ns}": plural(noun), "{n}": noun, "{ks}": plural(k), "{k}": k, "{c}": c, "{y}": y, "{z}": z, "{x}": x}
    for mark, value in parts.items():
        form = form.replace(mark, value)
    return form


def question(random: Random, use: Use, x: str) -> str:
    """A question for what `use` leads to from `x`."""
    relation = use.relation
    if use.direction > 0:
        special = relation.questions
        generic = list(HAN_FORWARD if relation.chinese else FORWARD)
        if relation.chinese and relation.tail in HAN_BY_KIND:
            generic = list(HAN_BY_KIND[relation.tail]) * 2 + generic
    else:
        special = relation.inverse_questions
        generic = list(HAN_INVERSE if relation.chinese else INVERSE)
    if special and (not use.nouns or random.random() < 0.5):
        return random.choice(special).replace("{x}", x)
    return fill(random, random.choice(generic), use, x)


def phrase(random: Random, use: Use, x: str) -> str:
    """A noun phrase for what `use` leads to from `x`."""
    relation = use.relation
    if use.direction < 0 and relation.inverse_nouns and (not use.nouns or random.random() < 0.6):
        text = random.choice(relation.inverse_nouns).replace("{x}", x)
        return text if text.startswith("the ") or random.random() < 0.3 else "the " + text
    if relation.chinese:
        return fill(random, "{x}的{n}" if use.direction > 0 else random.choice(HAN_INVERSE_NOUN), use, x)
    return fill(random, random.choice(FORWARD_NOUN if use.direction > 0 else INVERSE_NOUN), use, x)


def finished(random: Random, text: str, *, chinese: bool) -> str:
    """A question with or without a capital and a question mark."""
    if chinese:
        return text + random.choice(("", "", "？", "?"))
    if random.random() < 0.6:
        text = text[:1].upper() + text[1:]
    return text + "?" if random.random() < 0.65 else text


def numeric(use: Use) -> bool:
    """Whether the relation leads to numbers."""
    return use.relation.tail in NUMERIC and use.direction > 0
