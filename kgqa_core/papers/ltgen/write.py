"""The stage that writes LTGen-QA or LTGen-Conv: prompts → a language model, or rules → read, checked, kept or rejected.

Every call to a model goes through `paid.generate_cached`: completions are cached, a killed run goes on with what is
missing, and a completion of which nothing was usable is a spent attempt.  Good questions of a bad completion are kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from kgqa_core.config import LlmOptions, WritingOptions
from kgqa_core.errors import InputError
from kgqa_core.kg.store import KgStore
from kgqa_core.llm.cache import ResponseCache, open_cache
from kgqa_core.llm.factory import load_model
from kgqa_core.llm.faults import UNREADABLE
from kgqa_core.llm.paid import Outcome, PromptBatch, insist
from kgqa_core.llm.protocol import GenerationParams, LanguageModel
from kgqa_core.metrics.normalise import tokens
from kgqa_core.monitor import Monitor
from kgqa_core.papers.benchmark_files import write_json_lines
from kgqa_core.papers.ltgen import conv, qa, template
from kgqa_core.papers.ltgen.card import statistics, write_card
from kgqa_core.papers.ltgen.parse import NameMatcher
from kgqa_core.papers.ltgen.prompts import conv_prompt, qa_prompt
from kgqa_core.papers.ltgen.records import (
    BenchmarkItem,
    EntityRelationPair,
    RejectedItem,
    ReplyItems,
    Subject,
    read_sample,
)
from kgqa_core.store.artifacts import write_json
from kgqa_core.workspace import Workspace

QUESTIONS_PER_ENTITY = 3
"""Entity-relation pairs of an entity that get a question."""
TEMPLATE = "template"
"""Name of the writer that is no model."""

ENDPOINT_FAILED = "endpoint failed"
NOTHING_USABLE = "nothing usable"
REFUSED = "refused"
EMPTY = "empty"

Kind = Literal["qa", "conv"]


@dataclass(frozen=True)
class Job:
    """A prompt about an entity.  by_rule: what the template writes.  read: makes a batch of a completion."""

    subject: Subject
    prompt: str
    by_rule: Callable[[], str]
    read: Callable[[str, bool], ReplyItems]


@dataclass
class WritingJobs:
    """What the jobs of a stage have in common, and what they came to."""

    model: LanguageModel | None
    options: WritingOptions
    llm: LlmOptions
    cache: ResponseCache
    monitor: Monitor
    counts: Counter[str]


def write(
    workspace: Workspace, *, kg: Path, sample: Path, kind: Kind, options: WritingOptions, llm: LlmOptions, seed: int
) -> dict[str, Any]:
    """Writes questions.jsonl, rejects.jsonl, statistics.json, README.md, and dialogues.jsonl for conversations.

    kind: `qa` or `conv`.  Returns counts: entities, prompts, completions by what came of them, questions, dialogues,
    turns, rejected and rejected_REASON, tokens.  Raises BudgetReached after all that was paid for is cached,
    EndpointError, ModelError, and InputError when not one question is good.
    """
    with KgStore.open(kg) as store:
        subjects = read_sample(sample, store, options, seed)
    model = None if options.writer == TEMPLATE else load_model(options.writer, llm, budget=workspace.budget)
    writing = WritingJobs(model, options, llm, open_cache(workspace.cache), workspace.monitor, Counter())
    batches = _qa(writing, subjects, seed) if kind == "qa" else _conv(writing, subjects, seed)
    items, rejects, dialogues = _collect(kind, subjects, batches)
    if not items:
        raise InputError(_nothing(kind, options, rejects))
    write_json_lines(workspace.out / "questions.jsonl", (item.record(kind) for item in items))
    write_json_lines(workspace.out / "rejects.jsonl", (reject.record(kind) for reject in rejects))
    if kind == "conv":
        write_json_lines(workspace.out / "dialogues.jsonl", dialogues)
    table = statistics(kind, subjects, items, rejects, writing.counts)
    write_json(workspace.out / "statistics.json", table)
    write_card(workspace.out, kg=kg, sample=sample, kind=kind, options=options, table=table, seed=seed)
    return _counts(table, writing.counts)


def _qa(writing: WritingJobs, subjects: Sequence[Subject], seed: int) -> list[list[ReplyItems]]:
    """The batches of each entity: one prompt for its first pairs, and further rounds for what is missing.

    No pair is in two prompts: one that several drawn entities are in belongs to its subject if that is drawn, else to
    the first of them.
    """
    mentions = NameMatcher()
    forward_keys = {pair.key for subject in subjects for pair in subject.pairs if pair.forward}
    waiting = [
        [pair for pair in qa.pairs_to_ask(subject, mentions, seed) if pair.forward or pair.key not in forward_keys]
        for subject in subjects
    ]
    writing.counts["without_pair"] = sum(not pairs for pairs in waiting)
    batches: list[list[ReplyItems]] = [[] for _ in subjects]
    prompts_of = [0] * len(subjects)
    used: set[tuple[int, str]] = set()
    for turn in range(writing.options.rounds):
        indices, jobs = [], []
        for index, subject in enumerate(subjects):
            missing = QUESTIONS_PER_ENTITY - sum(len(batch.items) for batch in batches[index])
            chosen: list[EntityRelationPair] = []
            while waiting[index] and len(chosen) < missing:
                pair = waiting[index].pop(0)
                if pair.key not in used:
                    used.add(pair.key)
                    chosen.append(pair)
            if chosen:
                indices.append(index)
                jobs.append(_qa_job(subject, chosen, prompts_of[index] + 1, mentions))
                prompts_of[index] += len(chosen)
        what = "questions" if turn == 0 else f"questions, round {turn + 1}"
        for index, batch in zip(indices, _run(writing, jobs, what), strict=True):
            batches[index].append(batch)
    return batches


def _qa_job(subject: Subject, pairs: Sequence[EntityRelationPair], first: int, mentions: NameMatcher) -> Job:
    return Job(
        subject,
        qa_prompt(pair.names for pair in pairs),
        lambda: template.qa_text(pairs),
        lambda text, truncated: qa.read_batch(subject, pairs, first, text, mentions, truncated=truncated),
    )


def _conv(writing: WritingJobs, subjects: Sequence[Subject], seed: int) -> list[list[ReplyItems]]:
    """The batch of each entity: one dialogue over all its triples."""
    mentions = NameMatcher()
    return [
        [batch] for batch in _run(writing, [_conv_job(subject, mentions, seed) for subject in subjects], "dialogues")
    ]


def _conv_job(subject: Subject, mentions: NameMatcher, seed: int) -> Job:
    return Job(
        subject,
        conv_prompt(triple.names for triple in subject.triples),
        lambda: template.conv_text(subject, seed),
        lambda text, truncated: conv.read_batch(subject, text, mentions, truncated=truncated),
    )


def _run(writing: WritingJobs, jobs: Sequence[Job], what: str) -> list[ReplyItems]:
    """The batch of each job.  Rejects of attempts before the last are in it too."""
    writing.counts["prompts"] += len(jobs)
    if writing.model is None:
        batches = []
        for number, job in enumerate(jobs, start=1):
            batches.append(job.read(job.by_rule(), False))
            if number % 100 == 0 or number == len(jobs):
                writing.monitor.progress(number, len(jobs), what)
        return batches
    earlier: dict[str, list[ReplyItems]] = {}

    def validate(index: int, text: str) -> str | None:
        batch = jobs[index].read(text, False)
        if batch.items:
            return None
        earlier.setdefault(jobs[index].prompt, []).append(batch)
        return f"{NOTHING_USABLE}: {batch.rejects[0].reason}" if batch.rejects else NOTHING_USABLE

    batch = PromptBatch(
        [job.prompt for job in jobs],
        GenerationParams(max_new_tokens=writing.options.max_new_tokens),
        cache=writing.cache,
        validate=validate,
        attempts=writing.llm.attempts,
        retry_temperature=writing.options.temperature,
        monitor=writing.monitor,
        what=what,
    )
    # A further pass meets the rejected attempts again, in the cache.
    outcomes = insist(writing.model, batch, before=earlier.clear)
    return [_batch(writing, job, outcome, earlier) for job, outcome in zip(jobs, outcomes, strict=True)]


def _batch(writing: WritingJobs, job: Job, outcome: Outcome, earlier: dict[str, list[ReplyItems]]) -> ReplyItems:
    """What a job came to, with the rejects of all its attempts."""
    rejects: list[RejectedItem] = []
    read = iter(earlier.get(job.prompt, ()))
    for attempt, reason in enumerate(outcome.spent, start=1):
        rejects.append(
            RejectedItem(job.subject, "completion", reason.partition(":")[0], detail=reason, attempt=attempt)
        )
        if reason not in (REFUSED, EMPTY) and not reason.startswith(UNREADABLE):
            # an equal prompt of another entity was read for that one
            rejects += [
                replace(each, subject=job.subject, attempt=attempt) for each in next(read, ReplyItems()).rejects
            ]
    writing.counts["spent_attempts"] += len(outcome.spent)
    completion = outcome.completion
    if completion is None or completion.finish == "error":
        writing.counts["given_up" if completion is None else "failed"] += 1
        if completion is not None:
            rejects.append(
                RejectedItem(job.subject, "completion", ENDPOINT_FAILED, attempt=len(outcome.spent) + 1)
            )  # fmt: skip
        return ReplyItems(rejects=tuple(rejects))
    writing.counts["prompt_tokens"] += completion.prompt_tokens
    writing.counts["completion_tokens"] += completion.completion_tokens
    writing.counts["truncated"] += completion.finish == "length"
    batch = job.read(completion.text, completion.finish == "length")
    last = len(outcome.spent) + 1
    return replace(batch, rejects=(*rejects, *(replace(each, attempt=last) for each in batch.rejects)))


def _collect(
    kind: Kind, subjects: Sequence[Subject], batches: Sequence[Sequence[ReplyItems]]
) -> tuple[list[BenchmarkItem], list[RejectedItem], list[dict[str, Any]]]:
    """Questions without duplicates, rejects, and the dialogues that have a question, all in the order of entities."""
    items: list[BenchmarkItem] = []
    rejects: list[RejectedItem] = []
    dialogues: list[dict[str, Any]] = []
    seen: dict[tuple[Any, ...], str] = {}
    for subject, own_batch in zip(subjects, batches, strict=True):
        good = []
        for batch in own_batch:
            rejects += batch.rejects
            for item in batch.items:
                words = (tokens(item.text), tuple(tokens(text) for _, text in item.dialogue))
                if words in seen:
                    what = "question" if kind == "qa" else "turn"
                    rejects.append(
                        RejectedItem(subject, what, qa.DUPLICATE, item.number, item.text, f"as {seen[words]}")
                    )
                    continue
                seen[words] = str(item.record(kind)["id"])
                good.append(item)
        items += good
        turns = [turn for batch in own_batch for turn in batch.turns]
        if kind == "conv" and not good:
            rejects.append(RejectedItem(subject, "dialogue", conv.NO_TURN))
        elif kind == "conv":
            numbers = {item.number for item in good}
            kept_turns = [{**turn, "question": turn["number"] in numbers} for turn in turns]
            dialogues.append(
                {"entity": subject.end.key, "name": subject.end.name, "level": subject.level, "turns": kept_turns}
            )
    return items, rejects, dialogues


def _counts(table: dict[str, Any], counts: Counter[str]) -> dict[str, Any]:
    """The manifest's counts."""
    total = table["total"]
    return {
        **total, **{name: counts[name] for name in ("prompts", "spent_attempts", "given_up", "failed", "truncated")},
        "rejected": sum(table["rejects"].values()),
        **{f"rejected_{reason}": number for reason, number in table["rejects"].items()},
        "prompt_tokens": counts["prompt_tokens"], "completion_tokens": counts["completion_tokens"],
    }  # fmt: skip


def _nothing(kind: Kind, options: WritingOptions, rejects: Sequence[RejectedItem]) -> str:
    reasons = Counter(reject.reason for reject in rejects).most_common(3)
    summary = ", ".join(f"{reason} {number:,}" for reason, number in reasons) or "no entity has a pair to ask about"
    return (
        f"the writer '{options.writer}' wrote not one good {'question' if kind == 'qa' else 'turn'} ({summary}); try "
        "another ltgen.writing.writer, more ltgen.writing.max_new_tokens, or llm.attempts"
    )
