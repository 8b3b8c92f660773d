"""Stage `answers`: a language model answers every question, with knowledge or without.

Sen et al. 2023, section 4; Wu et al. 2023, section 3.3.  All different prompts are sent at once; billed responses lie
in the response cache, so that a killed run requests none of them again.
"""

from __future__ import annotations

import json
import logging
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any

import polars as pl

from kgqa_core import prompts
from kgqa_core.answering.registry import answer_prompt, answerer_name, generation_params, model_spec
from kgqa_core.config import AnsweringOptions, Knowledge, LlmOptions
from kgqa_core.datasets.derived.splits import choose
from kgqa_core.datasets.files.answers import LIKELY, SCHEMA, SECONDS, save_seconds
from kgqa_core.datasets.files.question import read_questions
from kgqa_core.errors import ArtifactError, StorageError
from kgqa_core.llm.cache import open_cache
from kgqa_core.llm.factory import load_model
from kgqa_core.llm.paid import PromptBatch, generate_cached, portion
from kgqa_core.llm.protocol import Completion, Finish, LanguageModel
from kgqa_core.store.shards import LOADING, add_counts, join_rows, read_parts, write_part
from kgqa_core.store.tables import read_frame
from kgqa_core.types import Question
from kgqa_core.workspace import Workspace

log = logging.getLogger("kgqa.answering")

ABSTENTIONS = frozenset({"", "unknown", "i don't know", "i do not know", "don't know", "no answer", "不知道"})
"""Outputs that decline to answer, after lower-casing and without a full stop."""


@dataclass(frozen=True, slots=True)
class AnswerRequest:
    """The prompt of one question.  without_knowledge: there was no knowledge for this question."""

    question: str
    prompt: str
    without_knowledge: bool


def answer(
    workspace: Workspace,
    *,
    questions: Path,
    knowledge: Path | None,
    name: str,
    options: AnsweringOptions,
    llm: LlmOptions,
    seed: int,
) -> dict[str, Any]:
    """Writes answers.parquet, one row per question, sorted by question, and volatile/answers_seconds.parquet.

    questions, knowledge: artifact folders.  name: `retriever/format` of the experiment; `none/none` has no knowledge
    and every prompt is No Knowledge.  A question that `knowledge` has no text for is answered without facts and
    belongs to the experiment all the same.  Without a cache completions are kept in `work`; a model of the workspace is
    used instead of loading `options.answerer`.  Of a part only that share of the prompts is sent, and the rows of the
    questions that have these are written; `merge` joins the parts.
    An item that failed is a row with finish `error` and an empty output; it is requested again when the stage runs
    again.
    Returns counts: questions, prompts (different ones), prompt_tokens, completion_tokens, one count for each finish,
    abstained, empty_knowledge, cached (prompts that an earlier run had paid for).
    Raises QuestionFileError when the split is empty, ArtifactError, BudgetReached, ModelError, EndpointError,
    StorageError.
    """
    started = time.monotonic()
    read = Knowledge.parse(name)
    retriever, form = str(read.variant), read.format
    chosen = choose(read_questions(questions), options.split, options.limit, seed)
    requests = answer_requests(
        chosen, read_contexts(knowledge, retriever, form) if knowledge is not None else {}, options
    )
    with LOADING:
        reader = workspace.model or load_model(model_spec(options.answerer), llm, budget=workspace.budget)
    shortest_first = sorted({item.prompt for item in requests}, key=lambda prompt: (len(prompt), prompt))
    unique = portion(reader, shortest_first, workspace.part)
    own = set(unique)
    requests = [item for item in requests if item.prompt in own]
    responses = open_cache(workspace.cache if workspace.cache is not None else workspace.work)
    outcomes = generate_cached(
        reader,
        PromptBatch(unique, generation_params(options), cache=responses, monitor=workspace.monitor, what="answers"),
    )
    completions = {
        prompt: outcome.completion or Completion("", "error", error="; ".join(outcome.spent) or "no completion")
        for prompt, outcome in zip(unique, outcomes, strict=True)
    }
    cached = sum(outcome.cached for outcome in outcomes)
    counts = _write(workspace.out, requests, completions, reader, (retriever, form), options)
    counts |= {"prompts": len(unique), "cached": cached}
    save_seconds(workspace.out, counts, time.monotonic() - started)
    if workspace.part is not None:
        write_part(workspace.out, counts)
    return counts


def merge(workspace: Workspace, parts: Sequence[Path]) -> dict[str, Any]:
    """Joins the folders of all parts of `answer`, and returns its counts; the seconds are those of all parts together.

    Rows and counts are those of an `answer` that was not divided.  Raises ArtifactError when a part is damaged.
    """
    out = workspace.out
    counts = add_counts([own["counts"] for own in read_parts(parts)])
    try:
        join_rows(parts, "answers.parquet").write_parquet(out / "answers.parquet")
        if (parts[0] / LIKELY).is_file():
            join_rows(parts, LIKELY).write_parquet(out / LIKELY)
        shutil.copyfile(parts[0] / "meta.json", out / "meta.json")
        seconds = float(join_rows(parts, SECONDS, by=())["seconds"].sum())
    except OSError as fault:
        raise StorageError(f"cannot write answers to {out}: {fault}; free space or choose another --home") from fault
    save_seconds(out, counts, seconds)
    return counts


def answer_requests(
    questions: Sequence[Question], contexts: Mapping[str, str], options: AnsweringOptions
) -> list[AnswerRequest]:
    """Questions with their prompts in the wording of options.template.  contexts: question id → text."""
    texts = [contexts.get(question.id, "") for question in questions]
    return [
        AnswerRequest(question.id, answer_prompt(question, text, options), not text.strip())
        for question, text in zip(questions, texts, strict=True)
    ]


def parse_output(text: str, template: str = "sen2023") -> str:
    """The answer in what a model wrote: its first line that is not blank, without outer blanks and thoughts.

    A response of `ltgen2024` may have several lines: all up to the next turn that the model made up, in one line.

    >>> parse_output("Agent: In Rome.\\n\\nIt was hot.\\nUser: And then?", "ltgen2024")
    'In Rome. It was hot.'
    """
    lines = [line.strip() for line in prompts.without_thoughts(text).splitlines() if line.strip()]
    if template != "ltgen2024":
        return lines[0] if lines else ""
    user, agent = (f"{prompts.SPEAKERS[role]}:" for role in ("user", "agent"))
    response = list(takewhile(lambda line: not line.startswith(user), lines))
    return " ".join(" ".join(response).removeprefix(agent).split())


def is_declined(output: str, finish: Finish) -> bool:
    """Whether an output, or a refusal, declines to answer; a request that failed does not."""
    declined = finish == "refusal" or output.casefold().rstrip(". 。") in ABSTENTIONS
    return declined and finish != "error"


def read_contexts(knowledge: Path, retriever: str, form: str) -> dict[str, str]:
    """Question id → text of a knowledge artifact.  Raises ArtifactError when it is damaged or holds something else."""
    file = knowledge / "knowledge.parquet"
    frame = read_frame(file, ("question", "retriever", "format", "text"))
    rows = frame.filter((pl.col("retriever") == retriever) & (pl.col("format") == form))
    if frame.height and not rows.height:
        held = frame.select(pl.concat_str("retriever", "format", separator="/")).to_series().unique().sort().to_list()
        raise ArtifactError(f"knowledge artifact {knowledge} holds {', '.join(held)}, not {retriever}/{form}")
    return {question: text or "" for question, text in rows.select("question", "text").iter_rows()}


def _write(
    out: Path,
    requests: Sequence[AnswerRequest],
    completions: Mapping[str, Completion],
    reader: LanguageModel,
    experiment: tuple[str, str],
    options: AnsweringOptions,
) -> dict[str, Any]:
    rows: list[tuple[Any, ...]] = []
    name = answerer_name(options.answerer, reader.name)
    for item in requests:
        completion = completions[item.prompt]
        output = parse_output(completion.text, options.template)
        abstained = is_declined(output, completion.finish)
        digest = prompts.prompt_digest(item.prompt)
        tokens = (completion.prompt_tokens, completion.completion_tokens)
        rows.append((item.question, *experiment, name, digest, output, abstained, completion.finish, *tokens))
    frame = pl.DataFrame(rows, schema=SCHEMA, orient="row").sort("question")
    meta = {
        "experiment": "/".join((*experiment, name)),
        "model": name,
        "revision": reader.revision,
        "prompts": f"{options.template}-{prompts.VERSION}",
    }
    try:
        frame.write_parquet(out / "answers.parquet")
        if options.log_probabilities:
            _log_probabilities(requests, completions).write_parquet(out / LIKELY)
        (out / "meta.json").write_text(json.dumps(meta, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    except OSError as fault:
        raise StorageError(f"cannot write answers to {out}: {fault}; free space or choose another --home") from fault
    finishes = {str(finish): int(n) for finish, n in frame["finish"].value_counts().sort("finish").iter_rows()}
    if failed := finishes.get("error", 0):
        first = next(item for item in requests if completions[item.prompt].finish == "error")
        log.warning(
            "%d of %d questions got no answer from %s; they stay in every denominator; the first is question %s: %s",
            failed, len(requests), reader.name, first.question, completions[first.prompt].error,
        )  # fmt: skip
    return {
        "questions": len(requests),
        "prompt_tokens": int(frame["prompt_tokens"].cast(pl.Int64).sum()),
        "completion_tokens": int(frame["tokens"].cast(pl.Int64).sum()),
        "finish": finishes,
        "errors": failed,
        "abstained": int(frame["abstained"].sum()),
        "empty_knowledge": sum(item.without_knowledge for item in requests) if experiment[0] != "none" else 0,
    }


def _log_probabilities(requests: Sequence[AnswerRequest], completions: Mapping[str, Completion]) -> pl.DataFrame:
    pairs = ((item.question, completions[item.prompt]) for item in requests)
    rows = [(question, completion.log_probability, completion.scored_tokens) for question, completion in pairs]
    schema = {"question": pl.String, "log_probability": pl.Float64, "tokens": pl.Int32}
    return pl.DataFrame(rows, schema=schema, orient="row").sort("question")
