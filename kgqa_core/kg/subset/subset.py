"""The neighbourhood of some entities out of a dump of any size, in two passes over its files.

1. Each file becomes edges of integers (`edges`).
2. The hops run over the edges: which entities are reached, which hubs are cut (`hops`).
3. Each file is read again, and what belongs to the subset is written (`write`, `write_json`).

The number of passes does not depend on the number of hops.  The result of each file's pass, and of the hops, is a
folder that a killed command finds again.
"""

from __future__ import annotations

import gzip
import json
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from kgqa_core.config import KgOptions, SubsetOptions
from kgqa_core.errors import KgInputError
from kgqa_core.kg.bridges import canonical
from kgqa_core.kg.client.pass_folder import PassFolder, state_of_source
from kgqa_core.kg.ingest.sources import find_sources
from kgqa_core.kg.sql import memory_bytes
from kgqa_core.kg.subset import hops
from kgqa_core.kg.subset.codes import Array, CodeSet, codes_of, distinct
from kgqa_core.kg.subset.edges import EdgeFiles, write_edges
from kgqa_core.kg.subset.keep import KeepRule
from kgqa_core.kg.subset.part import HITS, LINES, RELATION_CODES, RELATION_LINES
from kgqa_core.kg.subset.read import JSON, DumpFile
from kgqa_core.kg.subset.write import write_part
from kgqa_core.monitor import QUIET, Monitor

NO_NAMES = ("zxx",)
"""The languages of names in the first pass, which needs none: "no linguistic content"."""

Part = tuple[Path, dict[str, Any]]


@dataclass
class SubsetResult:
    """Counts of a subset, and the parts that its file is put together from.

    not_found: seeds that are no end of a statement of the dump.
    """

    counts: dict[str, Any]
    parts: list[Path] = field(default_factory=list)
    used: CodeSet = field(default_factory=lambda: CodeSet(distinct([])))
    not_found: list[str] = field(default_factory=list)

    def write(self, path: Path, *, packed: bool = False) -> None:
        """Writes the subset to a file.  packed: with gzip."""
        with path.open("wb") as raw:
            if packed:
                with gzip.GzipFile(filename="", fileobj=raw, mode="wb", compresslevel=6, mtime=0) as stream:
                    self._write(stream)  # type: ignore[arg-type]
            else:
                self._write(raw)

    def write_counts(self, path: Path) -> None:
        """Writes the counts of the subset, with the seeds that were not found."""
        text = json.dumps({**self.counts, "not_found": self.not_found}, ensure_ascii=False, indent=1)
        path.write_text(text + "\n", encoding="utf-8")

    def _write(self, stream: BinaryIO) -> None:
        for part in self.parts:
            with (part / LINES).open("rb") as lines:
                shutil.copyfileobj(lines, stream, 1 << 20)
        for part in self.parts:
            codes = _relation_codes(part)
            with (part / RELATION_LINES).open("rb") as lines:
                for line, wanted in zip(lines, self.used.has(codes).tolist(), strict=True):
                    if wanted:
                        stream.write(line)


def subset_of_dump(
    files: Sequence[str],
    seeds: Sequence[str],
    options: SubsetOptions,
    passes: PassFolder,
    monitor: Monitor = QUIET,
) -> SubsetResult:
    """The neighbourhood of the seeds in the graph of `files`.

    seeds: keys of entities; a Freebase id that is none of the dump's is looked up among its P646.  Raises KgInputError
    for files that cannot be used or hold none of the seeds, KgqaError when the entities do not fit in memory.
    """
    started = time.monotonic()
    settings = KgOptions(format=options.format, ranks=options.ranks, max_reject_share=options.max_reject_share)
    sources = find_sources(files)
    for source in sources:
        if source.content is not None:
            raise KgInputError(f"{source.path} is in an archive or a workbook; unpack it for a subset")
    dump = [DumpFile(source, settings, options.relations) for source in sources]
    is_json = {file.format == JSON for file in dump}
    if len(is_json) > 1:
        names = ", ".join(f"{file.source.label} ({file.format})" for file in dump)
        raise KgInputError(f"JSON and other formats make no one file: {names}; take the subset of each alone")
    states = [state_of_source(source) for source in sources]
    key: list[Any] = [options.relations, settings.decisive()]
    first = [
        passes.result(f"edges-{number:04}", [*key, state, file.format], partial(_edges, file, monitor=monitor))
        for number, (file, state) in enumerate(zip(dump, states, strict=True))
    ]
    seconds = {"edges": round(time.monotonic() - started, 2)}
    edges = EdgeFiles(first)
    wanted_seeds = list(dict.fromkeys(map(canonical, seeds)))
    codes, bridged = _seed_codes(wanted_seeds, edges)
    chosen = {name: getattr(options, name) for name in ("hops", "relations", "direction", "max_degree")}
    key = [*key, states, chosen, sorted(codes.tolist())]

    def run_hops(folder: Path) -> dict[str, Any]:
        result = hops.reach(
            edges.blocks,
            codes,
            hops=options.hops,
            max_degree=options.max_degree,
            both=options.direction == "both",
            memory=memory_bytes(options.memory_limit),
            monitor=monitor,
            total=len(edges),
        )
        return hops.save(result, folder)

    phase_started = time.monotonic()
    reach = hops.load(*passes.result("hops", key, run_hops))
    seconds["hops"] = round(time.monotonic() - phase_started, 2)
    phase_started = time.monotonic()
    wanted, named_relations = _wanted(reach, edges, options)
    second = [
        passes.result(
            f"kept-{number:04}",
            [*key, number, options.languages],
            partial(write_part, file, wanted=wanted, monitor=monitor),
        )
        for number, file in enumerate(dump)
    ]
    seconds["write"] = round(time.monotonic() - phase_started, 2)
    result = _result(first, second, wanted, named_relations, edges)
    result.not_found = _not_found(wanted_seeds, bridged, wanted, second)
    if len(result.not_found) == len(wanted_seeds):
        raise KgInputError(
            f"none of the {len(wanted_seeds):,} entities of the questions is in the dump (the first is "
            f"'{wanted_seeds[0]}'); do the questions belong to this graph?"
        )
    result.counts |= {
        "seeds": len(wanted_seeds),
        "seeds_bridged": len(bridged),
        "seeds_not_found": len(result.not_found),
        "by_hop": reach.by_hop,
        "hubs_cut": len(reach.cut.hubs),
        "runs_cut": len(reach.cut),
        "passes_found_done": list(passes.done),
        "seconds": seconds | {"all": round(time.monotonic() - started, 2)},
        "format": "wikidata-json" if is_json == {True} else "ntriples",
    }
    return result


def _edges(file: DumpFile, folder: Path, *, monitor: Monitor) -> dict[str, Any]:
    """The first pass over a file; of JSON no name is read."""
    if file.format == JSON:
        silent = file.options.model_copy(update={"languages": NO_NAMES, "only_languages": True})
        file = DumpFile(file.source, silent, file.wanted)
    return write_edges(file, folder, monitor)


def _seed_codes(seeds: Sequence[str], edges: EdgeFiles) -> tuple[Array, dict[str, list[int]]]:
    """Codes of the seeds, and those of entities that have a seed as their id in another graph, by seed."""
    codes = codes_of(seeds)
    by_foreign = edges.bridged(codes)
    bridged = {seed: by_foreign[code] for seed, code in zip(seeds, codes.tolist(), strict=True) if code in by_foreign}
    more = [np.array(entities, dtype=np.uint64) for entities in bridged.values()]
    return distinct([codes, *more]), bridged


def _wanted(reach: hops.Reach, edges: EdgeFiles, options: SubsetOptions) -> tuple[KeepRule, set[int]]:
    """What the second pass keeps, and relations that qualifiers of kept statements have."""
    mentioned, relations = [], set[int]()
    for block, typed, by, value in edges.mentions():
        keeps = reach.keeps(block) | (typed & (block.object != 0) & reach.reached.has(block.subject))
        mentioned.append(np.unique(value[keeps]))
        relations.update(np.unique(by[keeps]).tolist())
    names = CodeSet(distinct([reach.reached.codes, edges.types_of(reach.reached), *mentioned]))
    wanted = KeepRule(
        reach,
        names,
        CodeSet(distinct([codes_of(edges.keys)])),
        edges.numbers,
        frozenset(language.casefold() for language in options.languages),
    )
    return wanted, relations


def _result(
    first: Sequence[Part], second: Sequence[Part], wanted: KeepRule, named_relations: set[int], edges: EdgeFiles
) -> SubsetResult:
    used = set().union(*(counts["used"] for _, counts in second))
    relations = CodeSet(distinct([codes_of(edges.keys[number] for number in sorted(used | named_relations))]))
    hits = _hits(second, wanted)
    totals = {
        name: sum(counts[name] for _, counts in second) for name in ("lines", "edges", "literals", "types", "names")
    }
    read = {name: sum(counts[name] for _, counts in first) for name in ("statements", "rejects", "ignored", "left_out")}
    counts = {
        "files": len(first),
        "lines_read": totals["lines"],
        "statements_read": read["statements"],
        "rejects": read["rejects"],
        "examples_of_rejects": [example for _, counts in first for example in counts["examples_of_rejects"]][:20],
        "kept": {name: totals[name] for name in ("edges", "literals", "types", "names")}
        | {"relation_names": sum(int(relations.has(_relation_codes(folder)).sum()) for folder, _ in second)},
        "entities": int(hits.sum()),
        "relations": len(used),
    }
    return SubsetResult(counts, [folder for folder, _ in second], relations)


def _relation_codes(folder: Path) -> Array:
    return np.fromfile(folder / RELATION_CODES, dtype=np.uint64)


def _hits(second: Sequence[Part], wanted: KeepRule) -> Array:
    hits = np.zeros(len(wanted.names), dtype=np.bool_)
    for folder, _ in second:
        hits |= np.load(folder / HITS, allow_pickle=False)
    return hits


def _not_found(
    seeds: Sequence[str], bridged: dict[str, list[int]], wanted: KeepRule, second: Sequence[Part]
) -> list[str]:
    hits = _hits(second, wanted)
    indexes = wanted.names.find(codes_of(seeds))
    return [
        seed
        for seed, index in zip(seeds, indexes.tolist(), strict=True)
        if not (
            hits[index] or any(hits[at] for at in wanted.names.find(np.array(bridged.get(seed, []), dtype=np.uint64)))
        )
    ]
