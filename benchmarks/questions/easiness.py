"""How easy question sets are: random facts, the most frequent relation and the oracle on their test questions.

    python -m benchmarks.questions.easiness [--sets atlas zjqa …] [--json benchmarks/results/easiness.json]

Sets: atlas, zjqa, metaqa, wikidata-mini (SimpleQuestions), each with the options of its profile, gold topics, k facts a
hop.  None of the three learns or chooses anything by the test questions: random facts and the most frequent relation do
not read them, and the oracle has the annotated paths.  Means with bootstrap intervals over all test questions.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

from benchmarks import results_file
from benchmarks.conditions import PROFILES, RESULTS, conditions
from benchmarks.results_file import fields_below
from kgqa_core.config import EvaluationOptions, read_profile
from kgqa_core.config import make_profile as profile_of
from kgqa_core.datasets.load import load
from kgqa_core.dkg.export import export
from kgqa_core.evaluation.score import score
from kgqa_core.kg.build import build
from kgqa_core.retrieval.collect import collect

FIELDS = (*fields_below("sets/*"), "sets/*/questions", "sets/*/k", "sets/*/scores/*/*/*")
"""What the result file holds (benchmarks/results_file.py)."""
SEED = 7
SETS = ("atlas", "zjqa", "metaqa", "wikidata-mini")
RETRIEVERS = ("random", "frequent", "oracle")
METRICS = ("hits_at_1", "recall_of_answers")


def measure(name: str, folder: Path) -> dict[str, Any]:
    """Scores of the three on the test questions of a profile."""
    profile = profile_of(read_profile(PROFILES / f"{name}.yaml"))
    parts = {part: folder / part for part in ("kg", "dkg", "questions", "scores", "work", *RETRIEVERS)}
    for part in parts.values():
        part.mkdir(parents=True)
    build(parts["kg"], options=profile.kg, work=parts["work"])
    export(parts["dkg"], kg=parts["kg"], options=profile.dkg, work=parts["work"])
    load(parts["questions"], kg=parts["kg"], options=profile.questions, seed=SEED)
    for retriever in RETRIEVERS:
        collect(
            parts[retriever], dkg=parts["dkg"], kg=parts["kg"], questions=parts["questions"], name=retriever,
            options=profile.retrieval, seed=SEED,
        )  # fmt: skip
    score(
        parts["scores"], kg=parts["kg"], questions=parts["questions"], facts={one: parts[one] for one in RETRIEVERS},
        knowledge={}, answers={}, options=EvaluationOptions(), seed=SEED,
    )  # fmt: skip
    scores = json.loads((parts["scores"] / "aggregates.json").read_text(encoding="utf-8"))["scores"]
    cells = {one: {metric: scores[f"{one}/-/-"]["test"][metric] for metric in METRICS} for one in RETRIEVERS}
    number = cells["random"]["hits_at_1"]["n"]
    return {"conditions": conditions(SEED), "questions": number, "k": profile.retrieval.k, "scores": cells}


def main() -> None:
    """Measures each set and writes the file after each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="*", choices=SETS, default=list(SETS))
    parser.add_argument("--json", type=Path, default=RESULTS / "easiness.json")
    given = parser.parse_args()
    document = json.loads(given.json.read_text(encoding="utf-8")) if given.json.is_file() else {"sets": {}}
    for name in given.sets:
        with tempfile.TemporaryDirectory() as scratch:
            document["sets"][name] = measure(name, Path(scratch))
        results_file.write(given.json, document, FIELDS, sort_keys=True)
        print(name, {one: cells["hits_at_1"]["value"] for one, cells in document["sets"][name]["scores"].items()})


if __name__ == "__main__":
    main()
