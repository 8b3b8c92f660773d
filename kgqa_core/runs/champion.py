"""Which of two systems is the champion: a new one must be better by more than luck.

The new system takes the title only when the whole interval of the paired difference lies above 0 and, where all scores
are 0 or 1, McNemar's exact test agrees: the bootstrap of a few differing questions is too sure of itself.  Or it
answers more of the corrected questions that were held out of its training, or the old one was trained on feedback that
is withdrawn, and nothing shows that it is worse.  One that was trained on corrections must not have lost a relation
either.  In every other case the champion stays, and the decision says why.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import polars as pl

from kgqa_core.config import Experiment
from kgqa_core.evaluation.labels import main_split, percent
from kgqa_core.evaluation.paired import difference, pair, points
from kgqa_core.metrics.registry import improvement

FEWEST = 10
"""Shared questions below which no interval is trusted: with so few, the bootstrap underestimates the spread."""

RELATION_RIGHT = 2
"""Questions of a relation that the old system has right from which on the relation can be lost."""

COMPUTED_METRIC, RETRIEVED_METRIC = "exact", "hits_at_1"
"""What counts by default: of answers that are computed, and of a retriever's ranked entities."""

YARDSTICKS = ("random", "oracle")
"""Retrievers that nobody would run."""


@dataclass(frozen=True)
class Challenger:
    """A system that has or wants the title.

    scored: its rows, as `read_scored` gives them.  experiments: its own, those that should count first.
    """

    run_id: str
    scored: pl.DataFrame
    experiments: tuple[str, ...] = ()


@dataclass(frozen=True)
class Corrected:
    """How many of `questions`, corrected and held out of training, two systems answer exactly: the old and the new."""

    questions: int
    old: int
    new: int


@dataclass(frozen=True)
class Corrections:
    """What people's corrections say about two systems.

    compare: asks the old run and the new one the corrected questions that are held out; None without any.  withdrawn:
    whether the old one was trained on feedback that is withdrawn; then relations may be lost.  relations: of each
    question, where the new one learnt from corrections and may lose none (`lost_relations`).
    """

    compare: Callable[[str, str], Corrected | None] = lambda old, new: None
    withdrawn: bool = False
    relations: Mapping[str, Collection[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class ChampionDecision:
    """Whether the title moved and why; difference, low and high in [-1, 1] over n questions, None without comparison.

    champion_run: who has the title now.  against: who had it before, if anybody.
    """

    moved: bool
    why: str
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    champion_run: str | None = None
    against: str | None = None
    n: int = 0
    p: float | None = None
    name: str = ""
    metric: str = ""
    experiment: str | None = None
    value: Mapping[str, float] | None = None

    def as_json(self) -> dict[str, Any]:
        """Plain values, floats with six decimals."""
        return {
            name: round(value, 6) if isinstance(value, float) and name != "p" else value
            for name, value in asdict(self).items()
        }

    def tags(self) -> dict[str, str]:
        """Tags of the run in the tracker."""
        champion_tags = {"kgqa.champion": "moved" if self.moved else "stays", "kgqa.champion_why": self.why}
        if self.champion_run:
            champion_tags["kgqa.champion_run"] = self.champion_run
        if self.difference is not None and self.low is not None and self.high is not None:
            champion_tags["kgqa.champion_difference"] = f"{self.difference:+.4f} [{self.low:+.4f}, {self.high:+.4f}]"
        return champion_tags


def decide(
    new: Challenger,
    old: Challenger | None,
    *,
    metric: str | None = None,
    experiment: str | None = None,
    answerer: str | None = None,
    level: float = 0.95,
    seed: int = 0,
    corrections: Corrections = Corrections(),
) -> ChampionDecision:
    """Does the title move from `old` to `new`?  The first contender that has the metric gets it.

    metric, experiment: what counts in both; without an experiment each contender's first that has the metric.  Without
    a metric `exact` of the experiments of `answerer`, where both have it, else `hits_at_1`.
    """
    holder = old.run_id if old is not None else None
    if metric is None:
        metric, answerer = _what_counts([new] if old is None else [new, old], experiment, answerer)
    else:
        answerer = None

    def stays(why: str, chosen: str | None = None) -> ChampionDecision:
        verdict = f"champion stays: {why}" if holder else f"no champion: {why}"
        return ChampionDecision(False, verdict, champion_run=holder, against=holder, metric=metric, experiment=chosen)

    new_key = choose_experiment(new, metric, experiment, answerer)
    if new_key is None:
        return stays(_lacks(new, metric, experiment))
    if old is None:
        return ChampionDecision(
            True, f"first champion: {new_key} has {metric} {_mean(new, new_key, metric)}",
            champion_run=new.run_id, metric=metric, experiment=new_key,
        )  # fmt: skip
    old_key = choose_experiment(old, metric, experiment, answerer)
    if old_key is None:
        return stays(f"{_lacks(old, metric, experiment)}, so nothing can be compared", new_key)
    pairs = pair(old.scored, new.scored, (old_key, new_key), metric)
    if pairs.height < FEWEST:
        shared = f"only {pairs.height}" if pairs.height else "no"
        return stays(f"it and this run share {shared} scored questions of the same text", new_key)
    gain = difference(pairs, seed=seed, level=level)
    low, high = improvement(metric, gain.low, gain.high)
    above = low > 0
    significant = above and (gain.p is None or gain.p < 1 - level)
    lost = [] if corrections.withdrawn else lost_relations(pairs, corrections.relations)
    corrected = corrections.compare(old.run_id, new.run_id)
    no_loss = high >= 0 and not lost
    better = not lost and (significant or (no_loss and corrected is not None and corrected.new > corrected.old))
    moved = better or (corrections.withdrawn and no_loss and (corrected is None or corrected.new == corrected.old))
    doubt = f", but p = {gain.p:.3g} (McNemar) is not below {1 - level:.3g}" if above and not significant else ""
    interval = f"{points(gain.value)} points [{points(gain.low)}, {points(gain.high)}]"
    reasons = ""
    if corrected is not None:
        counts = f"{corrected.new} instead of {corrected.old} of {corrected.questions} held-out corrections are right"
        reasons = f"{counts}, and nothing shows a loss: " if better and not significant else f"{counts}; "
    if lost:
        reasons += f"relations are lost: {', '.join(lost)}; "
    if moved and not better:
        reasons += "the old one was trained on feedback that is withdrawn, and nothing shows a loss: "
    return ChampionDecision(
        moved,
        f"champion {'moves' if moved else 'stays'}: {reasons}{interval} on {metric} of {new_key}, "
        f"{gain.n:,} questions{doubt}",
        gain.value, gain.low, gain.high, new.run_id if moved else holder, holder, gain.n, gain.p,
        metric=metric, experiment=new_key,
    )  # fmt: skip


def lost_relations(pairs: pl.DataFrame, relations: Mapping[str, Collection[str]]) -> list[str]:
    """Relations of which fewer than half as many questions are right after as were before, with both numbers.

    pairs: as of `paired.pair`.  relations: of each question.  Below `RELATION_RIGHT` right ones before none is lost.
    """
    sums: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for question, before, after in pairs.select("question", "before", "after").iter_rows():
        for relation in relations.get(question, ()):
            sums[relation][0] += before
            sums[relation][1] += after
    lost = {name: both for name, both in sums.items() if both[0] >= RELATION_RIGHT and both[1] < both[0] / 2}
    return [f"{name} ({after:g} instead of {before:g} right)" for name, (before, after) in sorted(lost.items())]


def _what_counts(
    contenders: Sequence[Challenger], experiment: str | None, answerer: str | None
) -> tuple[str, str | None]:
    """The metric where none was named, and whose experiments it is of, when it is of an answerer's."""
    if answerer is not None and all(
        choose_experiment(contender, COMPUTED_METRIC, experiment, answerer) for contender in contenders
    ):
        return COMPUTED_METRIC, answerer
    return RETRIEVED_METRIC, None


def choose_experiment(
    contender: Challenger, metric: str, wanted: str | None = None, answerer: str | None = None
) -> str | None:
    """The experiment that counts: the wanted one, or the contender's first that has the metric; None when none has.

    answerer: whose experiments may count; all when absent.
    """
    has = set(contender.scored.filter(pl.col("metric") == metric)["experiment"].unique().to_list())
    if answerer is not None:
        has = {name for name in has if Experiment.parse(name).answerer == answerer}
    if wanted is not None:
        return wanted if wanted in has else None
    return next((name for name in (*contender.experiments, *sorted(has)) if name in has), None)


def in_order(retrievers: Sequence[str], scored: pl.DataFrame) -> tuple[str, ...]:
    """Experiments of a run: retrievers alone in their order, yardsticks last, then what language models answered."""
    names = sorted(scored["experiment"].unique().to_list())
    position = {name: number + len(retrievers) * (name in YARDSTICKS) for number, name in enumerate(retrievers)}
    parsed = {name: Experiment.parse(name) for name in names}
    ranked = [name for name in names if str(parsed[name].variant) in position]
    ranked.sort(key=lambda name: (not parsed[name].alone, position[str(parsed[name].variant)], name))
    return (*ranked, *(name for name in names if name not in ranked))


def _lacks(contender: Challenger, metric: str, experiment: str | None) -> str:
    where = f"experiment {experiment!r}" if experiment else "any experiment"
    return f"run {contender.run_id} has no {metric!r} in {where}"


def _mean(contender: Challenger, experiment: str, metric: str) -> str:
    """Mean on the split that tables show."""
    rows = contender.scored.filter((pl.col("experiment") == experiment) & (pl.col("metric") == metric))
    shown = rows.filter(pl.col("split") == (main_split(set(rows["split"].to_list())) or ""))
    return percent(float(shown["value"].cast(pl.Float64).mean() or 0.0))  # type: ignore[arg-type]
