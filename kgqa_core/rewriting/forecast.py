"""What the rewriting stage is going to ask: the same groups and the same prompts, for `kgqa forecast`."""

from __future__ import annotations

from pathlib import Path

from kgqa_core.config import LlmOptions, RewriterOptions
from kgqa_core.datasets.question import read_questions
from kgqa_core.datasets.splits import choose
from kgqa_core.llm.plan import Measured, StagePlan, Wanted, plan
from kgqa_core.llm.tokens import counter
from kgqa_core.rewriting.groups import read_groups
from kgqa_core.rewriting.template import paragraph, sentences
from kgqa_core.rewriting.write import different, parameters

STAGE = "knowledge"


def plan_rewriting(
    *,
    kg: Path,
    questions: Path,
    facts: Path,
    retriever: str,
    options: RewriterOptions,
    llm: LlmOptions,
    language: str | None = None,
    trained: bool = False,
    split: str | None = None,
    limit: int | None = None,
    seed: int = 0,
) -> StagePlan:
    """The plan of `write` for the facts of a retriever: each different prompt once, texts as long as the template's.

    trained: a rewriter is trained on the base, which then reads T1.  Raises as `write` does.
    """
    wording = "rra2023" if trained else options.wording
    found = read_groups(kg, questions, facts, retriever, language)
    wanted_ids = {question for question, _, _ in found}
    if split is not None:
        wanted_ids = {question.id for question in choose(read_questions(questions), split, limit, seed)}
    groups = [(group, said) for question, said, own in found if question in wanted_ids for group in own]
    texts = {group.prompt(said, wording): paragraph(sentences(group.named, said), said) for group, said in groups}
    count, _ = counter(options.base, llm)
    wanted = Wanted()
    for prompt in different(groups, wording):
        wanted.add(count(prompt), count(texts[prompt]))
    assumed = "texts as long as the template's"
    stage = f"{STAGE} {retriever}/rewritten"
    return plan(stage, options.base, wanted, Measured(), llm, parameters(options), assumed=assumed)
