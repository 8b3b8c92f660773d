"""QuestionWordings, the classifier, features and reasons of abstention, on a graph of a dozen facts."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from kgqa_core.abstention.apply import in_a_row
from kgqa_core.abstention.calibrated_classifier import AdditiveClassifier
from kgqa_core.abstention.evidence import Evidence, ModelAnswer
from kgqa_core.abstention.features import feature_names, features
from kgqa_core.abstention.labels import ENTITY, FACT, RELATION
from kgqa_core.abstention.reasons import Explainer, Reason, by_rule, likeness
from kgqa_core.abstention.wording_similarity import NAMES, TOPIC, QuestionWordings, TypicalFindings, words_of
from kgqa_core.config import AbstentionOptions, KgOptions
from kgqa_core.kg.build import build
from kgqa_core.kg.store import KgStore
from kgqa_core.logic.lookup import index
from kgqa_core.types import Fact, Question, Retrieved
from kgqa_core.workspace import Workspace

LABEL = "<http://www.w3.org/2000/01/rdf-schema#label>"
TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
TRIPLES = f"""\
<http://x/Avalonia> <http://x/capital> <http://x/Quelmar> .
<http://x/Bergonia> <http://x/capital> <http://x/Zweiburg> .
<http://x/Bergonia> <http://x/anthem> <http://x/Hymn> .
<http://x/Cestria> <http://x/borders> <http://x/Bergonia> .
<http://x/Avalonia> {TYPE} <http://x/Country> .
<http://x/Bergonia> {TYPE} <http://x/Country> .
<http://x/Cestria> {TYPE} <http://x/Country> .
<http://x/Quelmar> {LABEL} "Quelmar"@en .
<http://x/Avalonia> {LABEL} "Avalonia"@en .
<http://x/Bergonia> {LABEL} "Bergonia"@en .
<http://x/Cestria> {LABEL} "Cestria"@en .
<http://x/Zweiburg> {LABEL} "Zweiburg"@en .
<http://x/Hymn> {LABEL} "Old Hymn"@en .
"""
CAPITAL = ("http://x/capital",)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KgStore]:
    folder = tmp_path_factory.mktemp("graph")
    (folder / "graph.nt").write_text(TRIPLES, encoding="utf-8")
    build(Workspace(folder), options=KgOptions(files=(str(folder / "graph.nt"),)))
    with KgStore.open(folder) as opened:
        yield opened


def of(store: KgStore, name: str) -> int:
    return store.resolve([name])[name][0]


def about(store: KgStore, text: str, *names: str) -> Question:
    return Question("q", text, topic_keys=names, topic_entities=tuple(of(store, name) for name in names))


ASKED = [
    ("what is the capital of Rome", "Rome", True),
    ("what is the capital of Oslo", "Oslo", True),
    ("who leads Rome", "Rome", True),
    ("who leads Oslo", "Oslo", True),
    ("how high is Rome", "Rome", False),
    ("how high is Oslo", "Oslo", False),
]


def masked_words(rows: list[tuple[str, str, bool]]) -> tuple[list[tuple[str, ...]], list[bool]]:
    return [words_of(Question("q", text, topic_keys=(key,))) for text, key, _ in rows], [good for *_, good in rows]


def test_words_mask_the_topic_whatever_its_case() -> None:
    assert words_of(Question("q", "Who leads ROME?", topic_keys=("Rome",))) == ("who", "leads", TOPIC)
    assert words_of(Question("q", "罗马在哪里", topic_keys=("罗马",)))[0] == TOPIC


def test_a_wording_is_as_near_as_the_nearest_answerable_one() -> None:
    wordings = QuestionWordings.learn(*masked_words(ASKED))
    texts, _ = masked_words([("who leads Lima", "Lima", True), ("how high is Lima", "Lima", False), ("zzz", "", False)])
    found = dict(zip(("known", "unanswerable", "strange"), wordings.features(texts), strict=True))
    assert found["known"] == pytest.approx([1.0, 1.0, 0.0, 0.0], abs=1e-6)
    near, covered, strange, against = found["unanswerable"]
    assert near < 0.3 and covered < 0.6 and strange == 2.0  # `how high`; `is` stands in answerable ones
    assert against > 0.9
    assert found["strange"].tolist()[:3] == [0.0, 0.0, 1.0]
    assert wordings.strange(texts[1]) == [(0, 2)]


def test_the_features_of_a_training_question_leave_out_itself() -> None:
    rows = [*ASKED, ("where is Rome buried", "Rome", True)]
    texts, good = masked_words(rows)
    wordings = QuestionWordings.learn(texts, good)
    alone = wordings.features(texts[-1:])[0]
    apart = wordings.features(texts[-1:], [True])[0]
    assert alone[:3] == pytest.approx([1.0, 1.0, 0.0])
    assert apart[0] < 0.3 and apart[1] < 0.7 and apart[2] == 1.0
    twin = wordings.features(texts[:1], [True])[0]
    assert twin[0] == pytest.approx(1.0), "another question with the same wording stays"


def test_wordings_come_back_from_their_arrays() -> None:
    texts, good = masked_words(ASKED)
    one = QuestionWordings.learn(texts, good)
    other = QuestionWordings.from_arrays(one.arrays(), one.to_json())
    assert np.array_equal(one.features(texts), other.features(texts))
    assert QuestionWordings.learn([], []).features(texts[:1]).shape == (1, len(NAMES))


def test_the_classifier_learns_a_bend_and_what_is_missing() -> None:
    generator = np.random.default_rng(0)
    values = generator.uniform(-2, 2, (600, 2))
    happened = np.abs(values[:, 0]) < 1  # no straight line tells these
    values[:100, 0], happened[:100] = math.nan, True
    model = AdditiveClassifier.fit(("bent", "noise"), values, happened.tolist(), strength=0.1)
    sure = model.confidence(np.array([[0.0, 0.0], [1.9, 0.0], [-1.9, 0.0], [math.nan, 0.0], [99.0, 0.0]]))
    assert sure[0] > 0.9 and sure[1] < 0.1 and sure[2] < 0.1 and sure[3] > 0.9
    assert sure[4] == pytest.approx(model.confidence(np.array([[2.0, 0.0]]))[0], abs=0.05), "level beyond the last cut"


def test_the_classifier_is_the_same_every_time_and_comes_back(tmp_path: Path) -> None:
    values = np.random.default_rng(1).normal(size=(50, 3))
    happened = (values.sum(1) > 0).tolist()
    one, two = (AdditiveClassifier.fit(("a", "b", "c"), values, happened, 1.0) for _ in range(2))
    assert one == two == AdditiveClassifier.from_json(one.to_json())
    calibrated = one.calibrated(values, happened)
    assert calibrated.temperature != 1.0 and calibrated.weights == one.weights
    assert np.argsort(calibrated.confidence(values)).tolist() == np.argsort(one.confidence(values)).tolist()


def test_a_constant_feature_and_equal_outcomes_do_no_harm() -> None:
    values = np.full((20, 1), 3.0)
    assert AdditiveClassifier.fit(("a",), values, [True] * 20, 1.0).confidence(values)[0] > 0.9
    nothing = AdditiveClassifier.fit(("a",), np.full((20, 1), math.nan), [True, False] * 10, 1.0)
    assert nothing.confidence(np.array([[math.nan]]))[0] == pytest.approx(0.5, abs=0.01)


def test_features_read_what_each_part_of_the_road_left(store: KgStore) -> None:
    quelmar, zweiburg = of(store, "Quelmar"), of(store, "Zweiburg")
    rigel = Retrieved("q", (Fact(0, 0.9, 1, 0, 1),), ((quelmar, 0.8), (zweiburg, 0.1)), 3, (0.7, 0.3))
    paths = Retrieved("q", (Fact(0, 0.6, 1, 0, 1),), ((quelmar, 0.6),))
    question = replace(about(store, "capital of Avalonia?", "Avalonia"), topic_weights=(0.4,))
    model_answer = ModelAnswer("It is Quelmar.", False, -1.0, 4)
    one = Evidence(question, {"rigel": rigel, "hop_path": paths}, ((CAPITAL, 0.6), (("x",), 0.3)), model_answer)
    names = feature_names(("hop_path", "rigel"), AbstentionOptions().features)
    row = features([one], np.array([[0.9, 0.8, 1.0, 0.2]]), ("hop_path", "rigel"), AbstentionOptions().features, store)
    values = dict(zip(names, row[0].tolist(), strict=True))
    assert not any(math.isnan(value) for value in values.values())
    assert (values["topics"], values["rho_least"], values["wording_nearest"]) == (1.0, 0.4, 0.9)
    assert values["rigel_best"] == pytest.approx(math.log(0.8), abs=1e-4)
    assert values["rigel_margin"] == pytest.approx(0.7) and values["rigel_cut"] == pytest.approx(math.log(4))
    assert (values["path_lost"], values["path_dead"], values["shared"], values["same_best"]) == (0.0, 0.0, 1.0, 1.0)
    assert (values["heard_rigel"], values["heard_hop_path"], values["likely"]) == (0.8, 0.6, -0.25)
    dead = replace(one, retrieved={"rigel": rigel, "hop_path": replace(paths, entities=((zweiburg, 0.3),))})
    row = features([dead], np.zeros((1, 4)), ("hop_path", "rigel"), AbstentionOptions().features, store)
    values = dict(zip(names, row[0].tolist(), strict=True))
    assert values["path_lost"] == pytest.approx(math.log(2), abs=1e-4) and values["path_dead"] == pytest.approx(2 / 3)
    assert (values["shared"], values["heard_hop_path"]) == (0.0, 0.0)


def test_chains_tell_which_topics_lead_where(store: KgStore) -> None:
    rows = store.connection.execute("SELECT id, head, tail FROM triples").fetchall()
    triple = {(head, tail): i for i, head, tail in rows}
    avalonia, bergonia, quelmar = (of(store, name) for name in ("Avalonia", "Bergonia", "Quelmar"))
    question = about(store, "the capital of Avalonia and Bergonia?", "Avalonia", "Bergonia")
    first = Fact(0, 0.9, 1, triple[avalonia, quelmar], 1, 0)
    second = Fact(1, 0.9, 1, triple[bergonia, of(store, "Zweiburg")], 1, 1)
    weak = Fact(2, 0.1, 1, triple[bergonia, of(store, "Old Hymn")], 1, 2)

    def chain_features(*facts: Fact) -> list[float]:
        found = Evidence(question, {"hop_path": Retrieved("q", facts, ((quelmar, 0.9),))}, ((CAPITAL, 0.9),))
        row = features([found], np.zeros((1, 4)), ("hop_path",), ("facts",), store)[0]
        named = dict(zip(feature_names(("hop_path",), ("facts",)), row.tolist(), strict=True))
        return [named[name] for name in ("path_topics", "path_common", "path_meets")]

    assert chain_features(first, second) == [1.0, 0.5, 0.0]
    assert chain_features(first, weak) == [0.5, 0.5, 0.0]
    assert chain_features() == [0.0, 0.0, 0.0]
    back = Fact(1, 0.9, 2, triple[avalonia, quelmar], -1, 0)
    assert chain_features(first, back) == [0.5, 0.5, 1.0]


def test_findings_are_compared_with_those_of_questions_that_ask_alike() -> None:
    texts, good = masked_words(ASKED)
    findings = np.array([[1.0], [0.8], [5.0], [math.nan], [9.0], [9.0]])
    usual = TypicalFindings.learn(QuestionWordings.learn(texts, good), texts, findings, good)
    new, _ = masked_words([("what is the capital of Lima", "Lima", True), ("who leads Lima", "Lima", True)])
    found = usual.differences(new, np.array([[0.9], [4.0]]))
    assert found[0, 0] == pytest.approx(0.0, abs=0.05) and found[1, 0] == pytest.approx(-1.0, abs=0.05)
    apart = usual.differences(texts[:1], findings[:1], [True])
    assert apart[0, 0] == pytest.approx(0.2, abs=0.05), "without itself"
    assert math.isnan(usual.differences(new[:1], np.array([[math.nan]]))[0, 0])
    nothing = TypicalFindings.learn(usual.wordings, texts, findings, [False] * 6)
    assert math.isnan(nothing.differences(new[:1], np.array([[1.0]]))[0, 0])


def test_a_question_without_anything_has_features_all_the_same(store: KgStore) -> None:
    names = feature_names(("rigel",), ("links", "facts", "model"))
    row = features(
        [Evidence(Question("q", "?"))], np.full((1, 4), math.nan), ("rigel",), ("links", "facts", "model"), store
    )
    values = dict(zip(names, row[0].tolist(), strict=True))
    assert (
        values["topics"] == values["rho_best"] == 0.0
        and math.isnan(values["rigel_best"])
        and math.isnan(values["likely"])
    )


def test_rules_give_a_reason(store: KgStore) -> None:
    question = about(store, "capital of Avalonia?", "Avalonia")
    assert by_rule(Evidence(Question("q", "Who?"))) == ENTITY
    assert by_rule(Evidence(question, {"rigel": Retrieved("q")})) == FACT
    assert by_rule(Evidence(question, {"rigel": Retrieved("q", entities=((1, 0.5),))})) is None
    assert by_rule(Evidence(question)) is None
    assert by_rule(Evidence(question, {"rigel": Retrieved("q")}, model_answer=ModelAnswer("3", computed=True))) is None


def test_an_entity_that_is_missing_is_reported_with_the_nearest_name(store: KgStore) -> None:
    explain = Explainer(store).explain
    found = explain(Evidence(Question("q", "Who rules Bergonnia today?")), ENTITY)
    assert (found.missing, found.nearest) == ("Bergonnia", "Bergonia")
    found = explain(Evidence(Question("q", "who rules bergonnia?")), ENTITY, ["bergonnia"], 0.75)
    assert found == Reason(ENTITY, "bergonnia", "Bergonia", 0.75)
    assert explain(Evidence(Question("q", "who?")), ENTITY) == Reason(ENTITY)


def test_an_entity_that_was_linked_is_not_reported_as_missing(store: KgStore) -> None:
    explain = Explainer(store).explain
    assert explain(Evidence(about(store, "Who rules Bergonia?", "Bergonia")), ENTITY) == Reason(ENTITY)
    both = about(store, "Does Bergonia border Cestrria, or the Old Hymns?", "Bergonia")
    assert explain(Evidence(both), ENTITY) == Reason(ENTITY, "Cestrria", "Cestria")
    unlinked = Question("q", "who rules Bergonia today?")
    assert explain(Evidence(unlinked), ENTITY) == Reason(ENTITY, "Bergonia")


def test_a_relation_that_is_missing_is_reported_with_the_nearest_of_its_topic(store: KgStore) -> None:
    question = about(store, "Which anthems has Bergonia?", "Bergonia")
    found = Explainer(store).explain(Evidence(question), RELATION, ["anthems"])
    assert (found.kind, found.missing, found.nearest) == (RELATION, "anthems", "anthem")
    lonely = replace(question, topic_entities=(of(store, "Country"),))
    assert Explainer(store).explain(Evidence(lonely), RELATION, ["x"]) == Reason(RELATION, "x"), "and not `type of`"


@pytest.mark.parametrize(
    ("label", "words"),
    [("owned by", "what was owned by it"), ("part of", "what is part of it"), ("capital", "capital of")],
)
def test_an_inverse_relation_is_worded_as_english_says_it(store: KgStore, label: str, words: str) -> None:
    explainer = Explainer(store)
    explainer.__dict__["_names"] = [label] * len(store.relation_keys())
    assert explainer._label(f"<inv>-{CAPITAL[0]}") == words


@pytest.mark.parametrize("indexed", [False, True])
def test_a_fact_that_is_missing_is_reported_with_another_of_its_kind(store: KgStore, indexed: bool) -> None:
    if indexed:
        index(store)
    question = about(store, "What is the capital of Cestria?", "Cestria")
    found = Explainer(store).explain(Evidence(question, paths=((CAPITAL, 0.9),)), FACT)
    assert found.missing == "Cestria, capital"
    assert found.nearest == "(Bergonia, capital, Zweiburg)", "the best known of its type"
    behind = (("http://x/borders", "http://x/twin"), 0.9)
    assert Explainer(store).explain(Evidence(question, paths=(behind,)), FACT) == Reason(
        FACT, "Bergonia, http://x/twin"
    )
    back = Explainer(store).explain(
        Evidence(about(store, "?", "Old Hymn"), paths=((("<inv>-http://x/capital",), 1.0),)), FACT
    )
    assert back.missing == "Old Hymn, capital of" and back.nearest == "(Avalonia, capital, Quelmar)"
    assert Explainer(store).explain(Evidence(question), FACT) == Reason(FACT)


def test_words_in_a_row_are_joined_as_they_are_written() -> None:
    assert in_a_row(["桑", "兰"]) == "桑兰" and in_a_row(["sang", "lan"]) == "sang lan"
    assert in_a_row(["2018", "亚", "运", "sang", "lan"]) == "2018 亚运 sang lan"


def test_likeness_counts_letters_in_a_row() -> None:
    assert likeness("capital", "the Capital of") == 1.0
    assert likeness("capital", "anthem") == 0.0
    assert 0 < likeness("anthem", "anthems") < 1
    assert likeness("", "x") == 0.0
