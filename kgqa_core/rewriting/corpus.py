"""The stage that makes the KG-to-Text corpus (Wu et al. 2023, section 3.2).

Gold subgraph of a training question → T1 → teacher → checks → T2 → QA model → kept if a gold answer is in its answer.
Every text that was tried is a row, with the reason where it was not kept.  A corpus in the Alpaca form can be read
instead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from kgqa_core.config import CorpusOptions, LlmOptions
from kgqa_core.datasets.files.question import read_questions
from kgqa_core.dkg.csr import Dkg
from kgqa_core.kg.store import KgStore
from kgqa_core.llm.cache import open_cache
from kgqa_core.llm.factory import load_model
from kgqa_core.monitor import Monitor
from kgqa_core.rewriting.alpaca import InstructionPair, read_pairs
from kgqa_core.rewriting.corpus_table import (
    CORPUS,
    IMPORTED,
    IN_DEV,
    KEPT,
    QA_FAILED,
    SPARE,
    WRONG,
    acceptance,
    count,
    pair_digest,
    split_dev,
    write_cost,
    write_tables,
)
from kgqa_core.rewriting.graphs import GoldGraph, draw, shared_with
from kgqa_core.rewriting.teacher import (
    TEMPLATE,
    Judged,
    TeacherText,
    instruction,
    judge,
    language_of,
    one_each,
    write_texts,
)
from kgqa_core.workspace import Workspace


def generate(
    workspace: Workspace, *, kg: Path, dkg: Path, questions: Path, options: CorpusOptions, llm: LlmOptions, seed: int
) -> dict[str, Any]:
    """Writes corpus.parquet, acceptance.parquet, meta.json, and volatile/cost.parquet where there are prices.

    Texts are tried in order of faithfulness, and a question is done with the first one from which the QA model finds a
    gold answer: the same as checking all and keeping the most faithful of the good ones, for fewer calls.
    Returns counts: asked, kept, acceptance, rejected_REASON, graphs, texts, by_hops, prompt_tokens, completion_tokens,
    shared_with_test (graphs that are also those of a test question), test_questions_shared, ….
    Raises BudgetReached after paid completions are cached, EndpointError, ModelError, QuestionFileError, InputError.
    """
    if options.alpaca_file is not None:
        return _import(workspace.out, options, seed, workspace.monitor)
    everything = read_questions(questions)
    graph_dkg = Dkg.open(dkg)
    with KgStore.open(kg) as store:
        sampled = draw(
            store, graph_dkg, everything, size=options.size, max_triples=options.max_triples, seed=seed,
            monitor=workspace.monitor,
        )  # fmt: skip
    graphs = sampled.graphs
    responses = open_cache(workspace.cache)
    graphs_by_prompt = one_each(graphs, options)
    teacher = None if options.teacher == TEMPLATE else load_model(options.teacher, llm, budget=workspace.budget)
    texts = write_texts(graphs_by_prompt, teacher, options, llm, seed=seed, cache=responses, monitor=workspace.monitor)
    del teacher
    reader = load_model(options.qa_model, llm, budget=workspace.budget)
    answers = feedback(graphs, texts, reader, options, responses, workspace.monitor)
    rows = _rows(graphs, texts, answers, options, reader.name)
    identities = {graph.question.id: graph.identity for graph in graphs}
    split_dev(rows, [identities[row["question"]] for row in rows], options.dev_share, seed)
    frame = pl.DataFrame(rows, schema=CORPUS, orient="row").sort("question", "candidate")
    table = acceptance(frame)
    kept = {
        graph.identity for graph in graphs if any(answer.hit for answer in answers.get(graph.question.id, {}).values())
    }
    workspace.monitor.progress(0, 1, "graphs of test questions")
    with KgStore.open(kg) as store:
        shared, touched = shared_with(everything, store, graph_dkg, kept, options.max_triples)
    workspace.monitor.progress(1, 1, "graphs of test questions")
    meta = {
        "teacher": options.teacher,
        "qa_model": reader.name,
        "qa_revision": reader.revision,
        "drawn": sampled.counts,
    }
    write_tables(workspace.out, frame, table, meta)
    write_cost(workspace.out, frame, options, llm.prices)
    return count(frame, table) | {
        "graphs": len({graph.identity for graph in graphs}),
        "texts": len(graphs_by_prompt) * options.candidates,
        "shared_with_test": shared,
        "test_questions_shared": touched,
        **{
            f"train_{name}": number
            for name, number in sampled.counts.items()
            if name.startswith(("without", "unreached", "by_", "not_executed"))
        },
        "relation_paths": sampled.counts["relation_paths"],
    }


def feedback(
    graphs: Sequence[GoldGraph], texts: Mapping[str, Sequence[TeacherText]], reader: Any, options: CorpusOptions,
    cache: Any, monitor: Monitor,
) -> dict[str, dict[int, Judged]]:  # fmt: skip
    """The QA model's answers, by question and candidate: the best text of every question, then the next of those that
    it did not answer from."""
    answers: dict[str, dict[int, Judged]] = {graph.question.id: {} for graph in graphs}
    for turn in range(options.candidates):
        wanted = []
        for graph in graphs:
            good = [each for each in texts[instruction(graph, options)] if each.reason is None]
            done = any(answer.hit for answer in answers[graph.question.id].values())
            if not done and turn < len(good):
                wanted.append((graph.question, good[turn]))
        if not wanted:
            break
        what = "QA answers" if turn == 0 else f"QA answers, text {turn + 1}"
        pairs = [(question, candidate.text) for question, candidate in wanted]
        for (question, candidate), answer in zip(
            wanted, judge(reader, pairs, cache=cache, monitor=monitor, what=what), strict=True
        ):
            answers[question.id][candidate.number] = answer
    return answers


def _rows(
    graphs: Sequence[GoldGraph], texts: Mapping[str, Sequence[TeacherText]],
    answers: Mapping[str, Mapping[int, Judged]], options: CorpusOptions, qa_model: str,
) -> list[dict[str, Any]]:  # fmt: skip
    rows: list[dict[str, Any]] = []
    paid: set[tuple[str, int]] = set()
    for graph in graphs:
        prompt = instruction(graph, options)
        for candidate in texts[prompt]:
            answer = answers[graph.question.id].get(candidate.number)
            verdict = candidate.reason or SPARE
            if answer is not None:
                verdict = KEPT if answer.hit else QA_FAILED if answer.failed else WRONG
            first = (prompt, candidate.number) not in paid
            paid.add((prompt, candidate.number))
            rows.append(
                {
                    "pair": pair_digest(prompt, candidate.text),
                    "question": graph.question.id,
                    "relation_path": graph.relation_path,
                    "hops": graph.hops,
                    "triples": list(graph.triples),
                    "triple_text": graph.text,
                    "named": [list(triple) for triple in graph.named],
                    "language": language_of(graph.question, options),
                    "instruction": prompt,
                    "text": candidate.text,
                    "verdict": verdict,
                    "qa_answer": None if answer is None else answer.answer,
                    "candidate": candidate.number,
                    "faithfulness": candidate.faithfulness,
                    "spent": list(candidate.spent),
                    "split": None,
                    "teacher": options.teacher,
                    "qa_model": qa_model,
                    "source": None,
                    "teacher_prompt_tokens": candidate.prompt_tokens if first else 0,
                    "teacher_tokens": candidate.tokens if first else 0,
                    "qa_prompt_tokens": 0 if answer is None else answer.prompt_tokens,
                    "qa_tokens": 0 if answer is None else answer.tokens,
                }
            )
    return rows


def _import(out: Path, options: CorpusOptions, seed: int, monitor: Monitor) -> dict[str, Any]:
    """A corpus read from Alpaca files; bad rows are rejects with their number."""
    pairs = read_pairs(Path(options.alpaca_file or ""))
    dev_graphs = {_identity(pair) for pair in pairs if pair.fault is None and pair.split == "dev"}
    rows = []
    for number, pair in enumerate(pairs, start=1):
        verdict = KEPT if pair.fault is None else f"unreadable: {pair.fault}"
        if pair.fault is None and pair.split == "train" and _identity(pair) in dev_graphs:
            verdict = IN_DEV
        rows.append(_imported_row(pair, verdict, options))
        if number % 1000 == 0 or number == len(pairs):
            monitor.progress(number, len(pairs), "pairs")
    split_dev(rows, [_identity(pair) for pair in pairs], options.dev_share, seed)
    if dev_graphs:
        for row, pair in zip(rows, pairs, strict=True):
            row["split"] = pair.split if row["split"] else None
    frame = pl.DataFrame(rows, schema=CORPUS, orient="row")
    write_tables(out, frame, acceptance(frame), {"teacher": IMPORTED, "qa_model": ""})
    good = frame.filter(pl.col("verdict") == KEPT)
    return {
        "rows": len(pairs),
        "kept": good.height,
        "pairs": good["pair"].n_unique(),
        "train": int((good["split"] == "train").sum()),
        "dev": int((good["split"] == "dev").sum()),
        "in_dev": int((frame["verdict"] == IN_DEV).sum()),
        "unreadable": int(frame["verdict"].str.starts_with("unreadable").sum()),
        "triples_not_parsed": int((good["named"].list.len() == 0).sum()),
    }


def _identity(pair: InstructionPair) -> str:
    return "\0".join(sorted("\1".join(triple) for triple in pair.named)) if pair.named else pair.triple_text


def _imported_row(pair: InstructionPair, verdict: str, options: CorpusOptions) -> dict[str, Any]:
    empty: dict[str, Any] = dict.fromkeys(CORPUS)
    return empty | {
        "pair": pair_digest(pair.instruction, pair.text),
        "triples": [],
        "triple_text": pair.triple_text,
        "named": [list(triple) for triple in pair.named],
        "language": options.language or pair.language,
        "instruction": pair.instruction,
        "text": pair.text,
        "verdict": verdict,
        "candidate": 0,
        "spent": [],
        "teacher": IMPORTED,
        "qa_model": "",
        "source": pair.source,
        **dict.fromkeys(("teacher_prompt_tokens", "teacher_tokens", "qa_prompt_tokens", "qa_tokens"), 0),
    }
