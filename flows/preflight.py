"""What can be known to be wrong before anything starts is said before anything starts.

The stages check the same things; here they are asked in a second, not after ten minutes of training.
"""

from __future__ import annotations

import re
from pathlib import Path

from kgqa_core.answering.registry import check_explorer, knowledge_spec
from kgqa_core.config import Answerer, Profile, QuestionSource
from kgqa_core.datasets.derived.splits import check_splits
from kgqa_core.datasets.files.jsonl import RawQuestion
from kgqa_core.datasets.load import input_files, read_raw, sizes_of
from kgqa_core.errors import InputError, ModelError, QuestionFileError
from kgqa_core.evaluation.nli import find_folder as find_classifier
from kgqa_core.extras import require_extra
from kgqa_core.llm.factory import check_chat, parse_spec
from kgqa_core.llm.probe import check_endpoint
from kgqa_core.passages.corpus import find_corpus
from kgqa_core.retrieval.hops import check_hops
from kgqa_core.retrieval.registry import RETRIEVERS
from kgqa_core.store.remote import RemoteStore
from tasks.engine.runners import check_runner
from tasks.kg import check_graph
from tasks.secrets import load_secrets


def check(profile: Profile) -> None:
    """Raise the first fault of a run's inputs: graph files, question file, models, endpoint, knowledge asked for.

    Raises KgInputError, QuestionFileError, ModelError, EndpointError or ConfigError.
    """
    load_secrets(profile)
    check_graph(None, profile.kg)
    for retriever in (RETRIEVERS[name] for name in profile.retrieval.retrievers):
        if (extra := retriever.extra(retriever.options(profile))) is not None:
            require_extra(extra, f"the retriever {retriever.name}")
    for name in profile.answering.knowledge:
        if (extra := knowledge_spec(name).extra) is not None:
            require_extra(extra, f"knowledge {name!r}")
    _check_sets(profile)
    profile.check_knowledge()
    if profile.reads_passages:
        find_corpus(profile.passages.corpus)
    check_runner(profile.operations.runner)
    RemoteStore.current()
    for key, name in _of_retrievers(profile, "file"):
        if not Path(name).expanduser().exists():
            raise InputError(f"{key} {name!r} is not there; name a file that is, or leave it out")
    for key, encoder in _encoders(profile):
        _check_folder(key, encoder, ("minilm", "scratch"))
    if profile.reads_links and profile.linking.service is not None:
        from kgqa_core.linking.service import key_of

        key_of(profile.linking.service)
    if profile.evaluation.nli is not None:
        find_classifier(profile.evaluation.nli)
    for variant in profile.each_answerer:
        check_explorer(variant.answering.answerer, profile.llm)
    endpoints = set()
    for key, spec in _models(profile):
        kind, rest = parse_spec(spec, profile.llm)
        if kind == "hf":
            _check_folder(key, rest, ())
        if kind == "openai":
            endpoints.add(spec)
        if key == "symbolic.chooser":
            check_chat(spec, profile.llm)
    for spec in sorted(endpoints):
        check_endpoint(spec, profile.llm)


def _check_sets(profile: Profile) -> None:
    """Every question set can be read and has what the run needs; of several, the faults of all are told at once."""
    faults = []
    for variant in profile.each_set:
        try:
            _check_main_questions(variant)
            for more in variant.questions.more:
                _read_questions(more, variant.seed)
        except InputError as fault:
            if len(profile.set_names) == 1:
                raise
            faults.append(f"question set {variant.questions.name!r}: {fault}")
    if faults:
        raise QuestionFileError("\n".join(faults))


def _check_main_questions(profile: Profile) -> None:
    """Every split that the run needs has questions, and the hops that are set reach their answers."""
    rows = _read_questions(profile.questions, profile.seed)
    if not rows:
        return
    source = profile.questions.path or profile.questions.source
    check_splits(sizes_of(rows, profile.questions, profile.seed), profile.needed_splits, source)
    _check_annotations(profile, source)
    paths = [row["relation_paths"] for row in rows if row["split"] in (None, "train")]
    if all(paths):  # where some have none, only the graph tells how far their answers are
        check_hops([max(len(path) for path in alternatives) for alternatives in paths], profile.hop_limits)


def _check_annotations(profile: Profile, source: str | None) -> None:
    """Training questions have what the run's retrievers learn from."""
    sets = [_read_questions(options, profile.seed) for options in profile.trained_on or (profile.questions,)]
    rows = [row for questions in sets for row in questions if row["split"] in (None, "train")]
    learners = [
        (f"the retriever {name}", RETRIEVERS[name].learns_from(RETRIEVERS[name].options(profile)))
        for name in profile.retrieval.retrievers
    ]
    for learner, fields in learners:
        if fields and all(sets) and not any(row.get(field) for row in rows for field in fields):
            named = " or ".join(fields).replace("relation_paths", "relation_path")
            raise QuestionFileError(
                f"{learner} learns from {named}, and none of the {len(rows)} training questions of {source} has any; "
                "add them there, or use another"
            )


def _read_questions(options: QuestionSource, seed: int) -> list[RawQuestion]:
    """A question file is read whole, so that its faults are not met after hours of reading a graph.

    Of a benchmark that is named as such only its files are looked for: empty.
    """
    input_files(options)
    if options.source != "jsonl":
        return []
    return read_raw(options, seed)


def _encoders(profile: Profile) -> list[tuple[str, str]]:
    """Keys and values of the encoders that the run needs."""
    encoders = _of_retrievers(profile, "encoder")
    if profile.computes and profile.symbolic.parser != "none":
        parser = profile.symbolic.parser
        encoders.append((f"parsing.{parser}.encoder", getattr(profile.parsing, parser).encoder))
    if profile.reads_links and profile.linking.context == "encoder":
        encoders.append(("linking.encoder", profile.linking.encoder))
    if profile.reads_passages and profile.passages.retriever != "bm25":
        encoders.append(("passages.encoder", profile.passages.encoder))
    return encoders


def _of_retrievers(profile: Profile, kind: str) -> list[tuple[str, str]]:
    """Keys and values of the encoders, models or files that training and opening the retrievers needs."""
    inputs: dict[tuple[str, str], None] = {}
    for spec in (RETRIEVERS[name] for name in profile.retrieval.retrievers):
        options = spec.options(profile)
        for external in (*spec.trains_on(options), *spec.reads(options)):
            if external.kind == kind and not external.optional:
                inputs[f"{spec.section}.{external.field}", external.name] = None
    return list(inputs)


def _models(profile: Profile) -> list[tuple[str, str]]:
    """Keys and values of the language models that the run needs."""
    names = (profile.answering.answerer, *profile.answering.more)
    answerers = [Answerer.parse(name).model for name in names]
    keys = ("answering.answerer", *("answering.more",) * len(profile.answering.more))
    wanted = [(key, model) for key, model in zip(keys, answerers, strict=True) if model is not None]
    wanted += _of_retrievers(profile, "model")
    if profile.computes and profile.symbolic.chooser is not None:
        wanted.append(("symbolic.chooser", profile.symbolic.chooser))
    if profile.evaluation.judge is not None:
        wanted.append(("evaluation.judge", profile.evaluation.judge))
    if profile.rewrites:
        wanted.append(("rewriter.base", profile.rewriter.base))
    if profile.trains_rewriter and profile.corpus.alpaca_file is None:
        wanted.append(("corpus.qa_model", profile.corpus.qa_model))
        if profile.corpus.teacher != "template":
            wanted.append(("corpus.teacher", profile.corpus.teacher))
    return wanted


def _check_folder(key: str, name: str, known: tuple[str, ...]) -> None:
    folder = Path(name)
    if name in known or (not folder.exists() and re.fullmatch(r"[\w.-]+(/[\w.-]+)?", name)):
        return
    if not (folder / "config.json").is_file():
        what = "has no config.json" if folder.is_dir() else "is not a folder"
        raise ModelError(
            f"{key} {name!r} {what}; give a folder with config.json, tokenizer and *.safetensors, or a hub id"
        )
    if not any(folder.glob("*.safetensors")):
        raise ModelError(
            f"{key} {name!r} has no *.safetensors weights, and pickled ones (pytorch_model.bin) are never loaded; "
            "convert it: kgqa models convert FOLDER --out NEW"
        )
