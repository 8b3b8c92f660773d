"""N-Triples 1.1 rule by rule, with the cases of the W3C suite: read as the grammar says, and as pyoxigraph does."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.support.ntriples_oracle import WE_ACCEPT_MORE, WE_REJECT_MORE, ours, verdict

XSD = "http://www.w3.org/2001/XMLSchema#"
S, P, OBJECT = "http://a/s", "http://a/p", "http://a/o"
HEAD = "<http://a/s> <http://a/p> "


def literal(text: str, datatype: str = f"{XSD}string") -> tuple[str, str, str, int, str]:
    """The statement that HEAD begins, with a literal."""
    return S, P, text, 1, datatype


def iri(key: str) -> tuple[str, str, str, int, None]:
    """The statement that HEAD begins, with an IRI or a blank node."""
    return S, P, key, 0, None


REJECT, IGNORE = "reject", "ignore"

CASES: dict[str, list[tuple[str, object]]] = {
    "[1] ntriplesDoc, [2] triple": [
        (f"{HEAD}<http://a/o> .", iri(OBJECT)),
        ("<http://a/s><http://a/p><http://a/o>.", iri(OBJECT)),
        ("  <http://a/s>\t<http://a/p> \t <http://a/o>\t.\t ", iri(OBJECT)),
        ("", IGNORE),
        (" \t ", IGNORE),
        ("# comment", IGNORE),
        ("  #", IGNORE),
        ("#<http://a/s> <http://a/p> <http://a/o> .", IGNORE),
        (f"{HEAD}<http://a/o> . # comment", iri(OBJECT)),
        (f"{HEAD}<http://a/o> .#", iri(OBJECT)),
        (f"{HEAD}<http://a/o> # .", REJECT),
        (f"{HEAD}<http://a/o>", REJECT),
        (f"{HEAD}.", REJECT),
        ("<http://a/s> .", REJECT),
        (".", REJECT),
        (f"{HEAD}<http://a/o> ..", REJECT),
        (f"{HEAD}<http://a/o> ;", REJECT),
        (f"{HEAD}<http://a/o> , <http://a/p> .", REJECT),
        (f"{HEAD}<http://a/o> . x", REJECT),
        (f"{HEAD}<http://a/o> . {HEAD}<http://a/o> .", REJECT),
        (f"{HEAD}<http://a/o> <http://a/g> .", REJECT),
        (f"{HEAD}<http://a/o> .\x0c", REJECT),
        (f"{HEAD}\xa0<http://a/o> .", REJECT),
        (f"{HEAD}\u3000<http://a/o> .", REJECT),
        (f"\ufeff{HEAD}<http://a/o> .", REJECT),
        ("@prefix a: <http://a/> .", REJECT),
        ("@base <http://a/> .", REJECT),
        ("PREFIX a: <http://a/>", REJECT),
        ("a:s a:p a:o .", REJECT),
    ],
    "[3] subject": [
        ("_:s <http://a/p> <http://a/o> .", ("_:s", P, OBJECT, 0, None)),
        ('"s" <http://a/p> <http://a/o> .', REJECT),
        ("[] <http://a/p> <http://a/o> .", REJECT),
        ("( ) <http://a/p> <http://a/o> .", REJECT),
        ("1 <http://a/p> <http://a/o> .", REJECT),
    ],
    "[4] predicate": [
        ("<http://a/s> _:p <http://a/o> .", REJECT),
        ('<http://a/s> "p" <http://a/o> .', REJECT),
        ("<http://a/s> a <http://a/o> .", REJECT),
        ("<http://a/s> = <http://a/o> .", REJECT),
    ],
    "[5] object": [
        (f"{HEAD}_:o .", iri("_:o")),
        (f'{HEAD}"o" .', literal("o")),
        (f"{HEAD}[] .", REJECT),
        (f"{HEAD}true .", REJECT),
        (f"{HEAD}1 .", REJECT),
        (f"{HEAD}1.0 .", REJECT),
        (f"{HEAD}1.0e1 .", REJECT),
        (f"{HEAD}'o' .", REJECT),
        (f'{HEAD}"""o""" .', REJECT),
        (f"{HEAD}'''o''' .", REJECT),
    ],
    "[6] literal": [
        (f'{HEAD}"" .', literal("")),
        (f'{HEAD}"1"^^<{XSD}integer> .', literal("1", f"{XSD}integer")),
        (f'{HEAD}"1" ^^ <{XSD}integer> .', literal("1", f"{XSD}integer")),
        (f'{HEAD}"1"^^<{XSD}integer>.', literal("1", f"{XSD}integer")),
        (f'{HEAD}"1"^^<integer> .', REJECT),
        (f'{HEAD}"1"^^_:b .', REJECT),
        (f'{HEAD}"1"^^"x" .', REJECT),
        (f'{HEAD}"1"^^ .', REJECT),
        (f'{HEAD}"1"^<{XSD}integer> .', REJECT),
        (f'{HEAD}"1"^ ^<{XSD}integer> .', REJECT),
        (f'{HEAD}"1"^^xsd:integer .', REJECT),
        (f'{HEAD}"1"^^<{XSD}integer>@en .', REJECT),
        (f'{HEAD}"1"@en^^<{XSD}integer> .', REJECT),
        (
            f'{HEAD}"x"^^<http://www.w3.org/1999/02/22-rdf-syntax-ns#langString> .',
            literal("x", "http://www.w3.org/1999/02/22-rdf-syntax-ns#langString"),
        ),
    ],
    "[144s] LANGTAG": [
        (f'{HEAD}"x"@en .', literal("x", "@en")),
        (f'{HEAD}"x"@en.', literal("x", "@en")),
        (f'{HEAD}"x" @en .', literal("x", "@en")),
        (f'{HEAD}"x"@en-GB-x-1a .', literal("x", "@en-gb-x-1a")),
        (f'{HEAD}"x"@ZH-Hant .', literal("x", "@zh-hant")),
        (f'{HEAD}"x"@a .', literal("x", "@a")),
        (f'{HEAD}"x"@abcdefghijkl .', literal("x", "@abcdefghijkl")),
        (f'{HEAD}"x"@en-u .', literal("x", "@en-u")),
        (f'{HEAD}"x"@ en .', REJECT),
        (f'{HEAD}"x"@ .', REJECT),
        (f'{HEAD}"x"@1 .', REJECT),
        (f'{HEAD}"x"@e1 .', REJECT),
        (f'{HEAD}"x"@en- .', REJECT),
        (f'{HEAD}"x"@-en .', REJECT),
        (f'{HEAD}"x"@en_GB .', REJECT),
        (f'{HEAD}"x"@é .', REJECT),
    ],
    "[7] EOL": [
        (f"{HEAD}<http://a/o> .\r", iri(OBJECT)),
        ("\r", IGNORE),
    ],
    "[8] IRIREF": [
        ("<http:> <a:> <urn:x-y.z+1:2> .", ("http:", "a:", "urn:x-y.z+1:2", 0, None)),
        (f"{HEAD}<http://é.example/ü?ä#ö> .", iri("http://é.example/ü?ä#ö")),
        (f"{HEAD}<scheme:!$%25&'()*+,-./0123456789:/@_~?#> .", iri("scheme:!$%25&'()*+,-./0123456789:/@_~?#")),
        (f"{HEAD}<http://[::1]:80/> .", iri("http://[::1]:80/")),
        (f"{HEAD}<http://a/\\u00E9\\U000000e9> .", iri("http://a/éé")),
        (f"{HEAD}<http://a/\\U0001F600> .", iri("http://a/😀")),
        (f"{HEAD}<h\\u0074tp://a/o> .", iri(OBJECT)),
        (f"{HEAD}<http\\u003A//a/o> .", iri(OBJECT)),
        (f"{HEAD}<http://a/%zz> .", iri("http://a/%zz")),
        (f"{HEAD}<http://a/[> .", iri("http://a/[")),
        (f"{HEAD}<http://a:x/> .", iri("http://a:x/")),
        (f"{HEAD}<http://a/\ue000> .", iri("http://a/\ue000")),
        (f"{HEAD}<http://a/\x7f> .", iri("http://a/\x7f")),
        (f"{HEAD}<> .", REJECT),
        (f"{HEAD}<o> .", REJECT),
        ("<s> <http://a/p> <http://a/o> .", REJECT),
        ("<http://a/s> <p> <http://a/o> .", REJECT),
        (f"{HEAD}<//a/o> .", REJECT),
        (f"{HEAD}<1a:b> .", REJECT),
        (f"{HEAD}<:b> .", REJECT),
        (f"{HEAD}<\\u0031a:b> .", REJECT),
        (f"{HEAD}<é:b> .", REJECT),
        (f"{HEAD}<http://a/ b> .", REJECT),
        (f"{HEAD}<http://a/\tb> .", REJECT),
        (f"{HEAD}<http://a/\x00> .", REJECT),
        (f"{HEAD}<http://a/<> .", REJECT),
        (f'{HEAD}<http://a/"> .', REJECT),
        (f"{HEAD}<http://a/{{> .", REJECT),
        (f"{HEAD}<http://a/}}> .", REJECT),
        (f"{HEAD}<http://a/|> .", REJECT),
        (f"{HEAD}<http://a/^> .", REJECT),
        (f"{HEAD}<http://a/`> .", REJECT),
        (f"{HEAD}<http://a/\\> .", REJECT),
        (f"{HEAD}<http://a/\\n> .", REJECT),
        (f"{HEAD}<http://a/\\/> .", REJECT),
        (f"{HEAD}<http://a/\\u00ZZ> .", REJECT),
        (f"{HEAD}<http://a/\\u00> .", REJECT),
        (f"{HEAD}<http://a/\\U00ZZ1111> .", REJECT),
        (f"{HEAD}<http://a/\\uD800> .", REJECT),
        (f"{HEAD}<http://a/\\U00110000> .", REJECT),
        (f"{HEAD}<http://a/\\u0020> .", REJECT),
        (f"{HEAD}<http://a/\\u003E> .", REJECT),
        (f"{HEAD}<http://a/\\u005C> .", REJECT),
        (f"{HEAD}<http://a/o .", REJECT),
        (f"{HEAD}http://a/o> .", REJECT),
    ],
    "[9] STRING_LITERAL_QUOTE": [
        (f'{HEAD}"a b\tc" .', literal("a b\tc")),
        (f'{HEAD}"it\'s" .', literal("it's")),
        (f'{HEAD}"<http://a/> . # @en ^^" .', literal("<http://a/> . # @en ^^")),
        (f'{HEAD}"\x00\x01\x0b\x0c\x1f\x7f" .', literal("\x00\x01\x0b\x0c\x1f\x7f")),
        (f'{HEAD}"\x85\u2028\u2029\ufeff\ufffe\uffff" .', literal("\x85\u2028\u2029\ufeff\ufffe\uffff")),
        (f'{HEAD}"é 𝒳 😀 \U0010ffff" .', literal("é 𝒳 😀 \U0010ffff")),
        (f'{HEAD}"open .', REJECT),
        (f'{HEAD}"a"b" .', REJECT),
        (f'{HEAD}"open\\" .', REJECT),
        (f'{HEAD}" .', REJECT),
        (f"{HEAD}\"a' .", REJECT),
    ],
    "[10] UCHAR, [153s] ECHAR": [
        (f'{HEAD}"\\t\\b\\n\\r\\f\\"\\\'\\\\" .', literal("\t\b\n\r\f\"'\\")),
        (f'{HEAD}"\\\\u0041\\\\\\u0041" .', literal("\\u0041\\A")),
        (f'{HEAD}"\\u0041\\u00e9\\U0001f600\\u0000" .', literal("Aé😀\x00")),
        (f'{HEAD}"\\u00410" .', literal("A0")),
        (f'{HEAD}"\\uFFFF\\U0010FFFF\\uD7FF\\uE000" .', literal("\uffff\U0010ffff\ud7ff\ue000")),
        (f'{HEAD}"\\u0022\\u005c" .', literal('"\\')),
        (f'{HEAD}"\\a" .', REJECT),
        (f'{HEAD}"\\z" .', REJECT),
        (f'{HEAD}"\\T" .', REJECT),
        (f'{HEAD}"\\ " .', REJECT),
        (f'{HEAD}"\\0" .', REJECT),
        (f'{HEAD}"\\x41" .', REJECT),
        (f'{HEAD}"\\u" .', REJECT),
        (f'{HEAD}"\\u004" .', REJECT),
        (f'{HEAD}"\\uWXYZ" .', REJECT),
        (f'{HEAD}"\\U0000WXYZ" .', REJECT),
        (f'{HEAD}"\\U0001F60" .', REJECT),
        (f'{HEAD}"\\uD800" .', REJECT),
        (f'{HEAD}"\\uDFFF" .', REJECT),
        (f'{HEAD}"\\uD83D\\uDE00" .', REJECT),
        (f'{HEAD}"\\U0000D800" .', REJECT),
        (f'{HEAD}"\\U00110000" .', REJECT),
        (f'{HEAD}"\\UFFFFFFFF" .', REJECT),
        (f'{HEAD}"x"@\\u0065n .', REJECT),
        (f"{HEAD}_:\\u0061 .", REJECT),
    ],
    "[141s] BLANK_NODE_LABEL, [157s] PN_CHARS_BASE, [158s] PN_CHARS_U, [160s] PN_CHARS": [
        (f"{HEAD}_:a .", iri("_:a")),
        (f"{HEAD}_:a.", iri("_:a")),
        (f"{HEAD}_:1 .", iri("_:1")),
        (f"{HEAD}_:0a-1 .", iri("_:0a-1")),
        (f"{HEAD}_:_ .", iri("_:_")),
        (f"{HEAD}_:a.b..c .", iri("_:a.b..c")),
        (f"{HEAD}_:a-.", iri("_:a-")),
        (f"{HEAD}_:a·\u0300\u203f\u2040 .", iri("_:a·\u0300\u203f\u2040")),
        (
            f"{HEAD}_:À\u02ff\u0370\u1fff\u200c\u2070\u2c00\u3001\uf900\ufdf0\U00010000\U000effff .",
            iri("_:À\u02ff\u0370\u1fff\u200c\u2070\u2c00\u3001\uf900\ufdf0\U00010000\U000effff"),
        ),
        (f"{HEAD}_:: .", REJECT),
        (f"{HEAD}_:a:b .", REJECT),
        (f"{HEAD}_:a: .", REJECT),
        ("_::a <http://a/p> <http://a/o> .", REJECT),  # nt-syntax-bad-bnode-01 of the W3C
        ("_:abc:def <http://a/p> <http://a/o> .", REJECT),  # nt-syntax-bad-bnode-02
        (f"{HEAD}_:a.. .", REJECT),
        (f"{HEAD}_:.a .", REJECT),
        (f"{HEAD}_:-a .", REJECT),
        (f"{HEAD}_:·a .", REJECT),
        (f"{HEAD}_:\u0300 .", REJECT),
        (f"{HEAD}_:× .", REJECT),
        (f"{HEAD}_:a÷ .", REJECT),
        (f"{HEAD}_:a\u037e .", REJECT),
        (f"{HEAD}_:a\u2041 .", REJECT),
        (f"{HEAD}_:a\ufdd0 .", REJECT),
        (f"{HEAD}_:a\U000f0000 .", REJECT),
        (f"{HEAD}_: .", REJECT),
        (f"{HEAD}_ .", REJECT),
        (f"{HEAD}_ :a .", REJECT),
        (f"{HEAD}_:a%20 .", REJECT),
        ("_:a. <http://a/p> <http://a/o> .", REJECT),
    ],
    "RDF 1.2": [
        (f"{HEAD}<<( _:a <http://a/p> _:b )>> .", REJECT),
        (f'{HEAD}"x"@en--ltr .', literal("x", "@en")),
        (f'{HEAD}"x"@en--LTR .', REJECT),
        ('VERSION "1.2"', REJECT),
    ],
}
"""Lines by grammar rule, and what each is: a statement, a reject or nothing."""


@pytest.mark.parametrize("rule", CASES)
def test_the_cases_of_a_rule_are_read_as_the_grammar_says(rule: str, tmp_path: Path) -> None:
    for line, expected in CASES[rule]:
        reading = ours([b"#", line.encode()], tmp_path)
        if expected == REJECT:
            assert (reading.rows, reading.rejected) == (Counter(), Counter([2])), line
        elif expected == IGNORE:
            assert (reading.rows, reading.rejected, reading.ignored) == (Counter(), Counter(), 2), line
        else:
            assert (reading.rows, reading.rejected) == (Counter([expected]), Counter()), line


@pytest.mark.parametrize("rule", CASES)
def test_the_cases_of_a_rule_are_read_as_pyoxigraph_reads_them_but_for_named_differences(rule: str) -> None:
    for line, expected in CASES[rule]:
        said = verdict(line.removesuffix("\r").encode())
        assert (said.row or (REJECT if said.rejected else IGNORE)) == expected, line


def test_every_named_difference_has_a_case_and_no_case_has_another() -> None:
    found = {said.difference for cases in CASES.values() for line, _ in cases if (said := verdict(line.encode()))}
    found |= {verdict(b"\xef\xbb\xbf# first", first=True).difference, verdict(b"# \xff").difference}
    assert found - {None} == {*WE_ACCEPT_MORE, *WE_REJECT_MORE}


def test_a_byte_order_mark_is_taken_off_the_first_line_only(tmp_path: Path) -> None:
    line = f"\ufeff{HEAD}<http://a/o> .".encode()
    reading = ours([line, line], tmp_path)
    assert reading.rows == Counter([iri(OBJECT)])
    assert reading.rejected == Counter([2])


@pytest.mark.parametrize("broken", [b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xc0\x80", b"\xf4\x90\x80\x80"])
def test_bytes_that_are_no_utf8_reject_their_line_alone(broken: bytes, tmp_path: Path) -> None:
    good = f"{HEAD}<http://a/o> .".encode()
    places = [
        b'<http://a/s> <http://a/p> "%s" .',
        b"<http://a/%s> <http://a/p> <http://a/o> .",
        b"_:%s <http://a/p> _:o .",
        b"# %s",
    ]
    lines = [good, *(place % broken for place in places), good]
    reading = ours(lines, tmp_path)
    assert reading.rows == Counter([iri(OBJECT), iri(OBJECT)])
    assert reading.rejected == Counter([2, 3, 4, 5])


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r", b"\n\n\r\n"])
def test_every_line_end_of_the_grammar_ends_a_line(end: bytes, tmp_path: Path) -> None:
    path = tmp_path / "lines.nt"
    lines = [b"_:a <http://a/p> _:%d ." % number for number in range(3)]
    for last in (b"", end):
        path.write_bytes(end.join(lines) + last)
        assert ours(path.read_bytes().split(b"\n"), tmp_path).rows == Counter(
            ("_:a", P, f"_:{number}", 0, None) for number in range(3)
        )
