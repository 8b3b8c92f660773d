"""How many lines of a source may be rejected before the build stops, and how it says so."""

from __future__ import annotations

from pathlib import Path

from kgqa_core.errors import KgInputError
from kgqa_core.kg.formats.base import Batch
from kgqa_core.kg.formats.spans import SpanBatch

FLOOR = 3
"""So many rejects pass in every source where more statements are good than bad (unless the share is 0)."""

EARLY = 10_000
"""Statements after which a build may stop before the end of a source."""


class Tally:
    """Counts of one source, which raise when too much of it is rejected.

    A source may lose `share` of its statements, and never all; with a share above 0, three rejects always pass
    while the good lines outnumber them, so that one slip does not spoil a small file.  The build stops
    before the end once it has seen more rejects than the whole source may have, whose length is estimated from the
    bytes read.
    """

    def __init__(self, path: Path, format: str, share: float) -> None:
        self.path, self.format, self.share = path, format, share
        self.statements = self.rejects = self.ignored = self.unread = 0
        self.examples: list[tuple[int, str, str]] = []

    def add(self, batch: Batch | SpanBatch) -> None:
        """Counts a batch: as rejected what is `unread`, as read the qualifiers that name a statement elsewhere.

        Raises KgInputError when it is clear that too much will be rejected.
        """
        self.statements += batch.height + batch.rejects.height + sum(batch.filtered.values()) + batch.unread
        qualifiers = batch.qualifiers
        if qualifiers is not None:
            self.statements += qualifiers["row"].null_count() if "row" in qualifiers.columns else qualifiers.height
        self.rejects += batch.rejects.height + batch.unread
        self.unread += batch.unread
        self.ignored += batch.ignored
        if len(self.examples) < 3:
            self.examples = (self.examples + batch.rejects.sort("line").head(3).rows())[:3]
        expected = self.statements / max(batch.fraction, 1e-9)
        if self.statements >= EARLY and self.rejects > max(self.share * expected, FLOOR):
            raise self._too_many("so far")

    def finish(self) -> None:
        """Raises KgInputError when too much was rejected."""
        good = self.statements - self.rejects
        passes = self.rejects <= self.share * self.statements
        passes |= self.share > 0 and self.rejects <= FLOOR and self.rejects < good
        if self.rejects and (not passes or not good):
            raise self._too_many("in all")

    def _too_many(self, when: str) -> KgInputError:
        examples = "; ".join(f"line {line}: {reason}: {text[:60]!r}" for line, reason, text in self.examples)
        good = self.statements - self.rejects
        way = (
            f"mend the lines, raise kg.max_reject_share ({self.share:g})"
            if good
            else "check that it is what you meant to read"
        )
        return KgInputError(
            f"{self.path}, read as {self.format}: {self.rejects:,} of {self.statements:,} statements {when} are "
            f"rejected ({self.rejects / self.statements:.1%}), {examples}; {way}, or set kg.format and kg.delimiter"
        )
