"""Alignment of sentences with triples: mentions, sentence ends, dates, and what counts as invented."""

from __future__ import annotations

import doctest
import json
import random
import re
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kgqa_core.rewriting import align_mentions, align_text
from kgqa_core.rewriting.align_text import split
from kgqa_core.rewriting.faithfulness import Triple, check
from kgqa_core.rewriting.template import paragraph, sentences
from tests.support.examples import examples

TOLKIEN = [
    ("J. R. R. Tolkien", "people.person.place_of_birth", "Bloemfontein"),
    ("J. R. R. Tolkien", "people.person.date_of_birth", "1892-01-03"),
    ("The Hobbit", "book.written_work.author", "J. R. R. Tolkien"),
]


@pytest.mark.parametrize("module", [align_mentions, align_text])
def test_examples_of_the_documentation_hold(module):
    assert doctest.testmod(module).failed == 0


def test_a_faithful_text_tells_every_triple_and_invents_nothing():
    found = check(
        "J.R.R. Tolkien was born in Bloemfontein. He was born on January 3, 1892, and wrote The Hobbit.", TOLKIEN
    )
    assert [sentence.triples for sentence in found.sentences] == [(0,), (1, 2)]
    assert found.faithful and found.untold == () and found.invented == ()


@pytest.mark.parametrize(
    ("text", "invented", "untold"),
    [
        ("Tolkien was born in Bloemfontein.", (), (1, 2)),
        ("J. R. R. Tolkien was born in Oxford.", ("Oxford",), (0, 1, 2)),
        ("J. R. R. Tolkien was born in Bloemfontein in 1893.", ("1893",), (1, 2)),
        ("J. R. R. Tolkien was born in Bloemfontein in January 1892.", (), (1, 2)),
        ("J. R. R. Tolkien wrote The Hobbit with C. S. Lewis.", ("C. S. Lewis",), (0, 1)),
        ("J. R. R. Tolkien wrote 11 books.", ("11",), (0, 1, 2)),
        ("Bilbo Baggins lives in The Hobbit.", ("Bilbo Baggins",), (0, 1, 2)),
        ("Bilbo was thought of by J. R. R. Tolkien.", ("Bilbo",), (0, 1, 2)),
        ("Fantasy by J. R. R. Tolkien: The Hobbit.", (), (0, 1)),
        ("", (), (0, 1, 2)),
    ],
)
def test_what_is_in_no_triple_is_invented_and_what_no_sentence_says_is_untold(text, invented, untold):
    found = check(text, TOLKIEN)
    assert (found.invented, found.untold) == (invented, untold)


@pytest.mark.parametrize(
    "date", ["1997-01-22", "22 January 1997", "January 22, 1997", "Jan. 22nd 1997", "the 22nd of January 1997",
             "1997年1月22日", "1997-01-22T00:00:00Z", "1997/1/22"],
)  # fmt: skip
@pytest.mark.parametrize("written", ["1997-01-22", "22 January 1997", "1997年1月22日"])
def test_a_date_is_the_same_however_it_is_written(date, written):
    assert check(f"Ada was born on {written}.", [("Ada", "born", date)]).faithful


@pytest.mark.parametrize(
    ("name", "written", "same"),
    [
        ("1,234", "1234", True),
        ("1234.0", "1,234", True),
        ("5000000", "5 million", True),
        ("64000", "6.4万", True),
        ("167cm", "167 cm", True),
        ("1.65m", "1.65米", True),
        ("1米56", "1.56米", True),
        ("12", "twelve", True),
        ("1234", "1235", False),
        ("3.14", "314", False),
        ("1990", "1990s", True),
    ],
)
def test_a_number_is_told_by_its_value(name, written, same):
    assert check(f"Ada has {written}.", [("Ada", "size", name)]).faithful is same


@pytest.mark.parametrize(
    ("text", "names", "expected"),
    [
        ("Mr. Smith met Dr. No. 5 men saw it.", [], ["Mr. Smith met Dr. No. 5 men saw it."]),
        ("He paid 3.50 dollars. She paid 2.", [], ["He paid 3.50 dollars.", "She paid 2."]),
        ("The U.S. Army left. It was late.", [], ["The U.S. Army left.", "It was late."]),
        ("He lives in the U.S. He is old.", [], ["He lives in the U.S.", "He is old."]),
        ("It is by J. R. R. Tolkien. It is old.", [], ["It is by J. R. R. Tolkien.", "It is old."]),
        ("Stan owns Arsenal F.C. Arsène left.", ["Arsène"], ["Stan owns Arsenal F.C.", "Arsène left."]),
        ("He made Monsters, Inc. and left.", ["Monsters, Inc."], ["He made Monsters, Inc. and left."]),
        ("Who? Me! Yes.", [], ["Who?", "Me!", "Yes."]),
        ('He said "No." She left.', [], ['He said "No."', "She left."]),
        ("Oh my God! It's Mars! is a film.", ["Oh my God! It's Mars!"], ["Oh my God! It's Mars! is a film."]),
        ("One line\nanother line", [], ["One line", "another line"]),
        ("1. Ada is here. 2. Bob is there.", [], ["1. Ada is here.", "2. Bob is there."]),
        ("他生于1997年。身高1.65米！好？", [], ["他生于1997年。", "身高1.65米！", "好？"]),
        ("他说：“好。”她走了。", [], ["他说：“好。”", "她走了。"]),
        ("", [], []),
    ],
)
def test_sentences_end_where_a_reader_ends_them(text, names, expected):
    spans = [(text.find(name), text.find(name) + len(name)) for name in names]
    assert [text[start:end] for start, end in split(text, spans, {start for start, _ in spans})] == expected


def test_the_longest_name_wins():
    triples = [("New York", "in", "Ohio"), ("New York, I Love You", "director", "Brett Ratner")]
    found = check("Brett Ratner directed New York, I Love You in Ohio.", triples)
    assert found.sentences[0].triples == (1,) and found.untold == (0,)


def test_case_accents_and_punctuation_of_a_name_make_no_difference():
    triples = [("Málaga C.F.", "in", "Guinea-Bissau"), ("O'Brien", "in", "Guinea-Bissau")]
    assert check("malaga CF is in Guinea Bissau, like O’Brien.", triples).faithful


def test_nationalities_and_initials_of_names_are_no_inventions():
    triples = [("Mohandas Gandhi", "nationality", "India"), ("Ada", "lives in", "United States of America")]
    assert check("Mohandas Gandhi was Indian. Ada lives in the USA.", triples).invented == ()
    assert check("Mohandas Gandhi was Indonesian.", triples).invented == ("Indonesian",)
    assert check("Marie was French.", [("Marie", "country", "France")]).faithful


def test_words_of_two_names_make_no_third_one():
    triples = [("James Norman Hall", "wrote", "Mutiny"), ("David Lynch", "directed", "Dune")]
    assert check("It was James Lynch who wrote Mutiny.", triples).invented == ("James Lynch",)


def test_a_pronoun_carries_the_sentence_before_it_and_nothing_further():
    triples = [("Ada", "born in", "London"), ("Ada", "died in", "Leeds"), ("Bob", "born in", "York")]
    assert check("Ada was born in London. She died in Leeds. Bob was born in York.", triples).faithful
    assert check("Ada was born in London. Bob was born in York. Leeds is old.", triples).untold == (1,)


def test_a_nameless_node_is_told_by_what_hangs_on_it():
    triples = [
        ("Ada", "marriage", "CVT1"), ("CVT1", "spouse", "Bob"), ("CVT1", "from", "1835-07-08"),
        ("Ada", "marriage", "CVT2"), ("CVT2", "spouse", "Carl"),
    ]  # fmt: skip
    found = check("Ada married Bob on 8 July 1835.", triples)
    assert found.sentences[0].triples == (0, 1, 2) and found.untold == (3, 4) and found.invented == ()


def test_inverse_triples_are_told_like_others():
    assert check("Paris is the capital of France.", [("Paris", "<inv>-capital", "France")]).faithful


ZHANG = [("窦泽成", "出生地", "山东青岛"), ("窦泽成", "性别", "男"), ("窦泽成", "出生日期", "1997年1月22日")]


@pytest.mark.parametrize(
    ("text", "invented", "untold"),
    [
        ("窦泽成是一位男性，出生于山东省青岛市，出生日期是1997年1月22日。", (), ()),
        ("窦泽成是男性。他生于1997年1月22日。他来自山东青岛。", (), ()),
        ("窦泽成生于1998年1月22日。", ("1998年1月22日",), (0, 1, 2)),
        ("窦泽成是男性，著有《红楼梦》。", ("红楼梦",), (0, 2)),
        ("窦泽成的昵称是“小窦”，身高167cm。", ("小窦", "167"), (0, 1, 2)),
        ("窦泽成是男性，英文名Marty Dou。", ("Marty Dou",), (0, 2)),
    ],
)
def test_chinese_texts_are_compared_by_characters_numbers_and_marks(text, invented, untold):
    found = check(text, ZHANG, "zh")
    assert (found.invented, found.untold) == (invented, untold)


def test_in_other_languages_only_numbers_are_called_invented():
    triples = [("Berlin", "Fluss", "Spree")]
    assert check("Die Hauptstadt Berlin liegt an der Spree.", triples, "de").faithful
    assert check("Berlin liegt seit 1237 an der Spree.", triples, "de").invented == ("1237",)


WORDS = ["Ada", "Lovelace", "J.", "Inc.", "St.", "No", "Éire", "o'Neil", "The", "of", "7", "1997", "U.S.", "B", "Who?"]
NAMES = (
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=4)
    .map(" ".join)
    .filter(
        lambda name: not re.search(r"(^|\s)[A-Z]\.?$", name)  # `… is B. J. is …` has two readings
    )
)
CHINESE = st.text("北京南上海江山川东。，12A", min_size=2, max_size=8).filter(lambda name: re.search(r"[一-鿿]", name))
RELATIONS = ["capital of", "film.film.directed_by", "has_genre", "<inv>-writtenBy", "release year", "borders"]


def _triples(names: st.SearchStrategy[str]) -> st.SearchStrategy[list[Triple]]:
    triple = st.tuples(names, st.sampled_from(RELATIONS), names).filter(lambda each: each[0] != each[2])
    return st.lists(triple, min_size=1, max_size=5, unique=True)


@examples(300)
@given(_triples(NAMES), st.integers(0, 5))
@example([("Ada", "borders", "S.W.A.T."), ("LL Cool J", "borders", "G")], 0)
def test_template_sentences_invent_nothing(triples, variant):
    assert check(paragraph(sentences(triples, "en", variant)), triples).invented == ()


@examples(200)
@given(_triples(CHINESE), st.integers(0, 5))
def test_chinese_template_sentences_invent_nothing(triples, variant):
    assert check(paragraph(sentences(triples, "zh", variant), "zh"), triples, "zh").invented == ()


def _pairs(shared_data: Path, name: str) -> list[tuple[str, list[Triple]]]:
    """Texts that ChatGPT wrote, with their triples."""
    rows = json.loads((shared_data / f"rra_kg2text/finetune-llama/{name}/dev.json").read_text(encoding="utf-8"))
    found = []
    for row in rows:
        graph = re.search(r"(?:graph is: |句话：)\((.*)\)(?:\. The sentence is:|。)\s*$", row["instruction"], re.S)
        triples: list[Triple] = []
        for part in graph[1].split(") (") if graph else ():
            middle = re.search(r", ([A-Za-z0-9_]+(?:[._][A-Za-z0-9_]+)+|[一-鿿]{1,6}|[a-z_]+), ", part)
            if middle:
                triples.append((part[: middle.start()], middle[1], part[middle.end() :]))
        if triples and len(triples) == len(graph[1].split(") (")):
            found.append((row["output"], triples))
    return found


REAL = [("WQSP", "en", 0.01, 0.02), ("MetaQA", "en", 0.01, 0.02), ("ZJQA", "zh", 0.01, 0.04)]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "language", "max_invented", "max_untold"), REAL)
def test_texts_of_the_published_corpora_are_mostly_faithful(shared_data, name, language, max_invented, max_untold):
    pairs = _pairs(shared_data, name)
    found = [check(text, triples, language) for text, triples in pairs]
    assert len(pairs) > 1000
    assert sum(bool(each.invented) for each in found) / len(pairs) < max_invented
    assert sum(len(each.untold) for each in found) / sum(len(triples) for _, triples in pairs) < max_untold


@pytest.mark.slow
@pytest.mark.parametrize(("name", "language", "_", "__"), REAL)
def test_templates_over_real_triples_are_faithful_sentence_by_sentence(shared_data, name, language, _, __):
    for text, triples in _pairs(shared_data, name)[:600]:
        written = sentences(triples, language, len(text))
        found = check(paragraph(written, language), triples, language)
        assert found.faithful
        assert len(found.sentences) == len(written)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "least"), [("WQSP", 0.95), ("MetaQA", 0.98)])
def test_a_name_that_is_exchanged_for_another_is_found(shared_data, name, least):
    draw = random.Random(3)
    pairs = [(text, triples) for text, triples in _pairs(shared_data, name) if check(text, triples).faithful]
    others = sorted({tail for _, triples in pairs for _, _, tail in triples if re.match(r"[A-Z]\S* [A-Z]", tail)})
    tried = found = 0
    for text, triples in pairs:
        mine = {end for head, _, tail in triples for end in (head, tail)}
        there = sorted(end for end in mine if end in text and len(end) > 2 and end[0].isupper())
        other = draw.choice(others)
        if there and other not in mine:
            tried += 1
            found += bool(check(text.replace(draw.choice(there), other), triples).invented)
    assert tried > 800 and found / tried >= least
