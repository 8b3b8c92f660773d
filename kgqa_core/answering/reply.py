"""The typed answer to one question, the same for a single question, a batch and a file of questions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from html import escape
from math import floor
from typing import TYPE_CHECKING, Any

from kgqa_core.types import ABSENT, UNREAD, UNSURE, Declined, NameSuggestion, OfferedReading, is_sentence

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, slots=True)
class AnswerTopic:
    """An entity that the question is about.  mention, rho: the words that it was linked by, and how surely."""

    key: str
    name: str
    mention: str | None = None
    rho: float | None = None


@dataclass(frozen=True, slots=True)
class AnswerFact:
    """A retrieved fact as text.  direction: +1 as stored, -1 followed against its direction."""

    text: str
    hop: int
    score: float
    direction: int


@dataclass(frozen=True, slots=True)
class RankedEntity:
    """A candidate answer of the retriever."""

    name: str
    score: float


@dataclass(frozen=True, slots=True)
class AnswerPassage:
    """A passage that the model read."""

    document: str
    title: str
    text: str
    score: float


@dataclass(frozen=True, slots=True)
class Effort:
    """What exploring the graph took.  end: how it ended.  calls: completions.  steps: what was done, one text each."""

    end: str
    calls: int
    prompt_tokens: int
    completion_tokens: int
    steps: tuple[str, ...] = ()


SHOWN = 50
"""Values of an answer that a notebook shows."""
MODEL_FAILED = "the language model failed: "
"""How the reject of a question begins on which the language model failed."""
_COMPUTED = ("operation", "form", "form_named", "computed", "proof", "proof_rows", "road")
_VERDICT = ("answerable", "confidence", "calibrated", "min_confidence", "reason", "missing", "nearest")


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to one question, and what it rests on.

    id, question: of the question, and its text.  output: what the answerer wrote or computed.  model: the answerer.
    knowledge: `retriever/format`.  text: what the model read.  topics, facts, entities, passages: what it rests on;
    passages is None where the format has none.  truncated: edges that the retriever left out for want of budget.
    operation: None where nothing computes; else with form (as text, None where none found anything), form_named (the
    same with names for keys), computed (the result as text), answers (its names or values), proof (texts of the first
    triples that it rests on), proof_rows (how many there are) and road (which part of `auto` proposed the form).
    wording: the answer as the language model of `auto:MODEL` puts it, None without one.  effort: calls, tokens and
    steps of an answerer that explores the graph, None for others.  chooser: which plan the language model of
    `symbolic.chooser` chose, or why none; None without one.
    understood: what a question that refers back to the dialogue was read as, None for a complete one.
    answerable: whether it is answered, None where no graph is read.  confidence: probability that the answer, given or
    withheld, is right, or, where an abstainer judges, that the graph holds it; never that of a decline; None where none
    was learnt or there is no answer to be sure of (entity not found, no fact).  calibrated: whether it was learnt.
    min_confidence: what decided, the answer is given from this confidence on; None where rules decide.  reason: why it
    is not answered, else None: one of `types.REASONS`, "no such type", or the kind of the decline (`declined`) where
    that is another than "not in this graph"; missing, nearest: what is not there, or was not read, and what comes
    nearest; suggestions: what words that were not read may mean; readings: what the question may mean, the likeliest
    first, where one of them may be right; each can be chosen by its number.
    reject: why a question of a file is not answered, else None.
    """

    id: str
    question: str
    output: str | None
    model: str = ""
    knowledge: str = ""
    text: str = ""
    topics: tuple[AnswerTopic, ...] = ()
    facts: tuple[AnswerFact, ...] = ()
    entities: tuple[RankedEntity, ...] = ()
    truncated: int = 0
    passages: tuple[AnswerPassage, ...] | None = None
    operation: str | None = None
    form: str | None = None
    form_named: str | None = None
    computed: str = ""
    answers: tuple[str, ...] | None = None
    proof: tuple[str, ...] = ()
    proof_rows: int = 0
    road: str | None = None
    wording: str | None = None
    effort: Effort | None = None
    chooser: str | None = None
    understood: str | None = None
    answerable: bool | None = None
    confidence: float | None = None
    calibrated: bool | None = None
    min_confidence: float | None = None
    reason: str | None = None
    missing: str | None = None
    nearest: str | None = None
    suggestions: tuple[NameSuggestion, ...] = ()
    readings: tuple[OfferedReading, ...] = ()
    reject: str | None = None

    @property
    def answer(self) -> str | None:
        """The output, or None where the graph does not hold the answer or the question was rejected."""
        return None if self.answerable is False or self.reject else self.output

    @property
    def model_failed(self) -> bool:
        """Whether the language model failed on the question, so that it may be asked again."""
        return self.reject is not None and self.reject.startswith(MODEL_FAILED)

    @property
    def listed(self) -> list[str]:
        """The answer as a list of names or values; empty where there is none."""
        if self.answer is None:
            return []
        if self.answers is not None:
            return list(self.answers)
        return [self.answer] if self.answer else []

    @property
    def model_answer(self) -> str | None:
        """The output where it is withheld because the graph does not hold the answer, else None."""
        return self.output if self.answerable is False else None

    @property
    def declined(self) -> Declined | None:
        """The kind of a decline; None where there is an answer, or the question was rejected."""
        if self.answerable is not False or self.reject:
            return None
        return UNREAD if self.reason == UNREAD else UNSURE if self.reason == UNSURE else ABSENT

    @property
    def decline(self) -> str | None:
        """Why there is no answer, in words; None where there is one."""
        if self.answer is not None:
            return None
        return self.reject or refusal_text(self._verdict())

    def __repr__(self) -> str:
        shown = repr(self.answer) if self.decline is None else self.decline.partition("\n")[0]
        return f"<Answer to {self.question!r}: {shown}{self._sure(', ')}>"

    def _repr_html_(self) -> str:
        """The answer for notebooks: its values, the confidence, and the proof folded."""
        values = "".join(f"<li>{escape(value)}</li>" for value in self.listed[:SHOWN])
        more = f"<li>… {len(self.listed) - SHOWN:,} more</li>" if len(self.listed) > SHOWN else ""
        given = f"<ul>{values}{more}</ul>" if values else f"<p><em>{escape(self.decline or 'none')}</em></p>"
        proof = "".join(f"<li>{escape(text)}</li>" for text in self.proof if values)
        facts = f"{self.proof_rows:,} fact{'s' * (self.proof_rows != 1)}"
        folded = f"<details><summary>Proof: {facts}</summary><ul>{proof}</ul></details>"
        return f"<div><p><b>{escape(self.question)}</b>{self._sure(' · ')}</p>{given}{folded if proof else ''}</div>"

    def _sure(self, before: str) -> str:
        return "" if self.confidence is None or self.decline else f"{before}confidence {self.confidence:.2f}"

    def to_dict(self) -> dict[str, Any]:
        """As plain values: the record of the API and of `kgqa ask --json`, without what was not read or computed."""
        return {
            "question": self.question,
            "answer": self.answer,
            "answers": self.listed,
            "model": self.model,
            "knowledge": self.knowledge,
            "text": self.text,
            "topics": [_without_none(topic) for topic in self.topics],
            "facts": [asdict(fact) for fact in self.facts],
            "entities": [asdict(entity) for entity in self.entities],
            "truncated": self.truncated,
            **({} if self.passages is None else {"passages": [asdict(passage) for passage in self.passages]}),
            **self._computed(),
            **({} if self.wording is None else {"wording": self.wording}),
            **({} if self.effort is None else {"effort": asdict(self.effort)}),
            **self._verdict(),
        }

    def to_row(self) -> dict[str, Any]:
        """A row of the file that `kgqa answer` writes."""
        return {
            "id": self.id,
            "question": self.question,
            "answer": self.answer,
            "answers": self.listed,
            "facts": self.text,
            "reject": self.reject,
            **self._computed(),
            **({} if self.wording is None else {"wording": self.wording}),
            **({} if self.effort is None else {"effort": asdict(self.effort)}),
            **self._verdict(),
        }

    def _computed(self) -> dict[str, Any]:
        if self.operation is None:
            return {}
        chosen = {name: one for name in ("chooser", "understood") if (one := getattr(self, name)) is not None}
        return {name: getattr(self, name) for name in _COMPUTED} | {"proof": list(self.proof)} | chosen

    def _verdict(self) -> dict[str, Any]:
        if self.answerable is None:
            return {}
        lists = {name: [asdict(one) for one in getattr(self, name)] for name in ("suggestions", "readings")}
        for row in lists["readings"]:
            row["answers"] = [*row["answers"]]
        withheld = {} if self.answerable else {"declined": self.declined, "model_answer": self.output, **lists}
        return {name: getattr(self, name) for name in _VERDICT} | withheld


class Answers(list[Answer]):
    """The answers to a batch, in its order."""

    def _repr_html_(self) -> str:
        return "".join(answer._repr_html_() for answer in self)

    def to_polars(self) -> pl.DataFrame:
        """A table with a row an answer; `answers` and `proof` are lists."""
        import polars as pl

        columns: dict[str, Any] = {
            "id": pl.String, "question": pl.String, "answer": pl.String, "answers": pl.List(pl.String),
            "confidence": pl.Float64, "answerable": pl.Boolean, "declined": pl.String, "reason": pl.String,
            "missing": pl.String, "nearest": pl.String, "form": pl.String, "proof": pl.List(pl.String),
            "reject": pl.String,
        }  # fmt: skip
        rows = [[one.listed if name == "answers" else getattr(one, name) for name in columns] for one in self]
        return pl.DataFrame(rows, schema=columns, orient="row")


def _without_none(topic: AnswerTopic) -> dict[str, Any]:
    return {name: value for name, value in asdict(topic).items() if value is not None}


def refusal_text(reply: Mapping[str, Any]) -> str:
    """Why a question has no answer, in words: one sentence, then what unread words may mean, and the other readings.

    reply: as of `Answer.to_dict`.

    >>> refusal_text({"reason": "no such relation", "missing": "height", "nearest": "population"})
    'not in this graph: no such relation: height (nearest: population)'
    """
    reason, missing, near, sure = (reply.get(name) for name in ("reason", "missing", "nearest", "confidence"))
    meant = [f"{one['words']}: did you mean {one['name']}?  {one['line']}" for one in reply.get("suggestions", ())]
    offers = [_offer(number, one) for number, one in enumerate(reply.get("readings", ()), start=1)]
    if reason == UNREAD:
        words = missing or "the question"
        words = words if is_sentence(missing) else f"“{words.replace(', ', '”, “')}”"
        without = ["without these words it may mean:", *offers] if offers else []
        return "\n".join([f"I did not understand {words}", *meant, *without])
    if reason == UNSURE:
        best = f": {answer}" if not offers and (answer := reply.get("model_answer")) else ""
        if sure is not None:
            best = f" (confidence {floor(100 * sure) / 100:.2f}, needs {reply['min_confidence']:.2f}){best}"
        return "\n".join([f"I am not sure{best}", *offers])
    why = f"{ABSENT}: {reason or 'nothing was found'}"
    return "\n".join([why + (f": {missing}" if missing else "") + (f" (nearest: {near})" if near else ""), *meant])


def _offer(number: int, reading: Mapping[str, Any]) -> str:
    """A reading in a line: `2. the largest city of Norland: Oster (0.21)`."""
    listed = list(reading["answers"])
    found = ", ".join(listed) or "none"
    more = f" and {reading['rows'] - len(listed):,} more" if reading["rows"] > len(listed) > 0 else ""
    sure = reading["confidence"]
    shown = "" if sure is None else " (< 0.01)" if 0 < sure < 0.01 else f" ({floor(100 * sure) / 100:.2f})"
    return f"{number}. {reading['words']}: {found}{more}{shown}"
