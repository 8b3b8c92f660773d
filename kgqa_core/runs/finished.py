"""What a finished run left for others to use: its artifacts, and the parts of the system that it trained."""

from __future__ import annotations

import atexit
import logging
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from kgqa_core.config import PASSAGES, TOPICS, Knowledge, Profile, recorded_profile
from kgqa_core.errors import ArtifactError, InputError, nearest
from kgqa_core.monitor import QUIET, Monitor
from kgqa_core.retrieval.registry import RETRIEVERS, TRAINED
from kgqa_core.runs.builds import filled
from kgqa_core.runs.home_names import named_graph
from kgqa_core.runs.records import stage_artifact, stage_with_artifact
from kgqa_core.store.artifacts import ArtifactRef, Home, read_manifest, verify
from kgqa_core.workspace import Workspace

log = logging.getLogger("kgqa")

SYSTEM_STAGES = frozenset(
    {"kg", "dkg", "mentions", "rewriter", "passage_index", "label_parser", "abstainer"}
    | {str(spec.artifact) for spec in TRAINED.values()}
)
"""Stages whose artifacts a system may read; `system_parts` says which it does."""

ComputeMentions = Callable[[Home, Monitor, ArtifactRef], ArtifactRef]
"""Gives the mention dictionary of a graph, cached in a home or computed into it."""


@dataclass(frozen=True)
class SystemParts:
    """What a question-answering system is made of: folders of artifacts, and the options that say how they are used.

    knowledge: `retriever/format` that the answering model reads.  retriever: the trained retriever of it, where it is
    trained.  others: further trained retrievers, by name, which the abstainer reads.  mentions: the graph's mention
    dictionary, for questions that come without topics.  rewriter: a trained one.  passages: a passage index.
    label_parser: of the answerer `auto`.  abstainer: trained, to tell when not to answer; rules do where there is none.
    cache: folder that keeps vectors and responses for all runs.
    """

    kg: Path
    dkg: Path
    knowledge: str = "rigel/triples"
    profile: Profile = field(default_factory=Profile)
    retriever: Path | None = None
    others: Mapping[str, Path] = field(default_factory=dict)
    mentions: Path | None = None
    rewriter: Path | None = None
    passages: Path | None = None
    label_parser: Path | None = None
    abstainer: Path | None = None
    cache: Path | None = None

    @property
    def reads_graph(self) -> bool:
        """Whether a retriever's facts are read, so that topics are needed."""
        return not Knowledge.parse(self.knowledge).graphless


def system_parts(
    home: Home, record: Mapping[str, Any], knowledge: str | None = None, min_confidence: float | None = None
) -> SystemParts:
    """The parts of the system that a finished run made, without a mention dictionary (see `mentions_of_run`).

    The graph has the names that the home gives it.

    knowledge: `retriever/format` that it reads; the run's first that answers a user's question when absent.
    min_confidence: that the graph holds the answer, below which it is not given; the run's own, or its abstainer's
    threshold, when absent.
    Raises InputError when the run has not trained what this needs, ArtifactError when it is damaged.
    """
    profile = recorded_profile(record).each_answerer[0]
    if min_confidence is not None:
        least = profile.abstention.model_copy(update={"min_confidence": min_confidence})
        profile = profile.model_copy(update={"abstention": least})
    retriever, form = _knowledge(record, profile, knowledge)
    name = f"{retriever}/{form}"

    def folder(stage: str) -> Path:
        return stage_artifact(record, stage).folder

    spec = TRAINED.get(retriever)
    abstainer, others = _abstention(record, name)
    return SystemParts(
        kg=named_graph(home, record).folder,
        dkg=folder("dkg"),
        knowledge=name,
        profile=profile,
        retriever=folder(str(spec.artifact)) if spec is not None else None,
        others={other: folder(str(TRAINED[other].artifact)) for other in others},
        rewriter=folder("rewriter") if form == "rewritten" and profile.rewriter.adapt else None,
        passages=folder("passage_index") if form in ("both", PASSAGES) else None,
        label_parser=folder("label_parser") if profile.computes else None,
        abstainer=abstainer,
        cache=home.cache if home.writable else None,
    )


def mentions_of_run(
    home: Home, record: Mapping[str, Any], monitor: Monitor = QUIET, compute: ComputeMentions | None = None
) -> Path:
    """The mention dictionary of a run's graph: the run's own, or else as `mentions_of_graph` gives it."""
    graph = named_graph(home, record, monitor)
    if stage_with_artifact(record, "mentions") and graph == stage_artifact(record, "kg"):
        return stage_artifact(record, "mentions").folder
    return mentions_of_graph(home, graph, monitor, compute)


def mentions_of_graph(
    home: Home, kg: ArtifactRef, monitor: Monitor = QUIET, compute: ComputeMentions | None = None
) -> Path:
    """The mention dictionary of a graph: cached in the home, or built into it.

    Where the home cannot be written it is built in a temporary folder, which goes with the process.  compute: looks it
    up and builds it by the key of a stage, so that runs find it; without, a cached one of this graph is used.
    Raises ArtifactError for a graph that cannot be read, StorageError.
    """
    if not home.writable:
        log.info("the home cannot be written: the mention dictionary is made in a temporary folder for this command")
        folder = tempfile.mkdtemp(prefix="kgqa-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        home = Home(Path(folder)).prepare()
    return (compute or _compute_mentions)(home, monitor, kg).folder


def _compute_mentions(home: Home, monitor: Monitor, kg: ArtifactRef) -> ArtifactRef:
    inputs = {"kg": kg.digest}
    for manifest in sorted((home.root / "artifacts" / "mentions").glob("*/manifest.json")):
        try:
            if read_manifest(manifest.parent)["made_of"]["inputs"] == inputs:
                return verify(manifest.parent)
        except (ArtifactError, KeyError, TypeError):
            continue  # a damaged one is built again

    def fill(workspace: Workspace) -> Mapping[str, Any]:
        from kgqa_core.linking.dictionary import build  # with numba

        return build(workspace, kg=kg.folder)

    return filled(home, "mentions", {"inputs": inputs}, fill, monitor)


def with_mentions(parts: SystemParts, mentions: Path) -> SystemParts:
    """The parts, with the mention dictionary of their graph."""
    return replace(parts, mentions=mentions)


def _knowledge(record: Mapping[str, Any], profile: Profile, knowledge: str | None) -> tuple[str, str]:
    """Retriever, without `@linked`, and format of the knowledge that a run's system reads."""
    choice = [name for name, spec in RETRIEVERS.items() if not spec.baseline and name in profile.retrieval.retrievers]
    if profile.explores:  # from the topics, whatever else the run retrieved
        choice = [TOPICS]
    read = Knowledge.parse(knowledge or (choice[0] if choice else "none"))
    retriever = read.retriever  # a question without topics is linked in any case
    if profile.computes and read.graphless:
        raise InputError(
            f"knowledge {retriever!r} holds no facts, but the answerer {profile.answering.answerer!r} of run "
            f"{record['run_id']} computes from facts; name one of {', '.join(choice) or 'no retriever of it'}"
        )
    if retriever not in ("none", PASSAGES, *choice):
        raise InputError(
            f"knowledge {knowledge!r}: run {record['run_id']} can answer from {', '.join(choice) or 'nothing'}"
            f"{nearest(retriever, choice)}; oracle and random need gold paths or a seed, not a user's question"
        )
    return retriever, read.format


def _abstention(record: Mapping[str, Any], name: str) -> tuple[Path | None, list[str]]:
    """The abstainer that a run trained for this knowledge, and the further retrievers that it reads."""
    if not any(stage["name"].partition("/")[0] == "abstainer" for stage in record["stages"]):
        return None, []
    from kgqa_core.abstention.model import load_abstainer

    folder = stage_artifact(record, "abstainer").folder
    abstainer = load_abstainer(folder)
    read = replace(Knowledge.parse(abstainer.knowledge), topics="gold")
    if str(read) != name:
        return None, []
    return folder, [other for other in abstainer.retrievers if other != read.retriever]
