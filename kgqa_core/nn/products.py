"""Matrix products of linear layers, with the widest instructions that the processor has.

torch multiplies float32 matrices with MKL, which leaves the AVX-512 units of processors that are not Intel's unused: on
such a machine oneDNN, which torch brings along, was measured at 2.2 times its speed.  Which of them computes follows
from the processor alone, so that the same machine gives the same bits; between the two, last bits differ.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional


@cache
def has_onednn() -> bool:
    """Whether this processor has AVX-512, and this torch the operation."""
    wide = torch.backends.cpu.get_cpu_capability().startswith("AVX512")
    return wide and torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")


def product(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x W^T + b [..., out] of x [..., in] and weight [out, in], without a gradient; strides are free."""
    if x.device.type == "cpu" and x.dtype == torch.float32 == weight.dtype and x.numel() and has_onednn():
        result: Tensor = torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")
        return result
    return functional.linear(x, weight, bias)


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight)
        return product(x, weight, bias)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        x, weight = ctx.saved_tensors
        (above,) = gradients
        rows = above.reshape(-1, above.shape[-1])
        needed = ctx.needs_input_grad
        return (
            product(above, weight.t()) if needed[0] else None,
            product(rows.t(), x.reshape(-1, x.shape[-1]).t()) if needed[1] else None,
            rows.sum(0) if needed[2] else None,
        )


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`torch.nn.functional.linear`, and its gradients, by `product`."""
    if not has_onednn() or x.device.type != "cpu" or torch.is_autocast_enabled("cpu"):
        return functional.linear(x, weight, bias)
    result: Tensor = _Linear.apply(x, weight, bias)  # type: ignore[no-untyped-call]
    return result


class Linear(nn.Linear):
    """A linear layer that `linear` computes."""

    def forward(self, input: Tensor) -> Tensor:
        """[..., out] of input [..., in]."""
        return linear(input, self.weight, self.bias)


def speed_up(network: nn.Module) -> None:
    """Lets `linear` compute the plain linear layers of a network; names and weights stay."""
    for module in network.modules():
        if type(module) is nn.Linear:
            module.__class__ = Linear
