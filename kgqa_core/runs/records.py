"""Records of the runs of a home: which run is meant, and the artifacts of its stages."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from kgqa_core.errors import ArtifactError, InputError, nearest
from kgqa_core.store.artifacts import ArtifactRef, Home, verify
from kgqa_core.store.home import newest_runs, read_run, read_runs

log = logging.getLogger("kgqa")

Record = Mapping[str, Any]
"""What `run.json` says of a run."""


def current_champions(home: Path) -> dict[str, str]:
    """Registered system → id of the run that is its champion.  Raises ArtifactError for a record that is damaged."""
    champions = {}
    for path in sorted((home / "champions").glob("*.json")):
        try:
            if (champion := json.loads(path.read_text(encoding="utf-8"))["champion"]) is not None:
                champions[path.stem] = str(champion["run_id"])
        except FileNotFoundError:
            continue
        except (OSError, ValueError, KeyError, TypeError) as fault:
            raise ArtifactError(
                f"{path} cannot be read ({type(fault).__name__}: {fault}), so it is unknown which run is the champion; "
                "restore the file, delete it to start with a new champion, or name a run with --run newest or --run ID"
            ) from None
    return champions


def default_run(home: Home) -> str:
    """The word for the run that answers where none is named: the champion of the newest finished run's system.

    `newest` where that system has no champion.  In a home of one graph and one question set this is its champion, else
    its newest finished run.  Raises InputError where no run has finished, ArtifactError as `current_champions`.
    """
    champions = list(current_champions(home.root))
    system = (newest_run(home).get("champion") or {}).get("name") or (champions[0] if len(champions) == 1 else None)
    return f"champion:{system}" if system in champions else "newest"


def answering_run(home: Home, word: str | None = None) -> dict[str, Any]:
    """Record of the finished run that answers: the one that a word means (see `newest_run`), else `default_run`."""
    return newest_run(home, word if word is not None else default_run(home))


def choose_run(home: Path, word: str) -> dict[str, Any]:
    """The run that a word means: an id, the unambiguous beginning of one, `newest`, `champion` or `champion:SYSTEM`.

    Of a run of several question sets `RUN:SET` means one; the runs of its sets have ids of their own too.
    Raises InputError that names the nearest run when none is meant, or all when several are.
    """
    word, colon, name = word.partition(":") if not is_champion(word) else (word, "", "")
    record = _named(home, word, finished=False)
    if not colon and record.get("sets"):
        each = ", ".join(f"{word}:{one}" for one in record["sets"])
        raise InputError(f"run {record['run_id']} answers several question sets; say which: {each}")
    return set_run(home, record, name) if colon else record


def set_run(home: Path, record: Record, name: str | None = None) -> dict[str, Any]:
    """The run of one question set of a run of several: of the set with this name, or of its first.

    A run of one set stands for itself.  Raises InputError for a set that it does not have, or has not finished.
    """
    sets: Mapping[str, str] = record.get("sets") or {}
    own = ((record.get("profile") or {}).get("questions") or {}).get("name")
    if not sets and name in (None, own):
        return dict(record)
    if name is None:
        name = next(iter(sets))
        log.info("run %s answers %s; this is the system of %s", record["run_id"], ", ".join(sets), name)
    if (failed := (record.get("failed_sets") or {}).get(name)) is not None:
        raise InputError(f"question set {name!r} of run {record['run_id']} failed: {failed}")
    if name not in sets:
        known = list(sets) or [str(own)]
        raise InputError(
            f"run {record['run_id']} has no question set {name!r}; it has {', '.join(known)}{nearest(name, known)}"
        )
    results = read_run(home, sets[name])
    if results is None:
        raise InputError(f"the record of run {sets[name]}, which answered {name!r}, is gone from {home / 'runs'}")
    return results


def _named(home: Path, word: str, *, finished: bool) -> dict[str, Any]:
    """Record of the run that a word means.  finished: of a finished one, as the newest is in any case."""

    def counts(record: Record) -> bool:
        return not finished or record.get("status") == "done"

    if word == "newest":
        done = (record for record in newest_runs(home) if record.get("status") == "done")
        if (newest := next((record for record in done if _stands_alone(home, record)), None)) is not None:
            return newest
        raise InputError(
            f"the home {home} has no finished run yet; start one with `kgqa demo` or `kgqa run`, point to another home "
            "with --home, or ask a graph at once with --kg FILE"
        )
    if is_champion(word):
        word = champion_run(home, word)
    exact = read_run(home, word) if word and "/" not in word else None
    if exact is not None and exact["run_id"] == word and counts(exact):
        return exact
    records = {record["run_id"]: record for record in read_runs(home) if counts(record)}
    chosen = [run for run in records if word and run.startswith(word)]
    if len(chosen) == 1:
        return records[chosen[0]]
    if chosen:
        raise InputError(f"{word!r} is the beginning of {len(chosen)} runs: {_listed(chosen)}; give more of the id")
    kind = "finished run" if finished else "run"
    raise InputError(
        f"no {kind} {word!r} in {home}; it has {_listed(records) or 'none'}{nearest(word, records, cutoff=0.3)}"
    )


def newest_run(home: Home, run_id: str | None = None, *, whole: bool = False) -> dict[str, Any]:
    """Record of a finished run of a home: the one of this id or unambiguous beginning of one, or the newest.

    run_id: also `newest`, `champion` or `champion:SYSTEM`; `RUN:SET`, or `newest:SET`, is one question set of a run of
    several.  whole: such a run itself where no set is named; without it the run of its first set.
    Raises InputError, and ArtifactError where it is unknown which run is the champion.
    """
    word = run_id if run_id is not None else "newest"
    word, colon, name = word.partition(":") if not is_champion(word) else (word, "", "")
    record = _named(home.root, word, finished=True)
    return dict(record) if whole and not colon else set_run(home.root, record, name if colon else None)


def _stands_alone(home: Path, record: Record) -> bool:
    """Whether a run is not the run of one set of a finished run among others, which stands for it."""
    table = record.get("table")
    return table is None or (read_run(home, str(table)) or {}).get("status") != "done"


def stage_with_artifact(record: Record, name: str) -> dict[str, Any] | None:
    """A stage's entry in a run's record; None where the run has no artifact of it."""
    return next((stage for stage in record.get("stages", ()) if stage["name"] == name and stage.get("artifact")), None)


def stage_artifact(record: Mapping[str, Any], name: str) -> ArtifactRef:
    """A stage's artifact in a run's record, verified.  Raises InputError, ArtifactError."""
    if stage := stage_with_artifact(record, name):
        return verify(Path(stage["artifact"]["path"]))
    names = [stage["name"] for stage in record["stages"]]
    raise InputError(f"run {record['run_id']} has no stage {name!r}; it has {names}")


def artifact_folder(record: Record, name: str) -> Path:
    """Folder of a stage's artifact.  Raises ArtifactError when the run has none."""
    if stage := stage_with_artifact(record, name):
        return Path(stage["artifact"]["path"])
    raise ArtifactError(f"run {record['run_id']} has no {name}")


def is_champion(word: str) -> bool:
    """Whether a word for a run is `champion` or `champion:SYSTEM`."""
    return word.partition(":")[0] == "champion"


def champion_run(home: Path, word: str) -> str:
    """Id of the run that `champion` or `champion:SYSTEM` means; of several champions that of `default_run`.

    Raises InputError, and as `current_champions`.
    """
    name = word.partition(":")[2]
    known = current_champions(home)
    if not known:
        raise InputError(f"the home {home} has no champion yet; the first finished run becomes one")
    if name and name not in known:
        raise InputError(f"no champion of {name!r}; there are {', '.join(known)}{nearest(name, known)}")
    if not name and len(known) > 1:
        name = default_run(Home(home)).partition(":")[2]
    if not name and len(known) > 1:
        several = ", ".join(f"champion:{one}" for one in known)
        raise InputError(f"the home {home} has {len(known)} champions; say which: {several}")
    run_id = known[name or next(iter(known))]
    if not (home / "runs" / run_id / "run.json").is_file():
        raise InputError(f"the champion is run {run_id}, whose record is gone from {home / 'runs'}; give --run newest")
    return run_id


def _listed(runs: Iterable[str]) -> str:
    names = list(runs)
    return ", ".join(names[-10:]) + (f" and {len(names) - 10} older" if len(names) > 10 else "")
