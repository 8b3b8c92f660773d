"""The files of a DKG: which there are, what they hold, and the digest over them.

ptr.npy: uint32 or int64, where each row begins, up to the last one that is not empty; the end of the edges last.
rel.npy: uint16 or uint32 [edges].  tail.npy: int32 [edges].  forward.npy: see `lookup_kernels`.
meta.json: counts, literals and digest.  relations.json: keys and names of the forward relations, read on first use.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgqa_core.dkg import lookup_kernels
from kgqa_core.dkg.build import Ranges, row_dtype
from kgqa_core.errors import StorageError

Array = NDArray[Any]
RELATIONS = "relations.json"
_HASHED = 1 << 26


def compact(ptr: Array) -> Array:
    """ptr [E + 1] in its smallest form: empty rows at the end dropped, numbers as narrow as they go."""
    edges = int(ptr[-1])
    used = int(np.searchsorted(ptr, ptr.dtype.type(edges), side="left"))
    return np.ascontiguousarray(ptr[: used + 1], dtype=row_dtype(edges))


def forward_blocks(rows: Array, rel: Array, relations: int) -> Array:
    """Forward edges before each block of rows, as narrow as they go."""
    counts: Array = lookup_kernels.forward_counts(rows, rel, relations, lookup_kernels.BLOCK)
    return counts.astype(row_dtype(int(counts[-1])))


@dataclass(frozen=True)
class DkgSchema:
    """What a DKG states beside its edges.

    keys, names: of the forward relations.  literals: ranges [start, stop) of ids that are literals.
    """

    keys: Sequence[str]
    names: Sequence[str]
    literals: Ranges


def make_meta(rows: Array, rel: Array, tail: Array, entities: int, triples: int, schema: DkgSchema) -> dict[str, Any]:
    """Counts, literals, keys and names of the forward relations, and the digest over arrays and keys."""
    sha = hashlib.sha256()
    for array in (rows, rel, tail):
        sha.update(f"{array.dtype.str}{array.shape}".encode())
        for start in range(0, len(array), _HASHED):
            part: Any = np.ascontiguousarray(array[start : start + _HASHED]).view(np.uint8)
            sha.update(part)
    sha.update(json.dumps([entities, list(schema.keys)]).encode())
    return {
        "entities": entities,
        "relations": len(schema.keys),
        "triples": int(triples),
        "edges": len(tail),
        "literals": [[int(start), int(stop)] for start, stop in schema.literals if stop > start],
        "relation_keys": list(schema.keys),
        "relation_names": list(schema.names),
        "digest": sha.hexdigest(),
    }


def save(out: Path, arrays: dict[str, Array], meta: dict[str, Any]) -> None:
    """Writes arrays and meta into `out`.  Raises StorageError."""
    relations = {"keys": meta["relation_keys"], "names": meta["relation_names"]}
    short = {name: value for name, value in meta.items() if name not in ("relation_keys", "relation_names")}
    try:
        for name, array in arrays.items():
            np.save(out / f"{name}.npy", array, allow_pickle=False)
        for file, value in ((RELATIONS, relations), ("meta.json", short)):
            (out / file).write_text(json.dumps(value, sort_keys=True, ensure_ascii=False), encoding="utf-8")
    except OSError as fault:
        raise cannot_write(out, fault) from None


def cannot_write(out: Path, fault: OSError) -> StorageError:
    """The error of a folder that cannot be written to."""
    return StorageError(f"the DKG cannot be written to {out}: {fault}; free space or choose another --home")
