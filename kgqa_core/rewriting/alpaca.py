"""Corpora in the Alpaca form: a list of `{"instruction", "input", "output"}`, as Wu et al. (2023) published theirs.

The triples stand in the instruction, `(head, relation, tail) (head, relation, tail)`, with names that may hold commas
and brackets.  They are parsed where that can be done; a pair whose triples cannot be is kept with its text alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kgqa_core.errors import InputError
from kgqa_core.input_files import read_document
from kgqa_core.prompts import REWRITE, REWRITE_CHINESE
from kgqa_core.spool import regular_file

Named = tuple[str, str, str]

TRAIN, DEV = ("train.json", "train/train.json"), ("dev.json", "dev/dev.json")
"""Where a folder may have its files."""

_BETWEEN = re.compile(r"\)[\s,;，、]*\(")
_RELATION = re.compile(r"[a-z0-9_]+(?:\.[a-z0-9_]+)+|[a-z]+(?:_[a-z]+)+")
_HAN = re.compile(r"[\u4e00-\u9fff]")


@dataclass(frozen=True, slots=True)
class InstructionPair:
    """One row of a file.  source: `file:number`, from 1.  fault: why it cannot be used, or None."""

    source: str
    split: str | None
    instruction: str = ""
    text: str = ""
    triple_text: str = ""
    named: tuple[Named, ...] = ()
    fault: str | None = None

    @property
    def language(self) -> str:
        """`zh` where the instruction is Chinese, else `en`."""
        return "zh" if _HAN.search(self.instruction.replace(self.triple_text, "")) else "en"


def read_pairs(path: Path) -> list[InstructionPair]:
    """All rows of a file, or of a folder's train.json and dev.json, good and bad, in order.

    A folder with both gives each row its split; where there is one file, splits are None.  Raises InputError when
    there is no such file, when one is no list of rows, or when no row is good.
    """
    path = path.expanduser()
    files = _files(path)
    pairs: list[InstructionPair] = []
    for file, split in files:
        pairs += [_pair(row, f"{file.name}:{number}", split) for number, row in enumerate(_rows(file), start=1)]
    good = [index for index, pair in enumerate(pairs) if pair.fault is None]
    if not good:
        why = pairs[0].fault if pairs else "it is empty"
        raise InputError(
            f"{path} has no usable pair of {len(pairs)} ({why}); a row needs an instruction with triples and an "
            'output, {"instruction": "… (head, relation, tail) …", "output": "…"}'
        )
    parsed = parse_all([pairs[index].triple_text for index in good])
    for index, named in zip(good, parsed, strict=True):
        pairs[index] = replace(pairs[index], named=named)
    return pairs


def triples_of(instruction: str) -> str:
    """The triple-form text in an instruction: T1 without its words, else from the first bracket to the last.

    >>> triples_of("Please tell: (Paris, capital of, France).")
    '(Paris, capital of, France)'
    """
    for wording in (REWRITE, REWRITE_CHINESE):
        before, after = wording.split("{triples}")
        if instruction.startswith(before) and instruction.endswith(after):
            return instruction[len(before) : len(instruction) - len(after)].strip()
    start, end = instruction.find("("), instruction.rfind(")")
    return instruction[start : end + 1] if 0 <= start < end else ""


def parse_all(texts: Iterable[str]) -> list[tuple[Named, ...]]:
    """The triples of many texts, empty for one that cannot be parsed.

    Relations are learnt from the triples that can be read in one way only; a name with commas is then cut where a known
    relation stands.
    """
    chunks = [_chunks(text) for text in texts]
    plain = [parts for each in chunks for chunk in each if len(parts := chunk.split(", ")) == 3]
    known = {parts[1] for parts in plain if all(map(str.strip, parts))}
    results = []
    for each in chunks:
        named = [_triple(chunk, known) for chunk in each]
        results.append(tuple(triple for triple in named if triple is not None) if None not in named else ())
    return results


def _chunks(text: str) -> list[str]:
    """The insides of the triples of a text: cut where brackets balance, else at `) (`, pieces without commas joined."""
    text = text.strip()
    if not (text.startswith("(") and text.endswith(")")):
        return []
    depth, start, results = 0, 0, []
    for index, character in enumerate(text):
        if character == "(":
            if depth == 0:
                start = index + 1
            depth += 1
        elif character == ")":
            depth -= 1
            if depth == 0:
                results.append(text[start:index])
            if depth < 0:
                break
    if depth == 0 and all(chunk.count(", ") >= 2 for chunk in results):
        return results
    results = []
    for piece in _BETWEEN.split(text[1:-1]):
        if results and (piece.count(", ") < 2 or results[-1].count(", ") < 2):
            results[-1] += ") (" + piece
        else:
            results.append(piece)
    return results


def _triple(chunk: str, known: set[str]) -> Named | None:
    parts = chunk.split(", ")
    if len(parts) < 3:
        return None
    inner = range(1, len(parts) - 1)
    for fits in (known.__contains__, lambda part: _RELATION.fullmatch(part) is not None):
        indices = [index for index in inner if fits(parts[index])]
        if indices:
            break
    else:
        indices = [1] if len(parts) == 3 else []
    if not indices:
        return None
    # A relation looks like `film.film.directed_by` more often than a part of a name does.
    index = next((index for index in indices if _RELATION.fullmatch(parts[index])), indices[0])
    head, tail = ", ".join(parts[:index]).strip(), ", ".join(parts[index + 1 :]).strip()
    return (head, parts[index].strip(), tail) if head and tail and parts[index].strip() else None


def _files(path: Path) -> list[tuple[Path, str | None]]:
    if regular_file(path).is_file():
        return [(path, None)]
    train = next((path / name for name in TRAIN if (path / name).is_file()), None)
    dev = next((path / name for name in DEV if (path / name).is_file()), None)
    if train and dev:
        return [(train, "train"), (dev, "dev")]
    one = train or dev
    if one is None:
        raise InputError(
            f"corpus.alpaca_file {path} is neither a file nor a folder with train.json or dev.json; give an Alpaca "
            "file, a JSON list of instruction and output"
        )
    return [(one, None)]


def _rows(file: Path) -> list[Any]:
    text = read_document(file, needs="a list of rows with instruction and output")
    try:
        rows = [json.loads(line) for line in text.splitlines() if line.strip()] if file.suffix == ".jsonl" else None
        rows = json.loads(text) if rows is None else rows
    except (ValueError, RecursionError) as fault:
        raise InputError(
            f"{file} cannot be read as JSON ({fault}); it must be a list of instruction and output"
        ) from None
    if not isinstance(rows, list):
        raise InputError(f"{file} holds {type(rows).__name__} instead of a list of rows with instruction and output")
    return rows


def _pair(row: Any, source: str, split: str | None) -> InstructionPair:
    if not isinstance(row, dict):
        return InstructionPair(source, split, fault="not an object")
    cells = [row.get(name) for name in ("instruction", "input", "output")]
    if not isinstance(cells[0], str) or not isinstance(cells[2], str):
        return InstructionPair(source, split, fault="no instruction or no output")
    extra = cells[1].strip() if isinstance(cells[1], str) else ""
    instruction = " ".join(f"{cells[0].strip()} {extra}".split())
    text = " ".join(cells[2].split())
    triples = triples_of(instruction)
    fault = None if text else "empty output"
    fault = "no triples in the instruction" if not triples else fault
    return InstructionPair(source, split, instruction, text, triples, fault=fault)
