"""The title moves only to a system that is better by more than luck."""

from __future__ import annotations

import pytest

from kgqa_core.runs.champion import (
    RELATION_RIGHT,
    Challenger,
    ChampionDecision,
    Corrected,
    Corrections,
    decide,
    in_order,
)
from tests.support.finished import Rows, binary, questions, score_frame


def contender(name: str, rows: Rows, number: int = 200, text: str = "What is") -> Challenger:
    asked = questions([f"{text} {n}?" for n in range(number)])
    return Challenger(name, score_frame(rows, asked))


def duel(old: list[float], new: list[float], **options: object) -> ChampionDecision:
    statistics = {name: options.pop(name) for name in ("level", "seed") if name in options}
    new_one, old_one = contender("new", binary(new), len(new)), contender("old", binary(old), len(old))
    return decide(new_one, old_one, metric="hits_at_1", corrections=Corrections(**options), **statistics)


def test_first_run_becomes_champion() -> None:
    decision = decide(contender("new", binary([1, 0] * 100)), None, metric="hits_at_1")
    assert decision.moved and decision.champion_run == "new" and decision.against is None
    assert "50.0" in decision.why


def test_clearly_better_run_takes_the_title() -> None:
    decision = duel([0] * 100 + [1] * 100, [1] * 140 + [1] * 60)
    assert decision.moved and decision.champion_run == "new" and decision.against == "old"
    assert decision.low is not None and decision.low > 0
    assert decision.why.startswith("champion moves: +50.0 points [+4")


def test_luck_within_the_interval_does_not_move_the_title() -> None:
    old = [1.0] * 100 + [0.0] * 100
    new = [1.0] * 94 + [0.0] * 6 + [1.0] * 9 + [0.0] * 91  # 9 won, 6 lost
    decision = duel(old, new)
    assert not decision.moved and decision.champion_run == "old"
    assert decision.difference == pytest.approx(0.015)
    assert decision.low is not None and decision.high is not None and decision.low < 0 < decision.high
    assert decision.why.startswith("champion stays: +1.5 points [−") and decision.n == 200


def test_ties_and_worse_runs_do_not_move_it() -> None:
    same = [1.0, 0.0] * 100
    tie = duel(same, same)
    assert not tie.moved and (tie.low, tie.difference, tie.high) == (0, 0, 0)
    assert "0.0 points [0.0, 0.0]" in tie.why
    worse = duel([1.0] * 200, [0.0] * 200)
    assert not worse.moved and worse.high is not None and worse.high < 0


def test_a_few_won_questions_do_not_move_the_title_though_the_interval_lies_above_0() -> None:
    decision = duel([0.0] * 4 + [1.0] * 996, [1.0] * 1000)
    assert not decision.moved and decision.champion_run == "old" and decision.low is not None and decision.low > 0
    assert decision.why.endswith("1,000 questions, but p = 0.125 (McNemar) is not below 0.05")
    assert duel([0.0] * 6 + [1.0] * 994, [1.0] * 1000).moved  # p = 0.031
    graded = duel([0.1] * 4 + [1.0] * 996, [1.0] * 1000)
    assert graded.moved and graded.p is None


def test_more_held_out_corrections_move_the_title_where_nothing_shows_a_loss() -> None:
    even = [1.0, 0.0] * 100
    moved = duel(even, even, compare=lambda old, new: Corrected(3, 0, 2))
    assert moved.moved and moved.champion_run == "new"
    assert moved.why == (
        "champion moves: 2 instead of 0 of 3 held-out corrections are right, and nothing shows a loss: "
        "0.0 points [0.0, 0.0] on hits_at_1 of rigel/-/-, 200 questions"
    )
    same = duel(even, even, compare=lambda old, new: Corrected(3, 2, 2))
    assert not same.moved and "2 instead of 2 of 3 held-out corrections are right; 0.0 points" in same.why
    assert not duel(even, even, compare=lambda old, new: None).moved


WORSE = ([1.0] * 200, [0.0] * 20 + [1.0] * 180)


def test_corrected_questions_do_not_outweigh_a_loss() -> None:
    def ask(old: str, new: str) -> Corrected:
        return Corrected(3, 0, 3)

    stays, moves = (duel(*scores, compare=ask) for scores in (WORSE, WORSE[::-1]))
    assert not stays.moved and stays.why.startswith(
        "champion stays: 3 instead of 0 of 3 held-out corrections are right; −"
    )
    assert moves.moved and moves.why.startswith("champion moves: 3 instead of 0 of 3 held-out corrections are right; +")


def test_a_relation_that_is_lost_blocks_what_corrections_or_other_relations_gain() -> None:
    names = [f"q{n:03}" for n in range(200)]
    asked = {one.id: text for one, text in zip(questions([f"What is {n}?" for n in range(200)]), names, strict=True)}
    ids = list(asked)

    def decision(old: list[float], new: list[float], right: int, **options: object) -> ChampionDecision:
        relations = {name: ("rare",) if n < right else ("common",) for n, name in enumerate(ids)}
        return duel(old, new, compare=lambda old, new: Corrected(3, 0, 2), relations=relations, **options)

    rest = [1.0, 0.0] * 100
    for before, after, lost in ((2, 0, True), (3, 1, True), (2, 1, False), (4, 2, False), (1, 0, False)):
        old, new = ([1.0] * count + [0.0] * (before - count) + rest[before:] for count in (before, after))
        found = decision(old, new, before)
        assert found.moved != lost, (before, after)
        assert (f"relations are lost: rare ({after} instead of {before} right); " in found.why) == lost
    old, new = [1.0] * RELATION_RIGHT + [0.0] * 198, [0.0] * RELATION_RIGHT + [1.0] * 198
    assert not decision(old, new, RELATION_RIGHT).moved, "though all else is better"
    assert duel(old, new).moved, "no correction was trained on"
    assert decision(old, new, RELATION_RIGHT, withdrawn=True).moved


def test_level_of_confidence_decides_the_doubtful_case() -> None:
    old = [0.0] * 14 + [1.0] * 186
    new = [1.0] * 10 + [0.0] * 4 + [1.0] * 183 + [0.0] * 3  # 10 won, 3 lost
    assert duel(old, new, level=0.9).moved
    assert not duel(old, new, level=0.99).moved


def test_the_answers_of_what_computes_count_before_those_of_a_retriever() -> None:
    lists = binary([0.5] * 200, "hop_path@linked/-/-")
    weak, strong = ([1.0] * ones + [0.0] * (200 - ones) for ones in (100, 160))

    def system(name: str, exact: list[float]) -> Challenger:
        rows = {**lists, **binary(exact, "hop_path@linked/triples/auto", "exact")}
        return Challenger(name, score_frame(rows, questions([f"What is {n}?" for n in range(200)])))

    old, new = system("old", weak), system("new", strong)
    moved = decide(new, old, answerer="auto")
    assert moved.moved and (moved.metric, moved.experiment) == ("exact", "hop_path@linked/triples/auto")
    assert decide(new, None, answerer="auto").metric == "exact"
    without = decide(new, old)
    assert not without.moved and (without.metric, without.experiment) == ("hits_at_1", "hop_path@linked/-/-")
    plain = contender("plain", lists)
    assert decide(new, plain, answerer="auto").metric == "hits_at_1", "the old one has no such answers"
    named = decide(new, old, answerer="auto", metric="hits_at_1")
    assert (named.metric, named.experiment) == ("hits_at_1", "hop_path@linked/-/-")


def test_only_questions_that_both_scored_count() -> None:
    old = contender("old", binary([0.0] * 200))
    new = contender("new", binary([1.0] * 40), 40)
    decision = decide(new, old, metric="hits_at_1")
    assert decision.moved and decision.n == 40


def test_too_few_shared_questions_move_nothing() -> None:
    decision = duel([0.0] * 9, [1.0] * 9)
    assert not decision.moved and "only 9 scored questions" in decision.why
    assert duel([0.0] * 10, [1.0] * 10).moved


def test_another_question_set_moves_nothing_even_with_the_same_ids() -> None:
    old = contender("old", binary([0.0] * 200))
    new = contender("new", binary([1.0] * 200), text="Who was")
    decision = decide(new, old, metric="hits_at_1")
    assert not decision.moved and decision.champion_run == "old"
    assert "share no scored questions" in decision.why


def test_missing_metric_or_experiment_is_said() -> None:
    old, new = contender("old", binary([0.0] * 200)), contender("new", binary([1.0] * 200))
    missing = decide(new, old, metric="bleu")
    assert not missing.moved and "run new has no 'bleu'" in missing.why and missing.champion_run == "old"
    elsewhere = decide(new, old, metric="hits_at_1", experiment="kaping/-/-")
    assert not elsewhere.moved and "'kaping/-/-'" in elsewhere.why
    nobody = decide(new, None, metric="bleu")
    assert not nobody.moved and nobody.champion_run is None and nobody.why.startswith("no champion: ")
    lacking = decide(new, contender("old", binary([0.0] * 200, metric="exact")), metric="hits_at_1")
    assert not lacking.moved and "run old has no" in lacking.why


def test_same_seed_gives_the_same_interval() -> None:
    old, new = [1.0, 0.0, 0.0] * 60, [0.0, 1.0, 1.0] * 60
    assert duel(old, new, seed=3) == duel(old, new, seed=3)
    assert duel(old, new, seed=3, level=0.8) == duel(old, new, seed=3, level=0.8)


def test_yardsticks_never_decide_while_a_retriever_is_there() -> None:
    rows = {**binary([1.0], "oracle/-/-"), **binary([0.0], "rigel/-/-"), **binary([0.0], "kaping/-/-", "exact")}
    rows |= binary([0.0], "rigel/triples/builtin", "exact")
    frame = score_frame(rows, questions(["What?"]))
    order = in_order(["oracle", "kaping", "rigel"], frame)
    assert order == ("kaping/-/-", "rigel/-/-", "oracle/-/-", "rigel/triples/builtin")


def test_points_of_tags_can_be_read() -> None:
    tags = duel([0.0] * 100, [1.0] * 50 + [0.0] * 50).tags()
    assert tags["kgqa.champion"] == "moved" and tags["kgqa.champion_run"] == "new"
    assert tags["kgqa.champion_difference"].startswith("+0.5000 [+0.4")
