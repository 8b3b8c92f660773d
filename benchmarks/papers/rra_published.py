"""Retrieve-Rewrite-Answer as published, and what each of our changes gives, one at a time.

    OMP_NUM_THREADS=1 python -m benchmarks.papers.rra_published --work DIR [--sets zjqa,metaqa,atlas,webqsp]
        [--answered 200] [--json OUT]

Sets of OUT that are not measured now stay, each with its own conditions.
`make bench-docs` writes the tables of docs/rra_published.md from the record.

As published (Wu et al. 2023): reasoning paths are sampled path by path, T1 rewrites each, sentences are kept as they
come, T2 asks, hit@1 is a substring of the lower-cased answer, and questions without a gold answer are left out.  Every
row answers the same seeded sample; a row is compared with the published one question by question.  The answerer is the
builtin reader of 4.7 M weights, which was trained on T2 and on the prompt of Sen et al. 2023: what a row says of a
template says it of this reader.  Rewriters learn from the published pairs (Atlas: from sentences by rule).

ZJQA was looked at as a test set, so it is cut into five folds by topic over all its questions; each fold's retriever
learns from a sample of the others.  The rewriter learns from pairs that name no topic of an answered question.
WebQSP's graph are the gold subgraphs of its questions.  What is finished lies in --work, so that a run that was killed
goes on; a row is done when it is in rows.json.
"""

from __future__ import annotations

import argparse
import json
import logging
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from benchmarks import results_file
from benchmarks.conditions import commit_name, conditions
from benchmarks.papers.rra_work import SEED, SETS, RraWork, SetPlan, some
from benchmarks.results_file import fields_below
from kgqa_core.answering.answer import answer
from kgqa_core.config import AnsweringOptions, LlmOptions
from kgqa_core.evaluation.score import score_outputs
from kgqa_core.kg.verbalise import write_knowledge
from kgqa_core.metrics.significance import bootstrap_interval, mcnemar, three_digits
from kgqa_core.monitor import QUIET, Log
from kgqa_core.rewriting.request import SentenceRequest
from kgqa_core.rewriting.write import write
from kgqa_core.types import Question, Retrieved
from kgqa_core.workspace import Workspace

PUBLISHED: dict[str, Any] = {
    "retriever": "hop_path", "format": "rewritten", "sampling": "sequential", "named_first": False,
    "template": "rra2023", "on_unfaithful": "keep",
}  # fmt: skip
"""Retrieve-Rewrite-Answer to the letter."""
OURS = {"sampling": "proportional", "named_first": True, "template": "sen2023", "on_unfaithful": "replace"}
"""What we changed, each by its switch."""
ROWS: dict[str, dict[str, Any]] = {
    "as published": {},
    "sampling: proportional": {"sampling": OURS["sampling"]},
    "named entities first": {"named_first": True},
    "template: sen2023": {"template": OURS["template"]},
    "on_unfaithful: replace": {"on_unfaithful": OURS["on_unfaithful"]},
    "ours, all four": OURS,
    "triples, as published": {"format": "triples"},
    "triples, ours": {**OURS, "format": "triples"},
    "no knowledge": {"format": "none"},
    "random facts, T2": {"retriever": "random", "format": "triples"},
    "gold paths, T2": {"retriever": "oracle", "format": "triples"},
    "KAPING, T2": {"retriever": "kaping", "format": "triples"},
    "Rigel, T2": {"retriever": "rigel", "format": "triples"},
    "sentences by rule": {"format": "template"},
    "gold paths, sentences": {"retriever": "oracle"},
    "gold paths, sentences by rule": {"retriever": "oracle", "format": "template"},
}
"""What each row has other than the published one."""
METRICS = {"hit_rra_substring": "published", "hit_rra": "boundaries", "exact": "exact"}
SWITCHES = ("sampling", "named_first")
FIELDS = (*fields_below("sets/*"), "sets/*/about/...", "sets/*/retrieval/...", "sets/*/rows/...")
"""What the result file holds (benchmarks/results_file.py)."""


def outputs_of(work: RraWork, fold: int, questions: Sequence[Question], row: Mapping[str, Any], count: int) -> Any:
    """Question id → what the answerer wrote, and counts of sentences, for a row on a fold.

    row: of ROWS; it may name an `answerer` other than builtin with its `dtype`, and in `zero_shot` a model that writes
    sentences untrained.
    """
    sample = work.answered(fold, questions)
    knowledge, retriever, counts = None, row["retriever"], {}
    switches = {name: row[name] for name in SWITCHES} if retriever == "hop_path" else {}
    name = "_".join([retriever, *(str(value) for value in switches.values())])
    if row["format"] != "none":
        facts = work.facts(name, fold, questions, retriever, **switches)
        read = work.folder / f"knowledge_{fold}"
        read.mkdir(exist_ok=True)
        common = {"kg": work.kg(), "questions": sample, "facts": facts}
        if row["format"] == "triples":
            write_knowledge(Workspace(read), **common, retriever=retriever)
        else:
            base = {"adapt": False, "base": row["zero_shot"]} if "zero_shot" in row else {}
            options = work.profile.rewriter.model_copy(update={"on_unfaithful": row["on_unfaithful"], **base})
            counts = write(
                Workspace(read, cache=work.cache, monitor=Log()),
                **common,
                rewriter=work.rewriter(count) if row["format"] == "rewritten" and not base else None,
                request=SentenceRequest(
                    retriever=retriever,
                    format=row["format"],
                    language=work.profile.questions.language,
                    split="test",
                    seed=SEED,
                ),
                options=options,
                llm=LlmOptions(),
            )
        knowledge = read
    out = work.folder / f"answers_{fold}"
    out.mkdir(exist_ok=True)
    options = AnsweringOptions(answerer=row.get("answerer", "builtin"), template=row["template"])
    label = "none/none" if knowledge is None else f"{retriever}/{row['format']}"
    answer(
        Workspace(out, cache=work.cache, monitor=QUIET),
        questions=sample,
        knowledge=knowledge,
        name=label,
        options=options,
        llm=LlmOptions(dtype=row.get("dtype", "auto")),
        seed=SEED,
    )
    frame = pl.read_parquet(out / "answers.parquet")
    return dict(zip(frame["question"], frame["output"], strict=True)), counts


def measure_row(
    work: RraWork, row: Mapping[str, Any], count: int, compared: str = "hit_rra_substring"
) -> dict[str, Any]:
    """Figures of a row, and of every question the metric by which rows are compared."""
    began = time.process_time()
    values: dict[str, dict[str, float]] = {}
    with_answers: set[str] = set()
    sentences: dict[str, int] = {}
    for fold, questions in work.sample(count):
        found, counts = outputs_of(work, fold, questions, row, count)
        values |= score_outputs(questions, found)
        with_answers |= {question.id for question in questions if question.answer_keys}
        for name in ("sentences", "unfaithful", "invented", "untold", "replaced", "kept", "dropped"):
            sentences[name] = sentences.get(name, 0) + int(counts.get(name, 0))
    every = sorted(values)
    those = [question for question in every if question in with_answers]
    return {
        "options": {name: value for name, value in row.items()},
        "questions": len(every),
        "with_answers": len(those),
        "hit_at_1": {
            f"{label}, {of}": bootstrap_interval([values[q][metric] for q in ids], seed=SEED).rounded(4)
            for metric, label in METRICS.items()
            for of, ids in (("all", every), ("with answers", those))
        },
        "sentences": {name: number for name, number in sentences.items() if number},
        "cpu_seconds": round(time.process_time() - began, 1),
        "hits": {question: values[question][compared] for question in every},
    }


def measure_retrieval(work: RraWork) -> dict[str, Any]:
    """Share of test questions with a gold answer in the facts, and whose best entity is one, by switch."""
    found: dict[str, Any] = {}
    for sampling in ("sequential", "proportional"):
        for named_first in (False, True):
            reached: list[bool] = []
            right: list[bool] = []
            for fold in range(work.plan.folds):
                share = work.plan.retrieved // work.plan.folds
                questions = some(work.tests(fold), share, f"retrieved {fold}")
                retrieved = work.retrieve(fold, questions, sampling=sampling, named_first=named_first)
                ends = fact_ends(work, retrieved)
                for question, one, entities in zip(questions, retrieved, ends, strict=True):
                    gold = set(question.answers) if question.unlinkable is None else set()
                    reached.append(bool(gold & entities))
                    right.append(bool(one.entities) and one.entities[0][0] in gold)
            name = f"{sampling}{', named entities first' if named_first else ''}"
            found[name] = {
                "questions": len(reached),
                "answer_in_facts": bootstrap_interval(reached, seed=SEED).rounded(4),
                "hits_at_1": bootstrap_interval(right, seed=SEED).rounded(4),
            }
    return found


def fact_ends(work: RraWork, retrieved: Sequence[Retrieved]) -> list[set[int]]:
    """Entities at the ends of each question's facts."""
    from kgqa_core.kg.store import KgStore

    with KgStore.open(work.kg()) as store:
        triples = store.triples(sorted({fact.triple for one in retrieved for fact in one.facts}))
    return [{end for fact in one.facts for end in triples[fact.triple][::2]} for one in retrieved]


def about(work: RraWork, count: int) -> dict[str, Any]:
    """What a set's figures were measured under."""
    options = work.profile.hop_path
    return {
        "folds": work.plan.folds,
        "test_questions": sum(len(work.tests(fold)) for fold in range(work.plan.folds)),
        "without_answers": sum(
            not question.answer_keys for fold in range(work.plan.folds) for question in work.tests(fold)
        ),
        "answered": sum(len(own) for _, own in work.sample(count)),
        "hop_path": options.model_dump(
            include={"encoder", "max_hops", "beam", "reasoning_paths", "gold_hops", "epochs"}
        ),
        "training_questions_at_most": work.plan.training,
        "rewriter": work.profile.rewriter.model_dump(
            include={"base", "lora_rank", "learning_rate", "global_batch_size", "epochs"}
        ),
        "pairs_at_most": work.plan.pairs,
        "corpus": "published pairs" if work.profile.corpus.alpaca_file else "sentences by rule",
    }


def run(plan: SetPlan, folder: Path, count: int) -> dict[str, Any]:
    """The record of a set; rows that are in its rows.json are not measured again."""
    work = RraWork(plan, folder)
    file = work.folder / "rows.json"
    done: dict[str, Any] = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}

    def once(name: str, make: Any) -> Any:
        if name not in done:
            logging.info("%s: %s", plan.name, name)
            done[name] = make()
            part = file.with_suffix(".part")
            part.write_text(json.dumps(done), encoding="utf-8")
            part.replace(file)
        return done[name]

    record = {"conditions": conditions(SEED), "about": once("about", lambda: about(work, count))}
    record["retrieval"] = once("retrieval", lambda: measure_retrieval(work))
    rows = {name: once(name, lambda row=row: measure_row(work, PUBLISHED | row, count)) for name, row in ROWS.items()}
    base = rows["as published"]["hits"]
    record["rows"] = {name: _compared(row, base) for name, row in rows.items()}
    return record


def _compared(row: Mapping[str, Any], base: Mapping[str, float]) -> dict[str, Any]:
    """A row with the questions that it fixes and breaks against the published one."""
    fixed = sum(row["hits"][question] > base[question] for question in base)
    broken = sum(row["hits"][question] < base[question] for question in base)
    rest = {name: value for name, value in row.items() if name != "hits"}
    return rest | {"fixed": fixed, "broken": broken, "p": three_digits(mcnemar(fixed, broken))}


TITLES = {"zjqa": "ZJQA", "metaqa": "MetaQA, 2 hops", "atlas": "Atlas", "webqsp": "WebQSP, gold subgraphs"}


def tables(record: Mapping[str, Any]) -> str:
    """The tables of the page."""
    lines = []
    head = ("", "hit@1 as published", "on boundaries, all questions", "Exact", "+ fixed − broken", "p")
    for name, one in record["sets"].items():
        given = one["about"]
        folds = f", {given['folds']} folds over topics" if given["folds"] > 1 else ""
        lines += [f"### {TITLES[name]}", ""]
        lines += [
            f"{given['answered']} of {given['test_questions']:,} test questions answered{folds} "
            f"({given['without_answers']} of all have no gold answer); rewriter trained on at most "
            f"{given['pairs_at_most']:,} pairs, {given['corpus']}.",
            "",
        ]
        lines += ["| " + " | ".join(head) + " |", "|---" + "|--:" * (len(head) - 1) + "|"]
        for row, own in one["rows"].items():
            hit = own["hit_at_1"]
            cells = [_cell(hit["published, with answers"]), _cell(hit["boundaries, all"]), _cell(hit["exact, all"])]
            same = row == "as published"
            cells += ["", ""] if same else [f"+{own['fixed']} −{own['broken']}", f"{own['p']:g}"]
            lines.append("| " + " | ".join([row, *cells]) + " |")
        lines += ["", "| reasoning paths | a gold answer in the facts | Hits@1 |", "|---|--:|--:|"]
        for row, own in one["retrieval"].items():
            lines.append(f"| {row} | {_cell(own['answer_in_facts'])} | {_cell(own['hits_at_1'])} |")
        lines += ["", f"Retrieval: {own['questions']:,} test questions.", ""]
        made = one["conditions"]
        lines += [f"Seed {made['seed']}, commit {commit_name(made['commit'])}, {made['date']}, one thread.", ""]
    return "\n".join(lines) + "\n"


def _cell(interval: Mapping[str, float]) -> str:
    return f"{100 * interval['value']:.1f} ({100 * interval['low']:.1f}–{100 * interval['high']:.1f})"


def main() -> None:
    """Runs it and writes the record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, help="folder of what is finished")
    parser.add_argument("--sets", default=",".join(plan.name for plan in SETS))
    parser.add_argument("--answered", type=int, default=200, help="questions of a set that are answered")
    parser.add_argument("--json", type=Path, help="file that the record is written to")
    given = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    chosen = given.sets.split(",")
    record = json.loads(given.json.read_text(encoding="utf-8")) if given.json and given.json.is_file() else {"sets": {}}
    if made := record.pop("conditions", None):
        record["sets"] = {name: {"conditions": made, **one} for name, one in record["sets"].items()}
    for plan in SETS:
        if plan.name in chosen:
            record["sets"][plan.name] = run(plan, given.work, given.answered)
    text = json.dumps(record, indent=1, ensure_ascii=False) + "\n"
    if given.json:
        results_file.write(given.json, record, FIELDS)
    print(text, end="")


if __name__ == "__main__":
    main()
