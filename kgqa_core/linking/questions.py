"""Stage `linked`: questions whose topics are the entities that the tagger finds in their text.

Also the topics and earlier turns of a single question: read from a request, and described for a reply.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from kgqa_core.config import LinkingOptions
from kgqa_core.datasets.files.question import read_questions, write_questions
from kgqa_core.errors import InputError
from kgqa_core.kg.store import KgStore
from kgqa_core.linking.mentions import Mention
from kgqa_core.linking.tagger import Tagger, open_tagger, select_entities
from kgqa_core.question_limits import TOPIC_ENTITIES
from kgqa_core.store.shards import LOADING, add_counts, join_rows, read_parts, share, write_part
from kgqa_core.types import ROLES, Linked, Question
from kgqa_core.workspace import Workspace

LINKS = "links.parquet"
PROGRESS_EVERY = 100
"""Questions between two words on the progress."""

_COLUMNS = {
    "question": pl.String,
    "turn": pl.Int32,
    "start": pl.Int32,
    "end": pl.Int32,
    "mention": pl.String,
    "entity": pl.Int64,
    "rho": pl.Float64,
    "rank": pl.Int32,
}


def link_questions(
    workspace: Workspace,
    *,
    kg: Path,
    mentions: Path,
    questions: Path,
    options: LinkingOptions,
    splits: Collection[str] = (),
) -> dict[str, Any]:
    """Writes `questions.parquet` and `links.parquet`, and returns counts.

    The questions are those of the input, with linked topics: `topic_entities` by falling ρ, `topic_weights` their ρ,
    `topic_keys` the words that they were found by.  Where nothing is found a question has no topic; it stays.
    links.parquet: the mentions that were chosen or selected, with all their candidates, rows (question, turn, start,
    end, mention, entity, rho, rank); rank 0 is the best of its mention.
    splits: questions of others that name topics keep them; every split is linked where there is none.  part: link only
    a share of the questions; `merge` joins the parts.
    Raises ArtifactError when the dictionary or the questions are damaged.
    """
    read = read_questions(questions)
    read = read[share(workspace.part, range(len(read)), len(read))]
    with LOADING:
        tagger = open_tagger(mentions, kg, options)
    results: list[Question] = []
    rows: list[tuple[Any, ...]] = []
    for number, question in enumerate(read, start=1):
        if question.topic_keys and splits and question.split not in splits:
            results.append(question)
        else:
            named = _link(tagger, question)
            topics = topics_of(named, options)
            results.append(with_links(question, topics))
            rows += _rows(question, named, {entity for entity, _, _ in topics})
        if number % PROGRESS_EVERY == 0 or number == len(read):
            workspace.monitor.progress(number, len(read), "questions")
    _write(workspace.out, results, pl.DataFrame(rows, schema=_COLUMNS, orient="row"))
    counts = _counts(results, len(rows))
    if workspace.part is not None:
        write_part(workspace.out, counts)
    return counts


def merge(workspace: Workspace, parts: Sequence[Path]) -> dict[str, Any]:
    """Joins the folders of all parts of `link_questions`, and returns its counts.

    Raises ArtifactError when a part is damaged.
    """
    results = read_parts(parts)
    questions = [question for folder in parts for question in read_questions(folder)]
    _write(workspace.out, questions, join_rows(parts, LINKS))
    return add_counts([result["counts"] for result in results])


def topics_of(mentions: Sequence[Mention], options: LinkingOptions) -> list[tuple[int, float, str]]:
    """(entity, ρ, words) of what a text is about, best first: the entities of `Tagger.entities`."""
    return [
        (candidate.entity, candidate.rho, mention.text) for candidate, mention in select_entities(mentions, options)
    ]


def with_links(question: Question, topics: Sequence[tuple[int, float, str]]) -> Question:
    """The question with these topics."""
    return replace(
        question,
        topic_keys=tuple(words for _, _, words in topics),
        topic_entities=tuple(entity for entity, _, _ in topics),
        topic_weights=tuple(rho for _, rho, _ in topics),
    )


def link_question(tagger: Tagger, question: Question, options: LinkingOptions) -> tuple[Question, list[Linked]]:
    """A single question with the topics linked in its text, and its mentions as in `links.parquet`."""
    named = _link(tagger, question)
    topics = topics_of(named, options)
    results = [
        (mention.text, [(candidate.entity, candidate.rho) for candidate in mention.candidates])
        for mention in _reported(named, {entity for entity, _, _ in topics})
    ]
    return with_links(question, topics), results


def dialogue_turns(dialogue: Sequence[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """Earlier turns, each by `user` or `agent`.  Raises InputError for another role."""
    for role, _ in dialogue:
        if role not in ROLES:
            raise InputError(f"a turn of the dialogue is by {role!r}; the roles are {' and '.join(ROLES)}")
    return tuple((role, text) for role, text in dialogue)


def _link(tagger: Tagger, question: Question) -> list[Mention]:
    return tagger.link(question.text, question.dialogue)


def _reported(mentions: Sequence[Mention], topics: Collection[int]) -> list[Mention]:
    """The mentions that were chosen or selected, in order of turn and place."""
    reported = [mention for mention in mentions if mention.chosen or mention.candidates[0].entity in topics]
    return sorted(reported, key=lambda mention: (mention.turn, mention.start, mention.end))


def _rows(question: Question, mentions: Sequence[Mention], topics: Collection[int]) -> list[tuple[Any, ...]]:
    return [
        (question.id, mention.turn, mention.start, mention.end, mention.text, candidate.entity, candidate.rho, rank)
        for mention in _reported(mentions, topics)
        for rank, candidate in enumerate(mention.candidates)
    ]


def _write(out: Path, questions: Sequence[Question], links: pl.DataFrame) -> None:
    write_questions(out, questions)
    links.with_columns(pl.col("rho").round(6)).write_parquet(out / LINKS, compression="zstd", statistics=False)


def _counts(questions: Sequence[Question], links: int) -> dict[str, Any]:
    return {
        "questions": len(questions),
        "with_topics": sum(bool(question.topic_entities) for question in questions),
        "without_topics": sum(not question.topic_entities for question in questions),
        "topics": sum(len(question.topic_entities) for question in questions),
        "links": links,
    }


def with_topics(question: Question, topics: Sequence[str], store: KgStore) -> Question:
    """The question about every entity that these keys or labels mean.

    Raises InputError for one that means none, and where they mean more than `question_limits.TOPIC_ENTITIES`.
    """
    resolved = store.resolve([*topics, *(topic.strip() for topic in topics)])
    topic_of: dict[int, str] = {}
    for topic in topics:
        ids = resolved[topic] or resolved[topic.strip()]
        if not ids:
            near = store.suggest(topic)
            hint = f" (did you mean {near!r}?)" if near else ""
            raise InputError(f"topic entity {topic!r} is not in this graph{hint}; `kgqa kg show` looks entities up")
        for entity in ids:
            topic_of[entity] = topic
    if len(topic_of) > TOPIC_ENTITIES:
        raise InputError(f"the topics mean {len(topic_of):,} entities, and may mean {TOPIC_ENTITIES}; give their keys")
    return replace(question, topic_entities=tuple(topic_of), topic_keys=tuple(topic_of.values()))
