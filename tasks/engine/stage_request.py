"""GPU stages as deployments, the called side: a run that makes one artifact for another run.

It finds its inputs in the home that both share, checks that it would make the very artifact that was requested, and
makes it in its own process: a called run never calls on.
"""

from __future__ import annotations

import contextlib
import json
import logging
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from kgqa_core.config import Profile
from kgqa_core.errors import WorkerError
from kgqa_core.store.artifacts import ArtifactRef, Home, canonical_json
from kgqa_core.store.locks import free, held, read_owner
from tasks.engine.run import Run, flow_run_id

log = logging.getLogger("kgqa")


class StageRequest(BaseModel):
    """What a calling run hands over: input artifacts, and the key of the artifact that it waits for."""

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)

    kind: str
    """Kind of the artifact that the caller waits for."""
    key: str
    """Its key."""
    made_of: dict[str, Any]
    """What the key was made of, so that a difference between two machines can be named."""
    inputs: dict[str, ArtifactRef]
    """Artifacts to start from, by name."""
    caller: str
    """Id of the calling run."""


_GIVEN: ContextVar[StageRequest | None] = ContextVar("kgqa_given", default=None)


@contextlib.contextmanager
def receive(given: StageRequest | None, run: Run) -> Iterator[dict[str, ArtifactRef]]:
    """The artifacts that a caller hands over, as they lie in this home; none for a run that nobody called.

    While the block lasts, a lock in the home says that this process lives.
    Raises WorkerError when the home does not have the artifacts: caller and worker must share it.
    """
    if given is None:
        yield {}
        return
    token = _GIVEN.set(given)
    run.decide("called_by", given.caller)
    try:
        with held(_sign_of_life(run.home, flow_run_id() or run.id), f"making a {given.kind}", log.info, run.id):
            yield {name: _here(ref, run.home) for name, ref in given.inputs.items()}
    finally:
        _GIVEN.reset(token)


def is_dead(home: Home, flow_run: str) -> bool:
    """Whether the process of a called run ended without a word; False while that cannot be told."""
    path = _sign_of_life(home, flow_run)
    if read_owner(path) is None:  # not begun yet, ended well, or in a home of its own
        return False
    with free(path) as nobody_holds_it:
        return nobody_holds_it and read_owner(path) is not None


def is_requested(kind: str, key: str, parts: Mapping[str, Any]) -> bool:
    """Whether this run was called to make an artifact of this kind.

    Raises WorkerError that names what differs where this machine would make another artifact.
    """
    given = _GIVEN.get()
    if given is None or given.kind != kind:
        return False
    if key == given.key:
        return True
    wanted = json.loads(canonical_json(parts))
    differ = []
    for name in sorted({*wanted, *given.made_of}):
        own_value, requested = wanted.get(name), given.made_of.get(name)
        if own_value == requested:
            continue
        if isinstance(own_value, dict) and isinstance(requested, dict):
            for part in sorted({*own_value, *requested}):
                if own_value.get(part) != requested.get(part):
                    differ.append(
                        f"{name}.{part}: {_short(own_value.get(part))} here, {_short(requested.get(part))} requested"
                    )
        else:
            differ.append(f"{name}: {_short(own_value)} here, {_short(requested)} requested")
    raise WorkerError(
        f"this worker would make another {given.kind} than was requested "
        f"({'; '.join(differ) or 'unknown difference'}); install the same versions of kgqa, its packages and Python "
        "on every worker"
    )


def in_process(profile: Profile) -> Profile:
    """The profile of a run that makes its GPU stages itself."""
    return profile.model_copy(update={"operations": profile.operations.model_copy(update={"gpu_stages": "here"})})


def _sign_of_life(home: Home, flow_run: str) -> Path:
    return home.root / "locks" / f"called-{flow_run}.lock"


def _here(ref: ArtifactRef, home: Home) -> ArtifactRef:
    """An artifact of the caller in this home."""
    cached = home.find(ref.kind, Path(ref.path).name)
    if cached is None or cached.digest != ref.digest:
        what = "is missing" if cached is None else f"has the digest {cached.digest[:12]}, not {ref.digest[:12]}"
        raise WorkerError(
            f"the {ref.kind} {Path(ref.path).name} of the calling run {what} in this worker's home {home.root}; give "
            "all workers the same KGQA_HOME, or the same store in KGQA_STORE"
        )
    return cached


def _short(value: Any) -> str:
    text = canonical_json(value)
    return text if len(text) <= 40 else f"{text[:37]}…"
