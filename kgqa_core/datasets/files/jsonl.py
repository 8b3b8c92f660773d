"""The question file of ours: JSON Lines, one question an object, every fault named with its line.

    {"id": "q1", "question": "what is the capital of Spain?", "topic_entities": ["Spain"], "answers": ["Madrid"]}

field             meaning
id                unique in the file
question          the text
topic_entities    keys or labels of entities; a key wins over a label
answers           keys, labels or literal values (strings, numbers, true or false)
answer_type       optional: entities, number, yes/no, date or text
relation_path     optional: relation keys in order, inverse with a leading `<inv>-`; or a list of such paths
split             optional: train, dev or test; if absent, a seeded split by topic entity
complexity        optional: one of Mintaka's types
hops              optional: number of hops
answer_aliases    optional: other names of the answer.  Either {"answer": ["alias", …]}, or a list of lists in the
                  order of `answers`, or a flat list, whose names belong to the first answer
s_expression      optional: logical form
graph_query       optional: GrailQA's graph query; the logical form is made of it where `s_expression` is absent, and
                  relation paths where `relation_path` is
sparql            optional: SPARQL query (or `sparql_query`), used like `graph_query` where that is absent and the query
                  is of the fragment that forms write (docs/logic.md); it is kept as it is, too
generalization    optional: iid, compositional or zero-shot, as GrailQA divides its dev and test questions
language          optional: language code, when it is not that of the whole file
level             optional: how well known the entity is, I (best) to IV
dialogue          optional: earlier turns, oldest first, [{"role": "user" or "agent", "text": …}, …]; `question` is the
                  last query
reference         optional: the response that an answer is compared with
answerable        optional: false where the graph does not hold the answer; `answers` is empty then, `reason` and
                  `missing` say why.  Such questions are not scored with the others
gold_triples      optional: what the reference says, as keys, [[head, relation, tail], …]

Loaders of benchmarks yield the same mappings, called *raw questions* here.  Fields that are not listed are ignored.
A file may be packed (gzip, bzip2, zstd), may be a pipe, may start with a byte-order mark and may have blank lines.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from kgqa_core.datasets.files.fields import (
    FIELDS,
    kind_of,
    read_aliases,
    read_choice,
    read_dialogue,
    read_flag,
    read_form,
    read_id,
    read_list,
    read_literal,
    read_paths,
    read_text,
    read_texts,
    read_triples,
)
from kgqa_core.errors import QuestionFileError, nearest
from kgqa_core.input_files import refuse_other_files, refuse_zeros, unchanged
from kgqa_core.kg.formats.decompress import Damaged, Stream, open_stream
from kgqa_core.kg.formats.source import LineFeeds
from kgqa_core.spool import regular_file
from kgqa_core.types import ANSWER_TYPES, GENERALIZATION, LEVELS, SPLITS

RawQuestion = dict[str, Any]

_T = TypeVar("_T")

LISTED_FAULTS = 5

MOST_FAULTS = 10_000
"""Faults after which a file is not read any further."""

MAX_LINE = 16 << 20
"""Bytes that a line may have."""

SMALL, EXPANSION = 64 << 20, 100
"""Bytes that any packed file may expand to, and how many times its own size a larger one may."""

MAX_PIPE = 1 << 30
"""Bytes that questions or predictions from a pipe may have."""

_BLOCK = 1 << 20


def read_question_file(path: Path, *, gold: bool = True) -> list[RawQuestion]:
    """The questions of a file, checked and in canonical form; without `gold`, answers and topics may be absent.

    Without `gold`, a file whose name ends in `.txt` has a question a line, whose number is its id.
    Raises QuestionFileError, which lists the first five faults with their lines.
    """
    if not gold and path.suffix == ".txt":
        return _plain_questions(path)
    rows = read_by_id(path, lambda _, value: canonical(value, gold=gold), ", ".join(FIELDS[:4]))
    return list(rows.values())


def _plain_questions(path: Path) -> list[RawQuestion]:
    """The lines of a file that are not empty.  Raises QuestionFileError."""
    rows, faults = [], list[str]()
    for number, line in enumerate(read_lines(path), start=1):
        try:
            if text := line.decode("utf-8-sig").strip():
                rows.append(canonical({"id": str(number), "question": text}, gold=False))
        except ValueError as fault:
            faults.append(f"line {number}: {fault}")
    check_faults(path, faults)
    if not rows:
        raise QuestionFileError(f"{path} {_nothing_in(path)}; write one question a line")
    return rows


def read_by_id(path: Path, read: Callable[[str, Mapping[str, Any]], _T], needs: str) -> dict[str, _T]:
    """Id → what `read` makes of id and row, in the order of the lines.

    read: raises ValueError for a faulty row.  needs: the fields of a row, for the message about an empty file.
    Raises QuestionFileError, which lists the first five faults with their lines.
    """
    faults: list[str] = []
    lines: dict[str, int] = {}
    rows: dict[str, _T] = {}
    for number, value in read_json_lines(path, faults):
        try:
            key = read_id(value)
            row = read(key, value)
            if key in lines:
                raise ValueError(f"id '{key}' is already used on line {lines[key]}")
        except ValueError as fault:
            faults.append(f"line {number}: {fault}")
            continue
        lines[key], rows[key] = number, row
    check_faults(path, faults)
    if not rows:
        raise QuestionFileError(f"{path} {_nothing_in(path)}; write one JSON object a line with {needs}")
    return rows


def question_file(path: Path) -> Path:
    """The path, if it is a file.  Raises QuestionFileError, as reading it would."""
    if not os.path.isfile(path):  # a name that is too long is no file, and reading it says so
        read_question_file(path)
    return path


def read_predictions(path: Path) -> dict[str, str]:
    """Answers of a prediction file, by question id: JSON Lines with `id` and `prediction` (or `output`, `answer`).

    A list of answers is joined with `, `; null, of a question that was declined, is empty.  Raises QuestionFileError.
    """

    def read(_: str, value: Mapping[str, Any]) -> str:
        name = next((name for name in ("prediction", "output", "answer") if name in value), None)
        if name is None:
            raise ValueError("field 'prediction' is missing")
        if value[name] is None:
            return ""
        texts = value[name] if isinstance(value[name], list) else [value[name]]
        return ", ".join(read_literal(name, text) for text in texts)

    return read_by_id(path, read, "id and prediction")


def _nothing_in(path: Path) -> str:
    """What is wrong with a file without any row."""
    blank = any(line for line in read_lines(path))
    return "is empty: it holds only white space" if blank else "is empty"


def check_faults(path: Path, faults: Sequence[str]) -> None:
    """Raises QuestionFileError that lists the first five of `faults`, if there are any."""
    if not faults:
        return
    if len(faults) == 1:
        raise QuestionFileError(f"{path} {faults[0]}")
    more = f"\n  … and {len(faults) - LISTED_FAULTS} more" if len(faults) > LISTED_FAULTS else ""
    shown = "\n  ".join(faults[:LISTED_FAULTS])
    least = f"at least {MOST_FAULTS:,}" if len(faults) >= MOST_FAULTS else str(len(faults))
    raise QuestionFileError(f"{path} has {least} faults:\n  {shown}{more}")


def read_json_lines(path: Path, faults: list[str]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """(line number from 1, object) of each line; malformed lines go to `faults`.  Raises QuestionFileError.

    Reading ends after MOST_FAULTS faults.
    """
    for number, line in enumerate(read_lines(path), start=1):
        if len(faults) >= MOST_FAULTS:
            return
        if number == 1:
            line = line.removeprefix(b"\xef\xbb\xbf")
        line = line.strip()
        if not line:
            continue
        try:
            value = json.loads(line.decode("utf-8"), parse_constant=_no_constant)
        except UnicodeDecodeError as fault:
            faults.append(f"line {number}: not UTF-8 (byte {fault.start + 1})")
        except json.JSONDecodeError as fault:
            hint = "; write one object a line, not one array" if number == 1 and line[:1] == b"[" else ""
            faults.append(f"line {number}: malformed JSON at column {fault.colno}: {fault.msg}{hint}")
        except (ValueError, RecursionError) as fault:
            faults.append(f"line {number}: malformed JSON: {fault}")
        else:
            if isinstance(value, dict):
                yield number, value
            else:
                faults.append(f"line {number}: a JSON object is needed, but it is {kind_of(value)}")


def read_lines(path: Path) -> Iterator[bytes]:
    """Lines of a file or pipe, plain or packed (gzip, bzip2, zstd), as bytes.

    Raises QuestionFileError when it is missing, a folder, a device, damaged or of zero bytes, when a line has more than
    MAX_LINE bytes, when a packed file expands to more than `max_bytes`, and when the file changes while it is read.
    """
    with question_stream(path) as stream:
        yield from _bounded(path, stream)


@contextlib.contextmanager
def question_stream(path: Path) -> Iterator[Stream]:
    """The unpacked bytes of a file or pipe.  Raises QuestionFileError as `read_lines` does, but for long lines."""
    regular_file(path, QuestionFileError, MAX_PIPE)
    if path.is_dir():
        raise QuestionFileError(f"{path} is a directory; name the question file in it")
    if not path.exists():
        near = nearest(path.name, (item.name for item in path.parent.iterdir())) if path.parent.is_dir() else ""
        raise QuestionFileError(f"question file {path} does not exist{near or '; check the path'}")
    try:
        with unchanged([path], QuestionFileError), _opened(path) as stream:
            yield stream
    except Damaged as fault:
        raise QuestionFileError(f"{path} is damaged or cut off (it {fault}); fetch it again") from None
    except OSError as fault:
        raise QuestionFileError(f"{path} cannot be read: {fault.strerror or fault}") from None


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[Stream]:
    if path.suffix == ".gz" and path.is_file():
        with path.open("rb") as raw:
            if not raw.read(2).startswith(b"\x1f\x8b"):
                raise Damaged("is not gzip")
    stream = open_stream(path, QuestionFileError, MAX_PIPE)
    try:
        yield LineFeeds(stream)
    finally:
        stream.close()


def max_bytes(packed: int) -> int:
    """Bytes that a packed file of a size may expand to.  Text of questions shrinks to a tenth, rarely to a hundredth.

    >>> max_bytes(1_500_000) // 2**20
    143
    """
    return max(SMALL, EXPANSION * packed)


def _bounded(path: Path, stream: Stream) -> Iterator[bytes]:
    """The lines of a stream; what is read and not yet given out is never longer than a line may be."""
    packed = regular_file(path).stat().st_size
    most, total, number, rest = max_bytes(packed), 0, 0, b""
    while data := stream.read(_BLOCK):
        if not total:
            refuse_zeros(path, data, QuestionFileError)
            refuse_other_files(path, data, QuestionFileError)
        total += len(data)
        if total > most and total > packed:
            raise QuestionFileError(
                f"{path} has {packed:,} bytes and expands to more than {most:,}, the most that is read of a packed "
                "question file of its size; if that is what you mean, unpack it and name the unpacked file"
            )
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            number += 1
            if len(line) > MAX_LINE:
                raise _too_long(path, number)
            yield line + b"\n"
        if len(rest) > MAX_LINE:
            raise _too_long(path, number + 1)
    if rest:
        yield rest


def _too_long(path: Path, number: int) -> QuestionFileError:
    return QuestionFileError(
        f"{path} line {number:,} has more than {MAX_LINE:,} bytes, the most that a line may have; write one question a "
        "line"
    )


def canonical(value: Mapping[str, Any], *, gold: bool = True) -> RawQuestion:
    """A raw question with every field present, texts stripped and one form for each; ValueError names the fault.

    relation_path becomes `relation_paths`, a list of lists; answer_aliases a list of lists in the order of answers; a
    turn of the dialogue a list of role and text.  `sparql` and `generalization` are there only where they are given,
    `without_form` only where a query is given that no form writes: the reason.  `answerable` is there only where it is
    false, with `reason` and `missing` where they are given.
    """
    row: RawQuestion = {"id": read_id(value), "question": read_text(value, "question")}
    row["topic_entities"] = read_texts(value, "topic_entities", required=gold)
    answers = read_list(value, "answers", required=gold)
    row["answers"] = list(dict.fromkeys(read_literal("answers", item) for item in answers))
    truths = bool(answers) and all(isinstance(item, bool) for item in answers)
    row["answer_type"] = read_choice(value, "answer_type", ANSWER_TYPES) or ("yes/no" if truths else None)
    row["relation_paths"] = read_paths(value)
    row["split"] = read_choice(value, "split", SPLITS)
    for name in ("complexity", "language", "reference"):
        row[name] = None if value.get(name) is None else read_text(value, name)
    row["s_expression"], paths, without_form = read_form(value, row["topic_entities"])
    row["relation_paths"] = row["relation_paths"] or paths
    if without_form is not None:
        row["without_form"] = without_form
    query = value.get("sparql") or value.get("sparql_query")
    if isinstance(query, str) and query.strip():
        row["sparql"] = query.strip()
    if value.get("generalization") is not None:
        row["generalization"] = read_choice(value, "generalization", GENERALIZATION)
    if not read_flag(value, "answerable"):
        row["answerable"] = False
        row.update({name: read_text(value, name) for name in ("reason", "missing") if value.get(name) is not None})
    hops = value.get("hops")
    if hops is not None and (isinstance(hops, bool) or not isinstance(hops, int) or not 0 <= hops < 100):
        raise ValueError(f"field 'hops' must be a whole number, but it is {hops!r}")
    row["hops"] = hops
    row["answer_aliases"] = read_aliases(value, row["answers"])
    row["level"] = read_choice(value, "level", LEVELS)
    row["dialogue"] = read_dialogue(value)
    row["gold_triples"] = read_triples(value)
    return row


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")
