"""The reader's training text: what it is made of, and that it holds nothing that we score."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tools.builtin_reader import mixture
from tools.builtin_reader.batches import Recipe, attention_mask, encode, held_out, make_batch
from tools.builtin_reader.corpus import END, FAMILIES, Sample, draw_sample, samples
from tools.builtin_reader.names import Names
from tools.builtin_reader.relations import CHINESE, ENGLISH
from tools.builtin_reader.tokens import learn, letter_pieces
from tools.builtin_reader.worlds import Edge

FACT = re.compile(r"\((.+?), (.+?), (.+?)\)(?=, \(|$)")


def draw(count: int, seed: int = 5) -> list[Sample]:
    return list(samples(seed, 0, count))


@pytest.mark.parametrize("level", [0, 1, 2])
@pytest.mark.parametrize(("name", "generate", "count"), [("corpus", samples, 400), ("mixture", mixture.samples, 300)])
def test_the_text_of_a_seed_is_fixed(
    name: str, generate: Callable[..., Iterator[Sample]], count: int, level: int
) -> None:
    stored = json.loads(Path(__file__).with_name("text_of_a_seed.json").read_text(encoding="utf-8"))[f"{name} {level}"]
    texts = [sample.text() for sample in generate(11, 3, count, level=level, pieces=("ab", "tor", "ing", "vel"))]
    assert texts[:3] == stored["first"]
    blocks = ["\n".join(texts[start : start + 50]).encode() for start in range(0, count, 50)]
    changed = [
        f"{50 * number} to {50 * number + 49}"
        for number, (block, digest) in enumerate(zip(blocks, stored["blocks_of_50"], strict=True))
        if hashlib.sha256(block).hexdigest()[:16] != digest
    ]
    assert not changed, f"samples {changed} have another text; the shipped weights were trained on that of the file"


def test_a_prompt_is_the_beginning_of_its_text_and_its_answer_follows() -> None:
    for sample in draw(200):
        text = sample.text()
        assert text.startswith(sample.prompt())
        assert text[len(sample.prompt()) :].startswith(f" {sample.items[0][2]}{END}")
        assert text.count(END) == len(sample.items)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_can_be_drawn(family: str) -> None:
    for seed in range(8):
        random = Random(seed)
        assert draw_sample(random, Names(random), 2, family).items[0][0] == family


def test_answers_are_copied_from_the_facts() -> None:
    for sample in draw(400):
        tails = {match[3] for match in FACT.finditer(sample.context)}
        names = tails | {match[1] for match in FACT.finditer(sample.context)}
        for family, _, answer in sample.items:
            if family in ("1-hop", "2-hop", "intersection", "difference"):
                assert answer in sample.context
            elif family == "superlative":
                assert answer in names
            elif family == "count":
                assert 1 <= int(answer) <= 10
            elif family == "yes/no":
                assert answer in ("yes", "no", "是", "不是")


def test_contexts_look_like_retrieved_facts() -> None:
    drawn = [sample for sample in draw(400) if sample.context]
    counts = [len(FACT.findall(sample.context)) for sample in drawn]
    assert max(counts) <= 20 and min(counts) >= 1
    assert any("<inv>-" in sample.context for sample in drawn)
    assert 0.1 < sum(sample.chinese for sample in drawn) / len(drawn) < 0.35


def test_families_and_wordings_vary() -> None:
    drawn = draw(600)
    families = Counter(item[0] for sample in drawn for item in sample.items)
    assert set(families) >= {"1-hop", "2-hop", "yes/no", "count", "absent"}
    starts = Counter(item[1].split()[0].lower() for sample in drawn for item in sample.items if not sample.chinese)
    assert len(starts) > 40


def test_the_tables_are_well_formed() -> None:
    for relation in (*ENGLISH, *CHINESE):
        assert relation.labels
        for form in (*relation.questions, *relation.inverse_questions, *relation.inverse_nouns):
            assert form.count("{x}") == 1, form


def test_packed_rows_keep_samples_apart() -> None:
    recipe = Recipe(rows=2, length=512, vocabulary=1200)
    tokenizer = learn((sample.text() for sample in draw(300)), recipe.vocabulary)
    batch = make_batch(recipe, 2000, tokenizer, letter_pieces(tokenizer))
    again = make_batch(recipe, 2000, tokenizer, letter_pieces(tokenizer))
    other = make_batch(recipe, 2001, tokenizer, letter_pieces(tokenizer))
    assert bool((batch.ids == again.ids).all()) and not bool((batch.ids == other.ids).all())
    mask = attention_mask(batch.samples)
    for row in range(2):
        for place in range(0, 512, 37):
            seen = (mask[row, 0, place] == 0).nonzero().flatten()
            assert int(seen.max()) <= place
            assert set(batch.samples[row, seen].tolist()) == {int(batch.samples[row, place])}
    starts = (batch.positions == 0) & (batch.samples >= 0)
    assert bool((batch.weights[starts] == 0).all())


def test_answers_weigh_more_than_contexts() -> None:
    tokenizer = learn((sample.text() for sample in draw(200)), 1200)
    sample = next(each for each in draw(50) if each.context)
    ids, weights = encode(sample, tokenizer, 4000, 0.5)
    heavy = [token for token, weight in zip(ids, weights, strict=True) if weight > 1]
    text = tokenizer.decode(heavy, skip_special_tokens=False)
    assert text.split(END)[0].strip() == sample.items[0][2]
    assert encode(sample, tokenizer, 3, 0.5) == ([], [])


@pytest.mark.parametrize(
    "text",
    [
        'Given the following context: "(Paris, <inv>-capital of, France), (Łódź, directed_by, Cluj-Napoca (X))"',
        "(吴曦, 国籍, 中国) 1992年6月13日 ，《新》",
        "a_b 1,234.5 -3 UTC+5 Åse O'Hara\ttab",
    ],
)
def test_the_tokenizer_gives_back_what_it_read(text: str) -> None:
    tokenizer = learn((sample.text() for sample in draw(200)), 1500)
    assert tokenizer.decode(tokenizer.encode(text).ids) == text


def test_a_name_has_the_same_tokens_wherever_it_stands() -> None:
    tokenizer = learn((sample.text() for sample in draw(200)), 1500)
    name = tokenizer.encode(" Zorvelnik Tamba").ids
    for text in (
        "(Zorvelnik Tamba, capital, X)",
        "what is Zorvelnik Tamba",
        "<inv>-Zorvelnik Tamba",
        "in_Zorvelnik Tamba",
    ):
        ids = tokenizer.encode(text).ids
        assert any(ids[place : place + len(name)] == name for place in range(len(ids))), text


def test_held_out_samples_are_not_in_the_training_text() -> None:
    recipe = Recipe()
    held = {sample.prompt() for _, sample in held_out(recipe, (), 10)}
    random = Random(f"{recipe.seed}/step 0")
    names = Names(random)
    trained = {draw_sample(random, names, 2).prompt() for _ in range(500)}
    assert len(held) == 10 * len(FAMILIES) and not held & trained


Invented = tuple[set[tuple[str, str]], set[str], set[str]]


@pytest.fixture(scope="module", params=["first phase", "second phase"])
def invented(request: pytest.FixtureRequest) -> Invented:
    """Pairs (head, tail) of the facts, their names and the questions in 3,000 samples of a phase, as it makes them."""
    pairs, questions = set[tuple[str, str]](), set[str]()
    with pytest.MonkeyPatch.context() as patch:
        real, told = mixture.tell_freely, mixture.facts_to_tell

        def free(random: Random, edges: Sequence[Edge], *, chinese: bool) -> str:
            pairs.update((edge.head, edge.tail) for edge in edges)
            return real(random, edges, chinese=chinese)

        def facts(*given: Any, **named: Any) -> list[tuple[str, str, str]]:
            made = told(*given, **named)
            pairs.update((head, tail) for head, _, tail in made)
            return made

        patch.setattr(mixture, "tell_freely", free)
        patch.setattr(mixture, "facts_to_tell", facts)
        drawn = draw(3000, seed=11) if request.param == "first phase" else mixture.samples(11, 0, 3000)
        for sample in drawn:
            if sample.context.startswith("("):
                pairs.update((match[1], match[3]) for match in FACT.finditer(sample.context))
            questions |= {item[1].casefold().rstrip("?？. ") for item in sample.items if item[1]}
    return pairs, {name for pair in pairs for name in pair}, questions


@pytest.mark.slow
def test_no_fact_and_no_question_of_zjqa_or_metaqa_is_in_the_text(invented: Invented, shared_data: Path) -> None:
    pairs, names, questions = invented
    assert len(pairs) > 10_000
    zjqa = [line.split("\t") for line in (shared_data / "zjqa/indexes/triple.txt").read_text("utf-8").splitlines()]
    movies = [line.split("|") for line in (shared_data / "metaqa/kb_reconstructed.txt").read_text("utf-8").splitlines()]
    real = {(fact[0], fact[-1]) for fact in [*zjqa, *movies]}
    assert not pairs & (real | {(tail, head) for head, tail in real})
    asked = {line.split("\t")[0] for line in (shared_data / "zjqa/data/test.txt").read_text("utf-8").splitlines()}
    for hops in (1, 2, 3):
        lines = (shared_data / f"metaqa/{hops}-hop/test.txt").read_text("utf-8").splitlines()
        asked |= {line.split("\t")[0].replace("[", "").replace("]", "").casefold() for line in lines}
    assert not questions & asked
    topics = {fact[0] for fact in [*zjqa, *movies]}
    assert len(names & topics) / len(names) < 0.001


@pytest.mark.slow
def test_names_of_atlas_occur_only_by_chance(invented: Invented) -> None:
    """A few invented names coincide with one of 130,000 real ones; their facts are then still invented."""
    import gzip

    found = sorted((Path(__file__).parents[3] / "kgqa_core/datasets/published/atlas/data").glob("*.nt.gz"))
    if not found:
        pytest.skip("the bundled graph is not in this checkout")
    labels: dict[str, str] = {}
    links: list[tuple[str, str]] = []
    with gzip.open(found[0], "rt", encoding="utf-8") as file:
        for line in file:
            subject, predicate, rest = line.split(" ", 2)
            if "#label>" in predicate:
                labels[subject] = rest.split('"')[1]
            elif rest.startswith("<"):
                links.append((subject, rest.split(" ")[0]))
    real = {(labels.get(head, ""), labels.get(tail, "")) for head, tail in links}
    pairs, names, _ = invented
    assert not pairs & (real | {(tail, head) for head, tail in real})
    share = len(names & set(labels.values())) / len(names)
    assert share < 0.005, share


@pytest.mark.slow
def test_no_question_of_atlas_is_in_the_text(invented: Invented) -> None:
    from kgqa_core.datasets.published.atlas import rows

    asked = {row["question"].casefold().rstrip("? .") for row in rows()}
    assert len(asked) > 12_000
    assert not invented[2] & asked
