"""A run of several question sets: each is answered by a run of its own, nested under it; one that fails loses no other.

The runs of the sets are ordinary runs with a record, a report and a champion of their own, which share the budget and,
through the home, all that they have in common: the graph, the vectors, the responses of models.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from kgqa_core.config import Profile
from kgqa_core.errors import BudgetReached, FailedSets, StorageError
from kgqa_core.runs.records import newest_run, stage_artifact
from kgqa_core.store.artifacts import ArtifactRef
from tasks.engine.run import Run

log = logging.getLogger("kgqa")

SetFlow = Callable[[Profile], dict[str, Any]]
"""A flow that makes a run of a profile with one question set; it returns the run's `run_id` among others."""


def run_sets(run: Run, profile: Profile, follow: SetFlow) -> dict[str, dict[str, ArtifactRef]]:
    """`scores` and `questions` of every question set that `follow` made a run of, by set.

    A set that fails is listed in the run and the others go on; a spent budget or a full disk would stop each of them
    alike, and ends the run.  Raises FailedSets when none is left.
    """
    made = {}
    for set_profile in profile.each_set:
        name = set_profile.questions.name
        log.info("question set %s (%d of %d) …", name, len(run.sets) + len(run.failed_sets) + 1, len(profile.set_names))
        try:
            summary = follow(set_profile)
            record = newest_run(run.home, summary["run_id"])
            made[name] = {kind: stage_artifact(record, kind) for kind in ("scores", "questions")}
            run.sets[name] = summary["run_id"]
            run.decisions[name] = _said(summary, record)
        except (BudgetReached, StorageError):
            raise
        except Exception as fault:
            run.failed_sets[name] = f"{type(fault).__name__}: {fault}"
            log.warning("question set %s failed, the others go on: %s", name, run.failed_sets[name])
            log.debug("question set %s", name, exc_info=fault)
        run.save(status="running")
    if run.failed_sets:
        run.decide("failed_sets", "; ".join(f"{name}: {why}" for name, why in run.failed_sets.items()))
    if not made:
        raise FailedSets(f"every question set failed: {_listed(run)}")
    return made


def raise_failed(run: Run) -> None:
    """Raise FailedSets where a run has question sets that failed."""
    if run.failed_sets:
        done = f"{len(run.sets)} of {len(run.sets) + len(run.failed_sets)} question sets are done (run {run.id})"
        raise FailedSets(
            f"{done}; {_listed(run)}; the same command goes on, with what is finished taken from the home", run.id
        )


def _said(summary: Mapping[str, Any], record: Mapping[str, Any]) -> str:
    """What the run of a set decided, and what is to be known of its questions."""
    why = (summary.get("refresh") or summary.get("champion") or {}).get("why", "")
    return "; ".join(filter(None, (why, (record.get("decisions") or {}).get("scored_on"))))


def _listed(run: Run) -> str:
    return "; ".join(f"{name!r} failed with {why}" for name, why in run.failed_sets.items())
