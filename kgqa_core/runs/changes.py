"""What differs between runs before anybody looks at scores: options, data, code, trained parts.

It reads the runs' records and the manifests of their artifacts; where a manifest is gone, the record's digest remains.
Every value is a list with one place for each run.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kgqa_core.errors import ArtifactError
from kgqa_core.retrieval import registry as retrievers
from kgqa_core.runs.records import Record, stage_with_artifact
from kgqa_core.store.artifacts import read_manifest

DATA = ("kg", "dkg", "questions")
TRAINED = (*retrievers.TRAINED_KINDS, "rewriter")
UNTOLD = ("name", "description")
ABSENT = "–"
LONGEST = 120


def flatten(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """A nested mapping with dotted keys."""
    flat: dict[str, Any] = {}
    for key, value in tree.items():
        if isinstance(value, Mapping):
            flat.update(flatten(value, f"{prefix}{key}."))
        else:
            flat[prefix + key] = value
    return flat


def configuration(records: Sequence[Record]) -> list[dict[str, Any]]:
    """Options that not all runs have alike: rows `{"key", "values"}`, keys dotted as in a profile."""
    profiles = [flatten(record.get("profile") or {}) for record in records]
    keys = [key for key in dict.fromkeys(key for flat in profiles for key in flat) if key not in UNTOLD]
    rows = [{"key": key, "values": [flat.get(key, ABSENT) for flat in profiles]} for key in keys]
    return [row for row in rows if not _alike(row["values"])]


def data(records: Sequence[Record]) -> list[dict[str, Any]]:
    """The graph, its export and the questions: `{"what", "digests", "same", "counts"}`, counts where they differ."""
    rows = []
    for what in DATA:
        stages = [stage_with_artifact(record, what) for record in records]
        if not any(stages):
            continue
        digests = [_digest(stage) for stage in stages]
        counts = [flatten(stage["counts"]) if stage else {} for stage in stages]
        names = list(dict.fromkeys(name for count in counts for name in count))
        table = [{"name": name, "values": [count.get(name, ABSENT) for count in counts]} for name in names]
        table = [row for row in table if not _alike(row["values"])]
        rows.append({"what": what, "digests": digests, "same": _alike(digests), "counts": table})
    return rows


def trained(records: Sequence[Record]) -> list[dict[str, Any]]:
    """Trained parts: `{"what", "digests", "same"}`; same means that the very same weights were used."""
    rows = []
    for what in TRAINED:
        digests = [_digest(stage_with_artifact(record, what)) for record in records]
        if any(digests):
            rows.append({"what": what, "digests": digests, "same": _alike(digests)})
    return rows


def code(records: Sequence[Record]) -> dict[str, Any]:
    """`commits` of the runs, and for each stage whose key is not the same everywhere why it is another.

    stages: rows `{"stage", "why"}`; why: one list of reasons for each run, the first run's being empty.
    """
    names = list(dict.fromkeys(stage["name"] for record in records for stage in record.get("stages", ())))
    rows = []
    for name in names:
        made = [_made_of(stage_with_artifact(record, name)) for record in records]
        why = [[] if index == 0 else _reasons(made[0], one) for index, one in enumerate(made)]
        if any(why):
            rows.append({"stage": name, "why": why})
    return {"commits": [commit(record) for record in records], "stages": rows}


def commit(record: Record) -> str:
    """Commit that a run was made with, as its record or else its newest artifact says."""
    profiles = (record.get("environment") or {}).get("git")
    if profiles:
        return str(profiles)
    for stage in reversed(list(record.get("stages", ()))):
        manifest = _manifest(stage)
        if manifest is not None and manifest.get("run_id") == record.get("run_id"):
            return str((manifest.get("environment") or {}).get("git", "unknown"))
    return "unknown"


def _digest(stage: Mapping[str, Any] | None) -> str | None:
    return str(stage["artifact"]["digest"]) if stage else None


def _manifest(stage: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if not stage or not stage.get("artifact"):
        return None
    try:
        return read_manifest(Path(stage["artifact"]["path"]))
    except ArtifactError:
        return None


def _made_of(stage: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """What a stage's key was made of, flat; None without the stage, `{}` when its manifest is gone."""
    if not stage:
        return None
    manifest = _manifest(stage)
    return flatten((manifest or {}).get("made_of") or {})


def _reasons(first: dict[str, Any] | None, other: dict[str, Any] | None) -> list[str]:
    if first is None and other is None:
        return []
    if first is None or other is None:
        return ["a stage of its own" if first is None else "not in this run"]
    if not first or not other:
        return ["its manifest is gone"] if first != other else []
    differ = [key for key in dict.fromkeys((*first, *other)) if first.get(key) != other.get(key)]
    inputs = [key.partition(".")[2] for key in differ if key.startswith("inputs.")]
    profiles = [_reason(key, first.get(key, ABSENT), other.get(key, ABSENT)) for key in differ if key[:7] != "inputs."]
    if inputs:
        profiles.append(f"other input {inputs[0]}" if len(inputs) == 1 else f"other inputs {', '.join(inputs)}")
    return profiles


def _reason(key: str, before: Any, after: Any) -> str:
    head, _, rest = key.partition(".")
    if head == "code":
        return f"other code ({str(before)[:8]} → {str(after)[:8]})"
    if head == "outside":
        return f"{rest} is another"
    if head == "packages":
        return f"package {rest}: {before} → {after}"
    name = rest.removeprefix("options.").removeprefix("options.") or head
    return f"{name}: {shown(before)} → {shown(after)}"


def shown(value: Any) -> str:
    """A value of an option as one short line."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def _alike(values: Sequence[Any]) -> bool:
    return all(value == values[0] for value in values)
