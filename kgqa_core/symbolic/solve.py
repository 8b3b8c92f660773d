"""Computes the answers of questions: forms are assembled or come from a parser, are checked, and run until one answers.

The date of a question becomes a condition on qualifiers, that of the join nearest to the answer whose relation has
dated ones.  Of several qualifiers a beginning that another relation ends (`lookup.ending`: P580, P582) comes first,
then the one that most statements have.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from typing import TYPE_CHECKING, ClassVar

from kgqa_core.config import SymbolicOptions
from kgqa_core.errors import FormError, FormTimeout
from kgqa_core.kg.store import KgStore
from kgqa_core.logic.execute import execute
from kgqa_core.logic.forms import Count, Form, Holds, Literal, Where, rewritten
from kgqa_core.logic.lookup import ending, index
from kgqa_core.logic.measures import dated_sql
from kgqa_core.logic.parser import parse
from kgqa_core.logic.result import Result, value_text
from kgqa_core.logic.schema import Schema, types_of
from kgqa_core.monitor import QUIET, Monitor
from kgqa_core.symbolic.arguments import Proposed, Weighted
from kgqa_core.symbolic.assemble import Assembler, WeightedForm
from kgqa_core.symbolic.operations import KINDS, OperationScores, operation_of
from kgqa_core.symbolic.question_reader import QuestionReading, read_question
from kgqa_core.types import Question

if TYPE_CHECKING:
    from kgqa_core.symbolic.operator import OperatorModel


class Dates:
    """Which qualifiers date the statements of each relation, looked up at first use."""

    def __init__(self, store: KgStore) -> None:
        self._store = store
        self._known: dict[str, str | None] = {}
        self._any: bool | None = None

    def conditioned(self, form: Form, date: Literal) -> Form | None:
        """The form with the condition `(at QUALIFIER date)` on a join; None where no relation of it has dates."""
        if self._any is None:
            row = self._store.connection.execute("SELECT count(*) FROM (SELECT 1 FROM qualifiers LIMIT 1)").fetchone()
            self._any = bool(row and row[0])
        if not self._any:
            return None
        return rewritten(form, lambda key: Where(own, "at", date) if (own := self.qualifier(key)) else None)

    def qualifier(self, relation: str) -> str | None:
        """The key of the qualifier that dates the statements of a relation; None where none does."""
        if relation not in self._known:
            rows = self._store.connection.execute(
                "SELECT r.key, count(*) AS n FROM qualifiers q JOIN relations r ON r.id = q.relation "
                f"JOIN entities e ON e.id = q.value WHERE {dated_sql('e')} AND q.triple IN "
                "(SELECT id FROM triples WHERE relation = (SELECT id FROM relations WHERE key = $1)) "
                "GROUP BY r.key ORDER BY n DESC, r.key",
                [relation],
            ).fetchall()
            keys = [key for key, _ in rows]
            begins = [key for key in keys if ending(key) is not None]
            ended = [key for key in self._store.relation_keys() if ending(key) in keys] if not begins else []
            self._known[relation] = next(iter([*begins, *ended, *keys]), None)
        return self._known[relation]


BATCH = 256
"""Questions whose operations are guessed at once."""
NEARLY = 4.0
"""How much less a form may weigh that is preferred to one that finds several numbers."""
DATED = math.log(4)
"""What a form gains that uses the date of its question."""


@dataclass(frozen=True, slots=True)
class ComputedAnswer:
    """What was computed for a question.

    kind: of the operation, one of KINDS; form: None where no form found anything.  answers: names of entities and
    literals in order of id, a number, or `yes` or `no`.  keys: of these.  weight: of the form.  proof: triples that the
    answer rests on; for a `no` those of what there is instead.  tried: forms that were run.  topics: names, by mention.
    words: the question without them.  Of the answerer `auto` also confidence: that the best answer, given or not, is
    right, None where that was not learnt or there is none; min_confidence: below which it declines; road: what proposed
    the form, one of `types.ROADS`; reason, one of `types.REASONS`, and missing, in words, where it declines; reject:
    why nothing was computed, where it took too long.
    """

    question: str
    kind: str
    form: Form | None = None
    answers: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    weight: float = 0.0
    proof: tuple[int, ...] = ()
    truncated: bool = False
    tried: int = 0
    topics: tuple[str, ...] = ()
    words: str = ""
    confidence: float | None = None
    min_confidence: float | None = None
    road: str | None = None
    reason: str | None = None
    missing: str | None = None
    reject: str | None = None


@dataclass
class Solver:
    """Computes answers on one graph, which stays open as long as the solver is used.

    timeouts: forms so far that took longer than `options.timeout_seconds`.
    """

    store: KgStore
    model: OperatorModel
    options: SymbolicOptions
    schema: Schema = field(init=False)
    timeouts: int = field(init=False, default=0)
    ranks_all_roads: ClassVar[bool] = False

    def __post_init__(self) -> None:
        index(self.store)
        self.schema = Schema.read(self.store)
        self._labels = dict(zip(self.store.relation_keys(), self.store.relation_names(), strict=True))
        self._dates = Dates(self.store)

    def at_confidence(self, least: float) -> Solver:
        """The solver itself: it declines nothing by confidence."""
        return self

    def solve(
        self,
        questions: Sequence[Question],
        paths: Mapping[str, Sequence[Weighted]],
        parsed: Mapping[str, Sequence[Proposed]] | None = None,
        monitor: Monitor = QUIET,
    ) -> list[ComputedAnswer]:
        """What is computed for each question, in their order.

        paths: relation paths by question, from a retriever.  parsed: forms by question, from a parser; where a question
        has some, they are tried before those that are assembled of paths.
        """
        found: list[ComputedAnswer] = []
        for start in range(0, len(questions), BATCH):
            own = questions[start : start + BATCH]
            topics = sorted({entity for question in own for entity in question.topic_entities})
            keys, names = self.store.entity_keys(topics), self.store.surface_forms(topics)
            types = types_of(self.store, keys.values())
            readings = [read_question(question, keys, names, self.model.reader.topic_token) for question in own]
            guesses = self.model.guess([one.masked for one in readings])
            called = {keys[entity]: forms[0] for entity, forms in names.items() if forms}
            for question, one, guess in zip(own, readings, guesses, strict=True):
                own_paths, text = paths.get(question.id, ()), question.text
                assembler = Assembler(self.schema, self._labels, types, one, guess, own_paths, text)
                proposed = self._parsed((parsed or {}).get(question.id, ()), one, guess)
                candidates = chain(proposed, assembler.candidates())
                solved = self._first(question, self._dated(candidates, one), guess)
                mentioned = tuple(called.get(m.entities[0][0], "") for m in one.mentions)
                found.append(replace(solved, topics=mentioned, words=one.words))
                monitor.progress(len(found), len(questions), "questions")
        return found

    def _parsed(
        self, forms: Sequence[Proposed], reading: QuestionReading, guess: OperationScores
    ) -> list[WeightedForm]:
        """A parser's forms, weighed with the operation that they do."""
        mentions = [key for mention in reading.mentions for key, _ in mention.entities]
        found = []
        for one in forms:
            form = parse(one[0])
            kind = operation_of(form, mentions).kind
            found.append(WeightedForm(form, round(one[1] + guess.kinds[KINDS.index(kind)], 6), kind))
        return sorted(found, key=lambda one: -one.weight)

    def _dated(self, candidates: Iterable[WeightedForm], reading: QuestionReading) -> Iterator[WeightedForm]:
        """The candidates, each that can take up the question's date before itself without."""
        for one in candidates:
            form = None
            if reading.date is not None and self.options.date_conditions:
                form = self._dates.conditioned(one.form, reading.date)
            if form is not None:
                yield WeightedForm(form, round(one.weight + DATED, 6), one.kind)
            yield one

    def _first(self, question: Question, candidates: Iterable[WeightedForm], guess: OperationScores) -> ComputedAnswer:
        """The first candidate that finds something; several numbers give way to a single answer nearly as likely."""
        tried, several, least = 0, None, -math.inf
        for tried, one in enumerate(islice(candidates, self.options.max_forms), 1):
            least = one.weight - self.options.margin if tried == 1 else least
            if one.weight < least:
                break
            if several is not None and one.weight < several[0].weight - NEARLY:
                break
            result = self._run(one.form, named=one.kind == "none")
            if result is None:
                continue
            if one.kind == "none" and self._numbers(result):
                several = several or (one, result)
            elif several is None or len(result.nodes) == 1:
                return self._computed(question, one, result, tried)
        return (
            ComputedAnswer(question.id, guess.kind, tried=tried)
            if several is None
            else self._computed(question, *several, tried)
        )

    def _numbers(self, result: Result) -> bool:
        """Whether a result is several numbers or dates."""
        if len(result.nodes) < 2:
            return False
        row = self.store.connection.execute(
            "SELECT count(number) FROM entities WHERE id IN (SELECT unnest($1::INTEGER[]))", [list(result.nodes)]
        ).fetchone()
        return row is not None and row[0] == len(result.nodes)

    def _run(self, form: Form, named: bool) -> Result | None:
        """What a form finds in time; None for nothing, a count of 0, and a `no` of something that has no such thing.

        named: what the form names is no answer unless it is the only one.
        """
        try:
            result = execute(form, self.store, seconds=self.options.timeout_seconds, without_named=named)
            if named and result.empty:
                result = execute(form, self.store, seconds=self.options.timeout_seconds)
            if isinstance(form, Holds) and not result.value:
                instead = execute(form.of, self.store, seconds=self.options.timeout_seconds)
                return None if instead.empty else replace(result, proof=instead.proof)
        except FormTimeout:
            self.timeouts += 1
            return None
        except FormError:
            return None
        return None if result.empty or (isinstance(form, Count) and not result.value) else result

    def _computed(self, question: Question, one: WeightedForm, result: Result, tried: int) -> ComputedAnswer:
        answers: tuple[str, ...]
        keys: tuple[str, ...]
        if result.value is not None:
            keys = answers = (value_text(result.value),)
        else:
            nodes = result.nodes[: self.options.max_answers]
            names, own = self.store.names(nodes), self.store.entity_keys(nodes)
            answers = tuple(dict.fromkeys(names[node] for node in nodes))
            keys = tuple(own[node] for node in nodes)
        cut = result.truncated or len(result.nodes) > self.options.max_answers
        return ComputedAnswer(question.id, one.kind, one.form, answers, keys, one.weight, result.proof, cut, tried)
