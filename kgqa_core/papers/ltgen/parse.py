"""Reading what a language model wrote in LTGen's format or something near it, and which of its triples it cites."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from kgqa_core.metrics.normalise import is_cjk, tokens
from kgqa_core.prompts import without_thoughts

USER, AGENT, TRIPLES, PAIR, QUESTION = "user", "agent", "triples", "pair", "question"

_CONV = {
    USER: r"user|human|customer|用户|使用者",
    AGENT: r"agent|assistant|ai|bot|system|代理|助手|客服",
    TRIPLES: r"(?:(?:selected|chosen|reference|cited|knowledge graph|knowledge|kg|used) )*triples?|t|三元组",
}
_QA = {
    PAIR: r"(?:subject )?entity[ \-_/&]*relation[ \-_]*pairs?|(?:chosen |relation )?pairs?|实体关系对",
    QUESTION: r"(?:generated )?questions?|q|问题",
}
_SKIP = r"turn(?:\s*\d+)?|round(?:\s*\d+)?|conversation(?:\s*\d+)?|dialogue(?:\s*\d+)?|output|response|note|对话"
"""Headings that hold nothing."""

_DECORATION = r"[ \t>*_#•·–\-|]*+(?:[(\[]?\d{1,3}[.):\]、][ \t*_]*+)?"
"""What may stand before a label.  It gives nothing back, so that an endless run of blanks or stars costs what it is."""
_FENCE = re.compile(r"^[ \t]*(?:```|~~~)[^\n`]*$", re.MULTILINE)
_OPEN, _CLOSE = "<<<", ">>>"
_TERMINAL = (".", "?", "!", "…", "。", "？", "！", ")", "）", "]", '"', "”", "'")
_QUOTES = {'"': '"', "“": "”", "'": "'", "「": "」", "‘": "’"}


@dataclass(frozen=True, slots=True)
class Field:
    """One labelled text.  closed: its end was marked, so nothing of it is missing."""

    label: str
    text: str
    closed: bool


@dataclass(frozen=True, slots=True)
class QaField:
    """A pair and the question that was written for it, both as they stand; `cut` when the output broke off in it."""

    pair: str
    question: str
    cut: bool


def read_qa(text: str, *, truncated: bool = False) -> list[QaField]:
    """Pairs with their questions, in order; a pair without question, or a question without pair, has empty text there.

    truncated: the model stopped at its token limit.

    >>> read_qa("1. Entity relation pair: (Oslo, country)\\n   Question: <<In which country is Oslo?>>")
    [QaField(pair='(Oslo, country)', question='In which country is Oslo?', cut=False)]
    """
    fields = _fields(text, _QA)
    cut = _cut(fields, truncated)
    questions: list[QaField] = []
    pair: Field | None = None
    for index, field in enumerate(fields):
        broken = cut and index == len(fields) - 1
        if field.label == PAIR:
            if pair is not None:
                questions.append(QaField(pair.text, "", False))
            pair = field
            if broken:
                questions.append(QaField(field.text, "", True))
                pair = None
        else:
            questions.append(QaField(pair.text if pair else "", field.text, broken))
            pair = None
    if pair is not None:
        questions.append(QaField(pair.text, "", False))
    return questions


def read_conv(text: str, *, truncated: bool = False) -> tuple[list[Field], bool]:
    """The turns of user and agent and the triples they chose, in order; and whether the last of it broke off.

    >>> fields, cut = read_conv("User: <<<Where is Oslo?>>>\\nAgent: <<<In Norway.>>>\\nT: <<<(Oslo, country, Nor")
    >>> [field.label for field in fields], cut
    (['user', 'agent', 'triples'], True)
    """
    fields = _fields(text, _CONV)
    return fields, _cut(fields, truncated)


def _fields(text: str, labels: Mapping[str, str]) -> list[Field]:
    """The labelled texts of an output; what stands before the first label is talk."""
    text = _plain(text)
    marks = list(_marks(text, labels))
    fields = []
    for number, (label, _, start) in enumerate(marks):
        end = marks[number + 1][1] if number + 1 < len(marks) else len(text)
        if label:
            value, closed = _value(text[start:end], label == TRIPLES)
            fields.append(Field(label, value, closed))
    return fields


def _marks(text: str, labels: Mapping[str, str]) -> Iterator[tuple[str, int, int]]:
    """(label, where it begins, where its text begins) of every label; a heading has an empty label."""
    names = "|".join(f"(?P<{name}>{words})" for name, words in labels.items())
    pattern = re.compile(
        rf"(?:^|(?<=>>>)[ \t,;/|]*+|[ \t]/[ \t]++){_DECORATION}(?:turn\s*\d+\s*[:.\-]\s*)?[*_\"]*+"
        rf"(?:{names}|(?P<skip>{_SKIP}))(?:[ \t]*[(#]?\d{{1,3}}\)?)?[*_\"]*[ \t]*[:：][ \t]*[*_]*",
        re.IGNORECASE | re.MULTILINE,
    )
    for match in pattern.finditer(text):
        name = match.lastgroup or ""
        yield ("" if name == "skip" else name), match.start(), match.end()


def _plain(text: str) -> str:
    """The output with one kind of line end and bracket, without what was thought before it and without code fences."""
    text = without_thoughts(text).replace("\r\n", "\n").replace("\r", "\n").replace("\u2028", "\n")
    text = text.replace("＜", "<").replace("＞", ">")
    text = re.sub(r"\\([<>])", r"\1", text)
    text = re.sub(r"(?:&lt;){2,}", _OPEN, text)
    text = re.sub(r"(?:&gt;){2,}", _CLOSE, text)
    text = re.sub(r"[《〈«‹]{2,}|[<≪]{2,}", _OPEN, text)
    text = re.sub(r"[》〉»›]{2,}|[>≫]{2,}", _CLOSE, text)
    return _FENCE.sub("", text)


def _value(raw: str, keeps_lines: bool) -> tuple[str, bool]:
    """The text of a field from what stands between its label and the next, and whether its end is marked.

    Without brackets it ends at the first blank line, since what follows there is talk; so is what follows a bracket
    that is closed, but for triples, which may have one each.
    """
    inside = [part.strip() for part in re.findall(r"<<<(.*?)>>>", raw[: raw.rfind(_CLOSE) + len(_CLOSE)], re.DOTALL)]
    if inside and not keeps_lines:
        return _clean(inside[0], keeps_lines), True
    last = raw.rfind(_OPEN)
    half = raw[last + len(_OPEN) :] if last >= 0 and _CLOSE not in raw[last:] else None
    if half is not None:
        inside.append(_paragraph(half))
    elif not inside and _CLOSE in raw:
        inside.append(raw[: raw.find(_CLOSE)].strip())
    elif not inside:
        return _clean(_paragraph(raw), keeps_lines), False
    return _clean("\n".join(part for part in inside if part), keeps_lines), half is None


def _paragraph(text: str) -> str:
    return re.split(r"\n[ \t]*\n", text.strip(), maxsplit=1)[0]


def _clean(text: str, keeps_lines: bool) -> str:
    lines = [" ".join(line.split()) for line in text.split("\n")]
    if keeps_lines:
        return "\n".join(line for line in lines if line)
    joined = " ".join(line for line in lines if line).strip("<> ").strip()
    joined = joined.strip("*").strip()
    if len(joined) > 2 and _QUOTES.get(joined[0]) == joined[-1]:
        joined = joined[1:-1].strip()
    return joined


def _cut(fields: list[Field], truncated: bool) -> bool:
    """Whether the last field broke off: it is open where the model was stopped, or where the others are closed and it
    does not end like a sentence or a triple."""
    if not fields or fields[-1].closed:
        return False
    if truncated:
        return True
    brackets = any(field.closed for field in fields[:-1])
    return brackets and not fields[-1].text.rstrip().endswith(_TERMINAL)


_NOISE = frozenset(
    "t triple triples selected chosen reference used none na n/a null no empty and or knowledge graph kg subject "
    "relation predicate object head tail entity pair 三 元 组 无".split()
)
"""Words that may stand around a citation."""

_LOOKS_CITED = re.compile(r"[(（\[【{<|→]|->|,|，|;|；| - ")

Tokens = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Citation:
    """indices: of the choices that are cited, in order, each once.  foreign: what looks cited and is no choice."""

    indices: tuple[int, ...]
    foreign: str = ""


class Citable:
    """The triples (or pairs) of one prompt by name, found in text by their words alone.

    Brackets, commas, bars, arrows, numbering and case do not matter: a citation is the run of the words of all its
    names.  Of two choices that begin alike the longer one is found; of two that read alike the first.
    """

    def __init__(self, choices: Iterable[Sequence[str]]) -> None:
        self._starts: dict[str, list[tuple[Tokens, int]]] = {}
        seen: set[Tokens] = set()
        for index, names in enumerate(choices):
            words = tuple(word for name in names for word in tokens(name))
            if words and words not in seen:
                seen.add(words)
                self._starts.setdefault(words[0], []).append((words, index))
        for choices_of_word in self._starts.values():
            choices_of_word.sort(key=lambda each: -len(each[0]))

    def read(self, text: str) -> Citation:
        """What a text cites.  A line of talk, without brackets or separators, cites nothing.

        >>> citable = Citable([("Oslo", "country", "Norway"), ("Oslo", "population", "700000")])
        >>> citable.read("1. <Oslo | country | Norway>, (oslo, population, 700,000)").indices
        (0, 1)
        >>> citable.read("(Oslo, mayor, Anne)").foreign
        '(Oslo, mayor, Anne)'
        """
        indices: dict[int, None] = {}
        foreign = []
        for line in text.split("\n"):
            cited, rest = self._match(line)
            indices.update(dict.fromkeys(cited))
            if rest and (cited or _LOOKS_CITED.search(line)):
                foreign.append(line.strip())
        if foreign and "\n" in text:
            cited, rest = self._match(text)
            if not rest:
                return Citation(tuple(dict.fromkeys(cited)))
        return Citation(tuple(indices), "; ".join(foreign))

    def _match(self, text: str) -> tuple[list[int], list[str]]:
        """Indices of what is cited, from left to right, and the words that belong to none."""
        words = tokens(text)
        cited: list[int] = []
        rest: list[str] = []
        here = 0
        while here < len(words):
            for choice, index in self._starts.get(words[here], ()):
                if words[here : here + len(choice)] == choice:
                    cited.append(index)
                    here += len(choice)
                    break
            else:
                if words[here] not in _NOISE and not words[here].isdigit():
                    rest.append(words[here])
                here += 1
        return cited, rest


class NameMatcher:
    """Whether names occur in texts, on the boundaries of words; forms are normalised once."""

    def __init__(self) -> None:
        self._forms: dict[tuple[str, ...], tuple[str, ...]] = {}

    def any(self, forms: tuple[str, ...], text: str) -> bool:
        """Whether a text has one of an entity's forms: its name, or an alias that is no mere abbreviation."""
        padded = _pad(tokens(text))
        return any(form in padded for form in self._padded(forms))

    def part(self, forms: tuple[str, ...], text: str) -> bool:
        """Whether a text has a form, or at least one telling word of the name, as `Curie` of `Marie Curie`."""
        if self.any(forms, text):
            return True
        words = set(tokens(text))
        return any(word in words for word in tokens(forms[0]) if len(word) > 2 or is_cjk(word[0])) if forms else False

    def _padded(self, forms: tuple[str, ...]) -> tuple[str, ...]:
        padded = self._forms.get(forms)
        if padded is None:
            distinctive = [tokens(form) for index, form in enumerate(forms) if index == 0 or _is_distinctive(form)]
            padded = self._forms[forms] = tuple(dict.fromkeys(_pad(words) for words in distinctive if words))
        return padded


def _is_distinctive(alias: str) -> bool:
    return len(alias.strip()) > 3 or any(is_cjk(letter) for letter in alias)


def _pad(words: Tokens) -> str:
    return f" {' '.join(words)} " if words else ""
