"""The report page: complete, self-contained, and safe with other people's text."""

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import polars as pl
import pytest

from kgqa_core.report.data import ReportData
from kgqa_core.report.page import is_safe_link, render, write
from kgqa_core.types import COMPLEXITY_TYPES

from .fake import FORMATS, fake_corpus, fake_knowledge, fake_report, fake_rewriter, hostile


class Outline(HTMLParser):
    """Collects tags, attributes and visible text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.ids: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        self.ids += [value or "" for name, value in attrs if name == "id"]
        if tag not in ("meta", "br", "img", "link", "input"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open[-1] == tag, f"</{tag}> closes {self.open[-3:]}"
        self.open.pop()


@pytest.fixture(scope="module")
def page() -> str:
    return render(fake_report(("builtin", "hf:google/flan-t5-small")))


def test_all_sections_are_there_and_tags_are_balanced(page: str) -> None:
    outline = Outline(page)
    assert outline.open == []
    assert {"table-1", "table-2", "examples", "training", "fairness", "stages", "counts", "configuration"} <= set(
        outline.ids
    )
    links = {value[1:] for name, value in outline.attributes if name == "href" and value and value.startswith("#")}
    assert links <= set(outline.ids)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The page of a run that compares ten kinds of knowledge and has made its own sentences."""
    folder = tmp_path_factory.mktemp("run")
    data = replace(
        fake_report(("builtin", "openai:m"), FORMATS),
        corpus=fake_corpus(folder / "corpus"),
        rewriter=fake_rewriter(folder / "rewriter"),
        knowledge={"hop_path/rewritten": fake_knowledge(folder / "told", "hop_path", "rewritten")},
        path_curves=fake_report().curves,
    )
    return render(data)


def test_forms_of_knowledge_corpus_and_rewriter_have_their_sections(whole: str, page: str) -> None:
    outline = Outline(whole)
    assert outline.open == []
    assert {"formats", "corpus", "rewriter"} <= set(outline.ids)
    links = {value[1:] for name, value in outline.attributes if name == "href" and value and value.startswith("#")}
    assert links <= set(outline.ids)
    assert not {"formats", "corpus", "rewriter"} & set(Outline(page).ids), "a run without them has no empty sections"
    assert "Path retriever" in whole and "Path retriever" not in page


def test_fixed_and_broken_questions_stand_in_the_page(whole: str) -> None:
    section = whole.split('id="formats"')[1].split('id="corpus"')[0]
    row = section.split("Helpful and harmful")[1].split("HopPath facts (rewritten)</th>")[1].split("</tr>")[0]
    assert row.count("+208</span>") == 1 and "p &lt; 0.001" in row
    assert "Prompt tokens" in section and "11 cut off, 1 failed" in section and "Cost of 1,000" in section
    assert "Hit with HopPath facts (rewritten)" in whole.split('id="table-1"')[0]
    assert "%; Random 0.0 %" in whole.split('id="table-1"')[0], "a baseline beside the headline"


def test_the_corpus_section_has_acceptance_cost_and_rejects(whole: str) -> None:
    section = whole.split('id="corpus"')[1].split('id="rewriter"')[0]
    for part in ("77.5 %", "10,800", "60.00", "QA wrong", "unfaithful", "no text", "&lt;inv&gt;-located in"):
        assert part in section


def test_the_rewriter_section_has_samples_curves_and_faithfulness(whole: str) -> None:
    section = whole.split('id="rewriter"')[1].split('id="examples"')[0]
    assert "told after pass 4" in section and "told after pass 3" not in section
    assert "<svg" in section and "491,520 weights" in section
    row = section.split("HopPath facts (rewritten)</th>")[1].split("</tr>")[0]
    assert re.findall(r"<td>([\d,]+)</td>", row) == ["96", "6", "90", "6", "3", "1", "4", "2", "1", "12,456"]


def test_texts_of_other_peoples_models_stay_text(tmp_path: Path) -> None:
    evil = "</dd><script>alert(1)</script><img src=x onerror=alert(1)>\u202e"
    corpus, rewriter = fake_corpus(tmp_path / "corpus"), fake_rewriter(tmp_path / "rewriter")
    for file in (corpus / "corpus.parquet", rewriter / "samples.parquet"):
        frame = pl.read_parquet(file)
        texts = [name for name in ("text", "triple_text", "qa_answer", "instruction", "reference") if name in frame]
        frame.with_columns(pl.lit(evil).alias(name) for name in texts).write_parquet(file)
    paths = pl.read_parquet(corpus / "acceptance.parquet").with_columns(relation_path=pl.lit(evil))
    paths.write_parquet(corpus / "acceptance.parquet")
    example = replace(hostile(), read=(("rewritten", evil),))
    data = replace(fake_report(), corpus=corpus, rewriter=rewriter, examples=[example])
    text = render(data)
    outline = Outline(text)
    assert outline.open == [] and not {"script", "img"} & set(outline.tags)
    assert "What the model read in sentences" in text and "\u202e" not in text


def test_the_page_asks_the_network_for_nothing(page: str) -> None:
    outline = Outline(page)
    assert not {"script", "link", "img", "iframe", "object", "base", "form"} & set(outline.tags)
    assert not [name for name, _ in outline.attributes if name in ("src", "srcset", "action", "data", "xlink:href")]
    style = page.split("<style>")[1].split("</style>")[0]
    assert "url(" not in style and "@import" not in style
    assert "default-src 'none'" in page


def test_hostile_names_and_outputs_stay_text(page: str) -> None:
    outline = Outline(page)
    assert "script" not in outline.tags
    assert not [name for name, _ in outline.attributes if name.startswith("on")]
    assert "&lt;script&gt;alert(" in page
    assert "\u202e" not in page
    assert "\x00" not in page
    assert "javascript:" not in page


def test_the_page_has_the_published_denominator_only_where_questions_have_no_answer() -> None:
    data = fake_report()
    title = "Some questions have no gold answer and score 0"
    assert title not in render(data)
    scores = data.aggregates["scores"]
    text = render(replace(data, aggregates={**data.aggregates, "with_answers": scores}))
    assert title in text and "With answers" in text


def test_hostile_text_is_escaped_wherever_it_may_come_from() -> None:
    evil = "</title></style></pre><script>alert(1)</script>\"'><img src=x onerror=alert(1)>\ud800"
    data = fake_report()
    aggregates = dict(data.aggregates)
    model = f"hf:{evil}"
    aggregates["scores"] = {
        **aggregates["scores"],
        f"rigel/triples/{model}": aggregates["scores"]["rigel/triples/builtin"],
    }
    aggregates["leakage"] = {"leaked": 1, evil: 2}
    data = replace(
        data,
        title=evil,
        profile={"description": evil, "kg": {"name": evil}, evil: evil, "questions": {"name": evil}},
        aggregates=aggregates,
        kg_counts={evil: evil},
        curves=pl.DataFrame({"step": [1, 2], "split": [evil[:-1]] * 2, "metric": [evil[:-1]] * 2, "value": [0.1, 0.2]}),
        stages=[{"name": evil, "status": evil, "seconds": 1.0, "digest": evil}],
        links={evil: "https://example.org/?" + evil},
        environment={evil: {evil: evil}},
        attribution=evil,
        created=evil,
        examples=[hostile()],
    )
    outline = Outline(render(data))
    assert outline.open == []
    assert not {"script", "img"} & set(outline.tags)
    assert not [name for name, _ in outline.attributes if name.startswith("on")]


@pytest.mark.parametrize(
    ("url", "safe"),
    [
        ("https://example.org/a?b=c", True),
        ("http://127.0.0.1:5000/#/runs", True),
        ("../runs/1/report.html", True),
        ("javascript:alert(1)", False),
        (" JavaScript:alert(1)", False),
        ("java\tscript:alert(1)", False),
        ("java\x01script:alert(1)", False),
        ("data:text/html,x", False),
        ("http://[", False),
    ],
)
def test_links_lead_to_pages_only(url: str, safe: bool) -> None:
    assert is_safe_link(url) is safe


def test_scores_gains_and_all_nine_types_are_shown(page: str) -> None:
    assert "75.2" in page and "+795 %" in page and "92.7 %" in page
    table = page.split('id="table-2"')[1].split("</table>")[0]
    shown = re.findall(r'<th scope="row">(.*?)</th>', table)
    assert tuple(shown[:9]) == COMPLEXITY_TYPES


def test_the_exact_configuration_is_in_the_page(page: str) -> None:
    block = page.split("<pre>")[1].split("</pre>")[0]
    assert "learning_rate: 0.001" in block
    assert "- bundled:atlas" in block


def test_a_run_that_stopped_early_still_gives_a_page(tmp_path: Path) -> None:
    data = ReportData(title="Nothing yet", profile={}, aggregates={})
    path = write(tmp_path, data=data)
    assert path == tmp_path / "report.html"
    outline = Outline(path.read_text(encoding="utf-8"))
    assert outline.open == []
    assert "No language model was scored" in path.read_text(encoding="utf-8")
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]


def test_no_knowledge_that_scores_zero_has_no_percentage() -> None:
    data = fake_report()
    gains = {"rigel/triples/builtin": {"exact": None, "contains": None}}
    text = render(replace(data, aggregates={**data.aggregates, "gain_over_no_knowledge": gains}))
    assert "from 0" in text


def test_curves_may_be_a_file(tmp_path: Path) -> None:
    data = fake_report()
    data.curves.write_parquet(tmp_path / "curves.parquet")
    assert render(replace(data, curves=tmp_path / "curves.parquet")) == render(data)
    assert 'id="training"' not in render(replace(data, curves=tmp_path / "none.parquet"))


def test_the_number_of_questions_says_how_many_of_them_were_answered() -> None:
    data = fake_report()
    scores = {
        experiment: {
            split: {
                metric: {**cell, "n": 2412 if experiment.endswith("/-/-") else 600} for metric, cell in cells.items()
            }
            for split, cells in by.items()
        }
        for experiment, by in data.aggregates["scores"].items()
    }
    text = render(replace(data, aggregates={**data.aggregates, "scores": scores}))
    said = "retrieval on all, answers on 600 of them; "
    assert said in text and said not in render(data)
