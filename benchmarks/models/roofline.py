"""What this machine can do at most, and which share of it the kernel of the DKG and local generation reach.

    python -m benchmarks.models.roofline [--rounds 7] [--json benchmarks/results/roofline.json]

machine:  copy_gb: GB/s read and written by copying 256 MB.  add_ns: nanoseconds of one addition to a random place of an
          array that is as large as the entities of the graph, compiled.  product_gflops: float32 product of two
          matrices of 1024 x 1024, in 10^9 operations a second.  A fixed product as `product_ms` is the yardstick of
          other machines.
kernel:   `follow` of two hops without gradients (graphs of dkg_follow, entities by degree).  bytes_an_edge:
          what must move for each edge followed: its relation and tail as they are stored, one read and one write of a
          float32 weight.  floor_ns: that edge at the speed of copying, plus the addition.  The output's own cost
          (sorting what was reached) is in the kernel's time and not in the floor.
generate: the builtin model on prompts with facts; flops are those that torch counts (matrix products and attention).

Medians of rounds; other load makes all of them lower.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numba
import numpy as np
import torch
from torch.utils.flop_counter import FlopCounterMode

from benchmarks import results_file
from benchmarks.conditions import RESULTS, commit_name, conditions
from benchmarks.graph.dkg_follow import SCALES, synthetic
from benchmarks.graph.dkg_peers import Questions
from benchmarks.graph.kg_subset_page import table
from benchmarks.models.llm import question_prompts
from benchmarks.results_file import CONDITIONS
from kgqa_core.config import LlmOptions
from kgqa_core.llm.factory import load_model
from kgqa_core.llm.protocol import GenerationParams

FIELDS = (*CONDITIONS, "rounds", "machine/*", "kernel/*/...", "generate/...")
"""What the result file holds (benchmarks/results_file.py)."""
SEED = 7
COPIED = 1 << 28
SIDE = 1024
ADDITIONS = 4_000_000
PROMPTS = 256


def seconds(work: Callable[[], Any], rounds: int) -> float:
    """Median seconds, after one round to warm up."""
    work()
    times = []
    for _ in range(rounds):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return statistics.median(times)


def machine(rounds: int) -> dict[str, float]:
    """Copying and products."""
    source = torch.ones(COPIED // 4)
    target = torch.empty_like(source)
    left, right = torch.randn(SIDE, SIDE), torch.randn(SIDE, SIDE)
    product = seconds(lambda: left @ right, rounds)
    return {
        "copy_gb": round(2 * COPIED / seconds(lambda: target.copy_(source), rounds) / 1e9, 2),
        "product_ms": round(product * 1000, 2),
        "product_gflops": round(2 * SIDE**3 / product / 1e9, 1),
    }


@numba.njit(cache=False)
def _add(out: np.ndarray, places: np.ndarray, value: np.float32) -> None:
    for place in places:
        out[place] += value


def add_ns(entities: int, rounds: int) -> float:
    """Nanoseconds of an addition to a random entity's weight."""
    places = np.random.default_rng(SEED).integers(0, entities, ADDITIONS).astype(np.int32)
    out = np.zeros(entities, np.float32)
    return seconds(lambda: _add(out, places, np.float32(1)), rounds) / ADDITIONS * 1e9


def kernel(name: str, copy_gb: float, rounds: int) -> dict[str, Any]:
    """One graph of dkg_follow."""
    scale = SCALES[name]
    dkg = synthetic(scale.entities, scale.triples, scale.relations, SEED)
    work = Questions(dkg, scale.batch)
    edges = work.followed() * scale.batch
    spent = seconds(work.kernel(), rounds) * 1e9 / edges
    moved = dkg.rel.dtype.itemsize + dkg.tail.dtype.itemsize + 8
    addition = add_ns(dkg.entities, rounds)
    floor = (moved - 8) / copy_gb + addition
    return {
        "entities": dkg.entities, "edges_a_question": round(edges / scale.batch, 1), "bytes_an_edge": moved,
        "add_ns": round(addition, 3), "ns_an_edge": round(spent, 3), "floor_ns": round(floor, 3),
        "share_of_floor": round(floor / spent, 3), "gb": round(moved / spent, 2),
        "share_of_copy": round(moved / spent / copy_gb, 3),
    }  # fmt: skip


def generate(gflops: float, rounds: int) -> dict[str, Any]:
    """The builtin model on prompts with 20 facts each."""
    prompts = question_prompts(PROMPTS)
    model = load_model("builtin", LlmOptions())
    params = GenerationParams(max_new_tokens=16)
    with FlopCounterMode(display=False) as counter:
        written = list(model.generate(prompts, params))
    spent = seconds(lambda: list(model.generate(prompts, params)), max(3, rounds // 2))
    flops = counter.get_total_flops()
    return {
        "prompts": PROMPTS,
        "prompt_tokens": round(sum(one.prompt_tokens for one in written) / PROMPTS, 1),
        "new_tokens": round(sum(one.completion_tokens for one in written) / PROMPTS, 1),
        "mflop_a_prompt": round(flops / PROMPTS / 1e6, 1),
        "ms_a_prompt": round(spent / PROMPTS * 1000, 3),
        "gflops": round(flops / spent / 1e9, 1),
        "share_of_product": round(flops / spent / 1e9 / gflops, 3),
    }  # fmt: skip


def tables(found: Mapping[str, Any]) -> str:
    """The tables of docs/performance.md."""
    made, own, gen = found["conditions"], found["machine"], found["generate"]
    rows = [
        (name, f"{one['edges_a_question']:,.0f}", f"{one['bytes_an_edge']}", f"{one['add_ns']:.2f}",
         f"{one['floor_ns']:.2f}", f"{one['ns_an_edge']:.2f}", f"{100 * one['share_of_floor']:.0f} %",
         f"{100 * one['share_of_copy']:.0f} %")
        for name, one in found["kernel"].items()
    ]  # fmt: skip
    head = (
        "graph", "edges a question", "bytes an edge", "random addition, ns", "floor, ns an edge", "kernel, ns an edge",
        "of the floor's speed", "of the bandwidth",
    )  # fmt: skip
    return (
        "## What is left: the machine's limits\n\n"
        f"`benchmarks/models/roofline.py`, {made['cores']} cores, {made['threads']} threads, commit "
        f"{commit_name(made['commit'])}, medians of {found['rounds']} rounds. This machine copies "
        f"{own['copy_gb']:.1f} GB/s and multiplies float32 "
        f"matrices at {own['product_gflops']:.0f} · 10⁹ operations a second; the yardstick, 1024 × 1024 times 1024 × "
        f"1024, takes {own['product_ms']:.1f} ms. The floor of an edge is reading its relation and tail at the speed "
        "of copying and adding to a random entity's weight; sorting what was reached comes on top.\n\n"
        + table(head, rows)
        + f"\nThe builtin model reads {gen['prompt_tokens']:.0f} tokens and writes {gen['new_tokens']:.1f} a prompt: "
        f"{gen['mflop_a_prompt']:,.0f} · 10⁶ operations in {gen['ms_a_prompt']:.1f} ms, {gen['gflops']:.0f} · 10⁹ a "
        f"second, {100 * gen['share_of_product']:.0f} % of the product's.\n"
    )


def main() -> None:
    """Measures and writes the JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", type=Path, default=RESULTS / "roofline.json")
    given = parser.parse_args()
    own = machine(given.rounds)
    found = {
        "conditions": conditions(SEED), "rounds": given.rounds, "machine": own,
        "kernel": {name: kernel(name, own["copy_gb"], given.rounds) for name in SCALES},
        "generate": generate(own["product_gflops"], given.rounds),
    }  # fmt: skip
    print(json.dumps(found), flush=True)
    results_file.write(given.json, found, FIELDS)


if __name__ == "__main__":
    main()
