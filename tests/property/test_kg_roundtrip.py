"""Random graphs, written with every freedom that the formats leave, come back as they were."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path

import pyoxigraph
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from kgqa_core.config import KgOptions
from kgqa_core.kg.build import build
from kgqa_core.kg.formats.base import BLANKS
from kgqa_core.kg.formats.ntriples import why
from kgqa_core.kg.store import SCHEMA, KgStore
from kgqa_core.workspace import Workspace
from tests.support.examples import examples

SETTINGS = examples(15, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
XSD = "http://www.w3.org/2001/XMLSchema#"

_forbidden = '<>"{}|^`\\' + "".join(map(chr, range(0x21)))
iris = st.text(st.characters(exclude_characters=_forbidden, exclude_categories=["Cs"]), max_size=6).map(
    lambda tail: "http://x/" + tail
)
blanks = st.from_regex(r"[A-Za-z0-9_é](?:[A-Za-z0-9_.\-é·]*[A-Za-z0-9_\-])?", fullmatch=True).map(lambda b: "_:" + b)
lexical = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
literals = st.tuples(
    lexical, st.sampled_from([XSD + "string", XSD + "integer", "http://x/type", "@en", "@pt-br", "@zh-hans-cn"])
)
statements = st.lists(
    st.tuples(iris | blanks, iris, st.tuples(iris | blanks, st.none()) | literals), min_size=1, max_size=12
)
spaces = st.sampled_from(["", " ", "\t", "  \t"])


@st.composite
def escaped(draw, text, in_literal):
    """A text written with escapes wherever they must or may be."""
    written = []
    for c in text:
        named = {"\t": "\\t", "\b": "\\b", "\n": "\\n", "\r": "\\r", "\f": "\\f", '"': '\\"', "'": "\\'", "\\": "\\\\"}
        ways = [f"\\U{ord(c):08X}"] + ([f"\\u{ord(c):04x}"] if ord(c) < 0x10000 else [])
        if in_literal and c in named:
            ways.append(named[c])
        if not (in_literal and c in '"\\\n\r'):
            ways = [c, c, c, *ways]
        written.append(draw(st.sampled_from(ways)))
    return "".join(written)


@st.composite
def term(draw, key, datatype=None):
    if datatype is not None:
        text = '"' + draw(escaped(key, True)) + '"'
        if datatype.startswith("@"):
            return text + draw(st.sampled_from([datatype, datatype.upper()]))
        if datatype == XSD + "string" and draw(st.booleans()):
            return text
        return f"{text}^^<{datatype}>"
    return key if key.startswith("_:") else "<http://x/" + draw(escaped(key[9:], False)) + ">"


@st.composite
def ntriples(draw):
    """Statements, and an N-Triples document that says them; blank lines and comments in between."""
    wanted = draw(statements)
    lines = []
    for subject, predicate, (key, datatype) in wanted:
        parts = [draw(term(subject)), draw(term(predicate)), draw(term(key, datatype)), "."]
        parts = [draw(spaces), *(p + draw(spaces) for p in parts)]
        lines.append("".join(parts) + draw(st.sampled_from(["", "# a comment", "#"])))
        lines += draw(st.sampled_from([[], [""], ["  # <not> a statement ."]]))
    end = draw(st.sampled_from(["\n", "\r\n"]))
    bom = draw(st.sampled_from(["", "\ufeff"]))
    return wanted, bom + end.join(lines) + draw(st.sampled_from(["", end])), lines


def graph_of(text: str, **options):
    """Tables and triples of a document: (every table, {(head key, relation key, (tail key, datatype))}, counts)."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "graph.txt"
        path.write_bytes(text.encode())
        (Path(folder) / "out").mkdir()
        counts = build(Workspace(Path(folder) / "out"), options=KgOptions(files=(str(path),), **options))
        with KgStore.open(Path(folder) / "out") as store:
            tables = {t: store.connection.execute(f"FROM {t} ORDER BY ALL").fetchall() for t in SCHEMA}
            triples = store.connection.execute(
                """SELECT h.key, r.key, t.key, t.datatype FROM triples x JOIN entities h ON h.id = x.head
                   JOIN relations r ON r.id = x.relation JOIN entities t ON t.id = x.tail ORDER BY x.id"""
            ).fetchall()
    return tables, {(h, r, (t, d)) for h, r, t, d in triples}, counts


@SETTINGS
@given(ntriples())
def test_ntriples_come_back_as_they_were(document):
    wanted, text, _ = document
    _, triples, counts = graph_of(text, format="ntriples")
    assert triples == set(wanted)
    assert counts["rejects"] == 0 and counts["statements"] == len(wanted)
    assert counts["triples"] + counts["duplicates"] == len(wanted)


@SETTINGS
@given(ntriples(), st.randoms(use_true_random=False))
def test_order_of_lines_does_not_matter(document, random):
    _, _, lines = document
    shuffled = list(lines)
    random.shuffle(shuffled)
    first, second = ("".join(line + "\n" for line in some) for some in (lines, shuffled))
    assert graph_of(first, format="ntriples")[0] == graph_of(second, format="ntriples")[0]


_BREAKS = (
    lambda line: line.replace(".", "", 1) if line.count(".") == 1 and "#" not in line else "<http://x/a> .",
    lambda line: line.replace(">", "", 1),
    lambda line: "x" + line,
    lambda line: '"' + line,
    lambda line: "<http://x/a> <http://x/b> " + line,
    lambda line: "<http://x/a> <http://x/b> <http://x/c> . " + line,
)


@SETTINGS
@given(ntriples(), st.data())
def test_broken_lines_are_rejected_by_number_and_the_rest_stays(document, data):
    wanted, text, _ = document
    good = [f"<http://x/{i}> <http://x/next> <http://x/{i + 1}> ." for i in range(10)]
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").split("\n") + good
    broken = {}
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(lines)))
        lines.insert(at, None)
    for i, line in enumerate(lines):
        if line is None:
            victim = data.draw(st.sampled_from(good))
            lines[i] = broken[i + 1] = data.draw(st.sampled_from(_BREAKS))(victim)
    tables, triples, counts = graph_of("\n".join(lines), format="ntriples", max_reject_share=1.0)
    assert {(line, text) for _, line, _, text in tables["rejects"]} == set(broken.items())
    assert all(reason for _, _, reason, _ in tables["rejects"])
    assert triples == set(wanted) | {(f"http://x/{i}", "http://x/next", (f"http://x/{i + 1}", None)) for i in range(10)}
    assert counts["rejects"] == len(broken)


fields = st.text(st.characters(exclude_characters="|\t\n\r\0", exclude_categories=["Cs"]), min_size=1, max_size=8).map(
    lambda text: text.strip(BLANKS) or "x"
)


@SETTINGS
@given(
    st.lists(st.tuples(fields, fields, fields), min_size=1, max_size=20),
    st.sampled_from(["|", "\t", "|||", " || "]),
    st.booleans(),
)
def test_delimited_triples_come_back_as_they_were(wanted, delimiter, given_):
    text = "h" + "\n".join(["", *(delimiter.join(t) for t in wanted)])  # a first line with one field
    options = {"delimiter": delimiter} if given_ or len(delimiter) > 1 else {}
    tables, triples, counts = graph_of(text, max_reject_share=1.0, format="delimited", **options)
    assert triples == {(h, r, (t, None)) for h, r, t in wanted}
    assert [row[1] for row in tables["rejects"]] == [1] and counts["literals"] == 0


PIECES = '<http://x/a> <b> _:b "a" @en ^^<http://x/t> . # < > " \\ é ^^ @'.split()


@given(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
    | st.lists(st.sampled_from(PIECES) | st.sampled_from([" ", "x"]), max_size=9).map("".join)
)
def test_every_reject_has_a_reason(line):
    reason = why(line)
    assert reason.strip() and reason.isprintable() and len(reason) <= 120, "it stands in one line of a table"
    begun = [line[: at + 1] for at, mark in enumerate(line) if mark == "."]
    assert reason != "text after the final '.'" or any(map(is_statement, begun)), "there is a statement before it"


def is_statement(line):
    """Whether another parser reads one statement."""
    with contextlib.suppress(SyntaxError, ValueError):
        return len(list(pyoxigraph.parse(input=line, format=pyoxigraph.RdfFormat.N_TRIPLES))) == 1
    return False
