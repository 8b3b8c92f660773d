"""The tables of docs/performance.md, each from the JSON that its benchmark writes; `docs_tables.py` puts them in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from benchmarks.tables import Rows, table, write

Json = Mapping[str, Any]


def ingest(found: Json) -> str:
    """N-Triples to tables."""
    machine = found["machine"]
    parts = [
        "## N-Triples to sorted, dictionary-encoded tables\n",
        f"`benchmarks/graph/ingest.py`, {machine['cores']} cores, Python {machine['python']}, load "
        f"{machine['load']:.1f} at the "
        f"start, memory limit {found['memory_limit']}, seed {found['seed']}. Synthetic, realistic "
        f"N-Triples; `kgqa` makes "
        "the tables that the others make, `kgqa build` the whole graph store with names, types, "
        "numbers and dates. rdflib and "
        "pyoxigraph read a slice; rates are compared.\n",
    ]
    for size in found["sizes"]:
        parts.append(
            f"**{size['lines']:,} lines**, {size['bytes'] / 1e6:,.0f} MB, median of {size['rounds']} round(s)\n"
        )
        parts.append(
            table(
                ("road", "lines/s", "CPU seconds", "peak MB", "kgqa is faster by", "by CPU"),
                (
                    (
                        name,
                        f"{road['lines_per_second']:,.0f}",
                        f"{road['cpu_seconds']:.2f}",
                        f"{road['peak_mb']:,.0f}",
                        f"{road['ours_is_faster_by']:.2f}×",
                        f"{road['ours_needs_less_cpu_by']:.2f}×",
                    )
                    for name, road in size["roads"].items()
                ),
            )
        )
    return "\n".join(parts)


def wikidata_json(found: Json) -> str:
    """The JSON dump."""
    rows = (
        (name, f"{r['megabytes_a_second']:,.0f}", f"{r['times_json']:.1f}×", f"{r['times_json_processor']:.1f}×")
        for name, r in found["roads"].items()
    )
    return "\n".join(
        [
            "## Wikidata JSON to tables\n",
            f"`benchmarks/graph/wikidata_json.py`, {found['machine']}, load {found['load'][0]:.1f}; "
            f"{found['entities']:,} entities, "
            f"{found['megabytes']:,.0f} MB, {found['statements']:,} statements; median of "
            f"{found['rounds']} rounds. `json` is "
            f"a `json.loads` loop that extracts the same. gz against plain: {found['gzip_against_plain']:.2f}×.\n",
            table(("road", "MB/s", "of the json loop's speed", "by CPU"), rows),
        ]
    )


def formats(found: Json) -> str:
    """Real samples of every format."""
    about = found["about"]
    columns = ("statements", "triples", "duplicates", "labels", "aliases", "descriptions", "filtered", "rejects")
    rows = []
    for row in found["rows"]:
        if "error" in row:
            rows.append((row["sample"], row.get("format", ""), row["error"], *[""] * len(columns)))
        else:
            rows.append(
                (row["sample"], row["format"], *(f"{row.get(c, 0):,}" for c in columns), f"{row['qualifiers']:,}")
            )
    return "\n".join(
        [
            "## Formats on real samples\n",
            f"`benchmarks/graph/formats.py`, {about['processors']} cores; statements = triples + duplicates + names + "
            "type statements + filtered + rejects.\n",
            table(("sample", "format", *columns, "qualifiers"), rows),
        ]
    )


def follow(found: Json) -> str:
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


def scale(found: Json) -> str:
    """What size costs."""
    parts = [
        "## What size costs\n",
        f"`benchmarks/graph/dkg_scale.py`, {found['cores']} cores, torch {found['torch']}, seed {found['seed']}, "
        f"{found['rounds']} rounds; one question at a time, no relation skipped.\n",
        table(
            ("edges", "entities", "largest degree", "bytes/edge", "open, warm", "open, from disk"),
            (
                (
                    f"{g['edges']:,}",
                    f"{g['entities']:,}",
                    f"{g['largest_degree']:,}",
                    f"{g['bytes_per_edge']:.2f}",
                    f"{g['opening']['warm_ms']:.2f} ms",
                    f"{g['opening']['from_disk_ms']:.2f} ms",
                )
                for g in found["graphs"]
            ),
        ),
        table(
            (
                "edges",
                "hops",
                "seeds",
                "budget",
                "p50 ms",
                "p99 ms",
                "CPU p50",
                "CPU p99",
                "p50 to smallest",
                "cut",
                "cold ms",
            ),
            (
                (
                    f"{r['edges']:,}",
                    r["hops"],
                    r["seeds"],
                    f"{r['budget']:,}" if r["budget"] else "none",
                    f"{r['p50_ms']:.3f}",
                    f"{r['p99_ms']:.3f}",
                    f"{r['cpu_p50_ms']:.3f}",
                    f"{r['cpu_p99_ms']:.3f}",
                    f"{r['ratio_p50']:.2f}×",
                    f"{r['cut']:,}",
                    f"{r['cold']['median_ms']:.1f}",
                )
                for r in found["latency"]
            ),
        ),
    ]
    if found.get("export"):
        parts.append(
            table(
                ("export of", "triples", "edges", "seconds", "CPU", "bytes/edge", "peak MB"),
                (
                    (
                        r["graph"],
                        f"{r['triples']:,}",
                        f"{r['edges']:,}",
                        f"{r['seconds']:.2f}",
                        f"{r['cpu_seconds']:.2f}",
                        r["bytes_per_edge"],
                        f"{r['peak_mb']:,.0f}",
                    )
                    for r in found["export"]
                ),
            )
        )
    if found.get("last_hop"):
        parts.append(
            table(
                ("last hop, hub of edges", "batch", "lazy ms", "expanded ms", "ratio"),
                (
                    (
                        f"{r['hub_edges']:,}",
                        r["batch"],
                        f"{r['ms']['lazy']:.3f}",
                        f"{r['ms']['expanded']:.1f}",
                        f"{r['ratio']:.0f}×",
                    )
                    for r in found["last_hop"]
                ),
            )
        )
    return "\n".join(parts)


def llm(found: Json) -> str:
    """The paid layer beside a bare client, and batches of a local model."""
    machine, paid, local = found["machine"], found["endpoint"], found["local"]
    names = {
        "bare": "bare asyncio + openai",
        "kgqa": "kgqa, cache and budget on disk",
        "cached": "kgqa, from the cache",
    }
    rows = (
        (names[name], f"{road['requests_per_second']:,.0f}", f"{road['cpu_ms_per_request']:.2f}")
        for name, road in paid["roads"].items()
    )
    return "\n".join(
        [
            "## Language models\n",
            f"`benchmarks/models/llm.py`, {machine['cores']} cores, load {machine['load']:.1f} at the start, Python "
            f"{machine['python']}, openai {machine['openai']}, seed {found['seed']}. An endpoint on loopback in a "
            f"process of its own ({paid['server_requests_per_second']:,} requests/s by itself), "
            f"{paid['concurrency']} requests at once, {paid['requests']:,} prompts of some "
            f"{paid['prompt_characters']} characters, medians of {paid['rounds']} rounds in turn. kgqa makes "
            f"{paid['ratio']:.2f}× the requests/s of the bare loop (rounds: {min(paid['ratios']):.2f} to "
            f"{max(paid['ratios']):.2f}) and {paid['cpu_ratio']:.2f}× by CPU time.\n",
            table(("road", "requests/s", "CPU ms/request"), rows),
            f"The {local['model']} model, {local['prompts']} prompts, {machine['threads']} thread(s), medians of "
            f"{local['rounds']} rounds: batched {local['ratio']:.2f}× as fast as one prompt at a time "
            f"({local['prompts_per_second']['batched']:.1f} and {local['prompts_per_second']['one by one']:.1f} "
            f"prompts/s), with the same output for {local['same_outputs']} of {local['prompts']}.\n",
        ]
    )


def waiting(found: Json) -> str:
    """What a user waits for."""
    return write(
        found,
        [
            "## What a user waits for",
            "`benchmarks/operation/times.py`, commit {conditions[commit]:commit}, {conditions[cores]} cores of "
            "{machine}, {conditions[date]}; the yardstick, a float32 product of 1024³, takes {product_ms:.1f} ms here. "
            "*demo*: what the README starts; *busy*: the same beside two processes that compute without end; *whole*: "
            "every experiment; *test*: with all packages installed.",
            Rows("parts", (("", "{key}"), ("seconds", "{seconds:,.1f}"))),
        ],
    )


def late(module: str, name: str) -> Callable[[Any], str]:
    """A writer of a benchmark that imports much, such as torch: it is imported when the table is written."""

    def write(found: Any) -> str:
        return str(getattr(import_module(f"benchmarks.{module}"), name)(found))

    return write


SECTIONS: dict[str, Callable[[Json], str]] = {
    "ingest": ingest,
    "wikidata_json": wikidata_json,
    "formats": formats,
    "dkg_follow": follow,
    "dkg_follow_metaqa": follow,
    "dkg_scale": scale,
    "dkg_peers": late("graph.dkg_peers", "tables"),
    "large_graph": late("graph.large_graph", "tables"),
    "times": waiting,
    "gpu": late("models.gpu", "tables"),
    "llm": llm,
}
