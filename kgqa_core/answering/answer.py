"""The stage that asks a language model every question, with retrieved facts or without (Sen et al. 2023, section 4).

Completions are appended to a journal in `work` as they come, so that a killed run pays for none of them twice.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from types import TracebackType
from typing import Any, Self

import polars as pl

from kgqa_core import prompts
from kgqa_core.config import AnsweringOptions
from kgqa_core.datasets.question import read_questions
from kgqa_core.errors import ArtifactError, QuestionFileError, StorageError
from kgqa_core.llm.factory import load_model
from kgqa_core.llm.protocol import Completion, GenerationParams, LanguageModel
from kgqa_core.monitor import QUIET, Monitor
from kgqa_core.types import Question

log = logging.getLogger("kgqa.answering")

GROUP = 256
"""Different prompts that are asked in one call of a model; a resumed run repeats whole groups of a local model."""

ABSTENTIONS = frozenset({"", "unknown", "i don't know", "i do not know", "don't know", "no answer", "不知道"})
"""Outputs that decline to answer, after lower-casing and without a full stop."""

SCHEMA = {
    "question": pl.String, "retriever": pl.String, "format": pl.String, "model": pl.String, "prompt_digest": pl.String,
    "output": pl.String, "abstained": pl.Boolean, "prompt_tokens": pl.Int32, "tokens": pl.Int32,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Asked:
    """One question as it is asked.  format: of the experiment.  bare: there was no knowledge for this question."""

    question: str
    format: str
    prompt: str
    bare: bool


def answer(
    out: Path,
    *,
    questions: Path,
    knowledge: Path | None,
    retriever: str,
    options: AnsweringOptions,
    seed: int,
    monitor: Monitor = QUIET,
    work: Path | None = None,
    model: LanguageModel | None = None,
) -> dict[str, Any]:
    """Writes answers.parquet, one row per question, sorted by question, and volatile/answers_seconds.parquet.

    questions, knowledge: artifact folders; without knowledge every prompt is No Knowledge.  retriever: name of the
    retriever whose facts `knowledge` holds, `none` without.  A question that `knowledge` has no text for is asked
    without facts and its format says so.  model: used instead of loading `options.answerer`.
    Returns counts: questions, prompts (different ones), prompt_tokens, completion_tokens, errors, abstained,
    empty_knowledge, resumed (prompts that an earlier, killed run had paid for).
    Raises QuestionFileError when the split is empty, ModelError, EndpointError, StorageError.
    """
    started = time.monotonic()
    chosen = choose(read_questions(questions), options, seed)
    asked = ask(chosen, _contexts(knowledge, retriever) if knowledge is not None else {})
    reader = model if model is not None else load_model(options.answerer, options)
    params = GenerationParams(max_new_tokens=options.max_new_tokens)
    unique = sorted({item.prompt for item in asked}, key=lambda prompt: (len(prompt), prompt))
    key = _journal_key(reader, params, unique)
    with Journal(work, key) as journal:
        resumed = journal.load(unique, whole_groups=reader.batch_sensitive)
        _generate(reader, params, unique, journal, monitor)
        completions = journal.completions
    counts = _write(out, asked, completions, reader, retriever)
    seconds = time.monotonic() - started
    volatile = out / "volatile"
    volatile.mkdir(exist_ok=True)
    pl.DataFrame(
        {"questions": [len(asked)], "prompts": [len(unique)], "resumed": [resumed], "seconds": [seconds]}
    ).write_parquet(volatile / "answers_seconds.parquet")
    return counts | {"prompts": len(unique), "resumed": resumed}


def choose(questions: Sequence[Question], options: AnsweringOptions, seed: int) -> list[Question]:
    """The questions of the split, sorted by id; a seeded sample of them where options.limit is set.

    Raises QuestionFileError when the split has none.
    """
    there = sorted((question for question in questions if question.split == options.split), key=lambda each: each.id)
    if not there:
        splits = sorted({question.split for question in questions})
        raise QuestionFileError(
            f"no questions in split '{options.split}' to answer; the file has {splits or 'no questions'}"
        )
    if options.limit is not None and options.limit < len(there):
        there = sorted(Random(f"answering/{seed}").sample(there, options.limit), key=lambda each: each.id)
    return there


def ask(questions: Sequence[Question], contexts: dict[str, tuple[str, str]]) -> list[Asked]:
    """Questions with their prompts.  contexts: question id → (format, text).

    A question without text is asked without facts and belongs to the experiment all the same.
    """
    experiment = next((form for form, text in contexts.values() if text.strip()), "none")
    asked = []
    for question in questions:
        form, text = contexts.get(question.id, (experiment, ""))
        bare = not text.strip()
        form = experiment if bare else form
        asked.append(Asked(question.id, form, prompts.answer_prompt(question.text, None if bare else text), bare))
    return asked


def parse_output(text: str) -> str:
    """The answer in what a model wrote: its first line that is not blank, without outer blanks."""
    return next((line.strip() for line in text.splitlines() if line.strip()), "")


def _contexts(knowledge: Path, retriever: str) -> dict[str, tuple[str, str]]:
    file = knowledge / "knowledge.parquet"
    try:
        frame = pl.read_parquet(file, columns=["question", "retriever", "format", "text"])
    except (OSError, pl.exceptions.PolarsError) as fault:
        raise ArtifactError(f"knowledge artifact {knowledge} cannot be read: {fault}; run the stage again") from fault
    rows = frame.filter(pl.col("retriever") == retriever)
    if frame.height and not rows.height:
        there = frame["retriever"].unique().sort().to_list()
        raise ArtifactError(f"knowledge artifact has no facts of retriever '{retriever}', only of {there}")
    return {
        question: (form, text or "") for question, form, text in rows.select("question", "format", "text").iter_rows()
    }


def _journal_key(reader: LanguageModel, params: GenerationParams, unique: Sequence[str]) -> str:
    """Digest of everything that a completion depends on, so that a journal of another run is not taken."""
    digest = hashlib.sha256(json.dumps([reader.name, reader.revision, asdict(params), prompts.VERSION]).encode())
    for prompt in unique:
        digest.update(prompt.encode("utf-8") + b"\0")
    return digest.hexdigest()


class Journal:
    """Completions on disk, one JSON line each, flushed as they come; a torn last line is dropped when read.

    work: folder that survives a kill, or None for memory only.  key: what the completions depend on.
    """

    def __init__(self, work: Path | None, key: str) -> None:
        self.path = None if work is None else work / "completions.jsonl"
        self.key = key
        self.completions: dict[str, Completion] = {}
        self._file: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def load(self, unique: Sequence[str], *, whole_groups: bool) -> int:
        """Takes over what an earlier run wrote under the same key and returns how many completions that is.

        Failed completions are asked again.  whole_groups: keep only complete groups of `GROUP` prompts.
        """
        if self.path is None:
            return 0
        kept = self._read(unique)
        if whole_groups:
            for start in range(0, len(unique), GROUP):
                group = unique[start : start + GROUP]
                if not all(prompt in kept for prompt in group):
                    for prompt in group:
                        kept.pop(prompt, None)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            fresh = self.path.with_suffix(".tmp")
            with fresh.open("w", encoding="utf-8") as file:
                file.write(json.dumps({"key": self.key}) + "\n")
                file.writelines(_line(prompt, completion) for prompt, completion in kept.items())
                file.flush()
                os.fsync(file.fileno())
            os.replace(fresh, self.path)
            self._file = self.path.open("a", encoding="utf-8")
        except OSError as fault:
            raise StorageError(f"cannot write {self.path}: {fault}; free space or choose another --home") from fault
        self.completions = kept
        return len(kept)

    def add(self, prompt: str, completion: Completion) -> None:
        """Keeps a completion.  Raises StorageError when the disk is full."""
        self.completions[prompt] = completion
        if self._file is not None:
            try:
                self._file.write(_line(prompt, completion))
                self._file.flush()
            except OSError as fault:
                raise StorageError(f"cannot write {self.path}: {fault}; free space or choose another --home") from fault

    def _read(self, unique: Sequence[str]) -> dict[str, Completion]:
        by_digest = {_digest(prompt): prompt for prompt in unique}
        kept: dict[str, Completion] = {}
        try:
            lines = self.path.read_bytes().split(b"\n") if self.path is not None else []
        except OSError:
            return {}
        for number, line in enumerate(lines):
            try:
                row = json.loads(line)
                if number == 0 and row["key"] != self.key:
                    return {}
                if number:
                    completion = Completion(**row["completion"])
                    if completion.finish != "error" and row["prompt"] in by_digest:
                        kept[by_digest[row["prompt"]]] = completion
            except (ValueError, KeyError, TypeError):
                if number == 0:
                    return {}
        return {prompt: kept[prompt] for prompt in unique if prompt in kept}


def _digest(prompt: str) -> str:
    return hashlib.sha256(prompt.encode("utf-8")).hexdigest()


def _line(prompt: str, completion: Completion) -> str:
    return json.dumps({"prompt": _digest(prompt), "completion": asdict(completion)}) + "\n"


def _generate(
    reader: LanguageModel, params: GenerationParams, unique: Sequence[str], journal: Journal, monitor: Monitor
) -> None:
    groups = [list(unique[start : start + GROUP]) for start in range(0, len(unique), GROUP)]
    if not reader.batch_sensitive:
        groups = [list(unique)]
    for group in groups:
        missing = [prompt for prompt in group if prompt not in journal.completions]
        if not missing:
            continue
        seen = len(journal.completions)

        def keep(place: int, completion: Completion, missing: list[str] = missing) -> None:
            journal.add(missing[place], completion)
            monitor.progress(len(journal.completions), len(unique), "answers")

        for prompt, completion in zip(missing, reader.generate(missing, params, QUIET, keep), strict=True):
            if prompt not in journal.completions:
                journal.add(prompt, completion)
        monitor.progress(len(journal.completions), len(unique), "answers")
        log.debug("%d completions more", len(journal.completions) - seen)


def _write(
    out: Path, asked: Sequence[Asked], completions: dict[str, Completion], reader: LanguageModel, retriever: str
) -> dict[str, Any]:
    rows: list[tuple[Any, ...]] = []
    errors = 0
    for item in asked:
        completion = completions[item.prompt]
        output = parse_output(completion.text)
        errors += completion.finish == "error"
        abstained = completion.finish == "refusal" or output.casefold().rstrip(". 。") in ABSTENTIONS
        rows.append(
            (
                item.question,
                retriever,
                item.format,
                reader.name,
                prompts.prompt_digest(item.prompt),
                output,
                abstained,
                completion.prompt_tokens,
                completion.completion_tokens,
            )  # fmt: skip
        )
    frame = pl.DataFrame(rows, schema=SCHEMA, orient="row").sort("question")
    try:
        frame.write_parquet(out / "answers.parquet")
        meta = {"model": reader.name, "revision": reader.revision, "prompts": prompts.VERSION, "retriever": retriever}
        (out / "meta.json").write_text(json.dumps(meta, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    except OSError as fault:
        raise StorageError(f"cannot write answers to {out}: {fault}; free space or choose another --home") from fault
    if errors:
        log.warning(
            "%d of %d questions got no answer from %s; they stay in every denominator", errors, len(asked), reader.name
        )
    return {
        "questions": len(asked),
        "prompt_tokens": int(frame["prompt_tokens"].sum()),
        "completion_tokens": int(frame["tokens"].sum()),
        "errors": errors,
        "abstained": int(frame["abstained"].sum()),
        "empty_knowledge": sum(item.bare for item in asked) if retriever != "none" else 0,
    }
