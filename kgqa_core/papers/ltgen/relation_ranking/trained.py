"""Trained rankers: stored, loaded and used to score pairs of an entity and a relation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from kgqa_core.config import RelationRankingOptions
from kgqa_core.errors import ArtifactError
from kgqa_core.monitor import QUIET, Monitor
from kgqa_core.nn.device import device_of, pick_device
from kgqa_core.nn.encoders import Reader, load_encoder
from kgqa_core.nn.saved_model import load_config, load_weights, save_model
from kgqa_core.papers.ltgen.relation_ranking.amr import AmrGraph
from kgqa_core.papers.ltgen.relation_ranking.amr_source import AmrGraphs, open_graphs
from kgqa_core.papers.ltgen.relation_ranking.network import AmrNetwork, Network, PairNetwork, join_graphs
from kgqa_core.papers.ltgen.relation_ranking.ranker import RankedRelation, RankingQuery, best_first

VERSION = 1
"""Version of the stored model's layout."""
KIND = "relation_ranker"
STEP = 8
"""Padded lengths are multiples of it, and pairs of one padded length are computed together: what stands beside a pair
adds no padding to it."""
BATCH = 128
"""Pairs that are scored at once."""
CHUNK = 64
"""Questions with an entity whose pairs are read at once."""
EntityRelationPair = tuple[str, str, str]
"""Question, entity and relation in words."""


@dataclass(frozen=True)
class TrainedRanker:
    """A network, its reader, and what it is stored with."""

    network: Network
    reader: Reader
    config: dict[str, Any] = field(default_factory=dict)

    def scores(
        self,
        pairs: Sequence[EntityRelationPair],
        graphs: Mapping[str, AmrGraph] | None = None,
    ) -> NDArray[np.float64]:
        """Logits of pairs, [n].  graphs: of every question, for the network `amr`."""
        distinct = sorted(set(pairs))
        rows = read_pairs(self.reader, distinct)
        groups: dict[int, list[int]] = {}
        for index, row in enumerate(rows):
            groups.setdefault(-(-len(row) // STEP) * STEP, []).append(index)
        scores = np.empty(len(distinct))
        self.network.eval()
        with torch.inference_mode():
            for length, indices in sorted(groups.items()):
                for start in range(0, len(indices), BATCH):
                    part = indices[start : start + BATCH]
                    logits = self.logits([rows[index] for index in part], [distinct[index][0] for index in part],
                                         graphs or {}, length)  # fmt: skip
                    scores[part] = logits.double().cpu().numpy()
        number = {pair: index for index, pair in enumerate(distinct)}
        return scores[[number[pair] for pair in pairs]]

    def logits(
        self,
        rows: Sequence[Sequence[int]],
        questions: Sequence[str],
        graphs: Mapping[str, AmrGraph],
        length: int = 0,
    ) -> torch.Tensor:
        """Logits of pairs as token ids, padded to `length` or more.  questions: of each pair, for its graph."""
        ids, mask = self.reader.batch(rows, length)
        device = device_of(self.network)
        ids, mask = ids.to(device), mask.to(device)
        if isinstance(self.network, PairNetwork):
            logits: torch.Tensor = self.network(ids, mask)
            return logits
        distinct = list(dict.fromkeys(questions))
        index = {question: number for number, question in enumerate(distinct)}
        batch = join_graphs([graphs[question] for question in distinct], self.reader).to(device)
        graph_places = torch.tensor([index[question] for question in questions], device=device)
        with_graphs: torch.Tensor = self.network(ids, mask, batch, graph_places)
        return with_graphs


def pair_text(pair: EntityRelationPair) -> str:
    """What the encoder reads of a pair.

    >>> pair_text(("Who developed Skype?", "Skype", "developer"))
    '[TEXT] Who developed Skype? [ENT] Skype [REL] developer'
    """
    question, entity, relation = pair
    return f"[TEXT] {question} [ENT] {entity} [REL] {relation}"


def read_pairs(reader: Reader, pairs: Sequence[EntityRelationPair]) -> list[list[int]]:
    """Token ids of pairs; of one that is too long the question's end gives way, not entity and relation."""
    reader.tokenizer.no_truncation()
    reader.tokenizer.no_padding()
    encodings = reader.tokenizer.encode_batch([pair_text(pair) for pair in pairs])
    rows = []
    for (question, entity, relation), encoding in zip(pairs, encodings, strict=True):
        over = len(encoding.ids) - reader.max_tokens
        if over <= 0:
            rows.append(encoding.ids or [reader.pad])
            continue
        first = len("[TEXT] ")
        starts = [start for start, stop in encoding.offsets if first <= start < stop <= first + len(question)]
        short = question[: starts[-over] - first].rstrip() if over < len(starts) else ""
        rows.append(reader.read([pair_text((short, entity, relation))])[0])
    return rows


class PairRanker:
    """Scores every relation with a trained cross-encoder; the score is the sigmoid of its logit.

    counts: pairs (scored ones), and of `amr`: with_amr and without_amr (questions).
    A ranker `amr` takes the graphs of `graphs`; a question without one is ranked by `fallback`, the ranker `pair`.
    """

    def __init__(
        self,
        trained: TrainedRanker,
        graphs: AmrGraphs | None = None,
        fallback: TrainedRanker | None = None,
        name: str | None = None,
        device: torch.device | None = None,
    ) -> None:
        self.trained, self.graphs, self.fallback = trained, graphs, fallback
        self.name = name or trained.network.kind
        self.counts = {"pairs": 0}
        if isinstance(trained.network, AmrNetwork):
            self.counts |= {"with_amr": 0, "without_amr": 0}
        for ranker in (trained, fallback):
            if ranker is not None:
                ranker.network.to(device)

    def rank(self, queries: Sequence[RankingQuery], most: int, monitor: Monitor = QUIET) -> list[list[RankedRelation]]:
        """At most `most` relations of each, ties to the smaller index."""
        graphs: dict[str, AmrGraph] = {}
        if isinstance(self.trained.network, AmrNetwork) and self.graphs is not None:
            questions = sorted({query.question for query in queries})
            graphs = self.graphs.of(questions, monitor)
            self.counts["with_amr"] += len(graphs)
            self.counts["without_amr"] += len(questions) - len(graphs)
            if len(graphs) < len(questions):
                monitor.note(
                    f"{len(questions) - len(graphs)} of {len(questions)} questions have no AMR graph and are ranked as "
                    "rank_pair does"
                )
        rankings: list[list[RankedRelation]] = []
        for start in range(0, len(queries), CHUNK):
            part = queries[start : start + CHUNK]
            pairs = [(one.question, one.entity, text) for one in part for text in one.relations]
            logits = self._scores(pairs, graphs)
            self.counts["pairs"] += len(pairs)
            done = 0
            for one in part:
                query_logits = logits[done : done + len(one.relations)]
                done += len(one.relations)
                ranking = best_first(query_logits.tolist(), most)
                rankings.append([(index, round(float(_sigmoid(logit)), 6)) for index, logit in ranking])
            monitor.progress(len(rankings), len(queries), "entities ranked")
        return rankings

    def _scores(self, pairs: Sequence[EntityRelationPair], graphs: Mapping[str, AmrGraph]) -> NDArray[np.float64]:
        if not isinstance(self.trained.network, AmrNetwork):
            return self.trained.scores(pairs)
        scores = np.empty(len(pairs))
        with_graph = np.array([question in graphs for question, _, _ in pairs], dtype=bool)
        for indices, ranker in (
            (np.flatnonzero(with_graph), self.trained),
            (np.flatnonzero(~with_graph), self.fallback),
        ):
            if len(indices):
                if ranker is None:
                    raise ArtifactError("a question has no AMR graph and there is no ranker 'pair' to rank for it")
                scores[indices] = ranker.scores([pairs[index] for index in indices.tolist()], graphs)
        return scores


def describe(network: Network, encoder: dict[str, Any]) -> dict[str, Any]:
    """Everything beside the weights that a stored ranker is rebuilt from."""
    config: dict[str, Any] = {"version": VERSION, "kind": KIND, "ranker": network.kind, "encoder": encoder}
    if isinstance(network, AmrNetwork):
        config |= {"layers": network.layers, "heads": network.heads}
    return config


def save(folder: Path, trained: TrainedRanker) -> None:
    """Writes model.safetensors, config.json and tokenizer.json into `folder`, which is made."""
    save_model(folder, trained.network.state_dict(), trained.reader.tokenizer, trained.config)


def load(folder: Path, ranker: str) -> TrainedRanker | None:
    """The ranker `pair` or `amr` of a trained artifact; None where it was not trained.

    Raises ArtifactError when it is damaged or the artifact is none of rankers.
    """
    of_ranker = folder / ranker
    if not of_ranker.is_dir():
        if not (folder / "pair").is_dir():
            raise ArtifactError(f"{folder} does not hold trained relation rankers; run the relation_ranker stage")
        return None
    config = load_config(
        of_ranker, KIND, VERSION, "relation ranker", "encoder", *(("layers", "heads") * (ranker == "amr"))
    )
    if config["ranker"] != ranker:
        raise ArtifactError(f"{of_ranker} holds the relation ranker {config['ranker']!r}; train it again")
    encoder, reader = load_encoder(of_ranker, config["encoder"])
    network: Network = PairNetwork(encoder)
    if ranker == "amr":
        network = AmrNetwork(encoder, int(config["layers"]), int(config["heads"]))
    load_weights(of_ranker, network)
    return TrainedRanker(network, reader, config)


def _sigmoid(logit: float) -> float:
    return float(1 / (1 + np.exp(-np.clip(logit, -50, 50))))


def open_trained(
    folder: Path, name: str, options: RelationRankingOptions, cache: Path | None = None, monitor: Monitor = QUIET
) -> PairRanker:
    """The ranker `pair` or `amr` of a trained artifact.

    `amr` ranks as `pair` does, with a note to the monitor, where there are no AMR graphs or it was trained without.
    cache: folder that keeps parsed graphs.  Raises ArtifactError when the artifact is damaged.
    """
    device = pick_device(options.device, "relation_ranking")
    pair = load(folder, "pair")
    if pair is None:
        raise ArtifactError(f"{folder} has no ranker 'pair'; run the relation_ranker stage again")
    if name == "pair":
        return PairRanker(pair, device=device)
    graphs = open_graphs(options.amr_graphs, options.amr_parser, cache, monitor)
    if graphs is None:
        return PairRanker(pair, name="amr", device=device)
    amr = load(folder, "amr")
    if amr is None:
        monitor.note("the ranker 'amr' was trained without AMR graphs; rank_amr ranks as rank_pair does")
        return PairRanker(pair, name="amr", device=device)
    return PairRanker(amr, graphs, pair, device=device)
