"""The champion of a graph and its questions: the finished run that a new one has to beat.

The truth lies in the home, `champions/<system>.json`, written whole under a lock; MLflow's registered model of the same
name has the aliases `champion` and `previous`, which follow.  Beside it lies a copy of the champion's scores, so that
it can be compared with after its artifacts are deleted.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import time
from pathlib import Path
from typing import Any

import polars as pl

from kgqa_core.config import AUTO, Answerer, Profile, recorded_profile
from kgqa_core.errors import ArtifactError, ConfigError
from kgqa_core.evaluation.labels import main_split
from kgqa_core.evaluation.paired import read_scored
from kgqa_core.runs.champion import Challenger, ChampionDecision, Corrections, decide, in_order
from kgqa_core.store.artifacts import ArtifactRef, Home, canonical_json, storage_faults, write_json
from kgqa_core.store.home import located, portable, read_run
from tasks.engine.corrected import corrected, nearly_learnt, relations_at_risk, withdrawn
from tasks.engine.prefect_pages import plain
from tasks.engine.run import Run, current_run, git_commit
from tasks.tracking.mlflow_store import model_name
from tasks.tracking.tracker import ModelAliases, ModelVersion, RunValues

log = logging.getLogger("kgqa")
KEPT_DECISIONS = 100


def model_of(profile: Profile) -> str:
    """Name of the system that a profile's runs are versions of, unless another pair of graph and questions has it."""
    return model_name(f"kgqa-{profile.kg.name}-{profile.questions.name}")


def champion(profile: Profile, home: Home | None = None) -> dict[str, Any] | None:
    """Record of the run that is the champion of a profile's system (its `run.json`), or None when there is none."""
    home = home or current_run().home
    path = _file(home, profile)
    truth = _read(path)
    bearer = (truth.get("champion") or {}).get("run_id")
    if not bearer:
        return None
    record = read_run(home.root, bearer)
    if record is None:
        log.warning("the champion of %s is run %s, whose record is gone", path.stem, bearer)
    return record


def contend(run: Run, record: dict[str, Any]) -> ChampionDecision:
    """Let a finished run become a version of its system and contend for its title; the decision is written down.

    record: what the run's record will hold, with its `aggregates`.  Asked again for the same run, the first decision
    holds.
    """
    profile = run.profile
    if profile is None:
        return ChampionDecision(False, "no champion: a run without a profile does not contend")
    with storage_faults(run.home.root), run.home.locked(f"champion-{model_of(profile)}", "deciding the champion"):
        path = _file(run.home, profile)
        name = path.stem
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            truth = _read(path)
        except ArtifactError as fault:
            decision = ChampionDecision(False, f"champion stays: {fault}")
            log.warning("%s", decision.why)
            return decision
        earlier = next((entry for entry in truth.get("decisions", ()) if entry.get("run_id") == run.id), None)
        if earlier is not None:
            return ChampionDecision(**{key: value for key, value in earlier.items() if key not in ("run_id", "at")})
        decision, scored = _decide(run, profile, record, truth, path)
        _write(run, path, truth | {"names": _names(profile)}, decision, scored)
    log.info("%s", decision.why)
    metric = {"kgqa.champion_metric": _value_text(decision)} if decision.value else {}
    digests = {f"kgqa.{kind}_digest": run.made(kind)[kind].digest for kind in ("kg", "questions")}
    version = {"kgqa.run_id": run.id, "kgqa.git": git_commit(), **digests, **decision.tags(), **metric}
    run.tracker.record(
        RunValues(run.tracked, tags={**decision.tags(), **metric}),
        ModelVersion(run.tracked, name, "", version, _description(run, profile, decision)),
        ModelAliases(name, str(path)),
    )
    return decision


def _decide(
    run: Run, profile: Profile, record: dict[str, Any], truth: dict[str, Any], path: Path
) -> tuple[ChampionDecision, pl.DataFrame]:
    operations, name = profile.operations, path.stem
    scores, questions = (run.made(kind)[kind] for kind in ("scores", "questions"))
    scored = read_scored(scores.folder, questions.folder)
    fresh = scored.filter(~pl.col("question").is_in(sorted(nearly_learnt(questions.folder))))
    challenger = Challenger(run.id, fresh, in_order(list(run.made("facts")), scored))
    old, why = _holder(run.home, truth, path)
    if why:
        held = truth["champion"]["run_id"]
        return ChampionDecision(
            False, f"champion stays: {why}", champion_run=held, against=held, name=name,
            metric=operations.champion_metric or "",
        ), scored  # fmt: skip
    decision = decide(
        challenger,
        old,
        metric=operations.champion_metric,
        experiment=operations.champion_experiment,
        answerer=_computing(profile),
        level=operations.confidence,
        seed=profile.seed,
        corrections=Corrections(
            lambda before, after: corrected(run.home, questions.folder, (before, after)),
            withdrawn=old is not None and withdrawn(Path(truth["champion"]["questions"]["path"]), questions.folder),
            relations=relations_at_risk(questions.folder),
        ),
    )
    value = _value(record.get("aggregates") or {}, decision)
    return ChampionDecision(**{**vars(decision), "name": name, "value": value}), scored


def _computing(profile: Profile) -> str | None:
    """Name of the run's answerer in its experiments, where it computes its answers."""
    return AUTO if Answerer.parse(profile.answering.answerer).computes else None


def _holder(home: Home, truth: dict[str, Any], path: Path) -> tuple[Challenger | None, str]:
    """The champion as a contender, or why nobody can be compared with it; none where it cannot answer any more."""
    holder = truth.get("champion")
    if not holder:
        return None, ""
    if (record := read_run(home.root, holder["run_id"]) or {}).get("profile"):
        try:
            recorded_profile(record)
        except ConfigError as fault:
            log.warning("the champion does not count: %s", fault)
            return None, ""
    order = tuple(holder.get("experiments", ()))
    try:
        return Challenger(holder["run_id"], pl.read_parquet(_copy(path, holder["run_id"]), glob=False), order), ""
    except (OSError, pl.exceptions.PolarsError):
        pass
    try:
        scored = read_scored(Path(holder["scores"]["path"]), Path(holder["questions"]["path"]))
        return Challenger(holder["run_id"], scored, order), ""
    except (ArtifactError, OSError, KeyError, pl.exceptions.PolarsError):
        return None, f"the scores of run {holder['run_id']} are gone; delete {path} to start with a new champion"


def _write(run: Run, path: Path, truth: dict[str, Any], decision: ChampionDecision, scored: pl.DataFrame) -> None:
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    entry = {"run_id": run.id, "at": now, **decision.as_json()}
    new = {**truth, "name": path.stem, "decisions": [*truth.get("decisions", ()), entry][-KEPT_DECISIONS:]}
    if decision.moved:
        folder = path.with_suffix("")
        folder.mkdir(exist_ok=True)
        scratch = folder / f".{run.id}.{os.getpid()}.tmp"
        scored.write_parquet(scratch, compression="zstd")
        os.replace(scratch, _copy(path, run.id))
        new["previous"], new["champion"] = truth.get("champion"), _bearer(run, decision, scored, now)
    write_json(path, portable(new, run.home.root))
    if decision.moved:
        needed = {(new[alias] or {}).get("run_id") for alias in ("champion", "previous")}
        for copy in path.with_suffix("").glob("*.parquet"):
            if copy.stem not in needed:
                copy.unlink(missing_ok=True)


def _bearer(run: Run, decision: ChampionDecision, scored: pl.DataFrame, since: str) -> dict[str, Any]:
    def ref(kind: str) -> dict[str, Any]:
        artifact: ArtifactRef = run.made(kind)[kind]
        return artifact.model_dump()

    return {
        "run_id": run.id,
        "since": since,
        "mlflow_run_id": run.tracker.known(run.tracked),
        "git": git_commit(),
        "metric": decision.metric,
        "experiment": decision.experiment,
        "value": decision.value,
        "experiments": list(in_order(list(run.made("facts")), scored)),
        **{kind: ref(kind) for kind in ("kg", "questions", "scores")},
    }


def _value(aggregates: dict[str, Any], decision: ChampionDecision) -> dict[str, float] | None:
    """The run's own value of the metric that counts, with its interval."""
    by_split = (aggregates.get("scores") or {}).get(decision.experiment or "", {})
    split = main_split(by_split)
    return by_split[split].get(decision.metric) if split else None


def _value_text(decision: ChampionDecision) -> str:
    value = decision.value or {}
    interval = f"{value['value']:.4f} [{value['low']:.4f}, {value['high']:.4f}]"
    return f"{decision.metric} of {decision.experiment}: {interval}"


def _description(run: Run, profile: Profile, decision: ChampionDecision) -> str:
    """What the registry says of a version: what it is, how good, whether it is champion and why; no paths."""
    why = decision.why.replace(f"{run.home.root}{os.sep}", "")
    parts = [
        f"Profile {profile.name}: graph {profile.kg.name}, questions {profile.questions.name}.",
        f"{_value_text(decision)}." if decision.value else "",
        f"{why[:1].upper()}{why[1:]}.",
        f"Run {run.id}.",
    ]
    return "\n\n".join(plain(part) for part in parts if part)


def _file(home: Home, profile: Profile) -> Path:
    """The record of a profile's system; its name ends in a hash where another pair of names has the plain one."""
    plain = home.root / "champions" / f"{model_of(profile)}.json"
    names = _names(profile)
    hashed = plain.with_name(f"{plain.stem}-{hashlib.sha256(canonical_json(names).encode()).hexdigest()[:8]}.json")
    if hashed.exists():
        return hashed
    try:
        return plain if _read(plain).get("names", names) == names else hashed
    except ArtifactError:
        return plain


def _names(profile: Profile) -> list[str]:
    return [profile.kg.name, profile.questions.name]


def _copy(path: Path, run_id: str) -> Path:
    return path.with_suffix("") / f"{run_id}.parquet"


def _read(path: Path) -> dict[str, Any]:
    """The truth about a system's champion.  Raises ArtifactError when its file is damaged."""
    try:
        truth = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as fault:
        raise ArtifactError(f"{path} cannot be read ({fault}); delete it to start with a new champion") from None
    if not isinstance(truth, dict):
        raise ArtifactError(f"{path} is not the record of a champion; delete it to start with a new champion")
    return dict(located(truth, path.parent.parent))
