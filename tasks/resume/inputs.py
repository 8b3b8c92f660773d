"""What a run reads beside its graph and questions: as a finished run had it, and as a profile would have it today.

A profile only names files, models and earlier runs, and where they lie decides nothing; what is in them does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from kgqa_core.config import Options, Profile, RetrieverVariant
from kgqa_core.errors import ArtifactError, InputError
from kgqa_core.retrieval.api import RetrieverSpec
from kgqa_core.retrieval.registry import RETRIEVERS, TRAINED, trained_by
from kgqa_core.store.artifacts import MANIFEST, ArtifactRef, canonical_json, read_manifest
from tasks.engine.stage import Stage
from tasks.linking import link_questions
from tasks.passages import index_passages
from tasks.questions import load_more
from tasks.retrieval import TRAINING_STAGES, feedback_sources, retrieve
from tasks.rewriting import finetune_rewriter, generate_corpus

LEARNERS: dict[str, tuple[Stage[Any], Callable[[Profile], Options]]] = {
    **{kind: (stage, trained_by(kind).options) for kind, stage in TRAINING_STAGES.items()},
    "corpus": (generate_corpus, lambda profile: profile.corpus),
    "rewriter": (finetune_rewriter, lambda profile: profile.rewriter),
}
"""Stages whose artifact goes on from run to run, and their options in a profile, by kind."""

MORE, LINKED, FEEDBACK = "questions/more/", "linked/learnt", "feedback"
"""Stages of what the retriever learns from beside the questions: further sets, linked questions, an earlier run."""


def trained_kinds(profile: Profile) -> list[str]:
    """Kinds of the trained artifacts that a profile needs."""
    kinds = list(dict.fromkeys(str(spec.artifact) for spec in _trained(profile)))
    return kinds + (["corpus", "rewriter"] if profile.trains_rewriter else [])


def artifacts(record: Mapping[str, Any]) -> Iterator[tuple[str, ArtifactRef]]:
    """The artifacts of a run's record, each with the name of its stage; some stages have several."""
    for stage in record["stages"]:
        if stage["artifact"]:
            yield stage["name"], ArtifactRef.model_validate(stage["artifact"])


def training_inputs(record: Mapping[str, Any]) -> dict[str, ArtifactRef]:
    """What the retriever of a run learnt from beside the questions, by stage; what the home lost is left out."""
    made = list(artifacts(record))
    inputs = {name: ref for name, ref in made if name.startswith(MORE) or name == FEEDBACK}
    trained = [ref for name, ref in made if name in TRAINING_STAGES]
    read = {_made_of(ref).get("inputs", {}).get("questions") for ref in trained}
    for name, ref in made:
        if name.partition("/")[0] == "linked" and ref.digest in read:
            inputs[LINKED] = ref
    return {name: ref for name, ref in inputs.items() if (ref.folder / MANIFEST).is_file()}


def reads_same_inputs(record: Mapping[str, Any], profile: Profile, home: Path) -> bool:
    """Whether all that a finished run read beside its graph and questions is what a profile reads today."""
    stages = dict(artifacts(record))
    try:
        for name, digests in external_inputs(profile).items():
            if name not in stages or not _alike(_made_of(stages[name]).get("outside"), digests):
                return False
        return _other_feedback(training_inputs(record), profile, home) is None
    except ArtifactError:
        return False


def training_change(kind: str, trained: ArtifactRef, profile: Profile) -> str | None:
    """How a profile trains another artifact of a kind than the one that is there, in words; None when it does not."""
    stage, section = LEARNERS[kind]
    made, options = _made_of(trained), section(profile)
    given = made.get("options", {})
    for name, wanted in (("options", options.decisive()), ("seed", profile.seed)):
        if not _alike(given.get(name), wanted):
            return f"the {name} of {kind} changed"
    external = stage.external_digests(options=options)
    if not _alike(made.get("outside"), external):
        return f"what {kind} learns from changed: {_differing(made.get('outside') or {}, external)}"
    return None


def training_input_change(inputs: Mapping[str, ArtifactRef], profile: Profile, home: Path) -> str | None:
    """How a profile's retriever learns from other things than these, in words; None when it does not.

    inputs: of `training_inputs`.  How they are made is compared and not what came out, which changes with every fact.
    """
    if not any(spec.further_sets for spec in _trained(profile)):
        return None
    wanted = {MORE + source.name: source for source in profile.questions.more}
    for name in sorted({*wanted, *(name for name in inputs if name.startswith(MORE))}):
        label = repr(name.removeprefix(MORE))
        if name not in inputs or name not in wanted:
            return f"the further question set {label} {'came' if name in wanted else 'went'}"
        made, source = _made_of(inputs[name]), wanted[name]
        how = {"options": source.decisive(), "seed": profile.seed}
        if not (
            _alike(made.get("options"), how) and _alike(made.get("outside"), load_more.external_digests(options=source))
        ):
            return f"the further question set {label} is another"
    return _other_links(inputs, profile) or _other_feedback(inputs, profile, home)


def _other_links(inputs: Mapping[str, ArtifactRef], profile: Profile) -> str | None:
    if not any(spec.learns_links(spec.options(profile)) for spec in _trained(profile)):
        return None
    if LINKED not in inputs:
        return "the linked questions that retriever learnt from are not known"
    made, options = _made_of(inputs[LINKED]), profile.linking
    same = _alike(made.get("options", {}).get("options"), options.decisive())
    same = same and _alike(made.get("outside"), link_questions.external_digests(options=options))
    return None if same else "the questions that retriever learns from are linked otherwise"


def _other_feedback(inputs: Mapping[str, ArtifactRef], profile: Profile, home: Path) -> str | None:
    """A run that is gone is taken for the one that it was."""
    words = [spec.feedback_run(spec.options(profile)) for spec in _trained(profile)]
    word = next((word for word in words if word is not None), None)
    if (word is None) != (FEEDBACK not in inputs):
        return f"the feedback of retriever {'came' if word is not None else 'went'}"
    if word is None:
        return None
    try:
        today = {name: ref.digest for name, ref in feedback_sources(home, word)[1].items()}
    except InputError:
        return None
    read = {name: digest for name, digest in _made_of(inputs[FEEDBACK]).get("inputs", {}).items() if name != "dkg"}
    return None if _alike(read, today) else f"the feedback of retriever is that of another run ({word})"


def external_inputs(profile: Profile) -> dict[str, Mapping[str, str]]:
    """Digests of what a profile's stages read today, by stage; graph and questions apart."""
    digests = {}
    for kind in trained_kinds(profile):
        stage, section = LEARNERS[kind]
        digests[kind] = stage.external_digests(options=section(profile))
    if any(spec.further_sets for spec in _trained(profile)):
        digests |= {MORE + source.name: load_more.external_digests(options=source) for source in profile.questions.more}
    if profile.reads_passages:
        digests["passage_index"] = index_passages.external_digests(options=profile.passages)
    if profile.links_topics:
        digests["linked"] = link_questions.external_digests(options=profile.linking)
    for name in profile.retrieval.collected:
        section = RETRIEVERS[RetrieverVariant.parse(name).retriever].options(profile)
        digests[f"facts/{name}"] = retrieve.external_digests(name=name, section=section)
    return digests


def _trained(profile: Profile) -> list[RetrieverSpec]:
    """The retrievers that a profile trains."""
    return [spec for name, spec in TRAINED.items() if name in profile.retrieval.retrievers]


def _made_of(ref: ArtifactRef) -> dict[str, Any]:
    made: dict[str, Any] = read_manifest(ref.folder).get("made_of", {})
    return made


def _alike(first: Any, other: Any) -> bool:
    return canonical_json(first) == canonical_json(other)


def _differing(first: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    names = sorted({*first, *other})
    return ", ".join(name.replace("_", " ") for name in names if first.get(name) != other.get(name))
