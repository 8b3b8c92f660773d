"""Does a language model's output answer the question?  Containment, equality and sets of names.

Every metric takes `GoldAnswers` and an output and returns a number in [0, 1]; higher is better.  A gold answer is a
tuple of its name and aliases.  Names that normalise to nothing never match, and a question without gold answers
scores 0.

Hits are told apart: *Hit* is any gold answer anywhere in the output, *Hits@1* the first one that it lists, and whole
sets are compared by `exact` and `f1`.

    contains             Hit, Sen et al. 2023: a name or alias occurs in the output, on token boundaries
    contains_substring   the same as plain substring ("4" occurs in "14", "no" in "Norway")
    hit_rra              Hit, Wu et al. 2023 (they call it hit@1): a name occurs in the output, both only lower-cased
    hit_rra_substring    the same as plain substring, as published
    hits_at_1            Hits@1: the first answer that the output lists is a gold one
    exact                the output is a name or alias, or lists every gold answer and nothing else
    f1                   harmonic mean of precision and recall over the set of answers named in the output

`contains` implies `contains_substring`, `hit_rra` implies `hit_rra_substring`, `exact` implies `hits_at_1`,
which implies `contains`.

Knowledge match (Huang et al. 2024): how many of the reference answers a response names.

    km    any reference answer occurs in the output
    rkm   the share that does
    ekm   all do

so that km >= rkm >= ekm.  (The paper prints the 0 and 1 of KM and eKM the wrong way round, and in its Table 4 the
heads of eKM and rKM.)  An answer occurs where its name or one of its aliases is a run of tokens of the output, both
normalised as in `metrics.normalise`: km is `contains`.  Answers of the same first name count as one; a name that two
answers bear names both.  A question without gold answers scores 0.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from kgqa_core.metrics.normalise import is_cjk, join, tokens

_SEPARATOR = re.compile(r",(?!\d{3}(?!\d))|(?<!\d),|[;\n、，；]|\s(?:and|&)\s", re.IGNORECASE)

Tokens = tuple[str, ...]


class GoldAnswers:
    """Gold answers of one question, normalised once and used for every output.

    answers[i] holds the name (first) and the aliases of gold answer i.
    """

    __slots__ = ("groups", "lowered", "max_pieces", "names", "padded", "strings")

    def __init__(self, answers: Iterable[Sequence[str]]) -> None:
        given = [list(answer) for answer in answers]
        named = [names for answer in given if (names := [name for name in answer if tokens(name)])]
        self.names: frozenset[Tokens] = frozenset(tokens(name) for answer in named for name in answer)
        """Token tuples of every name and alias."""
        self.padded = tuple(sorted(_pad(name) for name in self.names))
        self.strings = tuple(sorted({join(name) for name in self.names}))
        self.lowered = tuple(sorted({answer[0].strip().lower() for answer in given if answer and tokens(answer[0])}))
        """Lower-cased first names, for the RRA metric, which knows no aliases."""
        self.groups: dict[Tokens, list[int]] = {}
        """Answers that bear a name; two answers with the same first name count as one."""
        first: dict[Tokens, int] = {}
        for answer in named:
            group = first.setdefault(tokens(answer[0]), len(first))
            for name in answer:
                bearers = self.groups.setdefault(tokens(name), [])
                if group not in bearers:
                    bearers.append(group)
        self.max_pieces = max((len(_pieces(name)) for answer in named for name in answer), default=0)

    @property
    def size(self) -> int:
        """Number of distinct gold answers."""
        return len({group for bearers in self.groups.values() for group in bearers})


def contains(gold: GoldAnswers, output: str) -> float:
    """1 when a name or alias of a gold answer occurs in the output as a run of tokens.

    Range 0 or 1, higher is better.  Both sides are normalised.  Source: Sen et al. 2023, section 4.
    """
    text = _pad(tokens(output))
    return float(any(name in text for name in gold.padded))


def contains_substring(gold: GoldAnswers, output: str) -> float:
    """1 when a name or alias of a gold answer is a substring of the output, also inside a word or number.

    Range 0 or 1, higher is better.  Both sides are normalised.  Source: Sen et al. 2023, section 4.
    """
    text = join(tokens(output))
    return float(any(name in text for name in gold.strings))


def hit_rra(gold: GoldAnswers, output: str) -> float:
    """1 when the lower-cased name of a gold answer occurs in the lower-cased output, not inside a word or number.

    Range 0 or 1, higher is better.  No aliases, no normalisation.  Source: Wu et al. 2023, on boundaries.
    """
    text = output.lower()
    return float(any(_stands_alone(name, text) for name in gold.lowered))


def hit_rra_substring(gold: GoldAnswers, output: str) -> float:
    """1 when the lower-cased name of a gold answer is a substring of the lower-cased output.

    Range 0 or 1, higher is better.  No aliases, no normalisation.  Source: Wu et al. 2023, who call
    it hit@1, though any place in the output counts.
    """
    text = output.lower()
    return float(any(name in text for name in gold.lowered))


def first_hit(gold: GoldAnswers, output: str) -> float:
    """1 when the first answer that the output lists is a gold one (Hits@1).

    Range 0 or 1, higher is better.  The output is cut as `f1` cuts it; the longest run of pieces from its beginning
    that equals a gold name is its first answer, so that "Trinidad and Tobago" is one.  A sentence around an answer is
    no answer: use `contains` for models that talk.
    """
    spans = [span for span in _pieces(output) if tokens(output[span[0] : span[1]])]
    ends = [end for _, end in spans[: gold.max_pieces]]
    return float(tokens(output) in gold.names or any(tokens(output[spans[0][0] : end]) in gold.names for end in ends))


def exact(gold: GoldAnswers, output: str) -> float:
    """1 when the whole output is a name or alias of a gold answer, or a list of all of them; numbers by value.

    Range 0 or 1, higher is better.  Both sides are normalised, so "1,234", "1234" and "1234.0" are equal.  A list is
    cut as `f1` cuts it; one that leaves a gold answer out, or names something else, is not exact.
    """
    return float(tokens(output) in gold.names or (gold.size > 1 and f1(gold, output) == 1.0))


def f1(gold: GoldAnswers, output: str) -> float:
    """Harmonic mean of precision and recall of the answers that the output lists.

    Range [0, 1], higher is better.  The output is cut at commas, semicolons, line breaks and the word "and".  From left
    to right, the longest run of pieces that equals a gold name counts as that answer ("Trinidad and Tobago" is one
    answer, not two); every other piece is one wrong answer.  Naming an answer twice counts once.  A sentence around an
    answer is not a name: use `contains` for models that talk.
    """
    spans = _pieces(output)
    matched: set[int] = set()
    wrong: set[Tokens] = set()
    here = 0
    while here < len(spans):
        for count in range(min(gold.max_pieces, len(spans) - here), 0, -1):
            bearers = gold.groups.get(tokens(output[spans[here][0] : spans[here + count - 1][1]]))
            if bearers:
                matched.add(next((bearer for bearer in bearers if bearer not in matched), bearers[0]))
                here += count
                break
        else:
            piece = tokens(output[spans[here][0] : spans[here][1]])
            if piece:
                wrong.add(piece)
            here += 1
    if not matched:
        return 0.0
    precision = len(matched) / (len(matched) + len(wrong))
    recall = len(matched) / gold.size
    return 2 * precision * recall / (precision + recall)


def _pad(words: Tokens) -> str:
    return " " + " ".join(words) + " " if words else ""


def _pieces(text: str) -> list[tuple[int, int]]:
    """Spans between separators, empty ones left out."""
    spans, start = [], 0
    for match in _SEPARATOR.finditer(text):
        spans.append((start, match.start()))
        start = match.end()
    spans.append((start, len(text)))
    return [(low, high) for low, high in spans if text[low:high].strip()]


def _stands_alone(name: str, text: str) -> bool:
    start = text.find(name)
    while start >= 0:
        end = start + len(name)
        if _is_boundary(text, start) and _is_boundary(text, end):
            return True
        start = text.find(name, start + 1)
    return False


def _is_boundary(text: str, at: int) -> bool:
    """Whether a token may begin or end between text[at - 1] and text[at]."""
    if at == 0 or at == len(text):
        return True
    left, right = text[at - 1], text[at]
    return not (left.isalnum() and right.isalnum()) or is_cjk(left) or is_cjk(right)


def km(gold: GoldAnswers, output: str) -> float:
    """1 when any reference answer occurs in the output.  Range 0 or 1, higher is better."""
    return float(bool(_named(gold, output)))


def rkm(gold: GoldAnswers, output: str) -> float:
    """Share of the reference answers that occur in the output.  Range [0, 1], higher is better."""
    return len(_named(gold, output)) / gold.size if gold.size else 0.0


def ekm(gold: GoldAnswers, output: str) -> float:
    """1 when all reference answers occur in the output.  Range 0 or 1, higher is better."""
    return float(0 < gold.size == len(_named(gold, output)))


def _named(gold: GoldAnswers, output: str) -> set[int]:
    """Answers of which a name occurs in the output."""
    text = _pad(tokens(output))
    return {bearer for name, bearers in gold.groups.items() if name and _pad(name) in text for bearer in bearers}
