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

from .fake import fake_report, hostile


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
