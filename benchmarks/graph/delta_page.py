"""The table of updates in docs/graphs.md, as `make bench-docs` writes it from benchmarks/results/delta.json."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.conditions import commit_name
from benchmarks.tables import table

NAMES = {
    "build": "`kg build`",
    "update, files": "`kg update --added --removed`",
    "update, new dump": "`kg update` with the new dump",
    "DKG": "`kg dkg`",
    "DKG, updated": "`kg dkg --old-dkg`",
}


def figures(found: Mapping[str, Any]) -> str:
    """The text between the marks."""
    made, machine = found["conditions"], found["machine"]
    rows = []
    for size in found["sizes"]:
        for name, text in NAMES.items():
            one = size["steps"][name]
            compared = one["of"] != name
            rows.append(
                (
                    f"{size['lines']:,}", text, f"{one['seconds']:.2f}", f"{one['process_seconds']:.2f}",
                    f"{one['cpu_seconds']:.2f}", f"{one['peak_mb']:,.0f}",
                    f"{one['share']:.2f}" if compared else "–", f"{one['cpu_share']:.2f}" if compared else "–",
                )
            )  # fmt: skip
    loads = " and ".join(f"{size['load']:.1f}" for size in found["sizes"])
    text = (
        f"{made['date']}, commit {commit_name(made['commit'])}, seed {made['seed']}, {machine['cores']} cores "
        f"({machine['cpu']}), load {loads}, memory limit {found['memory_limit']}; "
        f"medians of {found['sizes'][0]['rounds']}, {found['share']:.1%} of the lines changed. Seconds of the "
        "command's work, of the whole process, and of the processor; *share* of making it anew, by work and by "
        "processor time of the process.\n\n"
    )
    columns = ("lines", "command", "work s", "process s", "cpu s", "peak MB", "share", "cpu share")
    return text + table(columns, rows, right=True)
