"""Content digests of every artifact that fixed profiles make, to show that a change of the code changes no artifact.

    python -m benchmarks.operation.artifact_digests                    all cases, into the result file
    python -m benchmarks.operation.artifact_digests toy zjqa --check   compares with that file; 1 on a difference

Each case runs commands of `kgqa` in a new home and reads the manifests of all artifacts in it.  The digests hold for
one machine, one thread and MKL_CBWR=COMPATIBLE, which the script sets: with several threads a training may end in other
last digits from run to run, since MKL chooses its kernels by the alignment of memory.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import results_file
from benchmarks.conditions import RESULTS, ROOT
from tests.support.command import kgqa
from tests.support.ltgen import make_graph
from tests.support.register_benchmark import write_inputs
from tests.support.toy import write_graph, write_questions

FIELDS = (
    "note", "cases/*/commit", "cases/*/seconds", "cases/*/digests/...",
)  # fmt: skip
"""What the result file holds (benchmarks/results_file.py)."""

NOTE = "SHA-256 of the canonical content of each artifact, by case, command and stage"
SMALL = {
    "rigel.encoder": "scratch", "rigel.scratch_width": 32, "rigel.epochs": 1, "rigel.min_steps": 40,
    "hop_path.encoder": "scratch", "hop_path.scratch_width": 32, "hop_path.epochs": 2,
    "relation_ranking.encoder": "scratch", "relation_ranking.scratch_width": 32, "relation_ranking.epochs": 1,
    "parsing.rng.scratch_width": 32, "parsing.rng.epochs": 1, "parsing.decode.scratch_width": 32,
    "parsing.decode.epochs": 3, "parsing.decode.width": 32, "parsing.decode.retriever_epochs": 2,
    "evaluation.bootstrap": 100,
    "corpus.size": 60, "rewriter.lora_rank": 4, "rewriter.epochs": 1, "rewriter.learning_rate": 0.001,
    "answering.limit": 24,
}  # fmt: skip
"""Options that make a case of a minute."""

Words = Sequence[str | Path]


def settings(**changes: Any) -> list[str]:
    """`--set` words of SMALL with changes; `__` in a name stands for a dot."""
    chosen = SMALL | {name.replace("__", "."): value for name, value in changes.items()}
    return [word for key, value in chosen.items() for word in ("--set", f"{key}={json.dumps(value)}")]


def _atlas(folder: Path) -> list[Words]:
    return [("demo",)]


def _zjqa(folder: Path) -> list[Words]:
    return [("run", "--profile", "zjqa", "--set", "answering.limit=100")]


def _toy(folder: Path) -> list[Words]:
    own = _register(folder)
    texts = [{"id": f"d{n}", "title": f"Town {n}", "text": f"Town {n} lies in region {n % 5}."} for n in range(40)]
    (folder / "texts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in texts), encoding="utf-8")
    every = ["rigel", "hop_path", "kaping", "rank_llm", "rank_embedding", "rank_pair", "rank_amr", "random", "oracle"]
    read = ["none", "passages", "random", "rigel", "rigel@linked", "rigel/template", "rigel/both", "hop_path/rewritten",
            "kaping", "rank_embedding", "rank_pair@linked", "oracle/template"]  # fmt: skip
    everything = settings(
        retrieval__retrievers=every, retrieval__topics="both", answering__knowledge=read,
        passages__corpus=str(folder / "texts.jsonl"), passages__retriever="hybrid", passages__k=3,
    )  # fmt: skip
    label = settings(
        retrieval__retrievers=["rigel"], retrieval__topics="linked", answering__knowledge=["rigel"],
        rigel__decoder="label", rigel__soft_start=True, rigel__intersect="product",
    )  # fmt: skip
    computed = settings(
        retrieval__retrievers=["rigel", "hop_path"], retrieval__topics="both", symbolic__parser="rng",
        answering__knowledge=["rigel", "hop_path@linked"], label_parser__steps=0,
    )  # fmt: skip
    decoded = settings(
        retrieval__retrievers=["hop_path"], symbolic__parser="decode", answering__knowledge=["hop_path"],
        label_parser__steps=0,
    )  # fmt: skip
    return [
        ("run", *own, *everything),
        ("run", *own, *label),
        ("run", *own, "--answerer", "auto", *computed),
        ("run", *own, "--answerer", "auto", *decoded),
    ]


def _answerability(folder: Path) -> list[Words]:
    write_inputs(folder, questions=420)
    sets = settings(
        answerability__largest_drop_share=0.9, retrieval__retrievers=["rigel", "hop_path"],
        abstention__training_questions=200, answering__limit=200,
    )  # fmt: skip
    built = folder / "built"
    inputs = ("--kg", folder / "facts.tsv", "--questions", folder / "questions.jsonl")
    return [
        ("answerability", "build", *inputs, *sets, "--out", built),
        ("answerability", "evaluate", built, *sets),
        ("answerability", "abstain", built, *sets),
    ]


def _ltgen(folder: Path) -> list[Words]:
    make_graph(folder)
    sets = ["ltgen.sampling.per_level=4", "ltgen.sampling.levels=absolute", "ltgen.sampling.thresholds=[1,9,12,15,100]"]
    words = [word for setting in sets for word in ("--set", setting)]
    return [("ltgen", "build", "--kg", folder / "graph.nt", "--out", folder / "out", *words)]


def _register(folder: Path) -> Words:
    write_questions(folder / "questions.jsonl", write_graph(folder / "graph.tsv", 2000), 200)
    return ("--kg", folder / "graph.tsv", "--questions", folder / "questions.jsonl")


CASES: Mapping[str, Callable[[Path], list[Words]]] = {
    "toy": _toy, "answerability": _answerability, "ltgen": _ltgen, "atlas": _atlas, "zjqa": _zjqa,
}  # fmt: skip


def run_case(name: str, folder: Path) -> dict[str, str]:
    """Digests of a case's artifacts, by command and stage (`0/facts/rigel`); of those that no run records, by kind."""
    home = folder / "home"
    found: dict[str, str] = {}
    recorded: set[str] = set()
    seen: set[str] = set()
    for number, words in enumerate(CASES[name](folder)):
        done = kgqa(*words, "--home", home, "--json", cwd=ROOT, timeout=7200)
        if done.code:
            raise SystemExit(f"{name}: kgqa {' '.join(map(str, words))} ended with {done.code}:\n{done.err[-4000:]}")
        for path in sorted((home / "runs").glob("*/run.json")):
            if path.parent.name in seen:
                continue
            seen.add(path.parent.name)
            for stage in json.loads(path.read_text(encoding="utf-8"))["stages"]:
                if stage["artifact"]:
                    found[f"{number}/{stage['name']}"] = stage["artifact"]["digest"]
                    recorded.add(stage["artifact"]["digest"])
        print(f"{name}: {words[0]} done, {len(found)} artifacts", file=sys.stderr, flush=True)
    others: dict[str, list[str]] = {}
    for path in sorted((home / "artifacts").rglob("manifest.json")):
        manifest = json.loads(path.read_text(encoding="utf-8"))
        if manifest["digest"] not in recorded:
            others.setdefault(manifest["kind"], []).append(manifest["digest"])
    for kind, digests in others.items():
        found |= {f"unrecorded/{kind}/{place}": digest for place, digest in enumerate(sorted(set(digests)))}
    return found


def differences(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """Lines on what is missing, new or different."""
    return [
        f"{name}: {before.get(name, 'missing')[:16]} -> {after.get(name, 'missing')[:16]}"
        for name in sorted({*before, *after})
        if before.get(name) != after.get(name)
    ]


def main() -> int:
    """Run the cases; write or compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", help=f"of {', '.join(CASES)}; all when absent")
    parser.add_argument("--check", action="store_true", help="compare with the file, write nothing")
    parser.add_argument("--json", type=Path, default=RESULTS / "artifact_digests.json")
    parser.add_argument("--after", type=Path, help="write the digests of a check there too")
    given = parser.parse_args()
    wrong = [name for name in given.cases if name not in CASES]
    if wrong:
        parser.error(f"there is no case {wrong[0]}; cases are {', '.join(CASES)}")
    known = json.loads(given.json.read_text(encoding="utf-8")) if given.json.is_file() else {"note": NOTE, "cases": {}}
    faults = 0
    for name in given.cases or CASES:
        started = time.monotonic()
        with tempfile.TemporaryDirectory(prefix=f"kgqa-digests-{name}-") as folder:
            found = run_case(name, Path(folder))
        seconds = time.monotonic() - started
        if given.check:
            lines = differences(known["cases"][name]["digests"], found)
            faults += len(lines)
            print(f"{name}: {len(found)} artifacts, {len(lines)} differ, {seconds:.0f} s")
            print("".join(f"  {line}\n" for line in lines), end="", flush=True)
        else:
            known["cases"][name] = {"commit": _commit(), "seconds": round(seconds), "digests": found}
            results_file.write(given.json, known, FIELDS, sort_keys=True)
            print(f"{name}: {len(found)} artifacts, {seconds:.0f} s", flush=True)
        if given.after:
            later = json.loads(given.after.read_text(encoding="utf-8")) if given.after.is_file() else {"cases": {}}
            later["cases"][name] = {"commit": _commit(), "digests": found}
            given.after.write_text(json.dumps(later, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return 1 if faults else 0


def _commit() -> str:
    done = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return done.stdout.strip()


if __name__ == "__main__":
    os.environ |= {"OMP_NUM_THREADS": "1", "MKL_CBWR": "COMPATIBLE"}
    sys.exit(main())
