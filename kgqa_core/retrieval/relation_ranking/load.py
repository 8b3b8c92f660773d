"""Opens trained rankers, and says once what they have to do without."""

from __future__ import annotations

from pathlib import Path

from kgqa_core.config import RelationRankingOptions
from kgqa_core.errors import ArtifactError
from kgqa_core.monitor import QUIET, Monitor
from kgqa_core.nn.device import pick_device
from kgqa_core.retrieval.relation_ranking.amr_source import open_graphs
from kgqa_core.retrieval.relation_ranking.pairs import PairRanker, load


def open_trained(
    folder: Path, name: str, options: RelationRankingOptions, cache: Path | None = None, monitor: Monitor = QUIET
) -> PairRanker:
    """The ranker `pair` or `amr` of a trained artifact.

    `amr` ranks as `pair` does, and the monitor is told why, where there are no AMR graphs or it was trained without.
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
