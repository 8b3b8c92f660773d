"""A bidirectional GRU (Cho et al. 2014) over sentences of different lengths, with the weights and equations of torch's.

    r_t = σ(x_t W_ir + h_{t-1} W_hr)    z_t = σ(x_t W_iz + h_{t-1} W_hz)
    n_t = tanh(x_t W_in + r_t ∘ (h_{t-1} W_hn))    h_t = (1 - z_t) ∘ n_t + z_t ∘ h_{t-1}

torch's own runs about forty small operations for each token and direction, most of them for the gradient.  Here both
directions are computed together, a sentence's last token is the reversed direction's first, the gradient of a token
takes ten operations, and those of the weights are one product each.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from kgqa_core.nn.products import linear, product


class Gru(nn.GRU):
    """`torch.nn.GRU` with one layer and two directions; on the CPU it is computed as described above."""

    weight_ih_l0: Tensor
    bias_ih_l0: Tensor
    weight_hh_l0: Tensor
    bias_hh_l0: Tensor
    weight_ih_l0_reverse: Tensor
    bias_ih_l0_reverse: Tensor
    weight_hh_l0_reverse: Tensor
    bias_hh_l0_reverse: Tensor

    def __init__(self, inputs: int, width: int) -> None:
        super().__init__(inputs, width, batch_first=True, bidirectional=True)

    def states(self, x: Tensor, lengths: Tensor) -> Tensor:
        """[batch, length, 2 * width] of x [batch, length, inputs]; 0 behind the end of a sentence.

        lengths: [batch] on the CPU, each at least 1.
        """
        if x.device.type != "cpu":
            return self._by_torch(x, lengths)
        order = torch.sort(lengths, descending=True, stable=True).indices
        sorted_lengths = lengths[order]
        longest = int(sorted_lengths[0])
        steps = torch.arange(longest)[:, None]
        real = steps < sorted_lengths
        forward = order + torch.zeros_like(steps), steps + torch.zeros_like(order)
        backward = forward[0], torch.where(real, sorted_lengths - 1 - steps, steps)
        sizes = real.sum(1).tolist()
        packed = [torch.cat([index[step, :size] for step, size in enumerate(sizes)]) for index in
                  (forward[0], forward[1], backward[1])]  # fmt: skip
        rows, indices, reversed_indices = packed
        gates = torch.stack(
            [
                linear(x[rows, indices], self.weight_ih_l0, self.bias_ih_l0),
                linear(x[rows, reversed_indices], self.weight_ih_l0_reverse, self.bias_ih_l0_reverse),
            ]
        )
        weight = torch.stack([self.weight_hh_l0, self.weight_hh_l0_reverse])
        bias = torch.stack([self.bias_hh_l0, self.bias_hh_l0_reverse])
        hidden = _Steps.apply(gates, weight, bias, sizes)  # type: ignore[no-untyped-call]
        states = x.new_zeros(*x.shape[:2], 2 * self.hidden_size)
        width = self.hidden_size
        states = states.index_put((rows[:, None], indices[:, None], torch.arange(width)), hidden[0])
        return states.index_put((rows[:, None], reversed_indices[:, None], torch.arange(width, 2 * width)), hidden[1])

    def _by_torch(self, x: Tensor, lengths: Tensor) -> Tensor:
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        states: Tensor = nn.utils.rnn.pad_packed_sequence(self(packed)[0], batch_first=True, total_length=x.shape[1])[0]
        return states


class _Steps(torch.autograd.Function):
    """Hidden states [2, tokens, width] of gates [2, tokens, 3 * width], step by step, the longest sentences first.

    sizes: sentences that have a token at each step, descending.
    """

    @staticmethod
    def forward(ctx: Any, gates: Tensor, weight: Tensor, bias: Tensor, sizes: list[int]) -> Tensor:
        width = weight.shape[2]
        before = gates.new_zeros(2, sizes[0], width)
        across, add = weight.transpose(1, 2).contiguous(), bias[:, None]
        hidden, saved = [], []
        start = 0
        for size in sizes:
            step_gates, before = gates[:, start : start + size], before[:, :size]
            inner = torch.baddbmm(add, before, across)
            both = torch.sigmoid(step_gates[..., : 2 * width] + inner[..., : 2 * width])
            r, z = both[..., :width], both[..., width:]
            n = torch.tanh(torch.addcmul(step_gates[..., 2 * width :], r, inner[..., 2 * width :]))
            saved.append((before, r, z, n, inner[..., 2 * width :]))
            before = torch.lerp(n, before, z)
            hidden.append(before)
            start += size
        ctx.kept, ctx.sizes = saved, sizes
        ctx.save_for_backward(weight)
        return torch.cat(hidden, 1)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (above,) = gradients
        (weight,) = ctx.saved_tensors
        width = weight.shape[2]
        starts = [0]
        for size in ctx.sizes:
            starts.append(starts[-1] + size)
        d_gates, d_inner = above.new_empty(2, starts[-1], 3 * width), above.new_empty(2, starts[-1], 3 * width)
        later = above.new_zeros(2, 0, width)
        for step in range(len(ctx.sizes) - 1, -1, -1):
            rows = slice(starts[step], starts[step + 1])
            before, r, z, n, inner = ctx.kept[step]
            d_hidden = above[:, rows].clone()
            d_hidden[:, : later.shape[1]] += later
            d_n = d_hidden * (1 - z) * (1 - n * n)
            step_gates, back = d_gates[:, rows], d_inner[:, rows]
            torch.mul(d_n * inner, r * (1 - r), out=step_gates[..., :width])
            torch.mul(d_hidden * (before - n), z * (1 - z), out=step_gates[..., width : 2 * width])
            step_gates[..., 2 * width :] = d_n
            back[..., : 2 * width] = step_gates[..., : 2 * width]
            torch.mul(d_n, r, out=back[..., 2 * width :])
            later = torch.baddbmm(d_hidden * z, back, weight)
        befores = torch.cat([one[0] for one in ctx.kept], 1)
        d_weight = torch.stack([product(d_inner[side].t(), befores[side].t()) for side in range(2)])
        return d_gates, d_weight, d_inner.sum(1), None
