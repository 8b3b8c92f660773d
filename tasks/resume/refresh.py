"""What a refresh trains again, what it keeps, and why: decisions only, no work.

Trained artifacts go on while they were trained with the same options and questions, no relation came or went, and the
triples that changed since the training are few; otherwise all of them are trained again.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from kgqa_core.config import Profile
from kgqa_core.errors import ArtifactError, GraphMismatch
from kgqa_core.kg.update.delta import DIFF
from kgqa_core.store.artifacts import ArtifactRef, canonical_json, read_manifest, write_json
from tasks.engine.prefect_pages import cell, show_page, table
from tasks.engine.run import Run, current_run
from tasks.resume.inputs import reads_same_inputs, trained_kinds, training_change, training_input_change
from tasks.resume.starting_point import DECISION, StartingRun, same_outcome
from tasks.tracking.tracker import RunValues

log = logging.getLogger("kgqa")


@dataclass(frozen=True)
class Decision:
    """What a refresh does, and why.

    nothing: the graph and all else is as it was.  retrain: everything that learns is trained again; else it is kept.
    why: one sentence.  changes: counts of what came, went and changed.  share: of the triples, since the start.
    since_training: share that changed since what is used was trained; 0 after a training.
    """

    start: str | None
    retrain: bool
    why: str
    nothing: bool = False
    changes: dict[str, dict[str, int]] = field(default_factory=dict)
    share: float = 0.0
    since_training: float = 0.0

    def as_json(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self)


def decide(
    start: StartingRun | None, kg: ArtifactRef, dkg: ArtifactRef, questions: ArtifactRef, profile: Profile
) -> Decision:
    """Whether what learns is trained again on a new graph, and why."""
    if start is None:
        why = "there is no finished run of this graph and these questions yet; everything was made"
        return Decision(None, True, f"first run: {why}")
    counts = read_manifest(kg.folder)["counts"]
    changes = counts.get("changes", {}) if kg != start.kg else {}
    changed = sum(changes.get("triples", {}).values())
    before = read_manifest(start.kg.folder)["counts"].get("triples", 0)
    share = changed / max(before, 1)
    since = start.since_training + share
    graph = _told(changes.get("triples", {}), share)
    reason = (
        _relations(changes.get("relations", {}), kg)
        or _too_much(since, share, profile.operations.retrain_share)
        or _other_training(start, profile)
        or other_sets(start.profile, profile)
        or _other_questions(start, questions)
        or _unfit(start, dkg, profile)
    )
    if reason is not None:
        return Decision(start.run_id, True, f"trained again: {reason}; {graph}", changes=changes, share=share)
    same_graph = kg == start.kg or not any(count for kind in changes.values() for count in kind.values())
    same_questions = questions.digest == start.parts["questions"].digest
    same_rest = same_outcome(start.profile, profile) and reads_same_inputs(
        start.record, profile, current_run().home.root
    )
    if start.newest and same_graph and same_questions and same_rest:
        why = f"nothing to do: the files are others, but the graph is that of {start.role} {start.run_id}"
        return Decision(start.run_id, False, why, nothing=True, changes=changes, since_training=since)
    so_far = f" ({since:.1%} since the training)" if start.since_training else ""
    why = f"facts only: {graph}{so_far}; nothing was trained"
    return Decision(start.run_id, False, why, changes=changes, share=share, since_training=since)


def remember(run: Run, decision: Decision) -> None:
    """Show a decision in Prefect and MLflow, and write it down beside the run's record."""
    log.info("refresh: %s", decision.why)
    run.folder.mkdir(parents=True, exist_ok=True)
    write_json(run.folder / DECISION, decision.as_json())
    run.decide("refresh", decision.why)
    about = {"kgqa.refresh_of": decision.start or "none", "kgqa.trained": "yes" if decision.retrain else "no"}
    shares = (("refresh/share_changed", decision.share), ("refresh/share_since_training", decision.since_training))
    run.tracker.record(RunValues(run.tracked, metrics=[(name, share, 0) for name, share in shares], tags=about))
    _show(decision)


def _show(decision: Decision) -> None:
    kinds = ("triples", "entities", "literals", "relations")
    names = list(dict.fromkeys(name for kind in kinds for name in decision.changes.get(kind, {})))
    rows = [
        {"what": kind, **{name: decision.changes[kind].get(name, 0) for name in names}}
        for kind in kinds
        if kind in decision.changes
    ]
    since = f"triples changed since the training: {decision.since_training:.2%}"
    show_page(
        "kgqa-refresh",
        ["## Refresh", cell(decision.why), table(rows), f"goes on from run `{decision.start or '–'}` · {since}"],
        "What a refresh did, and why",
    )


def _told(triples: Mapping[str, int], share: float) -> str:
    came, went, changed = (triples.get(name, 0) for name in ("added", "removed", "changed"))
    if not came + went + changed:
        return "no triple changed"
    also = f", {changed:,} changed" if changed else ""
    return f"{came:,} triple{'' if came == 1 else 's'} came, {went:,} went{also} ({share:.2%})"


def _relations(changes: Mapping[str, int], kg: ArtifactRef) -> str | None:
    came, went = changes.get("added", 0), changes.get("removed", 0)
    if not came + went:
        return None
    phrases = []
    for count, change, word in ((came, "added", "came"), (went, "removed", "went")):
        if count:
            names = _names_of_relations(kg, change)
            phrases.append(f"{count:,} relation{'s' if count > 1 else ''} {word}{names}")
    return ", ".join(phrases)


def _names_of_relations(kg: ArtifactRef, change: str) -> str:
    import polars as pl

    try:
        frame = pl.read_parquet(kg.folder / DIFF / "relations.parquet", glob=False)
    except (OSError, pl.exceptions.PolarsError):
        return ""
    keys = frame.filter(pl.col("change") == change)["key"].to_list()
    return f" ({', '.join(keys[:3])}{', …' if len(keys) > 3 else ''})" if keys else ""


def _too_much(since: float, share: float, limit: float) -> str | None:
    if since <= limit:
        return None
    along = "" if since == share else f" since the training, {share:.2%} of them now"
    return f"{since:.2%} of the triples changed{along}, more than operations.retrain_share allows ({limit:.2%})"


def _other_training(start: StartingRun, profile: Profile) -> str | None:
    """What keeps trained artifacts from going on: one is missing, or was trained otherwise or on something else."""
    for kind in trained_kinds(profile):
        if kind not in start.parts:
            return f"run {start.run_id} has no {kind}"
        if (reason := training_change(kind, start.parts[kind], profile)) is not None:
            return reason
    return training_input_change(start.training_inputs, profile, current_run().home.root)


def other_sets(before: Profile, now: Profile) -> str | None:
    """Why retrievers that learnt from several question sets, or from one, do not go on, in words; None when they do."""
    learnt, wanted = (
        [{"name": entry.name, **entry.decisive()} for entry in profile.trained_on] for profile in (before, now)
    )
    if learnt == wanted:
        return None
    names = " and ".join(entry["name"] for entry in learnt) or before.questions.name
    return f"the retrievers were trained on {names}, with questions_train {'union' if learnt else 'each'}"


def _other_questions(start: StartingRun, questions: ArtifactRef) -> str | None:
    old, new = (read_manifest(ref.folder).get("made_of", {}) for ref in (start.parts["questions"], questions))
    if any(canonical_json(old.get(name)) != canonical_json(new.get(name)) for name in ("outside", "options")):
        return "the questions are others"
    from kgqa_core.datasets.files.question import read_questions

    learnt = {question.id for question in read_questions(start.parts["questions"].folder) if question.split == "train"}
    evaluated = [question.id for question in read_questions(questions.folder) if question.split != "train"]
    moved = sum(question in learnt for question in evaluated)
    return f"{moved} questions that were learnt from are in dev or test now" if moved else None


def _unfit(start: StartingRun, dkg: ArtifactRef, profile: Profile) -> str | None:
    """Why a trained retriever cannot be used on the new graph, if so."""
    from kgqa_core.dkg.csr import Dkg
    from kgqa_core.retrieval.api import RetrieverInputs
    from kgqa_core.retrieval.registry import TRAINED, open_retriever

    graph = Dkg.open(dkg.folder)
    for name, spec in TRAINED.items():
        if name in profile.retrieval.retrievers and spec.artifact is not None:
            folder = start.parts[spec.artifact].folder
            inputs = RetrieverInputs(graph, profile.retrieval, profile.seed, spec.options(profile), folder)
            try:
                open_retriever(name, inputs)
            except (GraphMismatch, ArtifactError) as fault:
                return str(fault)
    return None
