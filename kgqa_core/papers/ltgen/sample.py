"""The stage that draws the entities of an LTGen benchmark: eligible → popularity → levels → a seeded sample of each.

The four levels say how well known an entity is, I the best known and IV the least (Huang et al. 2024, section 3).
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from kgqa_core.config import PopularityOptions, SamplingOptions
from kgqa_core.errors import InputError
from kgqa_core.kg.store import KgStore
from kgqa_core.papers.ltgen.eligible import EligibleEntity, find_eligible, pairs_of, triples_of
from kgqa_core.papers.ltgen.popularity import Popularity, choose_source, measure
from kgqa_core.store.artifacts import write_json
from kgqa_core.types import LEVELS
from kgqa_core.workspace import Workspace


@dataclass(frozen=True, slots=True)
class Bounds:
    """Lower bounds of the levels IV, III, II and I in this order, and the upper bound of I (None: there is none).

    A value equal to a lower bound is in that level; the paper leaves open to which level 10^3 belongs.
    """

    lower: tuple[float, float, float, float]
    upper: float | None
    how: str

    def level(self, value: float) -> str | None:
        """The level of a popularity; None below the lowest and above the highest.

        >>> Bounds((10, 100, 1000, 10000), 100000, "absolute").level(1000)
        'II'
        """
        index = bisect_right(self.lower, value)
        if index == 0 or (self.upper is not None and value >= self.upper):
            return None
        return LEVELS[len(LEVELS) - index]

    def as_text(self) -> dict[str, str]:
        """Each level's interval, in words."""
        ends = [*self.lower[1:], self.upper]
        words = [
            f"{_number(low)} ≤ x" + (f" < {_number(high)}" if high is not None else "")
            for low, high in zip(self.lower, ends, strict=True)
        ]
        return dict(zip(LEVELS, reversed(words), strict=True))


def absolute(thresholds: Sequence[float]) -> Bounds:
    """Levels between five rising bounds.  Raises InputError when they do not rise."""
    low = tuple(float(value) for value in thresholds)
    if len(low) != 5 or any(later <= earlier for earlier, later in zip(low, low[1:], strict=False)):
        raise InputError(f"ltgen.sampling.thresholds must be five rising numbers, but they are {list(thresholds)}")
    return Bounds((low[0], low[1], low[2], low[3]), low[4], "absolute")


def quantiles(values: Iterable[float]) -> Bounds:
    """Levels of about a quarter of the values each; equal values are in one level, and none is empty if it can be.

    From the lowest up, a level takes whole values until it has its share of what is left.  Raises InputError when there
    are fewer than four different values.

    >>> quantiles([1, 1, 1, 1, 1, 2, 3, 4]).lower
    (1.0, 2.0, 3.0, 4.0)
    """
    counts = Counter(float(value) for value in values)
    distinct = sorted(counts)
    if len(distinct) < len(LEVELS):
        raise InputError(
            f"the popularity has only {len(distinct)} different values ({', '.join(map(_number, distinct))}), so it "
            "makes no four levels; give page views with ltgen.popularity.files, or set ltgen.sampling.thresholds and "
            "levels=absolute"
        )
    left = sum(counts.values())
    index = 0
    lower = []
    for levels_left in range(len(LEVELS), 0, -1):
        lower.append(distinct[index])
        share, in_level = left / levels_left, 0
        while index < len(distinct) - (levels_left - 1) and (in_level == 0 or in_level < share):
            in_level += counts[distinct[index]]
            index += 1
        left -= in_level
    return Bounds((lower[0], lower[1], lower[2], lower[3]), None, "quantiles")


def _number(value: float) -> str:
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.2f}"


MAX_LOOKUPS = 20_000
"""Entities, drawn with the seed, requested from the page-view API before a level is given up."""
ENTITIES = {
    "entity": pl.Int64(), "key": pl.String(), "level": pl.String(), "popularity": pl.Float64(),
    "place": pl.Int64(), "triples": pl.List(pl.Int64()),
}  # fmt: skip
"""Columns of entities.parquet.  place: in the draw of its level, from 0.  triples: usable ones, both ways, by id."""

PAIRS = {"entity": pl.Int64(), "forward": pl.Boolean(), "triples": pl.List(pl.Int64())}
"""Columns of pairs.parquet: subject-relation pairs of the drawn entities; forward where the entity is the subject."""


def draw(
    workspace: Workspace, *, kg: Path, options: SamplingOptions, popularity: PopularityOptions, seed: int
) -> dict[str, Any]:
    """Writes entities.parquet, pairs.parquet and meta.json.  Entities are ordered by level and place in the draw.

    The draw is the same whatever the source of popularity: the first `per_level` entities of each level in an order
    that follows from the seed and the keys.  Returns counts: eligible, sampled and those of each level, what was left
    out, and of the look-up.  Raises InputError when no entity is in any level, and what the sources raise.
    """
    with KgStore.open(kg) as store:
        eligible = find_eligible(store, options, seed, workspace.monitor)
        candidates = eligible.candidates
        workspace.monitor.note(
            f"{eligible.counts['eligible']:,} of {eligible.counts['entities']:,} entities have "
            f"{options.min_triples} to {options.max_triples} informative triples"
        )
        source = choose_source(popularity, any(candidate.views is not None for candidate in candidates))
        if source == "api":
            candidates = candidates[:MAX_LOOKUPS]
        is_absolute = options.levels == "absolute" or (options.levels == "auto" and source != "degree")
        fixed = absolute(options.thresholds) if is_absolute else None
        known = measure(
            workspace,
            store,
            candidates,
            popularity,
            enough=lambda values: fixed is not None and _full(_levels(candidates, values, fixed), options.per_level),
        )
        workspace.monitor.note(f"popularity: {known.about}")
        bounds = fixed or quantiles(known.values.values())
        chosen = _levels(candidates, known.values, bounds)
        rows = [
            (each.entity, each.key, level, known.values[each.entity], index)
            for level in LEVELS
            for index, each in enumerate(chosen[level][: options.per_level])
        ]
        if not rows:
            raise InputError(_nothing(known, bounds))
        triples = triples_of(store, [row[0] for row in rows])
        pairs = pairs_of(store, [row[0] for row in rows], options.max_answers)
    pl.DataFrame([(*row, triples[row[0]]) for row in rows], schema=ENTITIES, orient="row").write_parquet(
        workspace.out / "entities.parquet"
    )
    pl.DataFrame(
        [(row[0], forward, triple_ids) for row in rows for forward, triple_ids in pairs.get(row[0], [])],
        schema=PAIRS, orient="row",
    ).write_parquet(workspace.out / "pairs.parquet")  # fmt: skip
    sampled = Counter(row[2] for row in rows)
    levels = {
        level: {"bounds": text, "found": len(chosen[level]), "sampled": sampled[level]}
        for level, text in bounds.as_text().items()
    }
    meta = {
        "source": known.source, "unit": known.unit, "about": known.about, "how": bounds.how, "levels": levels,
        "graph": eligible.counts, "lookup": known.counts,
        "filters": {
            "least_triples": options.min_triples, "most_triples": options.max_triples,
            "informative_only": options.informative_only, "drop_relations": sorted(options.drop_relations),
        },
    }  # fmt: skip
    write_json(workspace.out / "meta.json", meta)
    for level in LEVELS:
        if sampled[level] < options.per_level:
            bound = levels[level]["bounds"]
            workspace.monitor.note(f"level {level} ({bound}) has {sampled[level]} of {options.per_level} entities")
    outside = len(known.values) - sum(map(len, chosen.values()))
    return {
        **eligible.counts, **known.counts, "outside_levels": outside, "sampled": len(rows),
        **{f"level_{level}": sampled[level] for level in LEVELS}, "source": known.source,
    }  # fmt: skip


def _levels(
    candidates: Sequence[EligibleEntity], values: Mapping[int, float], bounds: Bounds
) -> dict[str, list[EligibleEntity]]:
    """Candidates of each level, in the order of the draw."""
    by_level: dict[str, list[EligibleEntity]] = {level: [] for level in LEVELS}
    for each in candidates:
        level = bounds.level(values[each.entity]) if each.entity in values else None
        if level is not None:
            by_level[level].append(each)
    return by_level


def _full(chosen: Mapping[str, Sequence[EligibleEntity]], wanted: int) -> bool:
    return all(len(each) >= wanted for each in chosen.values())


def _nothing(known: Popularity, bounds: Bounds) -> str:
    low, high = min(known.values.values()), max(known.values.values())
    return (
        f"no entity is in a level: the popularity is {low:,.1f} to {high:,.1f} {known.unit}, the levels are "
        f"{', '.join(f'{level} {text}' for level, text in bounds.as_text().items())}; set ltgen.sampling.levels to "
        "quantiles, or other thresholds"
    )
