"""Forecasts: what a corpus will ask, less what the cache holds, at measured or stated lengths."""

from __future__ import annotations

from pathlib import Path

import pytest

from kgqa_core.config import CorpusOptions, LlmOptions, Price
from kgqa_core.datasets.files.question import read_questions
from kgqa_core.llm.cache import Identity, Request, ResponseCache, open_cache
from kgqa_core.llm.forecast import REJECTED, TEXTS, Measured, Wanted, measure, opening_of, plan, repeated
from kgqa_core.llm.paid import ask
from kgqa_core.llm.protocol import Completion, GenerationParams
from kgqa_core.llm.tokens import counter
from kgqa_core.prompts import REWRITE, answer_prompt
from kgqa_core.rewriting import validate
from kgqa_core.rewriting.alpaca import read_pairs
from kgqa_core.rewriting.forecast import plan_corpus
from kgqa_core.rewriting.teacher import judged
from kgqa_core.rewriting.template import paragraph, sentences
from tests.unit.rewriting.test_corpus import Fake, answer, make_world, tell


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_world(tmp_path_factory.mktemp("world"))


PARAMS = GenerationParams(max_new_tokens=50)
IDENTITY = Identity("openai", "http://localhost/v1", "stub", "stub")
MODEL = "openai:stub"


def llm(**more: object) -> LlmOptions:
    return LlmOptions.model_validate({"base_url": "http://localhost/v1", "attempts": 2, **more})


def filled(cache: ResponseCache, number: int, *, spent: int = 0, slope: int = 2) -> None:
    """Completions of prompts of 1, 2, … words, whose lengths are 3 + slope words."""
    for place in range(number):
        prompt = "Tell " + "x " * place
        request = Request(IDENTITY, PARAMS, prompt)
        cache.put(request, Completion("text", "stop", 2 * (place + 1), 3 + slope * (place + 1)))
        if place < spent:
            cache.put(Request(IDENTITY, PARAMS, prompt, attempt=1), Completion("%", "stop", 2, 1), "garbage")
    cache.flush()


def count(text: str) -> int:
    return len(text.split())


def test_a_model_is_measured_on_its_own_completions_of_the_template() -> None:
    cache = ResponseCache()
    filled(cache, 24, spent=6)
    other = Request(Identity("openai", "http://localhost/v1", "other", "other"), PARAMS, "Tell y")
    cache.put(other, Completion("text", "stop", 900, 900))
    cache.put(Request(IDENTITY, PARAMS, "Ask y"), Completion("text", "stop", 900, 900))
    cache.put(Request(IDENTITY, GenerationParams(max_new_tokens=9), "Tell z"), Completion("text", "stop", 900, 900))
    found = measure(cache, IDENTITY, "Tell", PARAMS, count)
    assert (found.completions, found.prompt_ratio, found.spent) == (24, 2.0, 0.2)
    assert (round(found.base, 9), round(found.slope, 9)) == (3.0, 2.0)
    assert found.seconds is not None and found.seconds < 10


@pytest.mark.parametrize("number", [0, 19])
def test_too_few_completions_measure_nothing(number: int) -> None:
    cache = ResponseCache()
    filled(cache, number)
    found = measure(cache, IDENTITY, "Tell", PARAMS, count)
    assert not found.enough and (found.prompt_ratio, found.spent, found.seconds) == (1.0, 0.0, None)
    assert measure(None, IDENTITY, "Tell", PARAMS, count) == measure(cache, None, "Tell", PARAMS, count) == Measured()


def test_a_plan_multiplies_out_repeats_lengths_prices_and_time() -> None:
    wanted = Wanted()
    wanted.add(10, 99)
    wanted.add(20, 99, 0.5)
    measured = Measured(30, prompt_ratio=1.5, base=4, slope=1, spent=0.2, seconds=0.25)
    prices = {MODEL: Price(prompt=1e6, completion=1e6)}
    found = plan("s", MODEL, wanted, measured, llm(prices=prices, tokenizers={MODEL: "builtin"}), PARAMS, attempts=2)
    assert found.calls == 2, "one and a half prompts, each asked 1.2 times, rounded up"
    assert found.prompt_tokens == round(1.2 * 1.5 * (10 + 10)) and found.completion_tokens == round(1.2 * (14 + 12))
    assert found.cost == pytest.approx(1.2 * (30 + 26)) and found.seconds == pytest.approx(1.8 * 0.25)
    assert found.counted and found.assumptions == ()


def test_a_plan_says_what_it_assumes() -> None:
    wanted = Wanted()
    wanted.add(10, 7)
    found = plan("s", MODEL, wanted, Measured(), llm(concurrency=4), PARAMS, attempts=3, assumed="short answers")
    assert (found.calls, found.prompt_tokens, found.completion_tokens, found.cost) == (1, 10 + 7, 7, None)
    assert found.seconds == 0.5 and not found.counted
    assert [each.split()[0] for each in found.assumptions] == ["tokens", "short", "7", "no", "2"]
    assert plan("s", MODEL, Wanted(), Measured(), llm(), PARAMS, attempts=3).assumptions == ()


def test_a_guess_comes_with_its_range_and_a_measurement_without() -> None:
    wanted = Wanted()
    wanted.add(100, 20, text=40)
    wanted.add(50, 20, 0.2, unsure=True)
    prices = {MODEL: Price(prompt=1e6, completion=1e6)}
    given = llm(tokenizers={MODEL: "builtin"}, prices=prices)
    found = plan("s", MODEL, wanted, Measured(), given, PARAMS, attempts=2)
    assert found.low is not None and found.high is not None
    assert (found.low.calls, found.calls, found.high.calls) == (1, 2, 3)
    assert (found.low.prompt_tokens, found.low.completion_tokens) == (100 - 20, 10), "half a text; not asked again"
    assert found.prompt_tokens == round(100 + 7 + 0.2 * (50 + 7)) and found.completion_tokens == 24
    assert found.high.prompt_tokens == round(1.1 * (140 + 30 + 50 + 30)), "every text twice, one in ten asked again"
    assert found.high.completion_tokens == 88 and found.high.cost == pytest.approx(1.1 * (250 + 80))
    estimated = plan("s", MODEL, wanted, Measured(), llm(), PARAMS, attempts=2)
    assert estimated.high is not None and estimated.high.prompt_tokens > 1.3 * found.high.prompt_tokens
    whole = Wanted()
    whole.add(100, 20)
    measured = plan("s", MODEL, whole, Measured(30, base=5), llm(), PARAMS, attempts=2)
    assert (measured.low, measured.high) == (None, None)
    assert [each.split()[0] for each in measured.assumptions] == ["2"], "tokens are the server's own by now"


def test_outputs_are_never_longer_than_allowed() -> None:
    wanted = Wanted()
    wanted.add(1000, 7)
    found = plan("s", MODEL, wanted, Measured(30, base=5, slope=1), llm(), PARAMS)
    assert found.completion_tokens == 50


@pytest.mark.parametrize(("share", "attempts", "calls"), [(0.0, 3, 1.0), (0.5, 1, 1.0), (0.5, 3, 1.75), (1.0, 3, 3.0)])
def test_repeats_follow_the_share_of_rejected_attempts(share: float, attempts: int, calls: float) -> None:
    assert repeated(share, attempts) == calls


def test_the_opening_of_a_template_ends_where_it_is_filled_in() -> None:
    assert REWRITE.startswith(opening_of(REWRITE, "{triples}")) and "{" not in opening_of(REWRITE, "{triples}")


OPTIONS = CorpusOptions(teacher=MODEL, qa_model=MODEL, size=999)


def behind_an_endpoint(model: Fake) -> None:
    model.name, model.revision = MODEL, "stub"
    model.__dict__ |= {"address": "http://localhost/v1", "model": "stub"}


def planned(folder: Path, cache: Path | None, options: CorpusOptions = OPTIONS) -> list[tuple[str, int, int]]:
    parts = (folder / name for name in ("kg", "dkg", "questions"))
    return [(each.stage, each.calls, each.cached) for each in plan_corpus(*parts, options, llm(), 3, cache)]


def test_a_corpus_is_forecast_call_by_call_and_less_by_what_the_cache_holds(
    world: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from kgqa_core.rewriting import corpus

    cache, model = (
        tmp_path / "cache",
        Fake(lambda prompt, seed: (tell if "graph is" in prompt else answer)(prompt, seed)),
    )
    behind_an_endpoint(model)
    assert planned(world, None) == planned(world, cache) == [("corpus/teacher", 61, 0), ("corpus/qa", 81, 0)]
    monkeypatch.setattr(corpus, "load_model", lambda spec, llm, budget=None: model)

    def run(size: int) -> None:
        (tmp_path / str(size)).mkdir()
        parts = {name: world / name for name in ("kg", "dkg", "questions")}
        options = OPTIONS.model_copy(update={"size": size})
        corpus.generate(tmp_path / str(size), **parts, options=options, llm=llm(), seed=3, cache=cache)

    run(30)
    sent = len(model.prompts)
    rest = planned(world, cache)
    assert rest[0][1] + rest[1][1] == 61 + 81 - sent and rest[0][2] + rest[1][2] >= sent
    run(999)
    assert len(model.prompts) == 61 + 81, "what was forecast is what is asked"
    assert [calls for _, calls, _ in planned(world, cache)] == [0, 0]


def test_further_candidates_are_forecast_for_the_share_that_fails(world: Path) -> None:
    three = OPTIONS.model_copy(update={"candidates": 3})
    assert planned(world, None, three) == [("corpus/teacher", 183, 0), ("corpus/qa", 101, 0)], "81 × (1 + 0.2 + 0.04)"


def test_answers_that_are_there_say_how_many_texts_are_asked_about_again(world: Path, tmp_path: Path) -> None:
    """The second texts of those that the QA model did not answer from are asked about, and so many of the rest."""
    from kgqa_core.rewriting import forecast

    three = OPTIONS.model_copy(update={"candidates": 3, "qa_model": "openai:reader"})
    teacher = Fake(lambda prompt, seed: tell(prompt, seed) + ("" if seed is None else " Indeed."))
    reader = Fake(lambda prompt, seed: "nobody" if "Who" in prompt else answer(prompt, seed), name="openai:reader")
    behind_an_endpoint(teacher)
    reader.revision, reader.__dict__["address"], reader.__dict__["model"] = "reader", "http://localhost/v1", "reader"
    parts = [world / name for name in ("kg", "dkg", "questions")]
    models = {MODEL: teacher, "openai:reader": reader}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(forecast, "load_model", lambda spec, llm, budget=None: models[spec])
        forecast.pilot_corpus(*parts, three, llm(), 3, tmp_path, 40)  # type: ignore[arg-type]
    assert len(reader.prompts) == 40 and len(teacher.prompts) == 3 * len(set(teacher.prompts))
    plans = plan_corpus(*parts, three, llm(), 3, tmp_path)  # type: ignore[arg-type]
    by_text = {question.text: question for question in read_questions(world / "questions")}
    missed = sum(
        not judged(by_text[prompt.rpartition(" Question: ")[2].removesuffix(" Answer:")], Completion(output)).hit
        for prompt, output in zip(reader.prompts, (reader.reply(each, None) for each in reader.prompts), strict=True)
    )  # fmt: skip
    share = missed / 40
    again = missed + 41 * (1 + share + share**2)  # their third texts are their second
    assert plans[1].cached == 40 and abs(plans[1].calls - again) <= 2
    assert not any("answered from" in each for each in plans[1].assumptions)


def test_the_template_teacher_and_an_imported_corpus_ask_nobody(world: Path) -> None:
    assert [name for name, _, _ in planned(world, None, OPTIONS.model_copy(update={"teacher": "template"}))] == [
        "corpus/qa"
    ]
    assert planned(world, None, OPTIONS.model_copy(update={"alpaca_file": "pairs.json"})) == []


def test_measured_lengths_replace_the_templates(world: Path, tmp_path: Path) -> None:
    """After a pilot with long-winded texts, the rest is forecast long."""
    from kgqa_core.rewriting.teacher import teacher_params

    cache = open_cache(tmp_path)
    preamble = "As was told before, and again. " * 20
    teacher = Fake(lambda prompt, seed: Completion(preamble + tell(prompt, seed), "stop", len(prompt), 200))
    behind_an_endpoint(teacher)
    opening = opening_of(REWRITE, "{triples}")
    prompts = [f"{opening}(A{number}, b, C). The sentence is:" for number in range(25)]
    ask(teacher, prompts, teacher_params(OPTIONS), cache=cache)
    parts = [world / name for name in ("kg", "dkg", "questions")]
    found = plan_corpus(*parts, OPTIONS, llm(), 3, tmp_path)  # type: ignore[arg-type]
    before = plan_corpus(*parts, OPTIONS, llm(), 3, None)  # type: ignore[arg-type]
    assert found[0].completion_tokens == 200 * 61 > before[0].completion_tokens
    assert found[1].prompt_tokens > before[1].prompt_tokens + 100 * 61, (
        "longer texts make longer questions to the QA model"
    )


@pytest.mark.slow
@pytest.mark.parametrize("data_set", ["MetaQA", "WQSP", "ZJQA"])
def test_what_chatgpt_wrote_is_within_a_tenth_of_the_first_forecast(shared_data: Path, data_set: str) -> None:
    """T1, text and T2 of every published pair, counted with the packaged tokenizer; no completion is seen before."""
    pairs = read_pairs(shared_data / "rra_kg2text/finetune-llama" / data_set / "dev.json")
    count, _ = counter("builtin", LlmOptions())
    forecast = real = within = rejected = 0
    good = [pair for pair in pairs if pair.fault is None and pair.named]
    for pair in good:
        expected = paragraph(sentences(pair.named, pair.language), pair.language)
        around = count(pair.instruction) + count(answer_prompt("who is the first of them", ".", "rra2023"))
        forecast += around + 2 * count(expected)
        real += around + 2 * count(pair.text)
        within += TEXTS[0] <= count(pair.text) / count(expected) <= TEXTS[1]
        rejected += validate.reject(pair.text, pair.named, pair.language) is not None
    print(f"{data_set}: {len(good)} texts, {forecast / real - 1:+.1%}; {within / len(good):.1%} within, {rejected} bad")
    assert len(good) > 1000 and abs(forecast / real - 1) <= 0.1
    assert within / len(good) >= 0.97 and rejected / len(good) <= REJECTED
