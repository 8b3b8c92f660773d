"""One table over several question sets: the aggregates of each, and paired tests of models and of knowledge on each.

All is read from the `scores` and `questions` artifacts of the sets; nothing is answered or scored again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from itertools import combinations
from pathlib import Path
from typing import Any

import polars as pl

from kgqa_core.config import Experiment
from kgqa_core.errors import ArtifactError
from kgqa_core.evaluation.experiment_tables import baselines
from kgqa_core.evaluation.labels import knowledge_order
from kgqa_core.evaluation.paired import difference, pair, read_scored
from kgqa_core.metrics.registry import metrics_shown
from kgqa_core.metrics.significance import holm, three_digits
from kgqa_core.workspace import Workspace

FILE = "tables.json"

AGGREGATES = (
    "scores", "by_complexity", "by_hops", "gain_over_no_knowledge", "n_unlinkable", "by_level", "by_triples",
    "recall_by_k", "cost",
)  # fmt: skip
"""What the table keeps of a set's aggregates; the set's own report has all."""

Pairs = Callable[[Collection[str]], Iterator[tuple[str, str]]]
"""(experiment, against) among the experiments of a set."""


def tables(
    workspace: Workspace, *, scores: Mapping[str, Path], questions: Mapping[str, Path], seed: int = 0
) -> dict[str, Any]:
    """Writes `tables.json` and returns counts.

    scores, questions: artifacts by question set.  `sets` holds the aggregates of each set; `models` and `knowledge` are
    rows of `compare_set`: every two answerers with the same knowledge, and every knowledge against none and against the
    triples of each retriever, of one answerer.
    """
    results: dict[str, Any] = {"sets": {}, "models": [], "knowledge": []}
    for index, (name, folder) in enumerate(scores.items()):
        workspace.monitor.progress(index, len(scores), "question sets")
        try:
            aggregates = json.loads((folder / "aggregates.json").read_text(encoding="utf-8"))
        except (OSError, ValueError) as fault:
            raise ArtifactError(f"the scores of question set {name!r} in {folder} cannot be read ({fault})") from None
        results["sets"][name] = {key: aggregates[key] for key in AGGREGATES if key in aggregates}
        scored = read_scored(folder, questions[name])
        for key, pairs in (("models", model_pairs), ("knowledge", knowledge_pairs)):
            results[key] += [{"set": name, **row} for row in compare_set(scored, pairs, seed=seed)]
    (workspace.out / FILE).write_text(json.dumps(results, sort_keys=True, ensure_ascii=False), encoding="utf-8")
    workspace.monitor.progress(len(scores), len(scores), "question sets")
    experiments = {name for one in results["sets"].values() for name in one["scores"]}
    counts = {key: len(results[key]) for key in ("models", "knowledge")}
    return {"sets": len(scores), "experiments": len(experiments), "tests": counts}


def compare_set(scored: pl.DataFrame, pairs: Pairs, *, seed: int = 0) -> list[dict[str, Any]]:
    """One row for each pair of experiments and each metric that both have, over the questions that both scored.

    scored: of one set, as `read_scored` gives it.  Rows: `experiment, against, metric, split`, and the fields of
    `Difference`: the mean of (experiment − against) in [-1, 1] with its paired 95 % bootstrap interval, questions won
    and lost, McNemar's exact p where all scores are 0 or 1.  p_holm: p corrected for the number of tests of that
    metric (Holm 1979), over the rows returned.
    """
    rows: list[dict[str, Any]] = []
    names = sorted(scored["experiment"].unique().to_list(), key=knowledge_order)
    for experiment, against in pairs(names):
        for metric in metrics_shown("set_tests"):
            shared = pair(scored, scored, (against, experiment), metric)
            if shared.height:
                measured = difference(shared, seed=seed).rounded()
                named = {"experiment": experiment, "against": against, "metric": metric, "split": shared["split"][0]}
                rows.append({**named, **measured})
    for metric in metrics_shown("set_tests"):
        tested = [row for row in rows if row["metric"] == metric and row["p"] is not None]
        for row, p in zip(tested, holm([row["p"] for row in tested]), strict=True):
            row["p_holm"] = three_digits(p)
    return rows


def model_pairs(names: Collection[str]) -> Iterator[tuple[str, str]]:
    """Every two answerers that read the same knowledge, in order of the name; the later one is against the earlier.

    >>> list(model_pairs(["none/none/a", "rigel/triples/a", "rigel/triples/b", "rigel/-/-"]))
    [('rigel/triples/b', 'rigel/triples/a')]
    """
    parsed = [(name, Experiment.parse(name)) for name in names]
    answered = [(name, (str(one.variant), one.format), one.answerer) for name, one in parsed if one.answerer != "-"]
    for knowledge in dict.fromkeys(read for _, read, _ in answered):
        same = sorted((answerer, name) for name, read, answerer in answered if read == knowledge)
        yield from ((second[1], first[1]) for first, second in combinations(same, 2))


def knowledge_pairs(names: Collection[str]) -> Iterator[tuple[str, str]]:
    """Every knowledge of an answerer against what `baselines` names: none, and the triples of each retriever."""
    for name in names:
        yield from ((name, base) for base in baselines(name, names))
