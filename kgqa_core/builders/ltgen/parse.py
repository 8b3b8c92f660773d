"""Reading what a language model wrote in LTGen's format, or in something near it.

The format is `Label: <<<text>>>`, a label a line.  Models leave out or half close the brackets, number the lines, make
labels bold or write them in other case, put all on one line, wrap everything into a code fence, use full-width
brackets, think aloud, talk before and after, and break off.  What cannot be told apart any more is left to the checks
that follow; nothing here raises.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

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
    found: list[QaField] = []
    pair: Field | None = None
    for place, field in enumerate(fields):
        broken = cut and place == len(fields) - 1
        if field.label == PAIR:
            if pair is not None:
                found.append(QaField(pair.text, "", False))
            pair = field
            if broken:
                found.append(QaField(field.text, "", True))
                pair = None
        else:
            found.append(QaField(pair.text if pair else "", field.text, broken))
            pair = None
    if pair is not None:
        found.append(QaField(pair.text, "", False))
    return found


def read_conv(text: str, *, truncated: bool = False) -> tuple[list[Field], bool]:
    """What user and agent said and which triples they chose, in order; and whether the last of it broke off.

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
    found = []
    for number, (label, _, start) in enumerate(marks):
        end = marks[number + 1][1] if number + 1 < len(marks) else len(text)
        if label:
            value, closed = _value(text[start:end], label == TRIPLES)
            found.append(Field(label, value, closed))
    return found


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
