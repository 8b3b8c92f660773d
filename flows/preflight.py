"""What can be known to be wrong before anything starts is said before anything starts.

The stages check the same things; here they are asked in a second, not after ten minutes of training.
"""

from __future__ import annotations

import re
from pathlib import Path

from kgqa_core.config import Profile, check_knowledge
from kgqa_core.datasets.load import input_files
from kgqa_core.errors import ModelError
from kgqa_core.kg.formats.detect import check_format
from kgqa_core.kg.ingest.sources import find_sources
from kgqa_core.llm.factory import parse_spec


def check(profile: Profile) -> None:
    """Raise the first fault of a run's inputs: graph files, question file, models, endpoint, knowledge asked for.

    Raises KgInputError, QuestionFileError, ModelError, EndpointError or ConfigError.
    """
    find_sources(profile.kg.files)
    check_format(profile.kg.format)
    input_files(profile.questions)
    _check_folder("retriever.encoder", profile.retriever.encoder, ("minilm", "scratch"))
    kind, rest = parse_spec(profile.answering.answerer)
    if kind == "hf":
        _check_folder("answering.answerer", rest, ())
    if kind == "openai":
        from kgqa_core.llm.factory import load_model
        from kgqa_core.llm.protocol import GenerationParams

        load_model(profile.answering.answerer, profile.answering.model_copy(update={"retries": 0})).generate(
            ["Question: Is anybody there? Answer:"], GenerationParams(max_new_tokens=1)
        )
    check_knowledge(profile.answering.knowledge, profile.retrieval.retrievers)


def _check_folder(key: str, name: str, known: tuple[str, ...]) -> None:
    folder = Path(name)
    if name in known or (not folder.exists() and re.fullmatch(r"[\w.-]+(/[\w.-]+)?", name)):
        return
    if not (folder / "config.json").is_file():
        what = "has no config.json" if folder.is_dir() else "is not a folder"
        raise ModelError(
            f"{key} {name!r} {what}; give a folder with config.json, tokenizer and *.safetensors, or a hub id"
        )
