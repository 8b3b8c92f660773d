"""What a logged model knows of its system: which run of which home, which artifacts with which content, which code.

The reference holds no weights and no copy of the profile: all of that lies in the home, where the champion's artifacts
are kept.  It holds no secret either; those of endpoints come from the environment of whoever loads the model, or from
the Secret blocks that `operations.secrets` names.
"""

from __future__ import annotations

import importlib.metadata
import os
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kgqa_core.config import Profile
from kgqa_core.errors import ArtifactError, InputError
from kgqa_core.runs.finished import SYSTEM_STAGES, SystemParts, mentions_of_run, system_parts, with_mentions
from kgqa_core.runs.records import newest_run
from kgqa_core.store.artifacts import MANIFEST, ArtifactRef, Home, read_manifest
from kgqa_core.tracing import NO_TRACER, QuestionTracer
from tasks.secrets import load_secrets_of

if TYPE_CHECKING:
    from kgqa_core.system import System

DISTRIBUTION = "kgqa"
Reference = Mapping[str, Any]
"""Plain values, as `make_reference` gives them; they are the `model_config` of the logged model."""


def make_reference(
    home: Home, run: str, profile: Profile, artifacts: Mapping[str, ArtifactRef], git: str
) -> dict[str, Any]:
    """The reference to the system of a finished run.

    artifacts: of the run, by stage; those that no system reads are left out.  git: commit of the code.
    """
    return {
        "home": str(home.root),
        "run": run,
        "graph": profile.kg.name,
        "artifacts": {
            name: {"path": _inside(home, ref.folder), "digest": ref.digest}
            for name, ref in sorted(artifacts.items())
            if name in SYSTEM_STAGES
        },
        "git": git,
        "requirements": requirements(profile),
    }


def requirements(profile: Profile) -> list[str]:
    """Lines for pip: each package that this project names itself, in the version that is installed here.

    The project is not among them: its code is in the model (`model_files.code_files`).
    """
    wanted = {"run": True, "passages": profile.reads_passages, "amr": _reads_amr(profile)}
    extras = [name for name, has in wanted.items() if has]
    packages = {}
    try:
        named_packages = importlib.metadata.requires(DISTRIBUTION) or ()
    except importlib.metadata.PackageNotFoundError:  # a checkout that is not installed
        named_packages = ()
    for line in named_packages:
        text, _, condition = line.partition(";")
        named = re.search(r"extra\s*==\s*['\"]([\w.-]+)['\"]", condition)
        if named is not None and named[1] not in extras:
            continue
        name = re.split(r"[\s\[<>=!~(@]", text.strip(), maxsplit=1)[0]
        try:
            packages[name] = importlib.metadata.version(name).partition("+")[0]
        except importlib.metadata.PackageNotFoundError:
            continue  # of an extra that is not installed, or for another system
    return [f"{name}=={version}" for name, version in sorted(packages.items())]


def open_system(reference: Reference, tracer: QuestionTracer = NO_TRACER) -> System:
    """The system that a reference means.

    Raises ArtifactError where the home, the run or an artifact is missing or has another content, ConfigError for a
    secret of `operations.secrets` that is not there, and what `System.open` raises.
    """
    from kgqa_core.system import System

    home = _home_of(reference)
    run = str(reference["run"])
    try:
        record = newest_run(home, run)
    except InputError as fault:
        raise ArtifactError(f"the system of this model is run {run}: {fault}") from None
    try:
        parts = system_parts(home, record)
        if parts.reads_graph:
            parts = with_mentions(parts, mentions_of_run(home, record))
    except ArtifactError as fault:
        gone = _gone(reference, home)
        named = f"lacks its artifact {', '.join(gone)}" if gone else "has a damaged artifact"
        raise ArtifactError(
            f"the system of this model, run {run} of {home.root}, {named}: {fault}.  `kgqa run` with the same profile "
            "makes the same artifact again; or load another version of the model"
        ) from None
    _check_digests(parts, reference, home)
    load_secrets_of(parts.profile, home.root)
    return replace(System.open(parts), tracer=tracer)


def _home_of(reference: Reference) -> Home:
    """The home where it was, else the one that `KGQA_HOME` names."""
    home, other = Home(Path(str(reference["home"]))), os.environ.get("KGQA_HOME")
    if not (home.root / "runs").is_dir() and other and (Path(other) / "runs" / str(reference["run"])).is_dir():
        home = Home(Path(other))
    if not (home.root / "runs").is_dir():
        raise ArtifactError(
            f"the home {home.root}, which holds the system of this model, is not there; mount it, or say where it is "
            "now: KGQA_HOME=/path, or load_model(…, model_config={'home': '/path'})"
        )
    return home.look()


def _gone(reference: Reference, home: Home) -> list[str]:
    folders = {name: home.root / artifact["path"] for name, artifact in reference["artifacts"].items()}
    return [f"{name} ({folder})" for name, folder in folders.items() if not (folder / MANIFEST).is_file()]


def _check_digests(parts: SystemParts, reference: Reference, home: Home) -> None:
    """Raises ArtifactError where an artifact that the system reads is not the one that the model was logged with."""
    singles = (
        parts.kg, parts.dkg, parts.retriever, parts.rewriter, parts.passages, parts.label_parser,
        parts.abstainer, parts.mentions,
    )  # fmt: skip
    read = {folder for folder in (*singles, *parts.others.values()) if folder is not None}
    for name, artifact in reference["artifacts"].items():
        folder = home.root / artifact["path"]
        if folder in read and (digest := read_manifest(folder)["digest"]) != artifact["digest"]:
            raise ArtifactError(
                f"artifact {name} ({folder}) is not the one that this model was logged with: its digest is {digest}, "
                f"logged was {artifact['digest']}; load the version of the model that a later run logged, or `kgqa "
                "run` with the profile and the files of then"
            )


def _inside(home: Home, folder: Path) -> str:
    """A folder relative to the home, where it lies in it."""
    return str(folder.relative_to(home.root)) if folder.is_relative_to(home.root) else str(folder)


def _reads_amr(profile: Profile) -> bool:
    return "rank_amr" in profile.retrieval.retrievers
