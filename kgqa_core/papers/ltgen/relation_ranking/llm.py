"""The relation ranker `llm`: a language model names the best relations (Huang et al. 2024).

How its output is parsed: one relation is read a line, whatever the model puts around it.  A line counts for the first
candidate that it names and that no earlier line has: as it stands, whatever its case, without bullet, number, quotes,
brackets and delimiters, and at last without an explanation after it.  A line that names several candidates between
commas counts for all of them.  What names none is unknown and is counted.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from kgqa_core.llm.cache import ResponseCache
from kgqa_core.llm.paid import Expected, Outcome, PromptBatch, insist
from kgqa_core.llm.protocol import GenerationParams, LanguageModel
from kgqa_core.monitor import QUIET, Monitor
from kgqa_core.papers.ltgen.relation_ranking.ranker import DECIMALS, RankedRelation, RankingQuery
from kgqa_core.prompts import chat, one_line

SYSTEM: Final = (
    "You are a helpful assistant. People will provide you with a question, an entity and several relations, and your "
    "task is to rank the relation based on the relevance for answering the question. Only response top-{most} "
    "relations without any other things, one for each line."
)
"""The paper's system prompt, which says `top-5`."""
USER: Final = "Question: <<<{question}>>>\nEntity: <<<{entity}>>>\nRelations: <<<{relations}>>>"
"""The paper's user message; `<<<` and `>>>` are its own."""
SHOWN = 20
"""Unknown lines that are stored as examples."""


def ranking_prompt(query: RankingQuery, most: int) -> str:
    """The chat prompt for the best relations of an entity.

    Line ends and outer blanks are made single blanks, so that only the prompt's own lines are lines.
    """
    values = {"question": query.question, "entity": query.entity, "relations": ", ".join(query.relations)}
    user = USER.format(**{name: one_line(text) for name, text in values.items()})
    return chat(SYSTEM.format(most=most), user)


class LlmRanker:
    """Queries a language model for each entity that has more relations than `most`.

    The score of the relation that is named first is 1, of the second 1/2, and so on.
    cache: of completions.  unknown: the first lines that name no candidate.
    counts: asked (prompts), unknown_lines, named (relations), silent (prompts without a known relation), failed.
    """

    name = "llm"

    def __init__(self, model: LanguageModel, max_new_tokens: int, cache: ResponseCache | None = None) -> None:
        self.model, self.cache = model, cache
        self.params = GenerationParams(max_new_tokens=max_new_tokens)
        self.counts = dict.fromkeys(("asked", "unknown_lines", "named", "silent", "failed"), 0)
        self.unknown: list[str] = []

    def rank(self, queries: Sequence[RankingQuery], most: int, monitor: Monitor = QUIET) -> list[list[RankedRelation]]:
        """At most `most` relations of each; those that the model did not name are left out.

        Raises BudgetReached after the billed completions are cached, EndpointError, ModelError.
        """
        indices = [number for number, one in enumerate(queries) if len(one.relations) > most]
        expected = Expected(lambda index: "\n".join(queries[indices[index]].relations[:most]))
        prompts = [ranking_prompt(queries[number], most) for number in indices]
        batch = PromptBatch(prompts, self.params, cache=self.cache, monitor=monitor, expected=expected, what="rankings")
        outcomes = insist(self.model, batch)
        # Of an entity that has at most `most` relations all are returned, in their order.
        rankings = [
            [_ranked_relation(index, index) for index in range(min(most, len(query.relations)))] for query in queries
        ]
        for number, outcome in zip(indices, outcomes, strict=True):
            rankings[number] = self._read(queries[number], outcome, most)
        return rankings

    def _read(self, query: RankingQuery, outcome: Outcome, most: int) -> list[RankedRelation]:
        self.counts["asked"] += 1
        completion = outcome.completion
        if completion is None or completion.finish == "error":
            self.counts["failed"] += 1
            return []
        ranking = read_ranking(completion.text, query.relations, most)
        self.counts["unknown_lines"] += len(ranking.unknown)
        self.counts["named"] += len(ranking.indices)
        self.counts["silent"] += not ranking.indices
        self.unknown += ranking.unknown[: SHOWN - len(self.unknown)]
        return [_ranked_relation(index, rank) for rank, index in enumerate(ranking.indices)]


def _ranked_relation(index: int, rank: int) -> RankedRelation:
    return index, round(1 / (rank + 1), DECIMALS)


_BULLET = re.compile(r"^(?:[-*+•‣◦·–—>#]+|\(?\d{1,3}\s*[.):\]]|\(?[a-zA-Z][.)])\s+|^(?:[•‣◦·]|\d{1,3}[.):\]])\s*")
_HEADING = re.compile(r"^(?:relations?|rank(?:ing)?)\s*\d*\s*:\s*", re.IGNORECASE)
_AFTER = re.compile(r"\s+[-–—]\s+|\s*[:=]\s|\s+\(|\s*→\s*|\s+->\s+")
_AROUND = "\"'`´‘’“”„«»‹›<>*_[](){} \t.,;:"
_PAIRS = (("<<<", ">>>"), ("**", "**"), ('"', '"'), ("'", "'"), ("`", "`"), ("“", "”"), ("«", "»"), ("[", "]"))


@dataclass(frozen=True)
class ParsedRanking:
    """The candidates that an output names.

    indices: candidates in the order in which they are named.  unknown: lines that name none, as they stand.
    """

    indices: tuple[int, ...]
    unknown: tuple[str, ...]


def read_ranking(text: str, candidates: Sequence[str], most: int) -> ParsedRanking:
    """The first `most` candidates that the lines of a text name, and the lines that name none."""
    exact, folded = dict[str, list[int]](), dict[str, list[int]]()
    for index, candidate in enumerate(candidates):
        exact.setdefault(" ".join(candidate.split()), []).append(index)
        folded.setdefault(fold(candidate), []).append(index)
    chosen: dict[int, None] = {}
    unknown: list[str] = []

    def take(name: str) -> bool:
        indices = exact.get(" ".join(name.split())) or folded.get(fold(name)) or []
        free = [index for index in indices if index not in chosen]
        if free:
            chosen[free[0]] = None
        return bool(indices)

    for line in text.splitlines():
        stripped = line.strip()
        if not stripped or not fold(stripped):
            continue
        if any(take(form) for form in _forms(stripped)):
            continue
        bare = _HEADING.sub("", stripped)
        named = [part for part in re.split(r"[,;|、，；]", bare.replace("<<<", "").replace(">>>", "")) if fold(part)]
        hits = [part for part in named if any(_known(form, exact, folded) for form in _forms(part.strip()))]
        if len(named) > 1 and hits:
            for part in hits:
                any(take(form) for form in _forms(part.strip()))
            continue
        if any(take(form) for form in _shortened(stripped)):
            continue
        unknown.append(stripped)
    return ParsedRanking(tuple(chosen)[:most], tuple(unknown))


def fold(text: str) -> str:
    """A name as it is compared: width, case, underscores, blanks and outer signs do not count.

    >>> fold(" `Place_of  birth`. ")
    'place of birth'
    """
    plain = unicodedata.normalize("NFKC", text).casefold().replace("_", " ")
    inverse = plain.strip(_AROUND.replace("<", "")).startswith("<inv>-")
    if inverse:
        plain = plain.strip(_AROUND.replace("<", "")).removeprefix("<inv>-")
    return ("<inv>-" if inverse else "") + " ".join(plain.strip(_AROUND).split())


def _known(form: str, exact: dict[str, list[int]], folded: dict[str, list[int]]) -> bool:
    return " ".join(form.split()) in exact or fold(form) in folded


def _forms(line: str) -> Iterator[str]:
    """A line with less and less around it."""
    yield line
    seen = {line}
    waiting = [line]
    while waiting:
        form = waiting.pop(0)
        for less in (*_unwrapped(form), _BULLET.sub("", form, count=1), _HEADING.sub("", form, count=1)):
            short = less.strip()
            if short and short not in seen:
                seen.add(short)
                waiting.append(short)
                yield short


def _unwrapped(form: str) -> Iterator[str]:
    for left, right in _PAIRS:
        if form.startswith(left) and form.endswith(right) and len(form) > len(left) + len(right):
            yield form[len(left) : -len(right)]
    if form[-1:] in ".,;:":
        yield form[:-1]


def _shortened(line: str) -> Iterator[str]:
    """A line up to each sign after which an explanation may stand, the longest first."""
    for form in list(_forms(line)):
        for cut in sorted((match.start() for match in _AFTER.finditer(form)), reverse=True):
            yield from _forms(form[:cut].strip()) if form[:cut].strip() else ()
