"""The tables of docs/performance.md, and what README.md and docs/training_speed.md say of times."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.tables import MADE, Each, Given, Rows, Table, late, table, text

INGEST = (
    "## N-Triples to sorted, dictionary-encoded tables",
    "`benchmarks/graph/ingest.py`, {machine[cores]} cores, Python {machine[python]}, load {machine[load]:.1f} at the "
    "start, memory limit {memory_limit}, seed {seed}. Synthetic, realistic N-Triples; `kgqa` makes the tables that the "
    "others make, `kgqa build` the whole graph store with names, types, numbers and dates. rdflib and pyoxigraph read "
    "a slice; rates are compared.",
    Each(
        "sizes",
        (
            "**{lines:,} lines**, {bytes:/1e6 ,.0f} MB, median of {rounds} round(s)",
            Rows(
                "roads",
                "road | lines/s | CPU seconds | peak MB | kgqa is faster by | by CPU",
                "{key} | {lines_per_second:,.0f} | {cpu_seconds:.2f} | {peak_mb:,.0f} | {ours_is_faster_by:.2f}× | "
                "{ours_needs_less_cpu_by:.2f}×",
            ),
        ),
    ),
)

WIKIDATA_JSON = (
    "## Wikidata JSON to tables",
    "`benchmarks/graph/wikidata_json.py`, {machine}, load {load[0]:.1f}; {entities:,} entities, {megabytes:,.0f} MB, "
    "{statements:,} statements; median of {rounds} rounds. `json` is a `json.loads` loop that extracts the same. gz "
    "against plain: {gzip_against_plain:.2f}×.",
    Rows(
        "roads",
        "road | MB/s | of the json loop's speed | by CPU",
        "{key} | {megabytes_a_second:,.0f} | {times_json:.1f}× | {times_json_processor:.1f}×",
    ),
)

SCALE = (
    "## What size costs",
    "`benchmarks/graph/dkg_scale.py`, {cores} cores, torch {torch}, seed {seed}, {rounds} rounds; one question at a "
    "time, no relation skipped.",
    Rows(
        "graphs",
        "edges | entities | largest degree | bytes/edge | open, warm | open, from disk",
        "{edges:,} | {entities:,} | {largest_degree:,} | {bytes_per_edge:.2f} | {opening[warm_ms]:.2f} ms | "
        "{opening[from_disk_ms]:.2f} ms",
    ),
    Rows(
        "latency",
        "edges | hops | seeds | budget | p50 ms | p99 ms | CPU p50 | CPU p99 | p50 to smallest | cut | cold ms",
        "{edges:,} | {hops} | {seeds} | {budget:none ,} | {p50_ms:.3f} | {p99_ms:.3f} | {cpu_p50_ms:.3f} | "
        "{cpu_p99_ms:.3f} | {ratio_p50:.2f}× | {cut:,} | {cold[median_ms]:.1f}",
    ),
    Given(
        "export",
        (
            Rows(
                "export",
                "export of | triples | edges | seconds | CPU | bytes/edge | peak MB",
                "{graph} | {triples:,} | {edges:,} | {seconds:.2f} | {cpu_seconds:.2f} | {bytes_per_edge} | "
                "{peak_mb:,.0f}",
            ),
        ),
    ),
    Given(
        "last_hop",
        (
            Rows(
                "last_hop",
                "last hop, hub of edges | batch | lazy ms | expanded ms | ratio",
                "{hub_edges:,} | {batch} | {ms[lazy]:.3f} | {ms[expanded]:.1f} | {ratio:.0f}×",
            ),
        ),
    ),
)

DKG_PEERS = (
    "## Following two hops without gradients, against libraries of sparse matrices",
    "`benchmarks/graph/dkg_peers.py`, {conditions[cores]} cores, {conditions[threads]} threads, commit "
    "{conditions[commit]:commit}, seed {conditions[seed]}, medians of {rounds} rounds; {packages:pairs}. Entities are "
    "drawn in proportion to degree; *edges*: followed by a question in both hops.",
    Rows(
        "graphs/*/ms",
        "graph | entities | relations | edges | road | ms/question | against the kernel",
        "{name} | {entities:,} | {relations} | {followed:,.0f} | {key} | {row:.4f} | {ratio[@key]:,.1f}×",
        right=True,
    ),
)

WAITED = (
    "## What a user waits for",
    "`benchmarks/operation/times.py`, commit {conditions[commit]:commit}, {conditions[cores]} cores of {machine}, "
    "{conditions[date]}; a product of float32 matrices of 1024 × 1024 takes {product_ms:.1f} ms here. *demo*: what the "
    "README starts; *busy*: the same beside two processes that compute without end; *whole*: every experiment; *test*: "
    "with all packages installed.",
    Rows("parts", " | seconds", "{key} | {seconds:,.1f}"),
)

FIRST_ANSWER = (
    "## From a graph file to its first answer",
    "`benchmarks/operation/first_answer.py`, commit {conditions[commit]:commit}, {conditions[cores]} cores of "
    "{machine}, {conditions[date]}, load {load:.1f} at the start; a product of float32 matrices of 1024 × 1024 takes "
    "{product_ms:.1f} ms here. Whole processes of `kgqa ask --kg`, medians of {rounds} round(s): *first* in an "
    "empty home, *second* another question of the same file; *by a run*: `kgqa run` without training, then `kgqa ask`.",
    Rows(
        "graphs/*/.",
        "graph | answer | seconds | of the processor",
        "{key1} | {key} | {seconds:,.1f} | {processor:,.1f}",
    ),
)

LLM = (
    "## Language models",
    "`benchmarks/models/llm.py`, {machine[cores]} cores, load {machine[load]:.1f} at the start, Python "
    "{machine[python]}, openai {machine[openai]}, seed {seed}. An endpoint on loopback in a process of its own "
    "({endpoint[server_requests_per_second]:,} requests/s by itself), {endpoint[concurrency]} requests at once, "
    "{endpoint[requests]:,} prompts of some {endpoint[prompt_characters]} characters, medians of {endpoint[rounds]} "
    "rounds in turn. kgqa makes {endpoint[ratio]:.2f}× the requests/s of the bare loop (rounds: "
    "{endpoint[ratios]:min .2f} to {endpoint[ratios]:max .2f}) and {endpoint[cpu_ratio]:.2f}× by CPU time.",
    Rows(
        "endpoint/roads",
        "road | requests/s | CPU ms/request",
        "{name} | {requests_per_second:,.0f} | {cpu_ms_per_request:.2f}",
        {
            "bare": "bare asyncio + openai",
            "kgqa": "kgqa, cache and budget on disk",
            "cached": "kgqa, from the cache",
        },
    ),
    "The {local[model]} model, {local[prompts]} prompts, {machine[threads]} thread(s), medians of {local[rounds]} "
    "rounds: batched {local[ratio]:.2f}× as fast as one prompt at a time ({local[prompts_per_second][batched]:.1f} and "
    "{local[prompts_per_second][one by one]:.1f} prompts/s), with the same output for {local[same_outputs]} of "
    "{local[prompts]}.",
)


def follow(found: Mapping[str, Any]) -> str:
    """Two hops, forward and backward."""
    parts = [
        "## Following two hops, forward and backward\n",
        f"`benchmarks/graph/dkg_follow.py`, {found['cores']} cores, {found['threads']} thread(s), torch "
        f"{found['torch']}, seed "
        f"{found['seed']}, medians of {found['rounds']} rounds; milliseconds a question, ratio to the kernel.\n",
    ]
    for graph in found["graphs"]:
        parts.append(
            f"**{graph['name']}**: {graph['entities']:,} entities, {graph['edges']:,} directed edges, "
            f"{graph['relations']:,} relations, batch {graph['batch']}\n"
        )
        rows = []
        for result in graph["results"]:
            for road, ms in result["ms_per_question"].items():
                wall, cpu = (result[key].get(road, 1.0) for key in ("ratio_to_kernel", "cpu_ratio_to_kernel"))
                best = " (best dense)" if road == result["best_dense"] else ""
                rows.append((result["seeds"], road + best, f"{ms:.4f}", f"{wall:.1f}×", f"{cpu:.1f}×"))
        parts.append(table(("seeds", "road", "ms/question", "ratio", "by CPU"), rows))
    return "\n".join(parts)


FORECAST = (
    "{questions} questions over {triples:,} triples; " + MADE,
    Rows(
        "rows",
        "profile | forecast | calls | from … to | paid | error | tokens | from … to | paid | error",
        "{profile} | {when} | {calls[forecast]:,} | {calls[low]:,} … {calls[high]:,} | {calls[paid]:,} | "
        "{calls[error]:*100 +.1f} % | {tokens[forecast]:,} | {tokens[low]:,} … {tokens[high]:,} | {tokens[paid]:,} | "
        "{tokens[error]:*100 +.1f} %",
        right=True,
    ),
)


def installed(found: Mapping[str, Any]) -> str:
    """What installations take, and what of that is what."""
    each = found["installed"]
    rows = [
        (name, one["torch"], f"{one['megabytes']:,}", one["packages"], one["install_seconds"])
        for name, one in each.items()
    ]
    largest = ", ".join(f"{name} {size:.0f}" for name, size in each["kgqa"]["largest"].items())
    parts = ", ".join(f"`{name}` {size:.0f}" for name, size in each["kgqa"]["torch_parts"].items())
    return (
        f"{text(MADE, found)} Python {found['python']} where no other is named. Each was installed into a new "
        "environment and answered a question.\n\n"
        + table(("installed", "torch", "MB", "packages", "seconds"), rows, right=True)
        + f"\nOf `kgqa` alone, in MB: {largest}. Of torch: {parts}.\n"
    )


TABLES = (
    *(
        Table(f"performance/{name}", "docs/performance.md", name, parts)
        for name, parts in {
            "ingest": INGEST,
            "wikidata_json": WIKIDATA_JSON,
            "dkg_follow": follow,
            "dkg_follow_metaqa": follow,
            "dkg_scale": SCALE,
            "dkg_peers": DKG_PEERS,
            "large_graph": late("benchmarks.graph.large_graph", "tables"),
            "times": WAITED,
            "first_answer": FIRST_ANSWER,
            "gpu": late("benchmarks.models.gpu", "tables"),
            "llm": LLM,
        }.items()
    ),
    Table("installed_size", "docs/install.md", "installed_size", installed),
    Table("times", "README.md", "times", late("benchmarks.operation.times", "times")),
    Table("forecast", "docs/models.md", "forecast", FORECAST),
    Table("training", "docs/training_speed.md", "training", late("benchmarks.models.training", "figures")),
)
