"""Operations on sparse entity sets, against plain dictionaries; gradients against finite differences."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from kgqa_core.dkg import sets
from kgqa_core.dkg.weights import EntityWeights
from kgqa_core.errors import GraphMismatch

A = [{3: 0.5, 1: 2.0, 9: 0.25}, {}, {7: 1.0}]
B = [{1: 1.0, 2: 3.0}, {4: 0.5}, {7: 0.5, 8: 0.125}]


def weights(rows: list[dict[int, float]]) -> EntityWeights:
    return EntityWeights.from_rows(rows, dtype=torch.float64)


def test_one_hot_sorts_and_counts_an_entity_once() -> None:
    x = EntityWeights.one_hot([[5, 2, 5], [], [0]])
    assert x.ptr.tolist() == [0, 2, 2, 3] and x.entity.tolist() == [2, 5, 0] and x.weight.tolist() == [1, 1, 1]
    assert x.row.tolist() == [0, 0, 2] and x.batch == 3


def test_mask_takes_out_the_entities_of_the_same_row() -> None:
    assert weights(A).mask(weights(B)).to_rows() == [{3: 0.5, 9: 0.25}, {}, {}]
    assert weights(A).mask(weights([{}, {}, {3: 1.0}])).to_rows() == weights(A).to_rows()


def test_merge_adds_weights_and_truncation() -> None:
    a, b = weights(A), weights(B)
    a = EntityWeights(a.ptr, a.entity, a.weight, torch.tensor([1, 0, 2]))
    b = EntityWeights(b.ptr, b.entity, b.weight, torch.tensor([0, 5, 1]))
    merged = EntityWeights.merge([a, b, a])
    assert merged.to_rows() == [{1: 5.0, 2: 3.0, 3: 1.0, 9: 0.5}, {4: 0.5}, {7: 2.5, 8: 0.125}]
    assert merged.truncated is not None and merged.truncated.tolist() == [2, 5, 5]
    assert EntityWeights.merge([a]) is a


def test_take_and_repeat_choose_rows_and_may_leave_one_empty() -> None:
    x = weights(A)
    x = EntityWeights(x.ptr, x.entity, x.weight, torch.tensor([1, 0, 2]))
    rows = x.take(torch.tensor([2, -1, 0]))
    assert rows.to_rows() == [A[2], {}, A[0]]
    assert rows.truncated is not None and rows.truncated.tolist() == [2, 0, 1]
    assert x.take(torch.tensor([], dtype=torch.int64)).to_rows() == []
    assert x.repeat(torch.tensor([2, 1, 0])).to_rows() == [A[0], A[0], {}]


def test_lookup_gives_zero_for_the_absent() -> None:
    found = weights(A).lookup(torch.tensor([0, 3, 4, 4]), torch.tensor([9, 4, 1, 7]))
    assert found.tolist() == [0.25, 0.0, 2.0, 0.0]
    assert weights([{}]).lookup(torch.tensor([0, 1]), torch.tensor([3])).tolist() == [0.0]


def test_scale_sum_and_clamp() -> None:
    x = weights(A)
    assert x.scale(torch.tensor([2.0, 3.0, 0.5], dtype=torch.float64)).weight.tolist() == [4.0, 1.0, 0.5, 0.5]
    assert x.sum().tolist() == [2.75, 0.0, 1.0]
    assert x.clamp_normalise().weight.tolist() == [1.0, 0.5, 0.25, 1.0]


def test_clamped_weights_keep_a_gradient() -> None:
    x = weights(A)
    w = x.weight.clone().requires_grad_()
    x.with_weight(w).clamp_normalise().weight.sum().backward()
    assert w.grad is not None and w.grad.tolist() == [0.5, 1.0, 1.0, 1.0]


@pytest.mark.parametrize("k", [0, 1, 2, 5, 300])
def test_top_is_ordered_by_weight_then_id(k: int) -> None:
    x = weights([{8: 0.5, 2: 0.5, 5: 0.75, 1: 0.1, 3: 0.5}, {}])
    assert x.top(k) == [[(5, 0.75), (2, 0.5), (3, 0.5), (8, 0.5), (1, 0.1)][:k], []]


def test_top_of_a_long_row_agrees_with_sorting() -> None:
    torch.manual_seed(0)
    values = (torch.rand(2000) * 50).round() / 50
    x = EntityWeights.one_hot([list(range(2000))]).with_weight(values)
    expected = sorted(((-float(v), i) for i, v in enumerate(values)))
    for k in (7, 256, 257, 5000):
        assert x.top(k)[0] == [(i, -v) for v, i in expected[:k]]


OPERATIONS: dict[str, Callable[[EntityWeights], Tensor]] = {
    "mask": lambda x: x.mask(weights(B)).weight,
    "merge": lambda x: EntityWeights.merge([x, weights(B), x]).weight,
    "lookup": lambda x: x.lookup(torch.tensor([0, 3, 3, 4]), torch.tensor([9, 9, 4, 7])),
    "scale": lambda x: x.scale(x.sum() + 1).weight,
    "sum": lambda x: x.sum(),
    "take": lambda x: x.take(torch.tensor([2, -1, 0])).weight,
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_operations_pass_gradcheck(name: str) -> None:
    x = weights(A)
    assert torch.autograd.gradcheck(lambda w: OPERATIONS[name](x.with_weight(w)), x.weight.clone().requires_grad_())


def test_torch_roads_agree_with_the_compiled_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    def roads() -> list[Tensor]:
        parts = [(x.ptr, x.entity) for x in (weights(A), weights(B), weights([{}, {}, {}]))]
        found: list[Tensor] = []
        for one in parts:
            for two in parts:
                ptr, entity, places = sets.union([one, two, one])
                found += [*sets.without(one, two), ptr, entity, *places, sets.locate(one, two)]
        return found

    compiled = roads()
    monkeypatch.setattr(sets, "on_cpu", lambda tensor: False)
    assert all(torch.equal(mine, theirs) for mine, theirs in zip(compiled, roads(), strict=True))


def test_batches_of_other_sizes_are_refused() -> None:
    with pytest.raises(GraphMismatch, match="3 and of 1"):
        weights(A).mask(weights([{}]))
    with pytest.raises(GraphMismatch, match="3 and of 1"):
        EntityWeights.merge([weights(A), weights([{}])])
    with pytest.raises(GraphMismatch, match="at least one"):
        EntityWeights.merge([])
    with pytest.raises(GraphMismatch, match="2 rows"):
        weights(A).lookup(torch.tensor([0, 1, 1]), torch.tensor([1]))
