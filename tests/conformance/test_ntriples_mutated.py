"""N-Triples 1.1 against pyoxigraph over mutated lines: the same lines accepted, with the same statements."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.ntriples_oracle import WE_ACCEPT_MORE, WE_REJECT_MORE, Row, Verdict, ours, verdict

SEEDS = [
    "<http://a.example/s> <http://a.example/p> <http://a.example/o> .",
    "<http://a.example/s><http://a.example/p><http://a.example/o>.",
    "\t<urn:isbn:1>\t<mailto:a@b.c>  <tag:x,2020:y> \t. \t# a comment",
    "_:b0 <http://a.example/p> _:b1 .",
    "_:b.0-x <http://a.example/p> _:9a.",
    "_:é·‿ <http://a.example/p> _:a:b .",
    '<http://a.example/s> <http://a.example/p> "" .',
    '<http://a.example/s> <http://a.example/p> "plain" .',
    '<http://a.example/s> <http://a.example/p> "with spaces and a . and # in it" . # end',
    '<http://a.example/s> <http://a.example/p> "a\\tb\\nc\\rd\\"e\\\\f\\bg\\fh\\\'i" .',
    '<http://a.example/s> <http://a.example/p> "\\u00E9 \\U0001F600" .',
    '<http://a.example/s> <http://a.example/p> "é 😀 \u2028 \x85 \x7f" .',
    '<http://a.example/s> <http://a.example/p> "label"@en .',
    '<http://a.example/s> <http://a.example/p> "label"@EN-gb-x-foo .',
    '<http://a.example/s> <http://a.example/p> "1"^^<http://www.w3.org/2001/XMLSchema#integer> .',
    '<http://a.example/s> <http://a.example/p> "1.5E3" ^^ <http://www.w3.org/2001/XMLSchema#double>.',
    "<http://a.example/\\u00e9\\U0001F600?q=%20#f> <http://a.example/p> <http://[::1]:80/> .",
    "<http://é.example/ü> <http://a.example/p> <http://a.example/{}> .",
    '<http://a.example/s> <http://a.example/p> "x"^^<http://www.w3.org/1999/02/22-rdf-syntax-ns#langString> .',
    '<http://a.example/s> <http://a.example/p> "x"@en--ltr .',
    "<http://a.example/s> <http://a.example/p> <<( _:a <http://a.example/p> _:b )>> .",
    "# only a comment",
    "",
    " \t ",
]
"""Lines that the mutations begin from."""

QUADS = [
    "<http://a.example/s> <http://a.example/p> <http://a.example/o> <http://a.example/g> .",
    '_:b0 <http://a.example/p> "label"@en _:g1.',
    '<http://a.example/s> <http://a.example/p> "1"^^<urn:t>\t<http://a.example/\\u00e9> . # a comment',
    '<http://a.example/s><http://a.example/p>"<a:b> _:c ."<urn:g>.',
    "_:b0 <http://a.example/p> _:b1 _:g:h .",
]
"""The same, with a graph."""

SNIPPETS = [
    *"""< > " ' \\ _: : @ ^^ ^ . .. #""".split(),
    " ",
    "\t",
    *"- --ltr -- % %4 [ {".split(),
    *r"\t \n \x \' \u \u0041 \u00e \uD800 \uD83D\uDE00 \U0001F600 \U00110000 \U \u0000 \u0020 \u003E \u003a".split(),
    *"@en @en-a @a @abcdefghi @1 @x-y ^^<a:b> ^^<b> ^^<http://www.w3.org/1999/02/22-rdf-syntax-ns#langString>".split(),
    *"<<( )>> <a> <a:b> _:a:b _:a. _::".split(),
    *("\x00", "\x01", "\x0b", "\x0c", "\x1f", "\x7f", "\x80", "\x85", "\xa0", "\xb7", "\xd7", "é", "̀", "‿", "⁀", "⃐"),
    *("\u200c", "\u2028", "\u3000", "\ufdd0", "\ufeff", "\ufffd", "\uffff", "\ue000", "😀", "\U000f0000", "\U0010ffff"),
    *("1", "a", "Z", "true", "[]", "()", ";", ",", "@prefix", "VERSION", "=", "a:", "h\\u0074tp:"),
]
"""What mutations put in: the grammar's own marks, escapes good and bad, and the edges of its character classes."""

BROKEN = [b"\xff", b"\xc3", b"\xe2\x82", b"\xf0\x9f\x98", b"\xed\xa0\x80", b"\xc0\x80", b"\xf4\x90\x80\x80", b"\x80"]
"""Bytes that are no UTF-8: alone, cut off, a surrogate, over-long, beyond the last character."""


def mutated(count: int, seed: int, *, quads: bool = False) -> Iterator[bytes]:
    """Lines without line ends, made from SEEDS by one to three mutations each, half of them from QUADS if asked for."""
    choice = random.Random(seed)
    seeds = SEEDS + QUADS * (len(SEEDS) // len(QUADS)) if quads else SEEDS
    for number in range(count):
        line = choice.choice(seeds)
        for _ in range(choice.choice((1, 1, 1, 1, 1, 2, 3))):
            at = choice.randrange(len(line) + 1)
            end = min(len(line), at + choice.choice((1, 1, 1, 2, 5, 20)))
            match choice.randrange(7):
                case 0:
                    line = line[:at] + line[end:]
                case 1:
                    line = line[:at] + choice.choice(SNIPPETS) + line[at:]
                case 2:
                    line = line[:at] + choice.choice(SNIPPETS) + line[end:]
                case 3:
                    line = line[:at] + line[at:end] * 2 + line[end:]
                case 4:
                    other = choice.choice(seeds)
                    line = line[:at] + other[choice.randrange(len(other) + 1) :]
                case 5:
                    line = line[:at]
                case _:
                    line = line[:at] + chr(choice.choice((choice.randrange(128), choice.randrange(0x3100)))) + line[at:]
        data = line.replace("\n", " ").replace("\r", " ").encode()
        if number % 16 == 0:
            at = choice.randrange(len(data) + 1)
            data = data[:at] + choice.choice(BROKEN) + data[at:]
        yield data


def check(lines: list[bytes], folder: Path, *, quads: bool = False) -> Counter[str]:
    """Compares our reading of the lines with the verdicts on them; returns how often each named difference was met."""
    lines = [b"# the first line, so that no mutated one begins the file", *lines]
    verdicts = [verdict(line, quads=quads) for line in lines]
    ours_now = ours(lines, folder, quads=quads)
    rejected = Counter(number for number, said in enumerate(verdicts, start=1) if said.rejected)
    wrong = [number for number in sorted(rejected | ours_now.rejected) if rejected[number] != ours_now.rejected[number]]
    if not wrong and ours_now.rows != Counter(said.row for said in verdicts if said.row):
        wrong = [
            n
            for n, line in enumerate(lines, start=1)
            if ours([line], folder, quads=quads).rows != _one(verdicts[n - 1])
        ]
    assert not wrong, "\n".join(
        f"{lines[number - 1]!r}: {verdicts[number - 1]}, but we say {ours([lines[number - 1]], folder, quads=quads)}"
        for number in wrong[:20]
    )
    assert ours_now.rows == Counter(said.row for said in verdicts if said.row)
    assert ours_now.ignored == sum(said.row is None and not said.rejected for said in verdicts)
    return Counter(said.difference for said in verdicts if said.difference)


def _one(said: Verdict) -> Counter[Row]:
    return Counter([said.row] if said.row else [])


def run(count: int, seed: int, folder: Path, *, quads: bool = False) -> Counter[str]:
    """Checks `count` mutated lines in files of 5,000; returns how often each named difference was met."""
    found: Counter[str] = Counter()
    lines = list(mutated(count, seed, quads=quads))
    for start in range(0, count, 5000):
        found += check(lines[start : start + 5000], folder, quads=quads)
    return Counter(name for names, times in found.items() for name in names.split(" + ") for _ in range(times))


def test_five_thousand_mutated_lines_are_read_as_pyoxigraph_reads_them(tmp_path: Path) -> None:
    found = run(5_000, 3, tmp_path)
    assert set(found) <= {*WE_ACCEPT_MORE, *WE_REJECT_MORE}
    assert found["IRI beyond RFC 3987"] > 10


def test_five_thousand_mutated_quads_are_read_as_pyoxigraph_reads_them(tmp_path: Path) -> None:
    found = run(5_000, 5, tmp_path, quads=True)
    assert set(found) <= {*WE_ACCEPT_MORE, *WE_REJECT_MORE}
    assert found["IRI beyond RFC 3987"] > 10


@pytest.mark.slow
def test_a_hundred_thousand_mutated_lines_are_read_as_pyoxigraph_reads_them(tmp_path: Path) -> None:
    # A file begins with a byte-order mark only once; it has a case of its own.
    assert set(run(100_000, 7, tmp_path)) == {*WE_ACCEPT_MORE, *WE_REJECT_MORE} - {"byte-order mark"}


def test_a_lone_carriage_return_ends_a_line_as_in_pyoxigraph(tmp_path: Path) -> None:
    choice = random.Random(11)
    pieces = [line for line in mutated(2_000, 13) if _is_text(line)]
    lines = [b"\r".join(choice.choices(pieces, k=choice.choice((1, 2, 3)))) for _ in range(1_000)]
    verdicts = [[verdict(piece) for piece in line.split(b"\r")] for line in lines]
    comment = b"# the first line"
    reading = ours([comment, *lines], tmp_path)
    assert reading.rows == Counter(said.row for line in verdicts for said in line if said.row)
    assert reading.rejected == Counter(n for n, line in enumerate(verdicts, start=2) for said in line if said.rejected)


def _is_text(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True
