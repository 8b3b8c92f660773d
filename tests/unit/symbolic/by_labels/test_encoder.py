"""The adapted encoder: before training it is the packaged one; merging and remembering change nothing."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from kgqa_core.errors import ModelError
from kgqa_core.nn.encoders import Pretrained, load_pretrained
from kgqa_core.symbolic.by_labels import encoder as module
from kgqa_core.symbolic.by_labels.encoder import MAX_TOKENS, AdaptedLinear, TextEncoder
from kgqa_core.symbolic.by_labels.scorer import LabelScorer

TEXTS = ["capital of x", "which films did x and y make together in n?", "x"]


def padded(encoder: TextEncoder, texts: list[str]) -> tuple[Tensor, Tensor]:
    """States [texts, length, width] and mask [texts, length]."""
    packed = encoder(texts)
    states = packed.padded(packed.states)
    return states, (torch.arange(states.shape[1]) < packed.lengths[:, None]).long()


@pytest.fixture(scope="module")
def adapted() -> TextEncoder:
    """An encoder whose adapters are not zero."""
    torch.manual_seed(3)
    made = TextEncoder()
    with torch.no_grad():
        for name, value in made.adapter().items():
            if name.endswith(".b"):
                value.normal_(std=0.02)
    return made


@torch.no_grad()
def test_states_before_training_are_those_of_the_packaged_encoder(scorer: LabelScorer) -> None:
    own = scorer.network.encoder
    states, mask = padded(own, TEXTS)
    body, _ = load_pretrained("minilm", "label_parser")
    ids, real = own.reader.batch(own.reader.read(TEXTS))
    expected = Pretrained(body.eval(), own.width).states(ids, real)
    assert torch.equal(mask, real)
    assert torch.allclose(states[real.bool()], expected[real.bool()], atol=1e-4)


@torch.no_grad()
def test_text_is_encoded_alike_alone_and_among_longer_ones(scorer: LabelScorer) -> None:
    together, mask = padded(scorer.network.encoder, TEXTS)
    for row, text in enumerate(TEXTS):
        alone, _ = padded(scorer.network.encoder, [text])
        assert torch.allclose(alone[0], together[row, : int(mask[row].sum())], atol=1e-4)


@torch.no_grad()
def test_remembered_states_are_equal_and_forgotten_when_told(adapted: TextEncoder) -> None:
    plain, mask = padded(adapted, TEXTS)
    adapted.remember(states=True)
    for texts in (TEXTS, TEXTS[::-1], TEXTS):
        states, own = padded(adapted, texts)
        order = range(3) if texts is TEXTS else (2, 1, 0)
        for row, other in enumerate(order):
            length = int(mask[other].sum())
            assert int(own[row].sum()) == length
            assert torch.allclose(states[row, :length], plain[other, :length], atol=1e-4)
    assert adapted._known is not None and set(adapted._known) == set(TEXTS)
    adapted.remember(states=False)
    assert adapted._known is None


@torch.no_grad()
def test_merged_adapters_change_nothing_and_are_gone(adapted: TextEncoder) -> None:
    before, mask = padded(adapted, TEXTS)
    plain = AdaptedLinear(torch.nn.Linear(4, 3), 2)
    plain.b.normal_()
    x = torch.randn(5, 4)
    assert torch.allclose(plain.merged()(x), plain(x), atol=1e-5)
    assert adapted.adapter()
    adapted.merge()
    after, _ = padded(adapted, TEXTS)
    assert torch.allclose(after[mask.bool()], before[mask.bool()], atol=1e-3)
    assert not adapted.adapter() and not any(p.requires_grad for p in adapted.parameters())


def test_only_adapters_learn(scorer: LabelScorer) -> None:
    own = scorer.network.encoder
    learning = {name for name, value in own.named_parameters() if value.requires_grad}
    assert learning == set(own.adapter())
    assert all(".upper_layers." in f".{name}" for name in learning) and learning


def test_last_layers_alone_learn_and_states_below_them_are_kept() -> None:
    own = TextEncoder()
    before, _ = padded(own, TEXTS)
    own.remember(states=True)
    own.learn(1)
    states, _ = padded(own, TEXTS)
    assert torch.allclose(states, before, atol=1e-4)
    states.sum().backward()
    moved = {name.split(".")[1] for name, value in own.named_parameters() if value.grad is not None}
    assert moved == {str(len(own.upper_layers) - 1)}
    assert own._known is not None and not any(row.requires_grad for row in own._known.values())


def test_gradients_of_adapters_are_those_of_two_products() -> None:
    torch.manual_seed(2)
    own, x = AdaptedLinear(torch.nn.Linear(6, 5), 2), torch.randn(7, 6, requires_grad=True)
    own.b.data.normal_()
    weight, found = torch.randn(7, 5), []
    for value in (lambda: own(x), lambda: own.base(x) + (x @ own.a.T) @ own.b.T * 2):
        own.a.grad = own.b.grad = x.grad = None
        (value() * weight).sum().backward()
        found.append([grad.clone() for grad in (own.a.grad, own.b.grad, x.grad) if grad is not None])
    assert len(found[0]) == 3 and all(torch.allclose(*pair, atol=1e-4) for pair in zip(*found, strict=True))


def test_long_text_is_cut(scorer: LabelScorer) -> None:
    states, mask = padded(scorer.network.encoder, ["word " * 200])
    assert states.shape[1] == int(mask.sum()) == MAX_TOKENS


def test_encoder_without_layers_of_bert_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "load_pretrained", lambda name, section: (torch.nn.Linear(1, 1), None))
    with pytest.raises(ModelError, match="'other' has no layers like those of BERT; use 'minilm'"):
        TextEncoder("other")
