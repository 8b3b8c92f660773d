"""What handing tables and memory to DuckDB takes."""

from __future__ import annotations

import re

import pyarrow as pa

from kgqa_core.errors import KgInputError

_UNITS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}
_UNITS |= {"kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40}


def memory_bytes(text: str) -> int:
    """Bytes of a size such as `4GB` or `512MiB`.  Raises KgInputError."""
    match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)\s*", text)
    if match is None or match[2].lower() not in _UNITS or float(match[1]) <= 0:
        raise KgInputError(f"kg.memory_limit is {text!r}; give a size such as 4GB or 512MB")
    return int(float(match[1]) * _UNITS[match[2].lower()])


def in_pieces(table: pa.Table) -> pa.Table:
    """The table in batches as large as a row group of DuckDB, which then takes them on several threads, in order."""
    return pa.Table.from_batches(table.to_batches(max_chunksize=122_880), table.schema)
