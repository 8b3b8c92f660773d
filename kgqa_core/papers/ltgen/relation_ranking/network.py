"""The trained rankers: a cross-encoder of question, entity and relation, alone or with the question's AMR graph.

    h       = encoder([TEXT] q [ENT] e [REL] r)
    pair    : logit = MLP(h)
    n_i     = n(W words(label_i) + k_kind)                            words: mean of the input embeddings
    n       = n + elu(GAT(n, edges both ways)), layer by layer        (Veličković et al. 2018)
    c       = attention(query h, keys and values n_1 … n_N)           multi-head
    amr     : logit = MLP([h; c])

Huang et al. 2024, section 4.  The paper does not say how a node begins; here it is the frozen input embeddings of its
words, which cost nothing and are in the stored encoder anyway.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from kgqa_core.extras import require_extra
from kgqa_core.nn.encoders import Encoder, Reader
from kgqa_core.papers.ltgen.relation_ranking.amr import KINDS, AmrGraph


@dataclass(frozen=True)
class GraphBatch:
    """The graphs of several questions as one graph of separate parts.

    words, word_mask: token ids of the node labels, [node, length].  kinds: [node].  edges: [2, edge], both ways.
    owner: [node] graph of each node, ascending.  graphs: their number.
    """

    words: Tensor
    word_mask: Tensor
    kinds: Tensor
    edges: Tensor
    owner: Tensor
    graphs: int

    def to(self, device: torch.device) -> GraphBatch:
        """The same on a device."""
        parts = (self.words, self.word_mask, self.kinds, self.edges, self.owner)
        words, word_mask, kinds, edges, owner = (part.to(device) for part in parts)
        return GraphBatch(words, word_mask, kinds, edges, owner, self.graphs)


def join_graphs(graphs: Sequence[AmrGraph], reader: Reader) -> GraphBatch:
    """Some graphs, of at least one node each, as one."""
    labels = [label for graph in graphs for label in graph.labels]
    words, word_mask = reader.batch(reader.read(labels, bare=True))
    kinds = torch.tensor([kind for graph in graphs for kind in graph.kinds], dtype=torch.long)
    owner = torch.tensor([n for n, graph in enumerate(graphs) for _ in graph.labels], dtype=torch.long)
    pairs: list[tuple[int, int]] = []
    before = 0
    for graph in graphs:
        pairs += [(before + one, before + other) for start, end in graph.edges
                  for one, other in ((start, end), (end, start))]  # fmt: skip
        before += len(graph.labels)
    edges = torch.tensor(pairs, dtype=torch.long).reshape(-1, 2).T.contiguous()
    return GraphBatch(words, word_mask, kinds, edges, owner, len(graphs))


class PairNetwork(nn.Module):
    """The cross-encoder: from token ids of pairs to a logit each."""

    kind = "pair"

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        self.encoder = encoder
        self.score = _mlp(encoder.width)

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Logits [pair] of ids [pair, length]."""
        logits: Tensor = self.score(self.encoder(ids, mask)).squeeze(-1)
        return logits


class AmrNetwork(nn.Module):
    """The same cross-encoder with attention over the nodes of the question's AMR graph."""

    kind = "amr"

    def __init__(self, encoder: Encoder, layers: int, heads: int) -> None:
        super().__init__()
        require_extra("amr", "the retriever rank_amr")
        from torch_geometric.nn import GATConv

        width = encoder.width
        self.encoder = encoder
        self.layers, self.heads = layers, heads
        self.enter = nn.Linear(width, width)
        self.kinds = nn.Embedding(KINDS, width)
        self.first = nn.LayerNorm(width)
        self.gat = nn.ModuleList(GATConv(width, width // heads, heads=heads) for _ in range(layers))
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.score = _mlp(2 * width)

    def forward(self, ids: Tensor, mask: Tensor, graphs: GraphBatch, graph_places: Tensor) -> Tensor:
        """Logits [pair] of ids [pair, length]; graph_places: [pair] the graph of each pair."""
        pair = self.encoder(ids, mask)
        nodes, there = self._padded(self.nodes(graphs), graphs)
        attended, _ = self.attention(
            pair.unsqueeze(1),
            nodes[graph_places],
            nodes[graph_places],
            key_padding_mask=~there[graph_places],
            need_weights=False,
        )
        logits: Tensor = self.score(torch.cat([pair, attended.squeeze(1)], dim=-1)).squeeze(-1)
        return logits

    def nodes(self, graphs: GraphBatch) -> Tensor:
        """States of all nodes, [node, width]."""
        words = self.encoder.words(graphs.words, graphs.word_mask)
        state: Tensor = self.first(self.enter(words) + self.kinds(graphs.kinds))
        for layer in self.gat:
            state = state + nn.functional.elu(layer(state, graphs.edges))
        return state

    @staticmethod
    def _padded(state: Tensor, graphs: GraphBatch) -> tuple[Tensor, Tensor]:
        """Nodes by graph, [graph, most nodes, width], and where there is one."""
        counts = torch.bincount(graphs.owner, minlength=graphs.graphs)
        index = torch.arange(len(graphs.owner), device=state.device) - (counts.cumsum(0) - counts)[graphs.owner]
        nodes = state.new_zeros(graphs.graphs, int(counts.max()), state.shape[-1])
        nodes = nodes.index_put((graphs.owner, index), state)
        return nodes, torch.arange(nodes.shape[1], device=state.device) < counts.unsqueeze(1)


Network = PairNetwork | AmrNetwork


def _mlp(width: int) -> nn.Sequential:
    inner = max(2, width // 2)
    return nn.Sequential(nn.Linear(width, inner), nn.ReLU(), nn.Linear(inner, 1))
