"""Forecasts: what a corpus will ask, less what the cache holds, at measured or stated lengths."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kgqa_core.config import CorpusOptions, LlmOptions, Price
from kgqa_core.datasets.files.question import read_questions
from kgqa_core.llm.cache import Identity, Request, ResponseCache, open_cache
from kgqa_core.llm.forecast import (
    REJECTED,
    TEXTS,
    Amount,
    Assumed,
    CompletionStats,
    Recorder,
    measure,
    opening_of,
    repeated,
)
from kgqa_core.llm.paid import Expected, PromptBatch, generate_cached
from kgqa_core.llm.protocol import Completion, GenerationParams
from kgqa_core.llm.tokens import counter
from kgqa_core.prompts import REWRITE, answer_prompt, rewrite_prompt
from kgqa_core.rewriting import validate
from kgqa_core.rewriting.alpaca import read_pairs
from kgqa_core.rewriting.forecast import plan_corpus
from kgqa_core.rewriting.teacher import judged
from kgqa_core.rewriting.template import paragraph, sentences
from kgqa_core.workspace import Workspace
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
        prompt = "Tell them " + "x " * place
        request = Request(IDENTITY, PARAMS, prompt)
        cache.put(request, Completion("text", "stop", 2 * (place + 2), 3 + slope * (place + 2)))
        if place < spent:
            cache.put(Request(IDENTITY, PARAMS, prompt, attempt=1), Completion("%", "stop", 2, 1), "garbage")
    cache.flush()


def count(text: str) -> int:
    return len(text.split())


ASKED = ["Tell them y", "Tell them z"]


def test_a_model_is_measured_on_its_own_completions_of_the_template() -> None:
    cache = ResponseCache()
    filled(cache, 24, spent=6)
    other = Request(Identity("openai", "http://localhost/v1", "other", "other"), PARAMS, "Tell them y")
    cache.put(other, Completion("text", "stop", 900, 900))
    cache.put(Request(IDENTITY, PARAMS, "Ask them y"), Completion("text", "stop", 900, 900))
    short = Request(IDENTITY, GenerationParams(max_new_tokens=9), "Tell them z")
    cache.put(short, Completion("text", "stop", 900, 900))
    seen = measure(PromptBatch(ASKED, PARAMS, cache=cache), IDENTITY, count)
    assert (seen.completions, seen.prompt_ratio, seen.spent) == (24, 2.0, 0.2)
    assert (round(seen.base, 9), round(seen.slope, 9)) == (3.0, 2.0)
    assert seen.seconds is not None and seen.seconds < 10


@pytest.mark.parametrize("number", [0, 19])
def test_too_few_completions_measure_nothing(number: int) -> None:
    cache = ResponseCache()
    filled(cache, number)
    seen = measure(PromptBatch(ASKED, PARAMS, cache=cache), IDENTITY, count)
    assert not seen.enough and (seen.prompt_ratio, seen.spent, seen.seconds) == (1.0, 0.0, None)
    assert (
        measure(PromptBatch(ASKED, PARAMS), IDENTITY, count)
        == measure(PromptBatch(ASKED, PARAMS), None, count)
        == CompletionStats()
    )


def recorder(prompts: list[str], end: int | None = None, cache: ResponseCache | None = None, **more: Any) -> Recorder:
    """What is recorded of a caller that checks two attempts and expects texts of three words."""
    made = Recorder("s", MODEL, llm(**more), end, Assumed(length="short texts"))
    made.count = count
    expected = Expected(lambda place: "one two three")
    generate_cached(
        made,
        PromptBatch(
            prompts, PARAMS, cache=cache, attempts=2, validate=lambda place, text: "never good", expected=expected
        ),
    )
    return made


PRICES = {MODEL: Price(prompt=1e6, completion=1e6)}


def test_a_plan_multiplies_out_repeats_lengths_prices_and_time() -> None:
    cache = ResponseCache()
    filled(cache, 24, spent=6)
    made = recorder(ASKED, cache=cache, prices=PRICES, tokenizers={MODEL: "builtin"})
    plan = made.plan(made, made)
    assert plan.calls == 3, "two prompts, each asked 1.2 times, rounded up"
    assert plan.prompt_tokens == round(1.2 * 2.0 * 6) and plan.completion_tokens == round(1.2 * 2 * (3 + 2 * 3))
    assert plan.cost == pytest.approx(1.2 * (12 + 18)) and plan.seconds < 2.4 * 10
    assert plan.counted and plan.assumptions == () and plan.low is plan.high is None


def test_a_plan_says_what_it_assumes_and_gives_a_range() -> None:
    low, made, high = (recorder(ASKED, end, prices=PRICES, concurrency=4) for end in (0, None, 1))
    plan = made.plan(low, high)
    assert (plan.calls, plan.prompt_tokens, plan.completion_tokens) == (2, 2 * (3 + 7), 2 * 3)
    assert plan.seconds == 2 * 2.0 / 4 and not plan.counted and plan.cost == 26
    assert [each.split()[0] for each in plan.assumptions] == ["tokens", "short", "7", "no", "2"]
    assert plan.low == Amount(2, round(2 * 0.6 * 3), 2, 2 * 0.6 * 3 + 2), "half a text, fewer tokens, no template"
    assert plan.high is not None and plan.high.calls == 3, "one in ten is asked again"
    assert plan.high.prompt_tokens == round(2 * 1.1 * (1.5 * 3 + 30))
    assert plan.high.completion_tokens == round(2 * 1.1 * 1.5 * 6)
    assert recorder([]).plan(low, high).assumptions == ()


def test_texts_have_the_expected_length_and_no_two_samples_the_same() -> None:
    made = Recorder("s", MODEL, llm(), 1)
    made.count = count
    expected = Expected(lambda place: "one two three")
    [first, second] = generate_cached(made, PromptBatch(["Tell", "Tell"], PARAMS, samples=[0, 1], expected=expected))
    assert first.completion is not None and second.completion is not None
    assert first.completion.text != second.completion.text and count(first.completion.text) == 6


def test_outputs_are_never_longer_than_allowed() -> None:
    cache = ResponseCache()
    filled(cache, 24)
    made = recorder(["Tell them " + "y " * 1000], cache=cache)
    assert made.completion_tokens == 50


def test_no_two_templates_have_the_same_opening() -> None:
    chinese, triples = rewrite_prompt("(a, b, c)", "zh"), rewrite_prompt("(a, b, c)", "en")
    texts = [answer_prompt("Who?", context, template) for context in (None, "x") for template in ("sen2023", "rra2023")]
    assert len({opening_of([text, text, "Other"]) for text in (chinese, triples, *texts)}) == 2 + 3
    assert opening_of([]) == ""


@pytest.mark.parametrize(("share", "attempts", "calls"), [(0.0, 3, 1.0), (0.5, 1, 1.0), (0.5, 3, 1.75), (1.0, 3, 3.0)])
def test_repeats_follow_the_share_of_rejected_attempts(share: float, attempts: int, calls: float) -> None:
    assert repeated(share, attempts) == calls


OPTIONS = CorpusOptions(teacher=MODEL, qa_model=MODEL, size=999)


def behind_an_endpoint(model: Fake) -> None:
    model.name, model.revision = MODEL, "stub"
    model.__dict__ |= {"address": "http://localhost/v1", "model": "stub"}


def planned(folder: Path, cache: Path | None, options: CorpusOptions = OPTIONS) -> list[tuple[str, int, int]]:
    parts = (folder / name for name in ("kg", "dkg", "questions"))
    return [(each.stage, each.calls, each.cached) for each in plan_corpus(*parts, options, llm(), 3, cache)]


def test_a_corpus_is_forecast_call_by_call_and_less_by_what_the_cache_holds(
    world: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
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
        corpus.generate(Workspace(tmp_path / str(size), cache=cache), **parts, options=options, llm=llm(), seed=3)

    run(30)
    sent = len(model.prompts)
    rest = planned(world, cache)
    assert rest[0][1] + rest[1][1] == 61 + 81 - sent and rest[0][2] + rest[1][2] >= sent
    run(999)
    assert len(model.prompts) == 61 + 81, "what was forecast is what is asked"
    assert [calls for _, calls, _ in planned(world, cache)] == [0, 0]


def test_further_candidates_are_forecast_for_the_share_that_fails(world: Path) -> None:
    three = OPTIONS.model_copy(update={"candidates": 3})
    assert planned(world, None, three) == [("corpus/teacher", 183, 0), ("corpus/qa", 100, 0)], "81 + 16 + 3"


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
        forecast.pilot_corpus(Workspace(tmp_path, cache=tmp_path), *parts, three, llm(), 3, 40)  # type: ignore[arg-type]
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
    opening = REWRITE.split("{triples}")[0]
    prompts = [f"{opening}(A{number}, b, C). The sentence is:" for number in range(25)]
    generate_cached(teacher, PromptBatch(prompts, teacher_params(OPTIONS), cache=cache))
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
