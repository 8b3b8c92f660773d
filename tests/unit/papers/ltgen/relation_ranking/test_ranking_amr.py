"""AMR graphs: edges become nodes, files and parsers give them, pickles are refused."""

from __future__ import annotations

import doctest
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from kgqa_core.errors import InputError, ModelError
from kgqa_core.papers.ltgen.relation_ranking import amr, training_examples
from kgqa_core.papers.ltgen.relation_ranking.amr import CONCEPT, CONSTANT, ROLE, AmrGraph, Triple, reify
from kgqa_core.papers.ltgen.relation_ranking.amr_source import AmrGraphs, open_graphs, open_parser, read_graphs
from tests.support.models import Listener

SKYPE = '(d / develop-02\n   :ARG0 (a / amr-unknown)\n   :ARG1 (p / product :name (n / name :op1 "Skype")))'
TRIPLES: list[Triple] = [
    ("d", ":instance", "develop-02"),
    ("d", ":ARG0", "a"),
    ("a", ":instance", "amr-unknown"),
    ("d", ":ARG1", "p"),
    ("p", ":instance", "product"),
    ("p", ":name", "n"),
    ("n", ":instance", "name"),
    ("n", ":op1", '"Skype"'),
]


class Parser:
    """Parses every sentence into one word, but `bad` into nothing."""

    name = "parser 1"

    def __init__(self) -> None:
        self.seen: list[str] = []

    def parse(self, sentences: Sequence[str]) -> list[str | None]:
        self.seen += sentences
        return [None if sentence == "bad" else f"(w / {sentence.split()[-1]})" for sentence in sentences]


def read_word(penman: str) -> list[Triple]:
    """A reader of graphs of one word."""
    if not penman.startswith("(w / "):
        raise InputError(f"{penman} is no graph")
    return [("w", ":instance", penman[5:-1])]


def test_the_examples_in_the_modules_hold() -> None:
    for module in (amr, training_examples):
        assert doctest.testmod(module).failed == 0
        assert doctest.testmod(module).attempted > 0


def test_edges_become_nodes_between_their_ends() -> None:
    found = reify(TRIPLES)
    assert found.labels == ("develop", "unknown", "product", "name", "ARG0", "ARG1", "name", "op1", "Skype")
    assert found.kinds == (CONCEPT,) * 4 + (ROLE,) * 4 + (CONSTANT,)
    named = [(found.labels[start], found.labels[end]) for start, end in found.edges]
    assert named == [
        ("develop", "ARG0"), ("ARG0", "unknown"), ("develop", "ARG1"), ("ARG1", "product"), ("product", "name"),
        ("name", "name"), ("name", "op1"), ("op1", "Skype"),
    ]  # fmt: skip
    assert found.edges[4:6] == ((2, 6), (6, 3))  # the role `name` is another node than the concept


def test_a_variable_that_comes_again_is_one_node() -> None:
    found = reify([("a", ":instance", "want"), ("b", ":instance", "boy"), ("a", ":ARG0", "b"), ("a", ":ARG1", "g"),
                   ("g", ":instance", "go-02"), ("g", ":ARG0", "b")])  # fmt: skip
    assert found.labels == ("want", "boy", "go", "ARG0", "ARG1", "ARG0")
    assert {end for _, end in found.edges if found.labels[end] == "boy"} == {1}
    assert len(found.edges) == 6


def test_equal_constants_and_roles_are_nodes_of_their_own() -> None:
    found = reify([("a", ":instance", "and"), ("a", ":op1", "2"), ("a", ":op1", "2"), ("a", ":mod", None)])
    assert found.labels == ("and", "op1", "2", "op1", "2")


def test_linked_entities_are_no_part_of_the_meaning() -> None:
    links: list[Triple] = [
        ("d", ":entities", "el"), ("el", ":instance", "entity_list"), ("el", ":entity", "l0"),
        ("l0", ":instance", "linked_entity"), ("l0", ":surface_form", '"Skype"'), ("l0", ":uri", '"http://x/Skype"'),
    ]  # fmt: skip
    assert reify([*TRIPLES, *links]) == reify(TRIPLES)
    shared: list[Triple] = [*links, ("l0", ":of", TRIPLES[0][0]), ("l0", ":of", TRIPLES[-1][0])]
    assert reify([*TRIPLES, *shared]) == reify(TRIPLES), "what the rest of the graph names too stays"


def test_penman_is_read_with_inverse_roles_turned_round() -> None:
    pytest.importorskip("penman", reason="penman is not installed; it reads the notation")
    assert sorted(amr.read_penman(SKYPE), key=str) == sorted(TRIPLES, key=str)
    turned = amr.read_penman("(p / person :ARG0-of (r / run-02))")
    assert ("r", ":ARG0", "p") in turned and ("r", ":instance", "run-02") in turned
    kept = amr.read_penman("(r / ring :consist-of (g / gold))")
    assert ("r", ":consist-of", "g") in kept
    with pytest.raises(InputError, match="begins with '\\(p / person'"):
        amr.read_penman("(p / person")


def test_graphs_come_from_blocks_with_their_sentence(tmp_path: Path) -> None:
    path = tmp_path / "graphs.txt"
    path.write_text(
        f"# ::id 1\n# ::snt Who developed  Skype? ::date 2020\n{SKYPE}\n\n# a comment\n\n# ::snt Why?\n(w / why)\n",
        encoding="utf-8",
    )
    assert read_graphs(path) == {"Who developed  Skype?": SKYPE, "Why?": "(w / why)"}


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({"Who?": "(w / who)", "Why?": "(w / why)"}, indent=1),
        json.dumps({f"train_{n}": {"text": t, "extended_amr": a} for n, (t, a) in enumerate(
            [("Who?", "(w / who)"), ("Why?", "(w / why)")])}),
        '{"question": "Who?", "amr": "(w / who)"}\n{"question": "Why?", "amr": "(w / why)"}\n',
    ],
)  # fmt: skip
def test_graphs_come_from_json(tmp_path: Path, text: str) -> None:
    path = tmp_path / "graphs.json"
    path.write_text(text, encoding="utf-8")
    assert read_graphs(path) == {"Who?": "(w / who)", "Why?": "(w / why)"}


@pytest.mark.parametrize(
    ("text", "message"),
    [("", "is empty")] + [(text, "::snt") for text in ("{", "(w / who)", '{"a": 3}', '{"question": "Who?"}')],
)
def test_what_is_no_file_of_graphs_says_what_one_is(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "graphs"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=message):
        read_graphs(path)
    with pytest.raises(InputError, match="cannot be read"):
        read_graphs(tmp_path / "absent")


def test_a_file_goes_before_the_parser_whose_output_is_cached(tmp_path: Path) -> None:
    parser = Parser()
    graphs = AmrGraphs({"ask  one": "(w / filed)"}, parser, tmp_path, read_word)
    found = graphs.of(["ask one", "ask two", "bad", "ask two"])
    assert {question: graph.labels for question, graph in found.items()} == {
        "ask one": ("filed",),
        "ask two": ("two",),
    }
    assert parser.seen == ["ask two", "bad"]
    assert graphs.counts == {"from_file": 1, "parsed": 2, "kept": 0, "without": 1}
    again = AmrGraphs({}, parser, tmp_path, read_word)
    assert again.of(["ask two", "bad"]).keys() == {"ask two"}
    assert parser.seen == ["ask two", "bad"]  # also what has no graph is not parsed twice
    assert again.counts == {"from_file": 0, "parsed": 0, "kept": 2, "without": 1}
    other = Parser()
    other.name = "parser 2"
    AmrGraphs({}, other, tmp_path, read_word).of(["ask two"])
    assert other.seen == ["ask two"]


def test_a_graph_that_is_none_leaves_its_question_without(caplog: pytest.LogCaptureFixture) -> None:
    graphs = AmrGraphs({"Who?": "<html>", "Why?": "(w / why)"}, read=read_word)
    assert graphs.of(["Who?", "Why?"]) == {"Why?": AmrGraph(("why",), (CONCEPT,), ())}
    assert "<html> is no graph" in caplog.text
    assert AmrGraphs({"Who?": "nothing"}, read=lambda text: []).of(["Who?"]) == {}, "one without nodes has no graph"


def test_a_parser_that_is_not_there_is_reported_beside_a_file_too(tmp_path: Path) -> None:
    path, listener = tmp_path / "graphs.json", Listener()
    path.write_text(json.dumps({"Who?": "(w / who)"}), encoding="utf-8")
    assert open_graphs(str(path), "amrlib:/nowhere/at/all", monitor=listener) is not None
    [note] = listener.notes
    assert note.startswith("the AMR parser 'amrlib:/nowhere/at/all' is not there") and str(path) in note


@pytest.mark.parametrize("parser", [None, "amrlib:/nowhere/at/all"])
def test_without_graphs_one_note_says_why(parser: str | None) -> None:
    listener = Listener()
    assert open_graphs(None, parser, monitor=listener) is None
    [note] = listener.notes
    assert "rank_amr ranks as rank_pair does" in note
    assert ("'amrlib:/nowhere/at/all' is not there" in note) == (parser is not None)


def test_a_parser_of_another_kind_is_refused() -> None:
    with pytest.raises(ModelError, match="amrlib:FOLDER"):
        open_parser("spring:here")


def model_folder(folder: Path, module: str, *files: str) -> Path:
    folder.mkdir()
    meta = {"inference_module": module, "inference_class": "Inference", "model_fn": "model.pt"}
    (folder / "amrlib_meta.json").write_text(json.dumps(meta), encoding="utf-8")
    for name in files:
        (folder / name).write_bytes(b"weights")
    return folder


@pytest.mark.parametrize(
    ("module", "files", "message"),
    [
        (".parse_spring.inference", ("model.pt", "model.safetensors"), "pickled weights, which can run code"),
        (".parse_gsii.inference", ("model.pt",), "pickled weights, which can run code"),
        (".elsewhere", ("model.safetensors",), "pickled weights, which can run code"),
        (".parse_xfm.inference", ("pytorch_model.bin",), "has no model.safetensors"),
    ],
)
def test_pickled_parsers_are_refused_before_amrlib_is_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str, files: tuple[str, ...], message: str
) -> None:
    monkeypatch.setitem(sys.modules, "amrlib", None)  # importing it would raise ImportError
    folder = model_folder(tmp_path / "parser", module, *files)
    with pytest.raises(ModelError, match=message):
        open_parser(f"amrlib:{folder}")


def test_a_safe_parser_is_loaded_from_its_folder_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[dict[str, Any]] = []

    class Model:
        def parse_sents(self, sentences: list[str], add_metadata: bool) -> list[str]:
            assert not add_metadata
            return [f"(w / {len(sentence)})" for sentence in sentences]

    library = ModuleType("amrlib")
    library.load_stog_model = lambda **options: loaded.append(options) or Model()  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "amrlib", library)
    folder = model_folder(tmp_path / "parser", ".parse_xfm.inference", "model.safetensors")
    parser = open_parser(f"amrlib:{folder}")
    assert parser is not None
    assert loaded == [{"model_dir": str(folder), "tok_name_or_path": str(folder), "device": "cpu"}]
    assert parser.parse(["abc"]) == ["(w / 3)"]
    (folder / "model.safetensors").write_bytes(b"others")
    other = open_parser(f"amrlib:{folder}")
    assert other is not None and other.name != parser.name  # the cache belongs to the weights


def test_a_parser_without_amrlib_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "amrlib", None)
    folder = model_folder(tmp_path / "parser", ".parse_xfm.inference", "model.safetensors")
    with pytest.raises(ModelError, match="relation_ranking.amr_graphs"):
        open_parser(f"amrlib:{folder}")
    (folder / "amrlib_meta.json").unlink()
    with pytest.raises(ModelError, match="amrlib_meta.json"):
        open_parser(f"amrlib:{folder}")
