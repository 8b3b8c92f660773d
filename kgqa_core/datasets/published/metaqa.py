"""MetaQA, questions of one to three hops about films (Zhang et al. 2018).

A line of `{h}-hop/{split}.txt` (or `{h}-hop/vanilla/qa_{split}.txt`, as distributed) is
`question with [topic]<TAB>answer|answer`; the same line of `{h}-hop/qa_{split}_qtype.txt` names the path by the kinds
of its nodes: `actor_to_movie_to_year`.  Brackets are removed from the text, for they give the topic away.
Gold answers of two and three hops leave out the topic entity at every hop (`rigel.exclude_topic`).
"""

from __future__ import annotations

import re
from pathlib import Path

from msgspec import Struct

from kgqa_core.config import QuestionSource
from kgqa_core.datasets.files.jsonl import RawQuestion, read_lines
from kgqa_core.datasets.published.base import DatasetSpec, Loader, PublishedFiles, RowSource, path_of
from kgqa_core.datasets.published.rows import Rows
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


class MetaQuestion(Struct, frozen=True):
    """A line of MetaQA.  kinds: its question type, where there is a file of these."""

    hops: int
    text: str
    answers: str
    kinds: str | None = None


def question_files(options: QuestionSource) -> dict[Path, str | None]:
    """The files of the hops of the options, with their splits.  Raises QuestionFileError."""
    folder = path_of(options)
    if not folder.is_dir():
        raise QuestionFileError(f"{folder} is not a folder; questions.path must name the folder of MetaQA")
    files: dict[Path, str | None] = {}
    for hop in options.hops or HOPS:
        home = folder / f"{hop}-hop"
        names = {split: (home / f"{split}.txt", home / "vanilla" / f"qa_{split}.txt") for split in SPLITS}
        here = {path: split for split, paths in names.items() for path in [p for p in paths if p.is_file()][:1]}
        if not here:
            raise QuestionFileError(
                f"{home} holds no questions; questions.path must be the folder of MetaQA, questions.hops among 1, 2, 3"
            )
        files |= here
    return files


def types_file(path: Path) -> Path | None:
    """The file of question types beside a question file, where there is one."""
    home = path.parents[1] if path.parent.name == "vanilla" else path.parent
    types = home / f"qa_{path.stem.removeprefix('qa_')}_qtype.txt"
    return types if types.is_file() else None


def question_rows(path: Path) -> Rows:
    """Lines of a question file, with their types.  Raises QuestionFileError where these are of another number."""
    home = path.parents[1] if path.parent.name == "vanilla" else path.parent
    lines = [line for line in read_lines(path) if line.strip()]
    types_path = types_file(path)
    types = [line for line in read_lines(types_path) if line.strip()] if types_path else [b""] * len(lines)
    if len(types) != len(lines):
        raise QuestionFileError(f"{types_path} has {len(types)} lines, but {path} has {len(lines)}; fetch both again")
    for number, (line, kinds) in enumerate(zip(lines, types, strict=True), start=1):
        text, _, answers = line.decode("utf-8", errors="replace").strip("\r\n").partition("\t")
        row = {"hops": int(home.name[0]), "text": text, "answers": answers}
        yield f"line {number}", row | {"kinds": kinds.decode("utf-8", errors="replace")}


def raw_question(row: MetaQuestion, source: RowSource) -> RawQuestion:
    """A line as a raw question.  Raises ValueError."""
    topic = TOPIC.search(row.text)
    if topic is None:
        raise ValueError(f"`question with [topic]<TAB>answers` is needed, got {row.text!r}")
    return {
        "id": f"metaqa-{row.hops}-{source.split}-{source.number:05d}",
        "question": TOPIC.sub(r"\1", row.text).strip(),
        "topic_entities": [topic.group(1).strip()],
        "answers": [answer.strip() for answer in row.answers.split("|") if answer.strip()],
        "answer_type": "entities",
        "complexity": "generic" if row.hops == 1 else "multi-hop",
        "hops": row.hops,
    } | ({"relation_path": relation_path(row.kinds)} if row.kinds is not None else {})


FILES = PublishedFiles("MetaQA", question_files, question_rows, MetaQuestion, raw_question, strict=True)


def _input_files(options: QuestionSource) -> list[Path]:
    return [file for path in question_files(options) for file in (path, types_file(path)) if file is not None]


METAQA = DatasetSpec(
    "MetaQA",
    "one to three hops about films",
    "its own, 134,741 triples",
    "407,513",
    "github: yuyuz/MetaQA",
    "CC BY 3.0",
    ("metaqa/*-hop/*.txt", "MetaQA/*-hop/vanilla/*.txt", "*-hop/*.txt", "*-hop/vanilla/*.txt"),
    source="metaqa",
    loader=Loader(_input_files, lambda options, seed: FILES.read(options)),
)
