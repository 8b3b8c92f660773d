"""A pretrained encoder of which only the last layers learn: what it computes, what moves, what is kept."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from kgqa_core.config import HopPathOptions
from kgqa_core.nn import encoders
from kgqa_core.nn.encoders import Pretrained, keep_lower_states, load_pretrained

ROWS = [[101, 7592, 102], [101, 2088, 2003, 2307, 102], [101, 2003, 102]]
CPU = torch.device("cpu")


def encoder() -> Pretrained:
    """The packaged encoder."""
    body, _ = load_pretrained("minilm", "rigel")
    return Pretrained(body, 384)


def batch() -> tuple[Tensor, Tensor]:
    """Ids and mask of ROWS."""
    ids = torch.zeros(3, 5, dtype=torch.long)
    for place, row in enumerate(ROWS):
        ids[place, : len(row)] = torch.tensor(row)
    return ids, (ids > 0).long()


@torch.no_grad()
def test_kept_states_change_no_value() -> None:
    own = encoder().eval()
    before = own(*batch())
    keep_lower_states(own, HopPathOptions(), ROWS, CPU)
    assert own.fixed == 3 and set(own._kept) == set(map(tuple, ROWS))
    assert torch.allclose(own.eval()(*batch()), before, atol=1e-5)


@torch.no_grad()
def test_texts_that_were_not_kept_are_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoders, "KEPT", 4 * 384 * 6)  # room for two texts of three tokens
    own = encoder().eval()
    before = own(*batch())
    keep_lower_states(own, HopPathOptions(), ROWS, CPU)
    assert {len(row) for row in own._kept} == {3}
    assert torch.allclose(own.eval()(*batch()), before, atol=1e-5)


def test_only_the_last_layers_learn_and_have_dropout() -> None:
    own = encoder()
    keep_lower_states(own, HopPathOptions(encoder_layers=2), ROWS, CPU)
    own.train()(*batch()).sum().backward()
    moved = {name.split(".")[3] for name, value in own.named_parameters() if value.grad is not None}
    assert moved == {"4", "5"}
    assert {name.split(".")[3] for name, value in own.named_parameters() if value.requires_grad} == {"4", "5"}
    layers = own.body.encoder.layer
    assert [layer.training for layer in layers] == [False] * 4 + [True] * 2


def test_zero_lets_all_layers_learn() -> None:
    own = encoder()
    keep_lower_states(own, HopPathOptions(encoder_layers=0), ROWS, CPU)
    assert own.fixed == 0 and not own._kept
    own.train()(*batch()).sum().backward()
    grads = {name.split(".")[3] for name, p in own.named_parameters() if p.grad is not None and "layer." in name}
    assert grads == set("012345")
