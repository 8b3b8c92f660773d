"""The tables of docs/serving.md."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.conditions import commit_name
from benchmarks.tables import MADE, Rows, Table, table, text


def speed(found: Mapping[str, Any]) -> str:
    """Speed, memory, and a change of champion."""
    graph = found["graph"]
    rows = []
    for name, own in found["speed"].items():
        alone = own["in_process"]
        rows.append((name, "in process", "1", f"{alone['p50_ms']:.1f}", f"{alone['p99_ms']:.1f}", "–", "–", "–"))
        for workers, served in own["served"].items():
            for clients, one in served["clients"].items():
                rows.append(
                    (name, f"{workers} worker{'s' * (workers != '1')}", clients, f"{one['p50_ms']:.1f}",
                     f"{one['p99_ms']:.1f}", f"{one['per_second']:.1f}", f"{served['ready_seconds']:.1f}",
                     f"{one['failed']} of {one['requests']}")
                )  # fmt: skip
    lines = [
        f"{text(MADE, found)} Graph `{graph['name']}`, {graph['triples']:,} triples; {graph['questions']} dev "
        "questions in turn; clients and server share the cores.",
        "",
        table(
            ("answerer", "asked", "clients", "p50 ms", "p99 ms", "per second", "ready after s", "failed"),
            rows,
            right=True,
        ).strip(),
    ]
    over = [f"`{name}` {own['overhead_ms']:+.1f} ms" for name, own in found["speed"].items() if "overhead_ms" in own]
    lines += ["", f"What HTTP adds to one question at the median, one client: {', '.join(over)}."]
    steps = [
        (name, step, f"{one['p50_ms']:.1f}", f"{one['p99_ms']:.1f}")
        for name, own in found["speed"].items()
        for step, one in own["in_process"]["stages"].items()
    ]
    lines += ["", "One question in process, by step:", ""]
    lines += [table(("answerer", "step", "p50 ms", "p99 ms"), steps, right=True)]
    if "memory" in found:
        one = found["memory"]
        lines.append(
            f"Memory over {one['requests']:,} requests of 8 clients{_of(one, graph)}: "
            f"{one['resident_mb'][0]:,.0f} MB after warming up, "
            f"{one['resident_mb'][-1]:,.0f} MB at the end ({100 * one['growth']:+.1f} %; in the second half "
            f"{100 * one['growth_of_second_half']:+.1f} %)."
        )
    if "swap" in found:
        one = found["swap"]
        lines.append(
            f"The champion changed {one['swaps']} times under {one['requests']:,} requests of 8 clients"
            f"{_of(one, graph)}: "
            f"{one['failed']} failed; p50 {one['p50_ms']:.0f} ms, the longest {one['longest_ms']:,.0f} ms."
        )
    return "\n".join(lines) + "\n"


def _of(part: Mapping[str, Any], graph: Mapping[str, Any]) -> str:
    """Which graph and commit a part was measured on, where it is another graph."""
    own = part["graph"]
    at = f" (commit {commit_name(part['commit'])})" if "commit" in part else ""
    return f", over `{own['name']}` of {own['triples']:,} triples{at}" if own != graph else ""


LOOP = (
    MADE + " 200 lines of invented companies; three answers are corrected and confirmed, then `kgqa refresh` "
    "({seconds[refresh]:,.0f} s; the first run {seconds[run]:,.0f} s). Decision: {refresh[champion]}.",
    Rows("scores", "answered exactly | before | after", "{key} | {before} | {after}", right=True),
)


def _costliest(found: Mapping[str, Any]) -> str:
    """The six costliest shapes, each at its costliest length."""
    costliest: dict[str, Mapping[str, Any]] = {}
    for question in sorted(found["alone"], key=lambda one: -one["seconds"]):
        costliest.setdefault(question["shape"], question)
    rows = [(one["shape"], f"{one['length']:,}", f"{one['seconds']:.2f}") for one in [*costliest.values()][:6]]
    return table(("shape", "characters", "seconds of CPU"), rows)


LONG = (
    MADE + " Four clients ask usual questions, with .2 s between an answer and the next question; they wait, in "
    "seconds, while others ask the three costliest shapes one after the other; clients and server share the cores. "
    "*First*: the longest wait when the four clients asked each question for the first time.",
    Rows(
        "beside",
        "others | questions | median | p99 | longest | of the others | first",
        "{costly_clients} | {questions} | {median:.2f} | {p99:.2f} | {longest:.2f} | {costly_questions} | {first:.2f}",
    ),
    "The costliest shapes, each at its costliest length, in a process of its own:",
    _costliest,
)

CLIENTS = (
    MADE + " `kgqa ask` as a whole process over `{graph}`, median of {ask[rounds]}: {ask[with_server]:.2f} s with a "
    "server, {ask[without]:.1f} s without. What the OpenAI client, the official MCP client over both transports, HTTP "
    "and the command line get: [transcripts](../benchmarks/results/serve_clients.md).",
)


def faults(found: Mapping[str, Any]) -> str:
    """What each client got."""
    rows = [
        (one["done"], one["got"].replace("|", "\\|").replace("<", "&lt;"), f"{one['seconds']:.1f}", one["beside"])
        for one in found["rows"]
    ]
    leaks = [f"{name} {one['before']:g} → {one['after']:g}" for name, one in found["leaks"].items()]
    return (
        f"{text(MADE, found)} *Beside*: what a good question got meanwhile and after.\n\n"
        + table(("client, or what was wrong", "got", "after s", "beside"), rows, right=True).replace(
            "|---|---:|", "|---|---|", 1
        )
        + f"\nThe server before and after 200 rounds of clients that go away in the middle: {', '.join(leaks)}.\n"
    )


TABLES = (
    Table("serve", "docs/serving.md", "serve", speed),
    Table("serve_clients", "docs/serving.md", "serve_clients", CLIENTS),
    Table("long_questions", "docs/serving.md", "long_questions", LONG),
    Table("serve_faults", "docs/serving.md", "serve_faults", faults),
    Table("feedback_loop", "docs/serving.md", "feedback_loop", LOOP),
)
