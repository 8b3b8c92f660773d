"""The mention dictionary of a finished run's graph, for commands that read bare text."""

from __future__ import annotations

from typing import Any

from prefect import flow

from flows.cli._session import stage_artifact
from kgqa_core.config import Profile, make_profile
from kgqa_core.store.artifacts import ArtifactRef, Home
from tasks.engine.progress import StageMonitor
from tasks.engine.run import tracked_run
from tasks.linking import build_mentions, mentions_without_run


def mentions_of(record: dict[str, Any]) -> ArtifactRef:
    """The mention dictionary of a run's graph: found in the home, or made now.

    Raises InputError, ArtifactError.
    """
    kg = stage_artifact(record, "kg")
    cached = build_mentions.find(kg)
    if cached is not None:
        return cached
    if Home.current().writable:
        return make_mentions(make_profile(record["profile"]), kg)
    with StageMonitor("mentions", lambda rows: None) as monitor:
        return mentions_without_run(kg, monitor)


@flow(name="kgqa-mentions", flow_run_name="mentions {profile.kg.name}")
def make_mentions(profile: Profile, kg: ArtifactRef) -> ArtifactRef:
    """Make the mention dictionary of a graph, once for all questions that will be asked of it."""
    with tracked_run(profile) as run:
        mentions = build_mentions(kg)
        run.save(status="made")
        return mentions
