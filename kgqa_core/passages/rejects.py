"""What of a corpus had to be rejected, written in blocks: a corpus of the wrong format has as many as lines."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from kgqa_core.passages.corpus import Reject

FILE = "rejects.parquet"
ROWS = 50_000
"""Rejects held at once."""
SHOWN = 3

_SCHEMA = pa.schema({"file": pa.string(), "line": pa.int64(), "reason": pa.string(), "text": pa.string()})


class Rejects:
    """Appends rejects to the table of a folder, until it is closed.  count: so many so far.  first: the first few."""

    def __init__(self, folder: Path) -> None:
        self.count, self.first = 0, list[Reject]()
        self._rows: list[Reject] = []
        self._table = pq.ParquetWriter(folder / FILE, _SCHEMA, compression="zstd", write_statistics=False)

    def add(self, reject: Reject) -> None:
        """One more."""
        self.count += 1
        if len(self.first) < SHOWN:
            self.first.append(reject)
        self._rows.append(reject)
        if len(self._rows) == ROWS:
            self._flush()

    def close(self) -> None:
        """Writes what is held; there are no more."""
        self._flush()
        self._table.close()

    def _flush(self) -> None:
        columns = {name: [getattr(reject, name) for reject in self._rows] for name in _SCHEMA.names}
        self._table.write_table(pa.table(columns, schema=_SCHEMA))
        self._rows = []
