"""The annotation sheet: a seeded sample, as CSV and as a page in which hostile names are only text."""

from __future__ import annotations

import csv
import json
from html.parser import HTMLParser
from pathlib import Path

import pytest

from kgqa_core.config import LlmOptions, WritingOptions
from kgqa_core.errors import InputError
from kgqa_core.papers.ltgen.prompts import ANNOTATION_RULE
from kgqa_core.papers.ltgen.sheet import COLUMNS, compare, read_sheet, write_sheet
from kgqa_core.papers.ltgen.write import write
from kgqa_core.workspace import Workspace
from tests.support.hostile import EVIL


@pytest.fixture(scope="module")
def benchmark(ltgen_kg: Path, ltgen_sample: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """LTGen-Conv by rule."""
    out = tmp_path_factory.mktemp("conv")
    write(
        Workspace(out),
        kg=ltgen_kg,
        sample=ltgen_sample,
        kind="conv",
        options=WritingOptions(),
        llm=LlmOptions(),
        seed=7,
    )
    return out


def read(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def fill(source: Path, target: Path, wrong: set[int]) -> Path:
    rows = read(source)
    with target.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        for place, row in enumerate(rows):
            writer.writerow(row | {"label": "incorrect" if place in wrong else "correct"})
    return target


class Page(HTMLParser):
    """Elements with their attributes, and visible text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.visible = ""
        self._script = False
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._script = tag in ("script", "style")
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        self._script = False

    def handle_data(self, data: str) -> None:
        if not self._script:
            self.visible += data


@pytest.mark.parametrize(("share", "number"), [(0.001, 1), (0.5, None), (1.0, None)])
def test_a_sheet_holds_its_share(
    benchmark: Path, ltgen_kg: Path, tmp_path: Path, share: float, number: int | None
) -> None:
    counts = write_sheet(tmp_path, benchmark=benchmark, kg=ltgen_kg, share=share, seed=7)
    of = len((benchmark / "questions.jsonl").read_text().splitlines())
    expected = number or -(-of * int(share * 10) // 10)
    assert counts == {"items": expected, "of": of, "share": share}
    rows = read(tmp_path / "sheet.csv")
    assert len(rows) == len({row["id"] for row in rows}) == expected
    page = Page((tmp_path / "sheet.html").read_text(encoding="utf-8"))
    assert [attrs["data-id"] for tag, attrs in page.elements if tag == "article"] == [row["id"] for row in rows]
    radios = [attrs for tag, attrs in page.elements if tag == "input" and attrs.get("type") == "radio"]
    assert [radio["value"] for radio in radios] == ["correct", "incorrect"] * expected
    assert len({radio["name"] for radio in radios}) == expected
    assert ANNOTATION_RULE in page.visible


def test_a_sheet_names_triples_and_dialogue(benchmark: Path, ltgen_kg: Path, tmp_path: Path) -> None:
    write_sheet(tmp_path, benchmark=benchmark, kg=ltgen_kg, share=1.0, seed=7)
    rows = {row["id"]: row for row in read(tmp_path / "sheet.csv")}
    for line in (benchmark / "questions.jsonl").read_text(encoding="utf-8").splitlines():
        question = json.loads(line)
        row = rows[question["id"]]
        assert row["query"] == question["question"] and row["answer"] == question["reference"]
        assert len(row["triples"].split("\n")) == len(question["gold_triples"])
        assert row["dialogue"].count("User: ") == len(question.get("dialogue", [])) / 2
        assert "Q1" not in row["triples"], "names, not keys"


def test_the_sample_follows_the_seed(benchmark: Path, ltgen_kg: Path, tmp_path: Path) -> None:
    drawn = []
    for number, seed in enumerate((7, 7, 8)):
        (tmp_path / str(number)).mkdir()
        write_sheet(tmp_path / str(number), benchmark=benchmark, kg=ltgen_kg, share=0.3, seed=seed)
        drawn.append([row["id"] for row in read(tmp_path / str(number) / "sheet.csv")])
    assert drawn[0] == drawn[1] != drawn[2]


def test_two_filled_sheets_are_compared(benchmark: Path, ltgen_kg: Path, tmp_path: Path) -> None:
    counts = write_sheet(tmp_path, benchmark=benchmark, kg=ltgen_kg, share=1.0, seed=7)
    one, two = (
        fill(tmp_path / "sheet.csv", tmp_path / f"{name}.csv", wrong) for name, wrong in (("a", {0, 1}), ("b", {1, 2}))
    )
    found = compare(read_sheet(one), read_sheet(two))
    total = counts["items"]
    assert (found.items, found.both_incorrect, found.first_only, found.second_only) == (total, 1, 1, 1)
    assert found.raw == pytest.approx((total - 2) / total) and found.error_rate == pytest.approx(1 / (total - 2))


def test_hostile_names_are_text_and_no_formula(tmp_path: Path, ltgen_kg: Path) -> None:
    benchmark = tmp_path / "bad"
    benchmark.mkdir()
    texts = [*EVIL, "=HYPERLINK(1)", "+1", "-1+1", "@SUM(A1)", '"],alert(1)//', "</script><script>alert(1)</script>"]
    rows = [
        {"id": f"{text} {number}", "question": text, "topic_entities": [text], "answers": [text], "reference": text,
         "dialogue": [{"role": "user", "text": text}, {"role": "agent", "text": text}], "level": "I",
         "gold_triples": [[text, text, text]]}
        for number, text in enumerate(texts)
    ]  # fmt: skip
    (benchmark / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    write_sheet(tmp_path, benchmark=benchmark, kg=ltgen_kg, share=1.0, seed=7, kind="conv")
    text = (tmp_path / "sheet.html").read_text(encoding="utf-8")
    page = Page(text)
    tags = [tag for tag, _ in page.elements]
    assert tags.count("script") == 1 and not {"img", "iframe"} & set(tags)
    assert not [name for _, attrs in page.elements for name in attrs if name.startswith("on")]
    assert all(each in page.visible for each in texts)
    script = text[text.index("<script>") : text.rindex("</script>")]
    assert not any(each in script for each in texts), "no name is in the script"
    assert "default-src 'none'" in text and "http://" not in text and "https://" not in text
    with (tmp_path / "sheet.csv").open(encoding="utf-8-sig", newline="") as file:
        cells = [cell for row in csv.reader(file) for cell in row]
    assert not [cell for cell in cells if cell.startswith(("=", "+", "-", "@"))]
    assert "'=HYPERLINK(1)" in cells


@pytest.mark.parametrize("share", [0.0, -0.1, 1.5])
def test_a_share_out_of_range_is_refused(benchmark: Path, ltgen_kg: Path, tmp_path: Path, share: float) -> None:
    with pytest.raises(InputError, match="above 0 and at most 1"):
        write_sheet(tmp_path, benchmark=benchmark, kg=ltgen_kg, share=share, seed=7)


def test_a_share_is_counted_without_the_errors_of_floating_point(
    benchmark: Path, ltgen_kg: Path, tmp_path: Path
) -> None:
    first = json.loads((benchmark / "questions.jsonl").read_text(encoding="utf-8").splitlines()[0])
    rows = [json.dumps(first | {"id": f"conv/x/{number}"}) for number in range(100)]
    (tmp_path / "questions.jsonl").write_text("\n".join(rows), encoding="utf-8")
    assert write_sheet(tmp_path, benchmark=tmp_path, kg=ltgen_kg, share=0.07, seed=7)["items"] == 7
