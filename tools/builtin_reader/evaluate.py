"""How good a reader is on what training did not draw.

    python -m tools.builtin_reader.evaluate --model FOLDER [--each 100] [--json benchmarks/results/builtin.json]

Answers are right when they are exactly the expected ones.  A rewriting is judged by its facts: it is faithful when
every name of the facts stands in it as it is written and nothing stands in it that is neither a name, a word of a
relation nor a word that joins them.
"""

from __future__ import annotations

import argparse
import json
import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tokenizers import Tokenizer

from benchmarks import results_file
from benchmarks.conditions import conditions
from benchmarks.results_file import CONDITIONS
from kgqa_core.llm.hf import HFModel
from kgqa_core.llm.protocol import GenerationParams
from kgqa_core.prompts import rewrite_prompt, spaced_triples
from kgqa_core.types import INVERSE
from tools.builtin_reader import mixture, tokens
from tools.builtin_reader.batches import SECOND
from tools.builtin_reader.grammar import plural
from tools.builtin_reader.names import Names
from tools.builtin_reader.sentences import MIDDLE, Fact, tell, words

log = logging.getLogger("kgqa.builtin")
FIELDS = (*CONDITIONS, "each", "scores/*")
"""What the result file holds (benchmarks/results_file.py)."""

JOINING = frozenset("the of is are and as for its has have was were s".split())
WORD = re.compile(r"[^\s.,:()'_-]+")
HAN_JOINING = frozenset("的是有和为作都、。，：")


@dataclass(frozen=True, slots=True)
class Judgement:
    """What is wrong with sentences that should tell facts.

    missing: names of the facts that are not in the text.  invented: words of the text that come from nowhere.
    """

    missing: tuple[str, ...]
    invented: tuple[str, ...]

    @property
    def faithful(self) -> bool:
        """Whether nothing is wrong."""
        return not self.missing and not self.invented


def judge(facts: Sequence[Fact], text: str, *, chinese: bool) -> Judgement:
    """Compares sentences with the facts that they tell; a middle node (CVT1) may be left out."""
    names = sorted({name for head, _, tail in facts for name in (head, tail)}, key=lambda name: (-len(name), name))
    marks = {name: re.escape(name) if chinese else rf"(?<!\w){re.escape(name)}(?!\w)" for name in names}
    missing = sorted(name for name in names if not re.search(marks[name], text) and not MIDDLE.fullmatch(name))
    rest = text
    for name in names:
        rest = re.sub(marks[name], " ", rest)
    labels = [words(label.removeprefix(INVERSE)) for _, label, _ in facts]
    if chinese:
        for label in sorted(labels, key=lambda label: (-len(label), label)):
            rest = rest.replace(label, " ")
        return Judgement(tuple(missing), tuple(sorted({each for each in rest if not each.isspace()} - HAN_JOINING)))
    known = JOINING.union(*(WORD.findall(f"{label} {plural(label)}") for label in labels))
    left = {word for word in WORD.findall(rest) if word.lower() not in known}
    return Judgement(tuple(missing), tuple(sorted(left)))


def rewritings(model: HFModel, pieces: tuple[str, ...], each: int) -> dict[str, float]:
    """Shares of held-out rewritings, in [0, 1]: exactly as expected, faithful, with all names, nothing invented."""
    scores = dict[str, float]()
    for chinese in (False, True):
        name = f"{mixture.REWRITE} zh" if chinese else mixture.REWRITE
        random = Random(f"{SECOND.seed}/held out of the mixture/{name}")
        names = Names(random, pieces)
        samples = [mixture.facts_to_tell(random, names, chinese=chinese) for _ in range(each)]
        prompts = [rewrite_prompt(spaced_triples(facts), "zh" if chinese else "en") for facts in samples]
        written = [made.text.strip() for made in model.generate(prompts, GenerationParams(max_new_tokens=384))]
        judged = [judge(facts, text, chinese=chinese) for facts, text in zip(samples, written, strict=True)]
        right = [tell(facts, chinese=chinese) == text for facts, text in zip(samples, written, strict=True)]
        scores |= {
            f"{name}: exact": sum(right) / each,
            f"{name}: faithful": sum(each_.faithful for each_ in judged) / each,
            f"{name}: all names": sum(not each_.missing for each_ in judged) / each,
            f"{name}: nothing invented": sum(not each_.invented for each_ in judged) / each,
        }
    return scores


def answers(model: HFModel, pieces: tuple[str, ...], each: int) -> dict[str, float]:
    """Share of exactly right answers to held-out questions by form, family and language, in [0, 1]."""
    samples = [pair for pair in mixture.held_out(SECOND.seed, pieces, each) if pair[1].template != mixture.REWRITE]
    written = model.generate([sample.prompt() for _, sample in samples], GenerationParams(max_new_tokens=64))
    right = dict[str, list[bool]]()
    for (name, sample), made in zip(samples, written, strict=True):
        right.setdefault(name, []).append(made.text.strip() == sample.items[0][2])
    return {name: sum(hits) / len(hits) for name, hits in right.items()}


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--model", type=Path, required=True, help="published folder")
    parser.add_argument("--each", type=int, default=100, help="samples of every form, family and language")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    model = HFModel(given.model, device="cpu", name="builtin")
    pieces = tokens.letter_pieces(Tokenizer.from_file(str(given.model / "tokenizer.json")))
    scores = answers(model, pieces, given.each) | rewritings(model, pieces, given.each)
    rounded = {name: round(score, 3) for name, score in scores.items()}
    log.info("%s", json.dumps(rounded, indent=1, ensure_ascii=False))
    if given.json is not None:
        found = {"conditions": conditions(SECOND.seed), "each": given.each, "scores": rounded}
        results_file.write(given.json, found, FIELDS)


if __name__ == "__main__":
    main()
