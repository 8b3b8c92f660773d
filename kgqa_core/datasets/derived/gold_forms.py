"""The ideal form of each question: the data set's own, else made of its relation paths, its topics and its type.

A path from one topic is a chain of joins, paths from several are an intersection.  Types that compute (Mintaka's)
give several forms, for the annotation says neither direction nor place: of those the one whose result is the annotated
answer is used, or none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from kgqa_core.errors import FormError, FormTimeout
from kgqa_core.logic.forms import BESTS, And, Arg, Count, Entity, Form, Greater, Holds, Minus, Nth, Step
from kgqa_core.logic.memory import MemoryGraph
from kgqa_core.logic.parser import parse
from kgqa_core.logic.paths import from_path
from kgqa_core.types import INVERSE, Question

PLACES = (2, 3, 4, 5)
"""Ordinals that are tried."""

GIVEN, PATH, COMPUTED = "form", "path", "computed"
"""Where a form is from: the data set, its relation paths, or paths and the type of the question."""

NO_FORM = "only answers are annotated"
UNREADABLE = "the annotated form cannot be read"
TOPICS = "paths and topics do not go together"

_COMPUTING = ("count", "difference", "comparative", "superlative", "ordinal", "yes/no")


@dataclass(frozen=True, slots=True)
class FormCandidate:
    """A form that a question may have.  exact: it counts only when its result is the annotated answer."""

    form: Form
    origin: str
    exact: bool = False


def candidates(question: Question, topics: Sequence[str]) -> list[FormCandidate]:
    """The forms that a question may have, the likeliest first; topics: keys of its topic entities.

    Raises FormError whose message is the reason why it has none.
    """
    if question.s_expression is not None:
        try:
            return [FormCandidate(parse(question.s_expression), GIVEN)]
        except FormError as fault:
            raise FormError(f"{UNREADABLE}: {fault}") from None
    if not question.relation_paths:
        raise FormError(NO_FORM)
    computing = question.complexity in _COMPUTING
    made = _computed(question, topics) if computing else _plain(question, topics)
    forms = list(dict.fromkeys(made))
    if not forms:
        raise FormError(f"{TOPICS}: {len(topics)} topics, {len(question.relation_paths)} paths")
    return [FormCandidate(form, COMPUTED if computing else PATH, computing) for form in forms]


def measure(path: Sequence[str]) -> tuple[Step, ...]:
    """A relation path as what is measured of the members of a set."""
    return tuple(Step(key.removeprefix(INVERSE), key.startswith(INVERSE)) for key in path)


def _plain(question: Question, topics: Sequence[str]) -> Iterator[Form]:
    paths = question.relation_paths
    several = len(topics) > 1 and len(question.topic_keys) > 1
    if several and len(paths) in (1, len(topics)):
        yield And(tuple(from_path(topic, path) for topic, path in zip(topics, _paired(paths, topics), strict=True)))
    if not several or question.complexity != "intersection":
        for topic in topics:
            for path in paths:
                yield from_path(topic, path)


def _computed(question: Question, topics: Sequence[str]) -> Iterator[Form]:
    make: dict[str, Callable[[Question, Sequence[str]], Iterator[Form]]] = {
        "count": lambda question, topics: (Count(form) for form in _plain(question, topics)),
        "difference": _difference,
        "comparative": _comparative,
        "superlative": _ranked,
        "ordinal": _ranked,
        "yes/no": _holds,
    }
    return make[question.complexity or ""](question, topics)


def _difference(question: Question, topics: Sequence[str]) -> Iterator[Form]:
    paths = question.relation_paths
    if len(topics) == 2 and len(paths) in (1, 2):
        one, other = (from_path(topic, path) for topic, path in zip(topics, _paired(paths, topics), strict=True))
        yield Minus(one, other)
        yield Minus(other, one)


def _comparative(question: Question, topics: Sequence[str]) -> Iterator[Form]:
    for path in question.relation_paths if len(topics) == 2 else ():
        for counted in (False, True):
            for best in BESTS:
                yield Greater(Entity(topics[0]), Entity(topics[1]), measure(path), best, counted)


def _ranked(question: Question, topics: Sequence[str]) -> Iterator[Form]:
    for topic in topics:
        for path in question.relation_paths:
            members = from_path(topic, path[:-1]) if len(path) > 1 else None
            for best in BESTS if members is not None else ():
                assert members is not None
                if question.complexity == "superlative":
                    yield Arg(best, members, measure(path[-1:]))
                else:
                    yield from (Nth(n, best, members, measure(path[-1:])) for n in PLACES)


def _holds(question: Question, topics: Sequence[str]) -> Iterator[Form]:
    for path in question.relation_paths if len(topics) == 2 else ():
        yield Holds(from_path(topics[0], path), Entity(topics[1]))
        yield Holds(from_path(topics[1], path), Entity(topics[0]))


def _paired(paths: Sequence[tuple[str, ...]], topics: Sequence[str]) -> Sequence[tuple[str, ...]]:
    return paths if len(paths) == len(topics) else [paths[0]] * len(topics)


def gold_form(question: Question, keys: Mapping[int, str], graph: MemoryGraph) -> Form | None:
    """The form of a question, None where it has none; one that must be computed is run, the others are not."""
    try:
        made = candidates(question, [keys[entity] for entity in question.topic_entities if entity in keys])
    except FormError:
        return None
    return next((one.form for one in made if not one.exact or _answers(one, question, graph)), None)


def _answers(candidate: FormCandidate, question: Question, graph: MemoryGraph) -> bool:
    """Whether a form finds, in time, just what is annotated."""
    try:
        result = graph.execute(candidate.form)
    except (FormError, FormTimeout):
        return False
    answer = question.answer_keys[0].casefold() if question.answer_keys else ""
    if isinstance(candidate.form, Holds):
        return answer in (("yes", "true") if result.value else ("no", "false"))
    if isinstance(candidate.form, Count):
        return answer.replace(",", "").removesuffix(".0") == str(result.value)
    return bool(result.nodes) and set(result.nodes) == set(question.answers)
