"""A key-value cache with room to grow: transformers copies all keys and values of a batch for each new token."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from transformers.cache_utils import DynamicCache, DynamicLayer

ROOM = 32
"""Tokens that a layer has room for beyond what it holds when it is copied."""


class RoomyLayer(DynamicLayer):  # type: ignore[misc]
    """Keys and values [batch, heads, tokens, width] of a layer, as the beginning of larger arrays."""

    keys: Any
    values: Any
    _roomy_keys: Any = None
    _roomy_values: Any = None

    def update(self, key_states: Tensor, value_states: Tensor, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
        """All keys and values, the new ones behind those before."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        self._roomy_keys, self.keys = _extended(self._roomy_keys, self.keys, key_states)
        self._roomy_values, self.values = _extended(self._roomy_values, self.values, value_states)
        return self.keys, self.values

    def batch_select_indices(self, indices: Tensor) -> None:
        """Keep these rows of the batch."""
        super().batch_select_indices(indices)
        self._roomy_keys = self._roomy_values = None


def roomy_cache(config: Any) -> DynamicCache | None:
    """A cache of such layers for a causal model; None where it has layers of other kinds, such as sliding windows."""
    cache = DynamicCache(config=config)
    if not cache.layers or any(type(layer) is not DynamicLayer for layer in cache.layers):
        return None
    cache.layers = [RoomyLayer() for _ in cache.layers]
    return cache


def _extended(roomy: Tensor | None, held: Tensor, new: Tensor) -> tuple[Tensor, Tensor]:
    """The larger array and its beginning: what was held, then what is new.

    held: the beginning of `roomy`, or a whole array where there is none.
    """
    before = held.shape[-2] if held.numel() else 0
    tokens = before + new.shape[-2]
    if roomy is None or not before or tokens > roomy.shape[-2]:
        roomy = torch.empty((*new.shape[:-2], tokens + ROOM, new.shape[-1]), dtype=new.dtype, device=new.device)
        if before:
            roomy[..., :before, :] = held
    roomy[..., before:tokens, :] = new
    return roomy, roomy[..., :tokens, :]
