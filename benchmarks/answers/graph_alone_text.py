"""What graph_alone.py writes: output of commands trimmed, answers read from it, and the transcript."""

from __future__ import annotations

import re
import shlex
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

SHOWN = (
    "Note ", "Table 1 · Exact", "Table 1 · auto", "Table 1 · builtin", "Table 2 ", "Exact by hops", "Answered by ",
)  # fmt: skip
"""First words of what is shown of a run; its stages are a table of their own."""
DRAWN = " ┏┃┡│├└┌"
"""What a line of a table begins with."""
PROOF_ROWS = 6
"""Triples of a proof that are shown."""
AFTER_ANSWER = re.compile(r"\s+(?:confidence (?:\d\.\d\d|not calibrated), )?(?:about \S|\d+\.\d+ s\b)")


def blocks(text: str, wrapped: bool = False) -> list[list[str]]:
    """Lines of an output: each line that is not of a table begins a block, and a table belongs to the line above.

    wrapped: a line that begins with a small letter goes on with the title above, as titles of narrow tables do.
    """
    found: list[list[str]] = []
    for line in map(str.rstrip, text.splitlines()):
        if not line:
            continue
        if found and (line[0] in DRAWN or (wrapped and line[0].islower())):
            found[-1].append(line)
        else:
            found.append([line])
    return found


def trim_run(text: str) -> str:
    """The scores of what `kgqa run` prints; `…` stands for other tables and links."""
    lines: list[str] = []
    for block in blocks(text, wrapped=True):
        if block[0].startswith(SHOWN):
            lines += block
        elif lines[-1:] != ["…"]:
            lines.append("…")
    return "\n".join(lines)


def trim_ask(text: str) -> str:
    """What `kgqa ask` prints; of a long proof the first triples."""
    lines: list[str] = []
    for block in blocks(text):
        rows = [line for line in block if line[0] == "│"]
        if block[0].startswith("Proof") and len(rows) > PROOF_ROWS:
            cut = [f"│ … {len(rows) - PROOF_ROWS} lines more"]
            block = [*block[:2], *rows[:PROOF_ROWS], *cut, block[-1]]
        lines += block
    return "\n".join(lines)


def answers_in(printed: str) -> list[str] | None:
    """The answers that `kgqa ask` printed; nothing where it declined."""
    head = []
    for block in blocks(printed):
        if block[0].startswith(("computed ", "by (", "Proof", "Facts", "no form ")):
            break
        head.append(block[0])
    text = " ".join(head)
    if any(words in text for words in ("not in this graph: ", "I did not understand ", "I am not sure ")):
        return None
    text = re.sub(r"^linked .*\((?:ρ|link score) \d\.\d\d\)\s+", "", text)
    return AFTER_ANSWER.split(text, maxsplit=1)[0].split(", ")


def as_expected(printed: str, expected: Sequence[str]) -> bool:
    """Whether an answer is the complete expected one, or was declined where none is expected; cases are alike."""
    found = answers_in(printed)
    if found is None or not expected:
        return found is None and not expected
    wanted = ", ".join(expected).split(", ")  # as `found` is divided, also within a name
    return sorted(map(str.casefold, found)) == sorted(map(str.casefold, wanted))


def without_paths(text: str, places: Mapping[str, str]) -> str:
    """The text with folders of this machine under other names, the longest first."""
    for path in sorted(places, key=len, reverse=True):
        text = text.replace(path, places[path])
    return text


def command(words: Iterable[str]) -> str:
    """A command line as it is typed; a question stands in double quotes where these hold it as it is."""
    return "$ " + " ".join(
        f'"{word}"' if " " in word and not re.search(r'["$`\\!]', word) else shlex.quote(word) for word in words
    )


def cell(text: str) -> str:
    """Text in a cell of a markdown table."""
    return text.replace("|", "\\|")


def conditions_line(conditions: Mapping[str, Any]) -> str:
    """What a transcript was made under, as a sentence."""
    threads = conditions["threads"] or "as many as cores"
    return (
        f"Commit {conditions['commit']}, {conditions['date']}, {conditions['cores']} cores, "
        f"threads of a process: {threads}, seed {conditions['seed']}."
    )


def transcript(title: str, entry: Mapping[str, Any]) -> str:
    """The markdown of one graph: conditions, the run with its scores and times, each question with its answer."""
    run, asks = entry["run"], entry["asks"]
    cached = sum(stage["status"] == "cached" for stage in run["stages"])
    right = sum(ask["as_expected"] for ask in asks)
    own = f" and {entry['few']} own questions" if entry.get("few") else " alone"
    lines = [
        f"# `{title}`: from a graph{own} to answers",
        "",
        f"{entry['description']} {', '.join(f'`{name}` ({n:,} lines)' for name, n in entry['files'].items())}.",
        "",
        f"{conditions_line(entry['conditions'])} "
        "Each command is a process of its own; output is trimmed, `…` stands for what is left out.",
        "",
        "| | seconds |",
        "|---|---:|",
        f"| `kgqa run`, from the files to a system that answers | {run['seconds']:,.1f} |",
        f"| of that in stages ({len(run['stages'])}, {cached} cached) | "
        f"{sum(stage['seconds'] for stage in run['stages']):,.1f} |",
        f"| `kgqa ask`, one question in a new process, median of {len(asks)} | "
        f"{statistics.median(ask['seconds'] for ask in asks):,.1f} |",
        "",
        f"{right} of {len(asks)} questions are answered, or declined, as expected.",
        "",
        "## The run",
        "",
        *_console(run["command"], run["printed"]),
        "",
        "| stage | status | seconds |",
        "|---|---|---:|",
        *(f"| {cell(stage['title'])} | {stage['status']} | {stage['seconds']:,.1f} |" for stage in run["stages"]),
        "",
        "## Questions",
    ]
    for ask in asks:
        wanted = ", ".join(ask["expected"]) or "not in this graph"
        lines += ["", *_console(ask["command"], ask["printed"]), ""]
        lines.append(
            f"{'As expected' if ask['as_expected'] else f'**Not as expected**: {wanted}'}; {ask['seconds']:.1f} s."
        )
    return "\n".join(lines) + "\n"


def _console(typed: str, printed: str) -> list[str]:
    return ["```console", typed, *printed.splitlines(), "```"]
