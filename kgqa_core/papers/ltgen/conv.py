"""LTGen-Conv: a dialogue about an entity whose turns cite the triples that they rest on, read and checked.

A turn is a query and its reply.  It becomes a question when it cites triples of the prompt and nothing else, when the
query gives no answer away, and when the reply names one.  A turn that fails stays in the history of those after it,
which refer to earlier turns; it is no question itself.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from kgqa_core.metrics.normalise import tokens
from kgqa_core.papers.ltgen.parse import AGENT, TRIPLES, USER, Citable, Field, NameMatcher, read_conv
from kgqa_core.papers.ltgen.records import BenchmarkItem, End, RejectedItem, ReplyItems, Subject, Triple, date_forms

AGENT_FIRST = "agent speaks first"
NO_REPLY = "query without reply"
NO_QUERY = "reply without query"
STRAY_TRIPLES = "triples without reply"
EMPTY_TEXT = "empty text"
CUT = "cut off"
FOREIGN = "triple is not in the prompt"
NO_TRIPLE = "no triple"
GIVEN_AWAY = "answer is in the question"
NO_TOPIC = "query is about no entity"
UNTOLD = "answer is not in the reply"
DUPLICATE = "duplicate"
NO_TURN = "no good turn"

SMALL_TALK = (NO_TRIPLE,)
"""Turns that the format allows (`if applicable`) and that are no questions."""


@dataclass(frozen=True, slots=True)
class _Turn:
    """A query with its reply and what it cites, as they stand.  number: in the output, from 1."""

    number: int
    query: str
    reply: str
    cited: str
    cut: bool


def read_batch(subject: Subject, text: str, mentions: NameMatcher, *, truncated: bool = False) -> ReplyItems:
    """The good turns of a completion as questions, all its turns, and what was rejected and why."""
    citable = Citable(triple.names for triple in subject.triples)
    fields, cut = read_conv(text, truncated=truncated)
    turns, rejects = _turns(subject, fields, cut)
    history: list[tuple[str, str]] = []
    items: list[BenchmarkItem] = []
    turn_records: list[dict[str, Any]] = []
    seen_queries: set[tuple[str, ...]] = set()
    for turn in turns:
        item, reason, detail = _check(subject, turn, citable, history, seen_queries, mentions)
        if item is not None:
            items.append(item)
        else:
            rejects.append(RejectedItem(subject, "turn", reason, turn.number, turn.query, detail))
        turn_records.append(
            {
                "number": turn.number, "user": turn.query, "agent": turn.reply,
                "triples": [list(triple.names) for triple in item.triples] if item else [],
                "question": item is not None, "why_not": reason or None,
            }
        )  # fmt: skip
        if turn.cut:
            break
        seen_queries.add(tokens(turn.query))
        history += [(USER, turn.query), (AGENT, turn.reply)]
    rejects.sort(key=lambda reject: reject.number)
    return ReplyItems(tuple(items), tuple(rejects), tuple(turn_records))


def _turns(subject: Subject, fields: list[Field], cut: bool) -> tuple[list[_Turn], list[RejectedItem]]:
    """Queries with their replies, and what belongs to none.  Two replies to one query are one, and so are two T."""
    turns: list[_Turn] = []
    rejects: list[RejectedItem] = []
    query: str | None = None
    reply: list[str] = []
    cited: list[str] = []
    number = 0

    def stray(reason: str, text: str) -> None:
        rejects.append(RejectedItem(subject, "turn", reason, max(number, 1), text))

    def end(broken: bool = False) -> None:
        nonlocal query
        if query is not None and not reply:
            stray(CUT if broken else NO_REPLY, query)
        elif query is not None and not (query.strip() and "".join(reply).strip()):
            stray(CUT if broken else EMPTY_TEXT, query or " ".join(reply))
        elif query is not None:
            turns.append(_Turn(number, query, " ".join(reply), "\n".join(cited), broken))
        query = None
        reply.clear()
        cited.clear()

    for field in fields:
        if field.label == USER:
            end()
            query, number = field.text, number + 1
        elif field.label == AGENT:
            if query is None:
                stray(AGENT_FIRST if not number else NO_QUERY, field.text)
            elif cited:
                end()
                stray(NO_QUERY, field.text)
            else:
                reply.append(field.text)
        elif field.label == TRIPLES:
            if not reply:
                stray(STRAY_TRIPLES, field.text)
            else:
                cited.append(field.text)
    end(cut)
    return turns, rejects


def _check(
    subject: Subject, turn: _Turn, citable: Citable, history: list[tuple[str, str]], seen_queries: set[tuple[str, ...]],
    mentions: NameMatcher,
) -> tuple[BenchmarkItem | None, str, str]:  # fmt: skip
    """The question that a turn makes, or why it makes none and what exactly."""
    if turn.cut:
        return None, CUT, ""
    cited = citable.read(turn.cited)
    if cited.foreign:
        return None, FOREIGN, cited.foreign
    if not cited.indices:
        return None, NO_TRIPLE, ""
    if tokens(turn.query) in seen_queries:
        return None, DUPLICATE, "asked before in this dialogue"
    triples = tuple(subject.triples[index] for index in cited.indices)
    topics, answers = _ends(subject, triples, turn.query, history, mentions)
    if not answers:
        return None, GIVEN_AWAY, turn.cited
    if not topics:
        return None, NO_TOPIC, turn.cited
    if not any(_mentions_answer(answer, turn.reply, mentions) for answer in answers):
        return None, UNTOLD, "; ".join(answer.name for answer in answers)
    item = BenchmarkItem(subject, turn.number, turn.query, triples, topics, answers, tuple(history), turn.reply)
    return item, "", ""


def _ends(
    subject: Subject, triples: tuple[Triple, ...], query: str, history: list[tuple[str, str]], mentions: NameMatcher
) -> tuple[tuple[End, ...], tuple[End, ...]]:
    """The ends of the triples that a query is about, and those that it asks for.

    Known is what the query names, and the dialogue's entity where a pronoun must mean it: it was named before, or no
    end is named at all.  Of a triple with one known end the other is the answer.
    """
    main = subject.end
    before = any(mentions.any(main.forms, text) for _, text in history)
    topics: dict[int, End] = {}
    answers: dict[int, End] = {}
    for triple in triples:
        ends = (triple.head, triple.tail)
        known = [end for end in ends if mentions.any(end.forms, query)]
        if main in ends and main not in known and (before or not known):
            known.append(main)
        if not known:
            known.append(triple.head)
        for end in ends:
            (topics if end in known else answers)[end.id] = end
    remaining = {i: end for i, end in answers.items() if i not in topics}
    return tuple(end for end in topics.values() if end.entity), tuple(remaining.values())


def _mentions_answer(answer: End, reply: str, mentions: NameMatcher) -> bool:
    """Whether a reply names an answer; of a date the year is enough, since it has many wordings."""
    if mentions.any((*answer.forms, *date_forms(answer)), reply):
        return True
    year = re.match(r"[+-]?0*(\d{1,4})-\d\d", answer.key) if not answer.entity else None
    return year is not None and year[1] in tokens(reply)
