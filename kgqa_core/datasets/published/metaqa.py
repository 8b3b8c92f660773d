"""MetaQA, questions of one to three hops about films (Zhang et al. 2018).

A line of `{h}-hop/{split}.txt` (or `{h}-hop/vanilla/qa_{split}.txt`, as distributed) is
`question with [topic]<TAB>answer|answer`; the same line of `{h}-hop/qa_{split}_qtype.txt` names the path by the kinds
of its nodes: `actor_to_movie_to_year`.  Brackets are removed from the text, for they give the topic away.
Gold answers of two and three hops leave out the topic entity at every hop (`rigel.exclude_topic`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from kgqa_core.config import QuestionSource
from kgqa_core.datasets.files.jsonl import RawQuestion, check_faults, read_lines
from kgqa_core.datasets.published.base import DatasetSpec, Loader, path_of
from kgqa_core.errors import QuestionFileError, nearest
from kgqa_core.types import INVERSE, SPLITS

HOPS = (1, 2, 3)

RELATIONS = {
    "actor": "starred_actors",
    "director": "directed_by",
    "writer": "written_by",
    "genre": "has_genre",
    "language": "in_language",
    "year": "release_year",
    "tag": "has_tags",
    "tags": "has_tags",
    "imdbrating": "has_imdb_rating",
    "imdbvotes": "has_imdb_votes",
}
"""Relation that leads from a film to a node of each kind."""

TOPIC = re.compile(r"\[(.+?)\]")


def relation_path(question_type: str) -> list[str]:
    """Relation keys of a question type: `actor_to_movie_to_year` is `<inv>-starred_actors`, `release_year`.

    Raises ValueError when a kind of node is unknown or a step does not have a film at exactly one end.
    """
    kinds = question_type.strip().split("_to_")
    path = []
    for head, tail in zip(kinds, kinds[1:], strict=False):
        if (head == "movie") == (tail == "movie"):
            raise ValueError(f"question type {question_type!r}: step {head} to {tail} must touch a movie once")
        kind = tail if head == "movie" else head
        if kind not in RELATIONS:
            raise ValueError(f"question type {question_type!r}: kind {kind!r} is unknown{nearest(kind, RELATIONS)}")
        path.append(RELATIONS[kind] if head == "movie" else INVERSE + RELATIONS[kind])
    if not path:
        raise ValueError(f"question type {question_type!r} is not of the form kind_to_kind")
    return path


def question_files(folder: Path, hops: Sequence[int] = ()) -> dict[tuple[int, str], tuple[Path, Path | None]]:
    """(hops, split) → question file and file of types, for what is there.  Raises QuestionFileError."""
    if not folder.is_dir():
        raise QuestionFileError(f"{folder} is not a folder; questions.path must name the folder of MetaQA")
    files: dict[tuple[int, str], tuple[Path, Path | None]] = {}
    for hop in hops or HOPS:
        home = folder / f"{hop}-hop"
        for split in SPLITS:
            places = (home / f"{split}.txt", home / "vanilla" / f"qa_{split}.txt")
            text = next((place for place in places if place.is_file()), None)
            types = home / f"qa_{split}_qtype.txt"
            if text is not None:
                files[hop, split] = text, types if types.is_file() else None
        if not any(found == hop for found, _ in files):
            raise QuestionFileError(
                f"{home} holds no questions; questions.path must be the folder of MetaQA, questions.hops among 1, 2, 3"
            )
    return files


def read_metaqa(folder: Path, hops: Sequence[int] = ()) -> Iterator[RawQuestion]:
    """Raw questions of the given hop counts (all when empty).  Raises QuestionFileError naming file and line."""
    for (hop, split), (path, types_path) in question_files(folder, hops).items():
        faults: list[str] = []
        lines = [line for line in read_lines(path) if line.strip()]
        types = [line for line in read_lines(types_path) if line.strip()] if types_path else None
        if types is not None and len(types) != len(lines):
            raise QuestionFileError(
                f"{types_path} has {len(types)} lines, but {path} has {len(lines)}; fetch both again"
            )
        for number, line in enumerate(lines, start=1):
            text, tab, answers = line.decode("utf-8", errors="replace").strip("\r\n").partition("\t")
            topic = TOPIC.search(text)
            if not tab or topic is None or not answers.strip():
                faults.append(f"line {number}: `question with [topic]<TAB>answers` is needed, got {text!r}")
                continue
            row: RawQuestion = {
                "id": f"metaqa-{hop}-{split}-{number:05d}",
                "question": TOPIC.sub(r"\1", text).strip(),
                "topic_entities": [topic.group(1).strip()],
                "answers": [answer.strip() for answer in answers.split("|") if answer.strip()],
                "answer_type": "entities",
                "split": split,
                "complexity": "generic" if hop == 1 else "multi-hop",
                "hops": hop,
            }
            if types is not None:
                try:
                    row["relation_path"] = relation_path(types[number - 1].decode("utf-8", errors="replace"))
                except ValueError as fault:
                    faults.append(f"line {number} of {types_path.name if types_path else ''}: {fault}")
                    continue
            yield row
        check_faults(path, faults)


def _input_files(options: QuestionSource) -> list[Path]:
    files = question_files(path_of(options), options.hops)
    return [file for pair in files.values() for file in pair if file is not None]


METAQA = DatasetSpec(
    "MetaQA",
    "one to three hops about films",
    "its own, 134,741 triples",
    "407,513",
    "github: yuyuz/MetaQA",
    "CC BY 3.0",
    ("metaqa/*-hop/*.txt", "MetaQA/*-hop/vanilla/*.txt", "*-hop/*.txt", "*-hop/vanilla/*.txt"),
    source="metaqa",
    loader=Loader(_input_files, lambda options, seed: read_metaqa(path_of(options), options.hops)),
)
