"""A corpus becomes an index that finds its passages, grows at the price of what is new, and says what is wrong."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModel, AutoTokenizer, BertModel

from kgqa_core.config import PassagesOptions
from kgqa_core.errors import ArtifactError, InputError, ModelError
from kgqa_core.llm.convert import convert
from kgqa_core.monitor import QUIET, Monitor
from kgqa_core.passages import corpus as corpora
from kgqa_core.passages import dense, table
from kgqa_core.passages.bm25 import tokens
from kgqa_core.passages.index import build
from kgqa_core.passages.search import PassageSearch, query_of
from kgqa_core.store.digest import content_digest
from kgqa_core.types import Question
from kgqa_core.workspace import Workspace
from tests.support.passages import documents, tiny_encoder, write_jsonl


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return tiny_encoder(tmp_path_factory.mktemp("encoder"))


def index(
    folder: Path, corpus: Path, encoder: str, *, cache: Path | None = None, monitor: Monitor = QUIET, **given: Any
) -> tuple[Path, dict[str, Any], PassagesOptions]:
    options = PassagesOptions(corpus=str(corpus), encoder=encoder, **{"retriever": "hybrid", "max_tokens": 64, **given})
    folder.mkdir()
    counts = build(Workspace(folder, folder.parent / "work", cache=cache, monitor=monitor), options=options, seed=7)
    return folder, counts, options


def test_every_retriever_finds_the_document_that_a_text_comes_from(tmp_path: Path, encoder: str) -> None:
    corpus = write_jsonl(tmp_path / "c.jsonl", documents(60))
    folder, counts, options = index(tmp_path / "index", corpus, encoder)
    assert (counts["documents"], counts["passages"], counts["rejects"], counts["encoded"]) == (60, 60, 0, 60)
    for retriever in ("dense", "bm25", "hybrid"):
        search = PassageSearch(folder, options.model_copy(update={"retriever": retriever}))
        texts = [f"Title{place}: {row['text']}" for place, row in enumerate(documents(60))]
        found = search.search(texts)
        assert [search.read(ranked)[0].document for ranked in found] == [f"d{place}" for place in range(60)]
        for ranked in found:
            assert len(ranked) == 10 and ranked == sorted(ranked, key=lambda item: (-item[1], item[0]))


def contriever(folder: Path, seed: int = 0) -> str:
    """An encoder whose config says that it is a Contriever, and whose weights have no pooler, as published."""
    tiny_encoder(folder, seed)
    BertModel.from_pretrained(folder, add_pooling_layer=False).save_pretrained(folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"architectures": ["Contriever"]}))
    return str(folder)


def test_a_contriever_is_compared_by_dot_products_of_mean_pooled_states_as_published(tmp_path: Path) -> None:
    published = Path(contriever(tmp_path / "published"))
    torch.save(load_file(published / "model.safetensors"), published / "pytorch_model.bin")
    (published / "model.safetensors").unlink()
    convert(published, tmp_path / "model")
    corpus, name = write_jsonl(tmp_path / "c.jsonl", documents(40)), str(tmp_path / "model")
    folder, _, options = index(tmp_path / "index", corpus, name, retriever="dense")
    texts = ["own3 hill", "king of the river city", "own17"]
    found = PassageSearch(folder, options).search(texts)
    tokenizer, model = AutoTokenizer.from_pretrained(name), AutoModel.from_pretrained(name).eval()

    def vector(text: str) -> np.ndarray:
        with torch.inference_mode():
            states = model(**tokenizer(text, return_tensors="pt", truncation=True, max_length=64)).last_hidden_state
        return states[0].mean(0).numpy()

    passages = np.stack([vector(f"{row['title']}: {row['text']}") for row in documents(40)])
    norms = np.linalg.norm(passages, axis=1)
    assert norms.max() > 1.02 * norms.min() > 1.02, "lengths differ, so that they decide"
    for text, ranked in zip(texts, found, strict=True):
        dots = passages @ vector(text)
        assert [dots[number] for number, _ in ranked] == pytest.approx([score for _, score in ranked], rel=1e-3)
        assert ranked[0][1] == pytest.approx(dots.max(), rel=1e-3)
        assert sorted(dots)[-10] <= ranked[-1][1] * 1.001


def test_how_vectors_are_compared_is_a_choice_and_part_of_the_index(tmp_path: Path, encoder: str) -> None:
    corpus, cache = write_jsonl(tmp_path / "c.jsonl", documents(30)), tmp_path / "cache"
    plain, first, options = index(tmp_path / "plain", corpus, encoder, retriever="dense", cache=cache)
    dot, second, by_dot = index(tmp_path / "dot", corpus, encoder, retriever="dense", cache=cache, similarity="dot")
    assert (first["encoded"], second["encoded"]) == (30, 30), "vectors of another kind are others"
    made = [json.loads((folder / "index.json").read_text())["dense"]["similarity"] for folder in (plain, dot)]
    assert made == ["cosine", "dot"], "auto is the cosine where the encoder is no Contriever"
    scores = [PassageSearch(folder, own).search(["own7 king"])[0] for folder, own in ((plain, options), (dot, by_dot))]
    assert max(score for _, score in scores[0]) <= 1 < max(score for _, score in scores[1])
    with pytest.raises(ModelError, match="compared by dot, not by cosine; set passages.similarity=dot"):
        PassageSearch(dot, options)
    name = contriever(tmp_path / "model")
    forced, _, _ = index(tmp_path / "forced", corpus, name, retriever="dense", similarity="cosine")
    assert json.loads((forced / "index.json").read_text())["dense"]["similarity"] == "cosine"


def test_passages_do_not_cross_documents_and_carry_their_title(tmp_path: Path, encoder: str) -> None:
    rows = [{"id": "a", "title": "Ada", "text": " ".join(["ada"] * 25)}, {"id": "b", "text": "king of the hill"}]
    folder, counts, _ = index(tmp_path / "index", write_jsonl(tmp_path / "c", rows), encoder, words=10)
    assert counts["passages"] == 4
    found = table.Passages(folder, 4).get(range(4))
    assert [(each.document, len(each.text.split())) for each in found.values()] == [
        ("a", 10), ("a", 10), ("a", 5), ("b", 4),
    ]  # fmt: skip
    assert found[0].titled_text.startswith("Ada: ada ada") and found[3].titled_text == "king of the hill"
    assert table.Passage("x", "Paris", "Paris is old").titled_text == "Paris is old", "a title is not repeated"


def test_what_is_rejected_is_listed_and_reported(tmp_path: Path, encoder: str) -> None:
    class Notes:
        notes: list[str] = []

        def note(self, message: str) -> None:
            self.notes.append(message)

        def progress(self, done: float, total: float | None, what: str) -> None: ...

        def metric(self, name: str, value: float, step: int | None = None) -> None: ...

    corpus = write_jsonl(tmp_path / "c.jsonl", [*documents(3), {"id": "x"}, 5, {"id": "y", "text": "… ,"}])
    listener = Notes()
    folder, counts, _ = index(tmp_path / "index", corpus, encoder, monitor=listener, retriever="bm25")
    assert (counts["documents"], counts["rejects"]) == (4, 2), "signs alone are a text, though nobody will find it"
    rejects = pl.read_parquet(folder / "rejects.parquet")
    assert rejects["line"].to_list() == [4, 5] and rejects["file"].unique().to_list() == ["c.jsonl"]
    assert any("2 documents or lines" in note and "line 4" in note for note in listener.notes)


def test_rejects_are_written_in_blocks(tmp_path: Path, encoder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kgqa_core.passages.corpus.REJECT_ROWS", 3)
    monkeypatch.setattr(corpora.RejectsWriter, "held", 0, raising=False)
    flush = corpora.RejectsWriter._flush

    def counted(self: corpora.RejectsWriter) -> None:
        corpora.RejectsWriter.held = max(corpora.RejectsWriter.held, len(self._rows))
        flush(self)

    monkeypatch.setattr(corpora.RejectsWriter, "_flush", counted)
    corpus = write_jsonl(tmp_path / "c.jsonl", [*documents(1), *({"id": f"x{number}"} for number in range(10))])
    folder, counts, _ = index(tmp_path / "index", corpus, encoder, retriever="bm25")
    titled_text = pl.read_parquet(folder / "rejects.parquet")
    assert counts["rejects"] == titled_text.height == 10 and corpora.RejectsWriter.held == 3
    assert titled_text["line"].to_list() == list(range(2, 12))
    assert titled_text.schema == {"file": pl.String, "line": pl.Int64, "reason": pl.String, "text": pl.String}
    none, _, _ = index(tmp_path / "none", write_jsonl(tmp_path / "good", documents(1)), encoder, retriever="bm25")
    assert pl.read_parquet(none / "rejects.parquet").schema == titled_text.schema


def test_a_corpus_without_any_document_is_refused(tmp_path: Path, encoder: str) -> None:
    with pytest.raises(InputError, match="no document that can be used: all 2 are rejected: c.jsonl line 1: field"):
        index(tmp_path / "index", write_jsonl(tmp_path / "c.jsonl", [{"x": 1}, {"y": 2}]), encoder)
    (tmp_path / "blank").write_text("\n \n")
    with pytest.raises(InputError, match="it is empty"):
        index(tmp_path / "other", tmp_path / "blank", encoder)


def test_a_corpus_that_grew_costs_only_what_is_new(tmp_path: Path, encoder: str) -> None:
    cache = tmp_path / "cache"
    rows = documents(40)
    _, first, _ = index(tmp_path / "one", write_jsonl(tmp_path / "a.jsonl", rows[:30]), encoder, cache=cache)
    assert first["encoded"] == 30
    shuffled = [rows[35], *rows[:30], *rows[30:35]]
    grown, second, options = index(tmp_path / "two", write_jsonl(tmp_path / "b.jsonl", shuffled), encoder, cache=cache)
    assert (second["passages"], second["encoded"]) == (36, 6)
    fresh, _, _ = index(tmp_path / "three", tmp_path / "b.jsonl", encoder)
    assert content_digest(grown) == content_digest(fresh), "what is known has no bearing on the index"
    _, third, _ = index(tmp_path / "four", tmp_path / "b.jsonl", encoder, cache=cache, words=1000)
    assert third["encoded"] == 0
    assert not list(Path(tmp_path / "work").glob("*.raw")) and PassageSearch(grown, options).search(["own35"])


def test_equal_passages_are_encoded_once_and_all_found(tmp_path: Path, encoder: str) -> None:
    rows = [{"id": str(place), "text": "the king of the hill"} for place in range(5)]
    folder, counts, options = index(tmp_path / "index", write_jsonl(tmp_path / "c", rows), encoder)
    assert counts["encoded"] == 1
    for retriever in ("dense", "bm25"):
        [ranked] = PassageSearch(folder, options.model_copy(update={"retriever": retriever})).search(["king"])
        assert [number for number, _ in ranked] == [0, 1, 2, 3, 4]
        assert len({score for _, score in ranked}) == 1


def test_cells_find_what_all_vectors_find(tmp_path: Path, encoder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = write_jsonl(tmp_path / "c.jsonl", documents(700))
    flat, _, options = index(tmp_path / "flat", corpus, encoder, retriever="dense", cache=tmp_path / "cache")
    monkeypatch.setattr(dense, "FLAT", 600)
    cells, _, _ = index(tmp_path / "ivf", corpus, encoder, retriever="dense", cache=tmp_path / "cache")
    meta = {folder: json.loads((folder / "index.json").read_text())["dense"] for folder in (flat, cells)}
    assert (meta[flat]["index"], meta[cells]["index"], meta[cells]["cells"]) == ("flat", "ivf", dense.cells(700))
    texts = [row["text"] for row in documents(700)][::10]
    best = [PassageSearch(folder, options).search(texts) for folder in (flat, cells)]
    same = np.mean([{n for n, _ in a} == {n for n, _ in b} for a, b in zip(*best, strict=True)])
    assert same > 0.8, "so few cells are nearly all looked at"


def test_an_index_of_another_encoder_or_retriever_is_refused(tmp_path: Path, encoder: str) -> None:
    folder, _, options = index(
        tmp_path / "index", write_jsonl(tmp_path / "c", documents(4)), encoder, retriever="dense"
    )
    other = tiny_encoder(tmp_path / "other", seed=1)
    with pytest.raises(ModelError, match="not the one that the passage index was made with"):
        PassageSearch(folder, options.model_copy(update={"encoder": other}))
    with pytest.raises(ArtifactError, match="no part for passages.retriever 'bm25'"):
        PassageSearch(folder, options.model_copy(update={"retriever": "bm25"}))
    (folder / dense.FILE).write_bytes(b"IxFI")
    with pytest.raises(ArtifactError, match=r"dense.faiss cannot be read"):
        PassageSearch(folder, options)
    with pytest.raises(ArtifactError, match="is no passage index"):
        PassageSearch(tmp_path, options)
    with pytest.raises(ModelError, match=r"passages.encoder 'scratch'"):
        dense.open_encoder(PassagesOptions(encoder="scratch"))


def test_no_file_of_an_index_is_a_pickle(tmp_path: Path, encoder: str) -> None:
    folder, _, _ = index(tmp_path / "index", write_jsonl(tmp_path / "c", documents(4)), encoder)
    files = [file for file in folder.rglob("*") if file.is_file()]
    assert {file.suffix for file in files} == {".parquet", ".json", ".npy", ".faiss"}
    for file in files:
        if file.suffix == ".npy":
            np.load(file, allow_pickle=False)


def test_words_are_folded_and_unspaced_scripts_are_read_in_pairs() -> None:
    assert tokens("Ｂeijing's 北京大学!") == ["beijing", "s", "北京", "京大", "大学"]
    assert tokens("…") == [] and tokens("a" * 1000) == ["a" * 64]


def test_words_that_nobody_wrote_find_nothing(tmp_path: Path, encoder: str) -> None:
    folder, _, options = index(tmp_path / "index", write_jsonl(tmp_path / "c", documents(4)), encoder)
    only_words = options.model_copy(update={"retriever": "bm25"})
    assert PassageSearch(folder, only_words).search(["zebra", "", "…"]) == [[], [], []]
    assert len(PassageSearch(folder, options).search(["zebra"])[0]) == 4
    signs, _, _ = index(tmp_path / "signs", write_jsonl(tmp_path / "s", [{"text": "…"}]), encoder)
    assert PassageSearch(signs, only_words).search(["a"]) == [[]], "a corpus without words"


def test_tables_hold_every_passage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "ROWS", 3)
    writer = table.PassageWriter(tmp_path)
    passages = [table.Passage(str(place), "", f"text {place}") for place in range(8)]
    for passage in passages:
        writer.add(passage)
    writer.flush()
    there = table.Passages(tmp_path, 8)
    assert len(list((tmp_path / table.FOLDER).iterdir())) == 3
    assert [text for block in there.blocks(2) for text in block] == [passage.text for passage in passages]
    assert there.get([7, 0, 3, 3]) == {0: passages[0], 3: passages[3], 7: passages[7]}
    (tmp_path / table.FOLDER / "00001.parquet").unlink()
    with pytest.raises(ArtifactError, match="00001.parquet is missing"):
        there.get([4])


def test_the_latest_turns_are_searched_for_after_the_query() -> None:
    turns: Sequence[tuple[str, str]] = (("user", "Who is Ada?"), ("agent", "A poet's daughter."))
    question = Question(id="q", text="When was she born?", dialogue=tuple(turns))
    assert query_of(question, 0) == "When was she born?"
    assert query_of(question, 1) == "When was she born? A poet's daughter."
    assert query_of(question, 9) == "When was she born? A poet's daughter. Who is Ada?"


class Axes:
    """An encoder whose vectors lie on an axis each, so that one number of them is as large as can be."""

    width, digest, weights, similarity = 4, "axes", "axes", "cosine"

    def encode(self, texts: Sequence[str]) -> Any:
        found = np.zeros((len(texts), self.width), dtype=np.int16)
        for row, text in enumerate(texts):
            found[row, "abcd".index(text[0])] = 32_767
        return found


@pytest.mark.parametrize("kind", ["flat", "ivf"])
def test_the_largest_number_of_a_vector_keeps_its_sign(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dense, "open_encoder", lambda options: Axes())
    options = PassagesOptions(corpus="c", index=kind)
    texts = [f"{axis} {number}" for axis in "abcd" for number in range(70)]
    dense.build(Workspace(tmp_path, tmp_path), [texts], len(texts), Axes(), options, seed=7)  # type: ignore[arg-type]
    [ranked] = dense.DenseIndex(tmp_path, options, "axes").search(["c"], 5)
    assert ranked == [(140 + place, 1.0) for place in range(5)]
