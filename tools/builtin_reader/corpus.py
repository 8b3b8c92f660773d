"""Training text of the reader: invented graphs, facts in the order of retrieval, questions and answers.

A sample is one context with several questions on it.  Its first question has the context in retrieval order, as the
pipeline asks it; the further ones let one context teach several lookups (they follow in the same text, and a prompt of
the pipeline is exactly the beginning of a sample).  Everything follows from a seed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from kgqa_core import prompts
from tools.builtin_reader.names import Names
from tools.builtin_reader.questions import ask, no_facts
from tools.builtin_reader.worlds import World, build, order

END = "<|end|>"
FAMILIES = (
    "1-hop", "2-hop", "yes/no", "count", "comparative", "superlative", "intersection", "difference", "absent",
    "no facts",
)  # fmt: skip
WEIGHTS = (
    (70, 10, 6, 5, 0, 0, 4, 0, 3, 2),
    (44, 26, 6, 6, 4, 3, 4, 2, 3, 2),
    (36, 32, 6, 6, 6, 4, 4, 2, 2, 2),
)
"""Shares of the families at each level of the curriculum."""


@dataclass(frozen=True, slots=True)
class Sample:
    """A context with its questions: (family, question, answer), the first in retrieval order.

    template: name of the prompt with knowledge, or `rewrite`, whose context is the whole prompt.
    """

    context: str
    items: tuple[tuple[str, str, str], ...]
    chinese: bool
    template: str = "sen2023"

    def prompt(self) -> str:
        """The prompt of the first question, as the pipeline writes it."""
        if self.template == "rewrite":
            return self.context
        return prompts.answer_prompt(self.items[0][1], self.context, self.template)

    def text(self) -> str:
        """The training text."""
        first, *others = self.items
        parts = [f"{self.prompt()} {first[2]}{END}"]
        bare = not self.context or self.template == "rra2023"
        lead = " Question: {} Answer: {}" + END if bare else " Answer the question: {}. Answer: {}" + END
        parts += [lead.format(question, answer) for _, question, answer in others]
        return "".join(parts)


def draw_sample(random: Random, names: Names, level: int = 2, family: str | None = None) -> Sample:
    """One sample of a level of the curriculum (0, 1 or 2), its first question of `family` where one is given."""
    while True:
        chinese = random.random() < 0.22
        chosen = family or random.choices(FAMILIES, WEIGHTS[level])[0]
        if chinese and chosen in ("comparative", "superlative", "intersection", "difference", "no facts"):
            chosen = "1-hop" if family is None else chosen
            chinese = family is None
        style = random.choices(("plain", "snake", "camel", "title"), (68, 20, 7, 5))[0]
        world = World(random, names, chinese, "plain" if chinese else style)
        if chosen == "no facts":
            return Sample("", tuple(no_facts(world) for _ in range(random.randint(1, 3))), chinese)
        gold = build(world, chosen, level)
        shown = order(world, gold, level, oracle=random.random() < 0.08)
        first = ask(world, chosen, shown)
        if first is None:
            continue
        items, seen = [first], {first[1].casefold().rstrip("?？")}
        for _ in range(random.randint(2, 5)):
            follow = random.choices(FAMILIES[:9], (50, 24, 6, 6, 0, 0, 0, 0, 3))[0]
            item = ask(world, follow, shown, later=True)
            if item is not None and item[1].casefold().rstrip("?？") not in seen:
                seen.add(item[1].casefold().rstrip("?？"))
                items.append(item)
        return Sample(prompts.triple_form(edge.text() for edge in shown), tuple(items), chinese)


def samples(seed: int, chunk: int, count: int, *, level: int = 2, pieces: tuple[str, ...] = ()) -> Iterator[Sample]:
    """`count` samples of one chunk of the training text; the same arguments give the same samples."""
    random = Random(f"{seed}/{chunk}")
    names = Names(random, pieces)
    for _ in range(count):
        yield draw_sample(random, names, level)
