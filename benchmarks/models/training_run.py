"""One training of one checkout, in a process of its own: prints its seconds, dev score and digest as JSON.

    PYTHONPATH=CHECKOUT python benchmarks/models/training_run.py TRAINING INPUTS OUT SEED OPTIONS

Imports nothing but kgqa_core, which is the checkout's.  INPUTS: a folder that training.py made.  OPTIONS: JSON
of what is changed of the profile's section; the section is that of the checkout's own code.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
from pathlib import Path
from typing import Any

import kgqa_core
from kgqa_core.config import Profile, make_profile, read_profile
from kgqa_core.retrieval.api import TrainingInputs
from kgqa_core.workspace import Workspace

ROOT = Path(kgqa_core.__file__).resolve().parents[1]


def profile_of(inputs: Path) -> Profile:
    """The shipped profile of the checkout that the inputs name, or its defaults."""
    name = json.loads((inputs / "graph.json").read_text(encoding="utf-8"))["profile"]
    return make_profile(read_profile(ROOT / "flows" / "profiles" / f"{name}.yaml") if name else {})


def train(training: str, inputs: Path, out: Path, seed: int, changes: dict[str, Any]) -> tuple[dict[str, Any], float]:
    """Counts of a training and its dev score, higher is better."""
    profile = profile_of(inputs)
    section = getattr(profile, training)
    always = {"adapt": "always"} if training == "label_parser" and hasattr(section, "adapt") else {}
    options = type(section).model_validate({**section.model_dump(), **always, **changes})
    counts: dict[str, Any]
    if training == "label_parser":
        from kgqa_core.symbolic.by_labels import stage

        made = inputs / "generated"
        counts = stage.train(
            Workspace(out),
            kg=inputs / "kg",
            questions=inputs / "questions",
            generated=made if made.exists() else None,
            mentions=inputs / "mentions",
            options=options,
            linking=profile.linking,
            seed=seed,
        )
        return counts, counts["dev"]["right"] / max(1, counts["dev"]["answerable"])
    if training == "rewriter":
        from kgqa_core.rewriting import train as rewriting

        counts = rewriting.train(Workspace(out), corpus=inputs / "corpus", options=options, seed=seed)
        return counts, -counts["dev_loss"]
    if training == "rigel":
        from kgqa_core.retrieval.rigel.train import train as run
    else:
        from kgqa_core.retrieval.hop_path.train import train as run
    given = TrainingInputs(inputs / "dkg", inputs / "questions", options, seed, kg=inputs / "kg")
    counts = run(Workspace(out), given)
    return counts, counts["dev_hits_at_1" if training == "rigel" else "dev_path_at_1"]


def main(arguments: list[str]) -> None:
    """Trains and prints."""
    training, inputs, out, seed, changes = arguments
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    wall, processor = time.perf_counter(), time.process_time()
    counts, score = train(training, Path(inputs), folder, int(seed), json.loads(changes))
    wall, processor = time.perf_counter() - wall, time.process_time() - processor
    weights = sorted(folder.rglob("*.safetensors"))
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in weights)).hexdigest()
    found = {
        "seconds": round(wall, 1), "processor_seconds": round(processor, 1), "dev_score": round(score, 4),
        "digest": digest[:16], "epochs": counts.get("epochs"),
    }  # fmt: skip
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1:])
