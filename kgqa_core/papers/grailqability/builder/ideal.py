"""The questions that the ideal graph answers: form, result, and what of the graph each of them uses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kgqa_core.datasets.derived.gold_forms import FormCandidate, candidates
from kgqa_core.errors import FormError, FormTimeout
from kgqa_core.logic.execute import Result, execute
from kgqa_core.logic.forms import Arg, Count, Form, Greater, Holds, Nth, Steps, children, elements
from kgqa_core.logic.memory import MemoryGraph
from kgqa_core.logic.normalise import normalise
from kgqa_core.monitor import QUIET, Monitor
from kgqa_core.papers.grailqability.builder.graph_with_drops import Ints
from kgqa_core.papers.grailqability.builder.trace import Tracer, is_exact
from kgqa_core.papers.grailqability.parsing.examples import NOT_COMPUTED, likeness
from kgqa_core.types import Question

EMPTY = "its form has no answer in the graph"
WRONG = "its form does not lead to an annotated answer"
FAILED = "its form cannot be run"
PROOFS = 1_000_000
"""Triples that a form may rest on."""


@dataclass(frozen=True, slots=True)
class Ideal:
    """A question with its ideal form and result.

    nodes, value: as `logic.execute.Result`.  asks: the form whose being empty makes the question unanswerable.
    support: the triples that it rests on (`rests_on`).  relations, classes, mentions: ids that the form names.
    agrees: whether the result is the annotated answer, exactly.
    """

    question: Question
    form: Form
    origin: str
    nodes: tuple[int, ...]
    value: float | bool | None
    asks: Form
    support: Ints
    relations: tuple[int, ...]
    classes: tuple[int, ...]
    mentions: tuple[int, ...]
    agrees: bool

    @property
    def names(self) -> tuple[int, ...]:
        """Ids of the entities and classes that the form names."""
        return (*self.classes, *self.mentions)


def asks(form: Form, value: float | bool | None) -> Form:
    """The form that must not be empty for a question to be answerable.

    A `no` stands as long as anything is known of what it denies, a `yes` as long as it holds.
    """
    if isinstance(form, Count):
        return form.of
    return form.of if isinstance(form, Holds) and value is False else form


def find_ideals(
    questions: Sequence[Question], tracer: Tracer, monitor: Monitor = QUIET
) -> tuple[list[Ideal], dict[str, str]]:
    """The questions that have a form and an answer, in their order, and id → reason of the others."""
    keys = tracer.store.entity_keys(sorted({i for question in questions for i in question.topic_entities}))
    ideals, left_out = [], {}
    for number, question in enumerate(questions, start=1):
        if number % 200 == 0 or number == len(questions):
            monitor.progress(number, len(questions), "ideal forms")
        try:
            if question.unlinkable:
                raise FormError("cannot be linked: " + question.unlinkable.partition("(")[0].strip())
            topics = [keys[i] for i in question.topic_entities if i in keys]
            ideals.append(_best(question, candidates(question, topics), tracer))
        except (FormError, FormTimeout) as fault:
            left_out[question.id] = str(fault)
    return ideals, left_out


def reasons(left_out: dict[str, str]) -> dict[str, int]:
    """How many questions were left out, by reason; what is after a colon, or in quotes, does not count."""
    counts = Counter(reason.partition(":")[0] for reason in left_out.values())
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _best(question: Question, made: Sequence[FormCandidate], tracer: Tracer) -> Ideal:
    """The candidate whose result is most like the annotated answer, the first of equals.  Raises FormError."""
    best: tuple[float, Ideal] | None = None
    fault = EMPTY
    for candidate in made:
        try:
            ideal = _run(question, candidate, tracer)
        except FormError as failed:
            fault = f"{FAILED}: {failed}"
            continue
        if ideal is None:
            continue
        like = likeness(question, ideal.form, ideal.nodes, ideal.value)
        if like is None or (like == 1.0 if candidate.exact else like > 0):
            if best is None or (like or 0.0) > best[0]:
                best = (like or 0.0, ideal)
            if like in (None, 1.0):
                break
        else:
            fault = NOT_COMPUTED if candidate.exact else WRONG
    if best is None:
        raise FormError(fault)
    return best[1]


def _run(question: Question, candidate: FormCandidate, tracer: Tracer) -> Ideal | None:
    form = candidate.form
    used = elements(form)
    for kind, keys, known in (
        ("entity", (*used.entities, *used.classes), tracer.entity_ids),
        ("relation", used.relations, tracer.relation_ids),
    ):
        for key in keys:
            if key not in known:
                raise FormError(f"{kind} {key!r} is not in the graph")
    result = result_of(form, tracer, tracer.graph.whole)
    core = asks(form, result.value)
    denoted = tracer.denote(core)
    if not len(denoted.nodes) or (result.empty and result.value is None):
        return None
    like = likeness(question, form, result.nodes, result.value)
    return Ideal(
        question=question, form=form, origin=candidate.origin, nodes=result.nodes, value=result.value, asks=core,
        support=rests_on(core, tracer), relations=_ids(used.relations, tracer.relation_ids),
        classes=_ids(used.classes, tracer.entity_ids), mentions=_ids(used.entities, tracer.entity_ids),
        agrees=like == 1.0,
    )  # fmt: skip


def result_of(form: Form, tracer: Tracer, memory: MemoryGraph) -> Result:
    """The result of a form: traced in the graph with its drops where that is exact, else run on `memory`."""
    if not is_exact(form):
        return memory.execute(form)
    nodes = tracer.denote(form).nodes
    if isinstance(form, Count):
        return Result(value=len(nodes))
    if isinstance(form, Holds):
        compared = tracer.denote(form.one).nodes
        return Result(value=bool(len(compared)) and len(nodes) == len(compared))
    return Result(nodes=tuple(nodes.tolist()))


def rests_on(form: Form, tracer: Tracer) -> Ints:
    """The triples without which a form may lose its answers, ascending: those on every way to every answer.

    What ranks or compares rests on all that it looks at: of a third best nothing is left when a fourth one goes, and
    there were three.
    """
    looked = looked_at(form)
    if looked:
        parts = [rests_on(part, tracer) for part, _ in looked]
        parts += [tracer.along(path, tracer.graph.whole.nodes(part)) for part, path in looked]
        return np.unique(np.concatenate(parts))
    if is_exact(form):
        return tracer.denote(form).support()
    proof = np.array(execute(form, tracer.store, rows=PROOFS).proof, dtype=np.int64)
    return np.unique(np.concatenate([proof, *(rests_on(part, tracer) for part in ranking(form))]))


def looked_at(form: Form) -> tuple[tuple[Form, Steps], ...]:
    """The sets that a form ranks or compares, with the path to what it compares; nothing of other forms."""
    if isinstance(form, (Arg, Nth)):
        return ((form.of, form.path),)
    return ((form.one, form.path), (form.other, form.path)) if isinstance(form, Greater) else ()


def ranking(form: Form) -> list[Form]:
    """The outermost forms within a form that rank or compare."""
    return [inner for child in children(form) for inner in ([child] if looked_at(child) else ranking(child))]


def form_key(form: Form) -> str:
    """A text that is the same for isomorphic forms."""
    return str(normalise(form))


def _ids(keys: Sequence[str], known: dict[str, int]) -> tuple[int, ...]:
    return tuple(sorted(known[key] for key in keys))
