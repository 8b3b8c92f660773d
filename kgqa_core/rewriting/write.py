"""The stage that puts facts into words: by templates, or by a rewriter (Wu et al. 2023, section 3.3).

One prompt for each reasoning path, equal prompts requests once; the sentences are aligned with their triples, what is
unfaithful is treated as `on_unfaithful` says, and the rest stands in the order of the paths.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from kgqa_core.config import LlmOptions, RewriterOptions
from kgqa_core.datasets.derived.splits import choose
from kgqa_core.datasets.files.question import read_questions
from kgqa_core.errors import InputError, StorageError, nearest
from kgqa_core.kg.verbalise import KNOWLEDGE
from kgqa_core.llm.cache import open_cache
from kgqa_core.llm.paid import Expected, Outcome, PromptBatch, generate_cached, portion
from kgqa_core.rewriting.describe import load_writer, parameters, read_outcomes, save_outcomes, wording_of
from kgqa_core.rewriting.faithfulness import Faithfulness
from kgqa_core.rewriting.groups import TripleGroup, read_groups
from kgqa_core.rewriting.paragraphs import (
    ACTIONS,
    GroupDraft,
    Piece,
    Policy,
    WrittenText,
    align,
    assemble,
    behind,
    by_model,
    by_rule,
    join,
)
from kgqa_core.rewriting.request import SentenceRequest
from kgqa_core.store.shards import LOADING, add_counts, join_rows, read_parts, share, write_part
from kgqa_core.workspace import Workspace

FORMATS = ("template", "rewritten")

SENTENCES: dict[str, pl.DataType] = {
    "question": pl.String(),
    "path": pl.Int32(),
    "group": pl.Int32(),
    "place": pl.Int32(),
    "text": pl.String(),
    "written": pl.String(),
    "triples": pl.List(pl.Int64()),
    "invented": pl.List(pl.String()),
    "action": pl.String(),
}
"""Columns of sentences.parquet, one row for each sentence in the order of the paragraphs.

path: number of the reasoning path, -1 without one.  text: what stands in the paragraph, empty where nothing does.
written: the writer's output.  triples: ids behind it.  invented: names and numbers that are in none of the group's
triples.  action: see `paragraphs.ACTIONS`.
"""

QuestionGroups = tuple[str, str, list[TripleGroup]]
"""A question, its language and its groups."""


def write(
    workspace: Workspace,
    *,
    kg: Path,
    questions: Path,
    facts: Path,
    rewriter: Path | None,
    request: SentenceRequest,
    options: RewriterOptions,
    llm: LlmOptions,
) -> dict[str, Any]:
    """Writes knowledge.parquet (one row for every question), sentences.parquet and meta.json.

    rewriter: a trained rewriter; without one `options.base` writes as it is, such as a data-to-text model.
    A part is a share of the questions, of `rewritten` a share of the model's texts; `merge` joins the parts.
    A group for which the model gives nothing stands in triple form and is counted.
    Returns counts: questions, with_facts, groups, prompts (one for each group), distinct_prompts, triples; of the
    different texts that the model wrote: sentences, unfaithful (sentences that invent), invented, untold (triples);
    of the paragraphs one count for each action; prompt_tokens, completion_tokens, truncated, no_text, cached.
    Raises InputError, ArtifactError, GraphMismatch, ModelError, BudgetReached, EndpointError, StorageError.
    """
    if request.format not in FORMATS:
        near = nearest(request.format, FORMATS)
        raise InputError(f"format {request.format!r} is not one of sentences{near}; use {', '.join(FORMATS)}")
    requests = _question_groups(kg, questions, facts, request)
    meta: dict[str, Any] = {"retriever": request.retriever, "format": request.format}
    if request.format == "template":
        requests = requests[share(workspace.part, range(len(requests)), len(requests))]
        drafts = [by_rule(group, language) for group, language in _groups(requests)]
        counts = _finish(workspace, requests, drafts, {}, meta)
        if workspace.part is not None:
            write_part(workspace.out, counts, meta=meta)
        return counts
    with LOADING:
        writer = workspace.model or load_writer(rewriter, options, llm, workspace.budget)
    meta |= {"model": writer.name, "revision": writer.revision, "on_unfaithful": options.on_unfaithful}
    wording = wording_of(options, trained=rewriter is not None)
    groups = {group.prompt(language, wording): (group, language) for group, language in _groups(requests)}
    prompts = portion(writer, list(groups), workspace.part)

    def by_template(index: int) -> str:
        group, language = groups[prompts[index]]
        return join(assemble([by_rule(group, language)]), language)

    outcomes = generate_cached(
        writer,
        PromptBatch(
            prompts,
            parameters(options),
            cache=open_cache(workspace.cache or workspace.work),
            monitor=workspace.monitor,
            what="rewritten groups",
            expected=Expected(by_template),
        ),
    )
    written = dict(zip(prompts, outcomes, strict=True))
    if workspace.part is not None:
        save_outcomes(workspace.out, written)
        write_part(workspace.out, sizes := {"distinct_prompts": len(prompts)}, meta=meta)
        return sizes
    return _by_model(workspace, requests, written, wording, meta)


def merge(
    workspace: Workspace,
    parts: Sequence[Path],
    *,
    kg: Path,
    questions: Path,
    facts: Path,
    rewriter: Path | None,
    request: SentenceRequest,
    options: RewriterOptions,
) -> dict[str, Any]:
    """Joins the folders of all parts of `write`, and returns its counts; the arguments are those of the parts.

    Tables and counts are those of a `write` that was not divided: the model's texts are put together here, since one of
    them may stand in paragraphs of several parts.  Raises what `write` raises, and ArtifactError for a damaged part.
    """
    results = read_parts(parts)
    meta: dict[str, Any] = results[0]["meta"]
    if request.format == "template":
        _write_tables(workspace.out, join_rows(parts, "knowledge.parquet"), join_rows(parts, "sentences.parquet"), meta)
        return add_counts([result["counts"] for result in results])
    requests = _question_groups(kg, questions, facts, request)
    wording = wording_of(options, trained=rewriter is not None)
    return _by_model(workspace, requests, read_outcomes(parts), wording, meta)


def _question_groups(kg: Path, questions: Path, facts: Path, request: SentenceRequest) -> list[QuestionGroups]:
    rows = read_groups(kg, questions, facts, request.retriever, request.language)
    if request.split is None:
        return rows
    drawn = {row.id for row in choose(read_questions(questions), request.split, request.limit, request.seed)}
    return [(question, language, groups if question in drawn else []) for question, language, groups in rows]


def _by_model(
    workspace: Workspace,
    requests: Sequence[QuestionGroups],
    outcomes: Mapping[str, Outcome],
    wording: str,
    meta: Mapping[str, Any],
) -> dict[str, Any]:
    groups = _groups(requests)
    drafts, counted = _drafts(groups, outcomes, meta["on_unfaithful"], wording)
    counts = counted | {"prompts": len(groups), "distinct_prompts": len(outcomes)}
    return _finish(workspace, requests, drafts, counts, meta)


def _finish(
    workspace: Workspace,
    requests: Sequence[QuestionGroups],
    drafts: Sequence[GroupDraft],
    counts: Mapping[str, Any],
    meta: Mapping[str, Any],
) -> dict[str, Any]:
    """Puts drafts into paragraphs and writes them; the counts of it all."""
    paragraphs = _paragraphs(requests, drafts)
    actions = Counter(piece.action for paragraph in paragraphs for pieces in paragraph for piece in pieces)
    _save(workspace.out, requests, paragraphs, meta)
    workspace.monitor.progress(len(requests), len(requests), "questions")
    return {
        "questions": len(requests),
        "with_facts": sum(bool(own) for _, _, own in requests),
        "groups": len(drafts),
        "triples": sum(len(draft.group.triples) for draft in drafts),
        **counts,
        **{action: actions[action] for action in ACTIONS},
    }


def _groups(requests: Iterable[QuestionGroups]) -> list[tuple[TripleGroup, str]]:
    return [(group, language) for _, language, own in requests for group in own]


def _drafts(
    groups: Sequence[tuple[TripleGroup, str]], outcomes: Mapping[str, Outcome], policy: Policy, wording: str
) -> tuple[list[GroupDraft], dict[str, int]]:
    """A draft of each group, and counts over the different texts."""
    counts = Counter(
        {name: 0 for name in ("sentences", "unfaithful", "invented", "untold", "truncated", "no_text", "cached")}
    )
    drafts = []
    known: dict[tuple[str, tuple[tuple[str, str, str], ...]], tuple[WrittenText, Faithfulness | None]] = {}
    for outcome in outcomes.values():
        counts["cached"] += outcome.cached
        if outcome.completion is not None:
            counts["prompt_tokens"] += outcome.completion.prompt_tokens
            counts["completion_tokens"] += outcome.completion.completion_tokens
    for group, language in groups:
        prompt = group.prompt(language, wording)
        if (prompt, group.named) not in known:
            written = WrittenText.of(outcomes[prompt].completion)
            checked = align(group, written, language)
            known[prompt, group.named] = (written, checked)
            counts["truncated"] += written.truncated
            if checked is None:
                counts["no_text"] += 1
            else:
                counts["sentences"] += len(checked.sentences)
                counts["unfaithful"] += sum(bool(sentence.invented) for sentence in checked.sentences)
                counts["invented"] += len(checked.invented)
                counts["untold"] += len(checked.untold)
        drafts.append(by_model(group, *known[prompt, group.named], policy))
    return drafts, dict(counts)


def _paragraphs(requests: Sequence[QuestionGroups], drafts: Sequence[GroupDraft]) -> list[list[list[Piece]]]:
    rest = iter(drafts)
    return [assemble([next(rest) for _ in own]) for _, _, own in requests]


def _save(
    out: Path,
    requests: Sequence[QuestionGroups],
    paragraphs: Sequence[Sequence[Sequence[Piece]]],
    meta: Mapping[str, Any],
) -> None:
    rows = [
        (question, meta["retriever"], meta["format"], join(paragraph, language), behind(paragraph))
        for (question, language, _), paragraph in zip(requests, paragraphs, strict=True)
    ]
    sentences = [
        (question, group.path, number, index, piece.text, piece.written, piece.triples, piece.invented, piece.action)
        for (question, _, groups), paragraph in zip(requests, paragraphs, strict=True)
        for number, (group, pieces) in enumerate(zip(groups, paragraph, strict=True))
        for index, piece in enumerate(pieces)
    ]
    _write_tables(
        out,
        pl.DataFrame(rows, schema=KNOWLEDGE, orient="row"),
        pl.DataFrame(sentences, schema=SENTENCES, orient="row"),
        meta,
    )


def _write_tables(out: Path, knowledge: pl.DataFrame, sentences: pl.DataFrame, meta: Mapping[str, Any]) -> None:
    try:
        knowledge.write_parquet(out / "knowledge.parquet")
        sentences.write_parquet(out / "sentences.parquet")
        (out / "meta.json").write_text(json.dumps(dict(meta), indent=1, sort_keys=True) + "\n", encoding="utf-8")
    except OSError as fault:
        raise StorageError(f"cannot write to {out}: {fault}; free space or choose another --home") from fault
