"""Questions of newcomers over a table and over untyped triples, answered at once by the packaged head start."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kgqa_core.system import System

BOOKS = """title,author,genre,published,pages,publisher,in stock
The Silent Harbor,Mara Lindqvist,mystery,2014,312,Northlight Press,true
Glass Orchard,Mara Lindqvist,mystery,2017,288,Northlight Press,false
Iron Meadow,Theo Okafor,science fiction,2019,420,Comet Books,true
A Field of Clocks,Theo Okafor,science fiction,2021,510,Comet Books,true
Winter Ledger,Ines Carvalho,history,2009,640,Old Mill,false
Paper Lanterns,Yuki Tanabe,poetry,2020,96,Northlight Press,true
Small Hours,Yuki Tanabe,poetry,2023,88,Old Mill,true
"""
STAFF = """Ana	works in	Sales
Bo	works in	Sales
Fay	works in	Engineering
Eli	works in	Engineering
Fay	reports to	Bo
Ana	office	Berlin
Bo	office	Berlin
Eli	office	Lyon
Fay	office	Lyon
Berlin	country	Germany
Lyon	country	France
"""
FAMILY = """Ann	gender	female
Ben	gender	male
Cat	gender	female
Eve	gender	female
Ann	sibling	Ben
Ann	sibling	Cat
Ann	child	Eve
"""


@pytest.fixture(scope="module")
def systems(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, System]]:
    """A system over each graph."""
    folder, made = tmp_path_factory.mktemp("graphs"), {}
    for name, text in (("books.csv", BOOKS), ("staff.tsv", STAFF), ("family.tsv", FAMILY)):
        (folder / name).write_text(text, encoding="utf-8")
        made[name.partition(".")[0]] = System.from_graph(folder / name, home=folder / "home")
    yield made


@pytest.mark.parametrize(
    ("graph", "question", "answers"),
    [
        ("books", "when was Glass Orchard published", "2017"),
        ("books", "who published Small Hours", "Old Mill"),
        ("books", "how many authors are there", "4"),
        ("books", "what genres are there", "history, mystery, poetry, science fiction"),
        ("books", "which authors write poetry", None),
        ("books", "books published in 2019", "Iron Meadow"),
        ("books", "books with fewer than 50 pages", "none"),
        ("books", "how many books are out of stock", "2"),
        ("staff", "who works in Engineering", "Eli, Fay"),
        ("staff", "how many offices are there", "2"),
        ("staff", "which country does Fay work in", None),
        ("staff", "in which office is Bo", "Berlin"),
        ("family", "who is Ann's sister?", "Cat"),
        ("family", "how many daughters does Ann have", "1"),
        ("family", "who is Ann's brother?", "Ben"),
    ],
)
def test_what_is_asked_is_found_or_declined(
    systems: dict[str, System], graph: str, question: str, answers: str | None
) -> None:
    reply = systems[graph].ask(question)
    assert (", ".join(sorted(reply.listed)) or None) == answers


def test_who_does_what_a_verb_says_is_not_what_it_is_done_to(systems: dict[str, System]) -> None:
    for question in ("who works with Fay", "who works in the Lyon office"):
        assert "Engineering" not in systems["staff"].ask(question).listed
