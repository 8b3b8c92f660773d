"""The cache with room to grow holds what transformers would, and is left to it where layers are of another kind."""

from __future__ import annotations

import pytest
import torch
from transformers import LlamaConfig, MistralConfig
from transformers.cache_utils import DynamicLayer

from kgqa_core.llm.kv_cache import ROOM, RoomyLayer, roomy_cache

SMALL = {"num_hidden_layers": 2, "hidden_size": 8, "num_attention_heads": 2}


@pytest.mark.parametrize("first", [1, 3, ROOM + 5])
def test_it_holds_what_the_growing_cache_holds(first: int) -> None:
    ours, theirs, draw = RoomyLayer(), DynamicLayer(), torch.Generator().manual_seed(first)
    rows = 5
    for step in range(2 * ROOM + 3):
        size = (rows, 2, first if step == 0 else 1, 4)
        keys, values = torch.rand(size, generator=draw), torch.rand(size, generator=draw)
        for own, other in zip(ours.update(keys, values), theirs.update(keys, values), strict=True):
            assert torch.equal(own, other)
        assert ours.get_seq_length() == theirs.get_seq_length() == first + step
        if step in (4, ROOM):
            kept = torch.tensor([2, 0, 3][: rows - 2])
            rows = len(kept)
            ours.batch_select_indices(kept)
            theirs.batch_select_indices(kept)
            assert torch.equal(ours.keys, theirs.keys)


def test_models_with_other_layers_keep_their_own_cache() -> None:
    cache = roomy_cache(LlamaConfig(**SMALL))
    assert cache is not None and [type(layer) for layer in cache.layers] == [RoomyLayer, RoomyLayer]
    assert roomy_cache(MistralConfig(**SMALL, sliding_window=16, num_key_value_heads=2)) is None
