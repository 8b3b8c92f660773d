"""A process of its own that writes the sheets of a workbook to standard output, each a line of JSON and a CSV.

A workbook of some kilobytes can ask its reader for any amount of memory, which ends the process that it runs in.  The
lines have `name`, `visible`, `errors`, the cells left out that hold one, and `size`, the bytes of the CSV; a line with
`fault` says why there is none.
"""

from __future__ import annotations

import io
import json
import re
import resource
import sys
from collections import defaultdict

MEMORY = 4 << 30
"""Bytes of address space that reading a workbook may take."""

SECONDS = 600
"""Processor seconds that it may take."""

_MIDNIGHT = r"^(\d{4}-\d{2}-\d{2}) 00:00:00$"
_TIME = r"^(?:1899-12-3[01]|1904-01-01) (\d{2}:\d{2}:\d{2}(?:\.\d+)?)$"
_MOMENT = r"^(\d{4}-\d{2}-\d{2}) (\d{2}:\d{2}:\d{2}(?:\.\d+)?)$"
_LENGTH, _HOURS = re.compile(r'DurationIso\("(.*)"\)'), re.compile(r"PT(\d+)H(\d\d)M(\d\d(?:\.\d+)?)S")
_ERROR = r"^#(?:DIV/0!|N/A|NAME\?|NULL!|NUM!|REF!|VALUE!|SPILL!|CALC!)$"


def write_sheets(path: str) -> None:
    """Writes the sheets of a workbook: values as text, dates as `2020-06-18`, rows without a value left out."""
    import fastexcel
    import polars as pl

    out = sys.stdout.buffer
    try:
        with open(path, "rb") as stream:
            workbook = fastexcel.read_excel(stream.read())
        for name in workbook.sheet_names:
            sheet = workbook.load_sheet(name, header_row=None, dtypes="string")
            text = pl.all().cast(pl.String).str.replace_all("\r\n?", "\n").str.replace_all("\0", "", literal=True)
            for pattern, value in ((_MIDNIGHT, "$1"), (_TIME, "$1"), (_MOMENT, "${1}T$2")):
                text = text.str.replace(pattern, value)
            table, errors = io.BytesIO(), 0
            if sheet.width and sheet.height:
                batch, faults = sheet.to_arrow_with_errors()
                times: dict[int, dict[int, str]] = defaultdict(dict)
                for cell in faults.errors if faults is not None else ():
                    if length := _LENGTH.search(cell.detail):
                        times[cell.position[1]][cell.position[0]] = _HOURS.sub(r"\1:\2:\3", length[1])
                    errors += length is None
                columns = [pl.Series(str(n), batch.column(n)) for n in range(batch.num_columns)]
                columns = [one.scatter([*times[n]], [*times[n].values()]) for n, one in enumerate(columns)]
                frame = pl.DataFrame(columns).select(text)
                errors += int(frame.select(pl.all().str.contains(_ERROR).sum()).sum_horizontal().sum())
                frame = frame.with_columns(pl.all().str.replace(_ERROR, ""))
                frame = frame.filter(~pl.all_horizontal(pl.all().fill_null("") == ""))
                frame.write_csv(table, include_header=False)
            data = table.getvalue() if table.getvalue().strip() else b""
            header = {"name": name, "visible": sheet.visible == "visible", "errors": errors, "size": len(data)}
            out.write(json.dumps(header).encode() + b"\n" + data)
    except (fastexcel.FastExcelError, pl.exceptions.PolarsError, OSError) as fault:
        out.write(json.dumps({"fault": str(fault).splitlines()[0]}).encode() + b"\n")


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    write_sheets(sys.argv[1])
