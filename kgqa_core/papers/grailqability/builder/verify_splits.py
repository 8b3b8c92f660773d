"""The verifier's rules of splits: sizes, shares, what splits share, levels, and the shares of zero-shot questions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from kgqa_core.logic.forms import elements
from kgqa_core.logic.normalise import normalise
from kgqa_core.papers.grailqability.builder.checks import Case, Checks
from kgqa_core.papers.grailqability.builder.records import FULL, IID, PARTIAL, Benchmark, BenchmarkQuestion
from kgqa_core.types import SPLITS

SPLIT_SLACK, SHARE_SLACK = 0.005, 0.01
"""How far a split's size, and its share of unanswerable questions, may be from what was requested."""
ZERO_SHOT_SLACK = 0.05
"""How much more may be zero-shot than requested, for what is divided between dev and test is so by chance too."""


def check_splits(
    checks: Checks, benchmark: Benchmark, cases: Sequence[Case], touched: Sequence[frozenset[int]]
) -> None:
    """Checks sizes, shares, what splits share and levels.  touched: steps that touch each question."""
    goals = benchmark.statistics["goals"]
    for row in benchmark.statistics["splits"]:
        questions = [case.question for case in cases if row["split"] in (case.question.split, "all")]
        counted = {"questions": len(questions), "U": sum(not question.answerable for question in questions),
                "NK": sum(question.s_expression is None for question in questions)}  # fmt: skip
        checks.that(
            "the tables count what is there", counted == {name: row[name] for name in counted},
            f"{row['split']}: {counted} are not what statistics.json says",
        )  # fmt: skip
    sizes = Counter(case.question.split for case in cases)
    lost = Counter(case.question.split for case in cases if not case.question.answerable)
    share = sum(lost.values()) / len(cases)
    keys = [str(normalise(case.form)) for case in cases]
    largest = max(Counter(keys).values())
    checks.that(
        "the share of unanswerable questions is p_u",
        abs(share - goals["p_u"]) <= SHARE_SLACK + largest / len(cases), f"{share:.3f} of {goals['p_u']}",
    )  # fmt: skip
    for name, part in zip(SPLITS, goals["splits"], strict=True):
        slack = largest / len(cases)
        have = sizes[name] / len(cases)
        checks.that(
            "splits have their shares", abs(have - part / sum(goals["splits"])) <= SPLIT_SLACK + slack,
            f"{name} has {have:.3f}, not {part}",
        )  # fmt: skip
        inside = lost[name] / max(1, sizes[name])
        checks.that(
            "every split has the share of unanswerable questions",
            abs(inside - share) <= SHARE_SLACK + largest / max(1, sizes[name]),
            f"{name} has {inside:.3f}, all {share:.3f}",
        )
    indices: dict[str, set[str]] = {}
    for key, case in zip(keys, cases, strict=True):
        indices.setdefault(key, set()).add(case.question.split)
    for form, where in sorted(indices.items()):
        checks.that("a form is in one split", len(where) == 1, f"{form} is in {sorted(where)}")
    in_train = frozenset().union(
        *(steps for case, steps in zip(cases, touched, strict=True) if case.question.split == SPLITS[0])
    )
    shown = frozenset(part for case in cases if case.question.split == SPLITS[0] for part in _schema(case))
    for case in cases:
        level = None
        if case.question.split != SPLITS[0] and not case.question.answerable:
            missing = set(case.ideal.missing)
            level = IID if missing <= in_train else PARTIAL if missing & in_train or _schema(case) & shown else FULL
        checks.that(
            "levels are what training has seen", case.ideal.level == level,
            f"{case.question.id} is {case.ideal.level}, but it is {level}",
        )  # fmt: skip
        if case.ideal.level not in (None, IID):
            new = set(case.ideal.missing) - in_train
            checks.that(
                "a zero-shot question misses something that no training question touches", bool(new),
                f"{case.question.id} misses {case.ideal.missing[:5]}",
            )  # fmt: skip
        if case.question.split == SPLITS[0] and case.question.s_expression is None:
            checks.that(
                "training shows no ideal form of a question whose form is gone",
                case.ideal.s_expression not in _shown(case.question), f"{case.question.id} shows it",
            )  # fmt: skip


def check_shares(checks: Checks, benchmark: Benchmark, cases: Sequence[Case]) -> None:
    """Checks how many of what dev and test cannot answer is zero-shot, and how much of that is full, or why not.

    Where the benchmark says what stood in the way, that is counted again: the questions whose forms have these
    relations and types must be more than dev and test have room for.
    """
    goals, record = benchmark.statistics["goals"], benchmark.statistics.get("full_zero_shot")
    if record is None:
        return  # made before shares were recorded
    lost = [case.ideal.level for case in cases if case.question.split != SPLITS[0] and not case.question.answerable]
    full, zero_shot = lost.count(FULL), lost.count(FULL) + lost.count(PARTIAL)
    checks.that(
        "the shares of zero-shot questions are what the statistics say",
        (record["reached"], record["zero_shot"]) == (full, zero_shot),
        f"{full} full of {zero_shot} zero-shot questions are not {record['reached']} of {record['zero_shot']}",
    )
    most = round(goals["zero_shot"] * len(lost) * (1 + ZERO_SHOT_SLACK)) + 1
    checks.that("no more is zero-shot than requested", zero_shot <= most, f"{zero_shot} of {len(lost)} are, not {most}")
    short = full < record["wanted"]
    requested = goals["full"] * goals["zero_shot"] * len(lost)
    checks.that(
        "the share of full zero-shot questions is reached, or the statistics say why not",
        bool(record["why_not_more"]) == short and record["wanted"] >= (1 - ZERO_SHOT_SLACK) * requested - 1,
        f"{full} of {requested:.0f} requested ({record['wanted']} wanted), why_not_more: {record['why_not_more']!r}",
    )
    if not short or record["obstacle"] is None:
        return
    obstacle, room = record["obstacle"], record["room"]
    parts = {f"r{key}" for key in obstacle["relations"]} | {f"t{key}" for key in obstacle["types"]}
    answerable = [case.question.answerable for case in cases if _schema(case) & parts]
    held = 1 - goals["splits"][0] / sum(goals["splits"])
    checks.that(
        "dev and test have no room for what would make more questions full zero-shot",
        any(obstacle[name] > room[name] for name in room)
        and answerable.count(True) <= obstacle["answerable"]
        and answerable.count(False) <= obstacle["unanswerable"]
        and room["answerable"] + room["unanswerable"] <= held * len(cases) + 1,
        f"{sorted(parts)[:3]} are in "
        f"{answerable.count(True)} answerable and {answerable.count(False)} unanswerable questions; "
        f"the statistics say {obstacle['answerable']} and {obstacle['unanswerable']}, and room {room}",
    )


def _schema(case: Case) -> frozenset[str]:
    """Relations and types of a form, with a letter for their kind."""
    used = elements(case.form)
    return frozenset([*(f"r{key}" for key in used.relations), *(f"t{key}" for key in used.classes)])


def _shown(question: BenchmarkQuestion) -> str:
    """Everything that training reads of a question but its text and topics."""
    return " ".join((str(question.s_expression), *question.answers))
