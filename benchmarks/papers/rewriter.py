"""A LoRA rewriter on a published KG-to-Text corpus: dev loss, BLEU, chrF and faithfulness of what it writes.

    python -m benchmarks.papers.rewriter ../shared/data/rra_kg2text/finetune-llama/WQSP --work DIR
        [--train 0] [--dev 300] [--set rewriter.epochs=4] [--samples FILE] [--json benchmarks/results/rewriter.json]

The folder holds train.json and dev.json in the Alpaca form.  Training pairs whose graph is in the dev file are left
out; --train and --dev take so many pairs with the seed, 0 takes all.  Beside the rewriter stand, on the same pairs, the
triples as they are, the sentences of the rules (`template`), and the published text itself, whose faithfulness is the
ceiling of the counts.  BLEU and chrF are sacrebleu's, over the corpus.  A stopped run goes on: the state is in --work.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import platform
import random
import time
from pathlib import Path
from typing import Any

import polars as pl
import sacrebleu

from benchmarks import results_file
from benchmarks.conditions import conditions
from benchmarks.results_file import CONDITIONS
from kgqa_core.config import LlmOptions, RewriterOptions, make_profile, parse_settings
from kgqa_core.llm.protocol import GenerationParams
from kgqa_core.monitor import Log
from kgqa_core.rewriting.alpaca import InstructionPair, read_pairs
from kgqa_core.rewriting.faithfulness import check
from kgqa_core.rewriting.lora import load_rewriter, read_meta
from kgqa_core.rewriting.template import sentences
from kgqa_core.rewriting.train import train

FIELDS = (
    *CONDITIONS, "about/machine", "about/processors", "about/python", "data", "pairs/*", "base", "base_revision",
    "options/...", "seed", "seconds", "cpu_seconds", "dev_loss/...", "truncated", "scores/...",
)  # fmt: skip
"""What the result file holds (benchmarks/results_file.py)."""


def take(folder: Path, some: int, dev: int, seed: int) -> tuple[list[InstructionPair], list[InstructionPair], int]:
    """Training and dev pairs, and how many training pairs went since their graph is in the dev file."""
    good = [pair for pair in read_pairs(folder) if pair.fault is None]
    develop = [pair for pair in good if pair.split == "dev"]
    held = {pair.triple_text for pair in develop}
    learn = [pair for pair in good if pair.split == "train"]
    clean = [pair for pair in learn if pair.triple_text not in held]
    return _some(clean, some, seed), _some(develop, dev, seed), len(learn) - len(clean)


def _some(pairs: list[InstructionPair], count: int, seed: int) -> list[InstructionPair]:
    chosen = sorted(random.Random(seed).sample(range(len(pairs)), min(count or len(pairs), len(pairs))))
    return [pairs[place] for place in chosen]


def write_corpus(out: Path, learn: list[InstructionPair], develop: list[InstructionPair]) -> None:
    out.mkdir(parents=True, exist_ok=True)
    rows = [(pair.source, pair.instruction, pair.text, "kept", pair.split) for pair in learn + develop]
    schema = ["pair", "instruction", "text", "verdict", "split"]
    pl.DataFrame(rows, schema=schema, orient="row").write_parquet(out / "corpus.parquet")


def score(texts: list[str], pairs: list[InstructionPair]) -> dict[str, Any]:
    """BLEU and chrF against the published text, and faithfulness to the triples that could be parsed."""
    language = pairs[0].language
    references = [[pair.text for pair in pairs]]
    checked = [(check(text, pair.named, language), pair) for text, pair in zip(texts, pairs, strict=True) if pair.named]
    lines = [line for found, _ in checked for line in found.sentences]
    return {
        "bleu": round(sacrebleu.corpus_bleu(texts, references, tokenize="zh" if language == "zh" else "13a").score, 2),
        "chrf": round(sacrebleu.corpus_chrf(texts, references).score, 2),
        "exact": sum(text == pair.text for text, pair in zip(texts, pairs, strict=True)),
        "checked": len(checked),
        "faithful": sum(found.faithful for found, _ in checked),
        "inventing": sum(bool(found.invented) for found, _ in checked),
        "sentences": len(lines),
        "sentences_inventing": sum(bool(line.invented) for line in lines),
        "triples": sum(len(pair.named) for _, pair in checked),
        "triples_untold": sum(len(found.untold) for found, _ in checked),
    }


def by_rules(pair: InstructionPair) -> str:
    return " ".join(sentence.text for sentence in sentences(pair.named, pair.language, 0)) or pair.triple_text


def measure(given: argparse.Namespace, options: RewriterOptions) -> tuple[dict[str, Any], str]:
    """Trains, writes, scores; figures and the samples to read."""
    learn, develop, leaked = take(given.folder, given.train, given.dev, given.seed)
    out = given.work / "rewriter"
    start = time.perf_counter(), time.process_time()
    if not (out / "meta.json").is_file():
        write_corpus(given.work / "corpus", learn, develop)
        train(
            out, corpus=given.work / "corpus", options=options, seed=given.seed, monitor=Log(),
            work=given.work / "state",
        )  # fmt: skip
    spent = time.perf_counter() - start[0], time.process_time() - start[1]
    model = load_rewriter(out, LlmOptions(device=options.device))
    params = GenerationParams(max_new_tokens=options.max_new_tokens)
    written = model.generate([pair.instruction for pair in develop], params)
    texts = [completion.text.strip() for completion in written]
    systems = {
        "rewriter": texts,
        "template": [by_rules(pair) for pair in develop],
        "triples": [pair.triple_text for pair in develop],
        "published": [pair.text for pair in develop],
    }
    meta = read_meta(out)
    curve = pl.read_parquet(out / "curves.parquet").filter(pl.col("split") == "dev")
    report = {
        "data": given.folder.name,
        "pairs": meta["pairs"] | {"left_out_since_in_dev": leaked},
        "base": options.base if options.base == "builtin" else options.base.rpartition("/")[2],
        "base_revision": meta["base_revision"],
        "options": {key: value for key, value in meta["options"].items() if key != "base"},
        "seed": given.seed,
        "seconds": round(spent[0], 1),
        "cpu_seconds": round(spent[1], 1),
        "dev_loss": dict(zip(map(str, curve["step"]), curve["value"].round(4), strict=True)),
        "truncated": sum(completion.finish == "length" for completion in written),
        "scores": {name: score(texts_of_system, develop) for name, texts_of_system in systems.items()},
    }
    shown = random.Random(given.seed).sample(range(len(develop)), min(10, len(develop)))
    samples = "\n\n".join(
        f"triples:   {develop[place].triple_text}\npublished: {develop[place].text}\nrewriter:  {texts[place]}\n"
        f"template:  {systems['template'][place]}"
        for place in shown
    )
    return report, samples


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="folder with train.json and dev.json")
    parser.add_argument("--work", type=Path, required=True, help="where corpus, state and adapter go")
    parser.add_argument("--train", type=int, default=0, help="training pairs, sampled with the seed; 0 is all")
    parser.add_argument("--dev", type=int, default=300, help="dev pairs that are scored; 0 is all")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--set", action="append", default=[], metavar="rewriter.KEY=VALUE")
    parser.add_argument("--samples", type=Path)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    report, samples = measure(given, make_profile(parse_settings(given.set), origin="--set").rewriter)
    print(json.dumps(report, indent=1))
    if given.samples is not None:
        given.samples.write_text(samples + "\n", encoding="utf-8")
    if given.json is not None:
        about = {"machine": platform.platform(), "processors": os.cpu_count(), "python": platform.python_version()}
        results_file.write(given.json, {"conditions": conditions(given.seed), "about": about} | report, FIELDS)


if __name__ == "__main__":
    main()
