"""What a question's network wants to do: relations to follow and how much each hop counts."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class Plan:
    """What the network wants to do with a batch: relations[t]: [batch, 2R] for each hop; attention: [batch, hops].

    state: h_q [batch, width], where an extension of the network reads it.
    """

    relations: list[Tensor]
    attention: Tensor
    state: Tensor | None = None

    def take(self, rows: Tensor) -> Plan:
        """The plans of some rows, repeated as often as they are named."""
        state = None if self.state is None else self.state[rows]
        return Plan([relations[rows] for relations in self.relations], self.attention[rows], state)

    def cpu(self) -> Plan:
        """The plan where the graph lies."""
        state = None if self.state is None else self.state.cpu()
        return Plan([relations.cpu() for relations in self.relations], self.attention.cpu(), state)
