"""What long work is handed beside its inputs and options: where it writes, what it may spend, who listens."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from kgqa_core.monitor import QUIET, Monitor
from kgqa_core.store.shards import Part

if TYPE_CHECKING:  # work that asks no model depends on none of its code
    from kgqa_core.llm.budget import Budget
    from kgqa_core.llm.protocol import LanguageModel


@dataclass(frozen=True)
class Workspace:
    """Where a stage writes and what it may use; `Workspace(folder)` serves outside a run.

    out: folder that the work fills; of a stage, it becomes the artifact when the work returns.  work: folder that a
    killed stage finds again, with its checkpoints.  cache: folder of the home that keeps vectors and completions for
    all runs.  budget: what may be spent at endpoints.  part: (k, n) when only the k-th of n shares of the work is to
    be done.  model: of a forecast, in place of the language model that the options name.
    """

    out: Path
    work: Path | None = None
    cache: Path | None = None
    monitor: Monitor = QUIET
    budget: Budget | None = None
    part: Part | None = None
    model: LanguageModel | None = None

    def sub(self, name: str) -> Workspace:
        """The same with `name` below `out` and below `work`, for a step that writes a folder of its own."""
        work = self.work / name if self.work is not None else None
        return replace(self, out=self.out / name, work=work)
