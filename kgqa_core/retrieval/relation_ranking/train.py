"""Stage `train` of the relation rankers: `pair` always, `amr` where training questions have AMR graphs.

They learn from the annotated questions of the data set and from relation-linking sets (`training_sets`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kgqa_core.config import RelationRankingOptions
from kgqa_core.datasets.leakage import same_text
from kgqa_core.datasets.question import read_questions
from kgqa_core.dkg.csr import Dkg
from kgqa_core.errors import TrainingError
from kgqa_core.monitor import QUIET, Monitor
from kgqa_core.nn import loop
from kgqa_core.nn.curves import dev_of_best, write_curves
from kgqa_core.retrieval.relation_ranking.amr import AmrGraph
from kgqa_core.retrieval.relation_ranking.amr_source import open_graphs
from kgqa_core.retrieval.relation_ranking.fit import Fitted, Kind, fit
from kgqa_core.retrieval.relation_ranking.linking_sets import read_linking
from kgqa_core.retrieval.relation_ranking.pairs import save
from kgqa_core.retrieval.relation_ranking.training_examples import Lesson, of_linking, of_questions

SPLITS = ("train", "dev")


def train(
    out: Path,
    *,
    dkg: Path,
    questions: Path,
    options: RelationRankingOptions,
    seed: int,
    kg: Path | None = None,
    monitor: Monitor = QUIET,
    work: Path | None = None,
    cache: Path | None = None,
) -> dict[str, Any]:
    """Writes a folder `pair`, and `amr` where there are AMR graphs, each with weights, config, tokenizer and curves.

    curves.parquet beside them is that of `pair`.

    kg: the graph store, for the names of topics; their keys serve without it.  cache: folder that keeps parsed graphs.
    Questions without a gold relation of a topic entity are left out and counted; of `amr` those without a graph too;
    of training sets those that are dev or test questions of the data set (`leaked`).
    Raises TrainingError when none is left or the loss is not finite, ModelError when the encoder is not one or a parser
    may not be loaded, InputError for a file that cannot be read.
    """
    lessons, counts = _lessons(dkg, questions, options, seed, kg)
    if not lessons["train"]:
        raise TrainingError(
            f"none of the {counts['train']['questions']} training questions has a topic entity with an annotated gold "
            "relation in this graph; give relation_path or gold_triples in the question file, or name relation-linking "
            "files in relation_ranking.training_sets"
        )
    found: dict[str, Any] = {"lessons": {split: len(own) for split, own in lessons.items()}, "from": counts}
    key = hashlib.sha256(repr(sorted(lessons.items())).encode()).hexdigest()
    fitted = fit(
        lessons["train"], lessons["dev"], options, seed, "pair", key=key, monitor=monitor, work=_below(work, "pair")
    )
    found["pair"] = _write(out, "pair", fitted)
    write_curves(out, fitted.progress)
    graphs = _graphs(lessons, options, cache, monitor)
    own = {split: [lesson for lesson in part if lesson.question in graphs] for split, part in lessons.items()}
    found["amr_graphs"] = len(graphs)
    if own["train"]:
        told = hashlib.sha256(repr(sorted(graphs.items())).encode()).hexdigest()
        fitted = fit(
            own["train"], own["dev"], options, seed, "amr", graphs=graphs, key=key + told, monitor=monitor,
            work=_below(work, "amr"),
        )  # fmt: skip
        found["amr"] = _write(out, "amr", fitted) | {"lessons": {split: len(part) for split, part in own.items()}}
    elif options.amr_graphs or options.amr_parser:
        monitor.note("no training question has an AMR graph; rank_amr is not trained and ranks as rank_pair does")
    for ranker in ("pair", "amr"):
        if (folder := _below(work, ranker)) is not None:
            (folder / loop.CHECKPOINT).unlink(missing_ok=True)
    return found


def _lessons(
    dkg: Path, questions: Path, options: RelationRankingOptions, seed: int, kg: Path | None
) -> tuple[dict[str, list[Lesson]], dict[str, Any]]:
    graph = Dkg.open(dkg)
    everything = read_questions(questions)
    held_out = {same_text(question) for question in everything if question.split != "train"}
    lessons: dict[str, list[Lesson]] = {}
    counts: dict[str, Any] = {}
    for split in SPLITS:
        asked = [question for question in everything if question.split == split]
        lessons[split], counts[split] = of_questions(asked, graph, kg, options.most_relations)
    for number, name in enumerate(options.training_sets):
        linking = read_linking(Path(name).expanduser())
        leaked = 0
        for split, own in zip(SPLITS, of_linking(linking, seed), strict=True):
            kept = [lesson for lesson in own if " ".join(lesson.question.split()) not in held_out]
            lessons[split] += kept
            leaked += len(own) - len(kept)
        counts[f"training_set_{number}"] = linking.counts | {"leaked": leaked}
    return lessons, counts


def _graphs(
    lessons: Mapping[str, list[Lesson]], options: RelationRankingOptions, cache: Path | None, monitor: Monitor
) -> dict[str, AmrGraph]:
    """Graphs of training and dev questions; empty where the options name none."""
    if options.amr_graphs is None and options.amr_parser is None:
        return {}
    opened = open_graphs(options.amr_graphs, options.amr_parser, cache, monitor)
    asked = sorted({lesson.question for own in lessons.values() for lesson in own})
    return opened.of(asked, monitor) if opened is not None else {}


def _write(out: Path, ranker: Kind, fitted: Fitted) -> dict[str, Any]:
    save(out / ranker, fitted.trained)
    write_curves(out / ranker, fitted.progress)
    return {
        "parameters": sum(parameter.numel() for parameter in fitted.trained.network.parameters()),
        "unknown_token_share": round(fitted.unknown, 4),
        "epochs": fitted.progress.epoch,
        "best_epoch": fitted.progress.best_epoch,
        **dev_of_best(fitted.progress),
    }


def _below(work: Path | None, name: str) -> Path | None:
    return None if work is None else work / name
