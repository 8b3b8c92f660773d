"""The finished run that a refresh or an evaluation goes on from: the champion's, else the newest."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kgqa_core.config import Options, Profile, recorded_profile
from kgqa_core.errors import ArtifactError, ConfigError
from kgqa_core.retrieval.registry import trained_by
from kgqa_core.store.artifacts import ArtifactRef, Home, read_manifest, verify, write_json
from kgqa_core.store.home import read_runs
from tasks.engine.champion import champion
from tasks.engine.run import Run
from tasks.kg import dump_digests
from tasks.questions import question_digests
from tasks.resume.inputs import LEARNERS, artifacts, reads_same_inputs, trained_kinds, training_inputs
from tasks.retrieval import TRAINING_STAGES

DECISION = "refresh.json"
"""What a refresh decided, beside the record of its run."""

log = logging.getLogger("kgqa")


@dataclass(frozen=True)
class StartingRun:
    """The finished run that a refresh goes on from.

    role: what it is, in words.  record: of the run.  parts: its artifacts by the name of their stage.
    training_inputs: what its retriever learnt from beside the questions, likewise.  since_training: share of the
    triples that changed between the training and this run.  newest: no run has finished since, so that questions are
    answered with this one.
    """

    run_id: str
    role: str
    profile: Profile
    record: Mapping[str, Any]
    parts: dict[str, ArtifactRef]
    training_inputs: dict[str, ArtifactRef]
    since_training: float = 0.0
    newest: bool = True

    @property
    def kg(self) -> ArtifactRef:
        """Its graph."""
        return self.parts["kg"]

    @property
    def dkg(self) -> ArtifactRef:
        """Its differentiable KG."""
        return self.parts["dkg"]


def finished_runs(home: Home, profile: Profile) -> list[dict[str, Any]]:
    """Records of the finished runs of the profile's graph and questions, the newest first."""
    return [
        record
        for record in reversed(read_runs(home.root))
        if record.get("status") == "done"
        and not record.get("sets")
        and isinstance(record.get("profile"), dict)
        and _names(record["profile"]) == (profile.kg.name, profile.questions.name)
    ]


def run_of_these_inputs(home: Home, profile: Profile) -> dict[str, Any] | None:
    """The newest finished run that read the profile's files, if all that it read is still the same; else None.

    A newer run that an event gave other files does not count: a schedule whose files are as they were goes back behind
    none.  Where no run read files of these names it is the newest of all.  Evaluations read no dump.
    """
    files, readers = list(profile.kg.files), list(_readers(home, profile))
    record = next((each for each in readers if each["profile"]["kg"].get("files") == files), next(iter(readers), None))
    if record is None:
        return None
    try:
        parts = dict(artifacts(record))
        read = tuple(_outside(read_manifest(parts[name].folder)) for name in ("kg", "questions"))
        same = read == (dump_digests(profile.kg), question_digests(profile.questions))
        same = same and _decisive(recorded_profile(record)) == _decisive(profile)
        return record if same and reads_same_inputs(record, profile, home.root) else None
    except (ArtifactError, ConfigError, KeyError) as fault:
        log.warning("run %s has read these files, but cannot be compared with: %s", record["run_id"], fault)
        return None


def read_since(home: Home, profile: Profile, run_id: str) -> str:
    """What is to be said of a newer run that has read other files than a run, or nothing."""
    newest = next(_readers(home, profile))
    if newest["run_id"] == run_id:
        return ""
    return f"; run {newest['run_id']} has since read {', '.join(newest['profile']['kg'].get('files') or ['none'])}"


def _readers(home: Home, profile: Profile) -> Iterator[dict[str, Any]]:
    """Finished runs that have read a dump, newest first."""
    return (each for each in finished_runs(home, profile) if "evaluates" not in (each.get("decisions") or {}))


def starting_point(home: Home, profile: Profile, run_id: str | None = None) -> StartingRun | None:
    """The run to go on from: the one named, else the champion's, else the newest whose artifacts are there.

    None where there is none.  Raises ArtifactError when the run named is none, or its artifacts are gone.
    """
    records = finished_runs(home, profile)
    if run_id is not None:
        requested = [record for record in records if record["run_id"] == run_id]
        if not requested:
            known = ", ".join(record["run_id"] for record in records) or "none"
            raise ArtifactError(
                f"{home.root} has no finished run {run_id!r} of {profile.kg.name}/{profile.questions.name}; there are "
                f"{known}"
            )
        return _open(home, requested[0], "the run that was named", newest=requested[0] is records[0])
    best = _champion(home, profile)
    ordered = sorted(records, key=lambda record: record["run_id"] != best)
    for record in ordered:
        role = "the champion" if record["run_id"] == best else "the newest run"
        try:
            return _open(home, record, role, newest=record is records[0])
        except (ArtifactError, ConfigError) as fault:
            log.warning("run %s, %s, cannot be gone on from: %s", record["run_id"], role, fault)
    return None


def is_current(start: StartingRun, profile: Profile) -> bool:
    """Whether the graph of a run was read from the very files, with the very options, of a profile."""
    same_options = start.profile.kg.decisive() == profile.kg.decisive()
    return same_options and _outside(read_manifest(start.kg.folder)) == dump_digests(profile.kg)


def reused_artifacts(start: StartingRun, profile: Profile) -> dict[str, ArtifactRef]:
    """The trained artifacts of a run that a profile needs, and what its retriever learnt from, by stage.

    Raises ArtifactError when the run lacks a trained one.
    """
    missing = [kind for kind in trained_kinds(profile) if kind not in start.parts]
    if missing:
        raise ArtifactError(
            f"run {start.run_id} has no {missing[0]}, which this profile needs; run the pipeline, or leave out what "
            "needs it in retrieval.retrievers and answering.knowledge"
        )
    reused = {kind: start.parts[kind] for kind in trained_kinds(profile)}
    learns_more = any(trained_by(kind).further_sets for kind in reused if kind in TRAINING_STAGES)
    return reused | (start.training_inputs if learns_more else {})


def read_decision(home: Home, run_id: str) -> dict[str, Any] | None:
    """What the refresh that made a run decided, or its evaluation took over; None for any other run."""
    try:
        return dict(json.loads((home.root / "runs" / run_id / DECISION).read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return None


def take_over(run: Run, start: StartingRun) -> None:
    """Write down beside a run's record that it uses what `start` trained, and how much has changed since."""
    write_json(run.folder / DECISION, {"start": start.run_id, "since_training": start.since_training})


def _champion(home: Home, profile: Profile) -> str | None:
    """Id of the run that is the champion, if there is one."""
    record = champion(profile, home)
    return None if record is None else str(record["run_id"])


def _names(profile: Mapping[str, Any]) -> tuple[Any, Any]:
    return profile.get("kg", {}).get("name"), profile.get("questions", {}).get("name")


def _open(home: Home, record: Mapping[str, Any], role: str, *, newest: bool) -> StartingRun:
    """A run whose graph, questions and trained artifacts are there and whole.  Raises ArtifactError, ConfigError."""
    wanted = ("kg", "dkg", "questions", *LEARNERS)
    refs = {name: ref for name, ref in artifacts(record) if name in wanted}
    if not {"kg", "dkg", "questions"} <= refs.keys():
        raise ArtifactError(f"run {record['run_id']} has no graph or no questions; run the pipeline again")
    for ref in refs.values():
        if verify(ref.folder).digest != ref.digest:
            raise ArtifactError(f"{ref.folder} is no longer what run {record['run_id']} made; run the pipeline again")
    decided = read_decision(home, record["run_id"]) or {}
    since = float(decided.get("since_training", 0.0))
    profile = recorded_profile(record)
    return StartingRun(record["run_id"], role, profile, record, refs, training_inputs(record), since, newest)


def _outside(manifest: Mapping[str, Any]) -> Any:
    return manifest.get("made_of", {}).get("outside")


def _decisive(profile: Profile) -> dict[str, Any]:
    """What of a profile decides what a run makes."""
    sections = {name: getattr(profile, name) for name in type(profile).model_fields}
    plain = {name: part.decisive() for name, part in sections.items() if isinstance(part, Options)}
    plain.pop("operations")
    more = [{"name": source.name, **source.decisive()} for source in (*profile.questions.more, *profile.trained_on)]
    chosen = {"retrievers": profile.retrieval.collected, "knowledge": profile.knowledge, "more": more}
    compared = profile.evaluation.nli and [profile.evaluation.nli, profile.evaluation.entailment.decisive()]
    return {**plain, **chosen, "entailment": compared, "judge": profile.evaluation.judge, "seed": profile.seed}


def same_outcome(first: Profile, other: Profile) -> bool:
    """Whether two profiles differ in nothing that decides what a run makes."""
    return _decisive(first) == _decisive(other)
