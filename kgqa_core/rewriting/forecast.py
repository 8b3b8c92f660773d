"""What the rewriting stage is going to ask: the same groups and the same prompts, for `kgqa forecast`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from kgqa_core.config import LlmOptions, RewriterOptions
from kgqa_core.datasets.question import read_questions
from kgqa_core.datasets.splits import choose
from kgqa_core.llm.budget import Budget
from kgqa_core.llm.cache import open_cache
from kgqa_core.llm.factory import identify
from kgqa_core.llm.paid import peek
from kgqa_core.llm.pilot import ask_some
from kgqa_core.llm.plan import Measured, StagePlan, Wanted, measure, opening_of, plan
from kgqa_core.llm.tokens import counter
from kgqa_core.monitor import QUIET, Monitor
from kgqa_core.prompts import DESCRIBE, REWRITE, REWRITE_CHINESE
from kgqa_core.rewriting.groups import Group, read_groups
from kgqa_core.rewriting.template import paragraph, sentences
from kgqa_core.rewriting.write import different, parameters, wording_of

STAGE = "knowledge"


@dataclass(frozen=True)
class Rewriting:
    """What `write` will ask about the facts of a retriever.

    trained: a rewriter is trained on the base, which then reads T1.  split, limit, seed: the questions, as `write`
    draws them.  cache: folder of the response cache.  Methods raise as `write` does.
    """

    kg: Path
    questions: Path
    facts: Path
    retriever: str
    options: RewriterOptions
    llm: LlmOptions
    language: str | None = None
    trained: bool = False
    split: str | None = None
    limit: int | None = None
    seed: int = 0
    cache: Path | None = None

    def plan(self) -> StagePlan:
        """Each different prompt once, less what the cache holds; texts as long as its texts, or as the template's."""
        groups, options = self._groups(), self.options
        texts = {group.prompt(said, self._wording): paragraph(sentences(group.named, said), said)
                 for group, said in groups}  # fmt: skip
        count, _ = counter(options.base, self.llm)
        prompts, params, wanted = different(groups, self._wording), parameters(options), Wanted()
        identity = None if self.trained else identify(options.base, self.llm)
        responses = open_cache(self.cache) if self.cache is not None else None
        for prompt, held in zip(prompts, peek(identity, prompts, params, None, responses), strict=True):
            if held is None:
                wanted.add(count(prompt), count(texts[prompt]))
            else:
                wanted.cached += 1
        chinese = any(said.partition("-")[0] == "zh" for _, said in groups)
        template = DESCRIBE if self._wording == "mvp2022" else REWRITE_CHINESE if chinese else REWRITE
        measured = Measured()
        if identity is not None:
            measured = measure(responses, identity, opening_of(template, "{triples}"), params, count)
        stage, assumed = f"{STAGE} {self.retriever}/rewritten", "texts as long as the template's"
        return plan(stage, options.base, wanted, measured, self.llm, params, assumed=assumed)

    def pilot(self, number: int, budget: Budget | None = None, monitor: Monitor = QUIET) -> None:
        """Asks the base, where it is behind an endpoint, for `number` of the texts, which the cache keeps."""
        if not self.trained:
            prompts = different(self._groups(), self._wording)
            ask_some(
                self.options.base, prompts, parameters(self.options), number, self.llm, seed=self.seed,
                cache=self.cache, budget=budget, monitor=monitor,
            )  # fmt: skip

    @property
    def _wording(self) -> str:
        return wording_of(self.options, trained=self.trained)

    def _groups(self) -> list[tuple[Group, str]]:
        found = read_groups(self.kg, self.questions, self.facts, self.retriever, self.language)
        wanted = {question for question, _, _ in found}
        if self.split is not None:
            chosen = choose(read_questions(self.questions), self.split, self.limit, self.seed)
            wanted = {question.id for question in chosen}
        return [(group, said) for question, said, own in found if question in wanted for group in own]
