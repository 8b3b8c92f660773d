from __future__ import annotations

import pytest

from kgqa_core.errors import FormError
from kgqa_core.logic.normalise import isomorphic
from kgqa_core.logic.parser import parse
from kgqa_core.logic.sparql import from_sparql
from kgqa_core.logic.sparql_query import Outside

NS = "PREFIX ns: <http://rdf.freebase.com/ns/> "
TIME = """
FILTER(NOT EXISTS {?y ns:a.from ?k0} || EXISTS {
?y ns:a.from ?k1 . FILTER(xsd:datetime(?k1) <= "2010-12-31"^^xsd:dateTime)})
FILTER(NOT EXISTS {?y ns:a.to ?k2} || EXISTS {
?y ns:a.to ?k3 . FILTER(xsd:datetime(?k3) >= "2010-01-01"^^xsd:dateTime)})
"""


@pytest.mark.parametrize(
    ("sparql", "text"),
    [
        ("SELECT DISTINCT ?x WHERE { ns:m.01 ns:a.r ?x . }", "(JOIN (R a.r) m.01)"),
        (
            "SELECT DISTINCT ?x WHERE { FILTER (?x != ns:m.01) "
            "FILTER (!isLiteral(?x) OR lang(?x) = '' OR langMatches(lang(?x), 'en')) "
            "ns:m.01 ns:a.r ?y . ?y ns:a.s ?x . ?x ns:a.t ns:m.02 . }",
            "(AND (JOIN (R a.s) (JOIN (R a.r) m.01)) (JOIN a.t m.02))",
        ),
        ("SELECT ?x { ?x ns:type.object.type ns:a.b ; ns:a.r ns:m.01 , ns:m.02 }",
         "(AND a.b (AND (JOIN a.r m.01) (JOIN a.r m.02)))"),
        ("SELECT (COUNT(DISTINCT ?x) AS ?n) { ?x wdt:P31 wd:Q5 }", "(COUNT (JOIN P31 Q5))"),
        ("SELECT ?x { ?x wdt:P31/wdt:P279* wd:Q5 . ?x wdt:P20 wd:Q1 }", "(AND (TYPE Q5) (JOIN P20 Q1))"),
        ("SELECT ?x { wd:Q1 wdt:P1/^wdt:P2 ?x }", "(JOIN P2 (JOIN (R P1) Q1))"),
        ("SELECT ?x { ?x ns:a.r ns:m.01 . ?x ns:a.n ?n } ORDER BY DESC(xsd:float(?n)) LIMIT 1",
         "(ARGMAX (JOIN a.r m.01) a.n)"),
        ("SELECT ?x { ?x ns:a.r ns:m.01 . ?x ns:a.n ?n } ORDER BY ?n LIMIT 1 OFFSET 2",
         "(NTHMIN 3 (JOIN a.r m.01) a.n)"),
        ("SELECT ?x { ns:m.01 ns:a.r ?y . ?y ns:a.s ?x . ?y ns:a.n ?n } ORDER BY xsd:datetime(?n) LIMIT 1",
         "(JOIN (R a.s) (ARGMIN (JOIN (R a.r) m.01) a.n))"),
        ("SELECT ?x { ?x ns:a.r ns:m.01 . ?y ns:a.s ?x . ?y ns:a.n ?n } ORDER BY DESC(?n) LIMIT 1",
         "(ARGMAX (JOIN a.r m.01) (JOIN (R a.s) a.n))"),
        ("SELECT ?x { ?x ns:a.n ?n . FILTER(?n >= 5) }", "(ge a.n 5)"),
        ("SELECT ?x { ?x ns:a.n ?n . FILTER(5 > xsd:integer(?n)) }", "(lt a.n 5)"),
        ("SELECT ?x { ?x ns:a.n ?n . FILTER(?n = 5) }", "(JOIN a.n 5)"),
        ("SELECT ?x { ?x ns:a.n ?n . FILTER(?n = -1.2) }", "(JOIN a.n -1.2)"),
        ("SELECT ?x { ?x ns:a.r ns:m.01 . ?x ns:a.s ?z }", "(AND (JOIN a.r m.01) (ge (COUNT a.s) 1))"),
        (f"SELECT ?x {{ ns:m.01 ns:a.r ?y . ?y ns:a.s ?x . {TIME} }}",
         "(JOIN (R a.s) (TC (JOIN (R a.r) m.01) a.from 2010^^xsd:gYear))"),
        ("SELECT ?x { { ns:m.01 ns:a.r ?x } UNION { ns:m.01 ns:a.s ?x } }",
         "(OR (JOIN (R a.r) m.01) (JOIN (R a.s) m.01))"),
        ("SELECT ?x { ns:m.01 ns:a.r ?x MINUS { ?x ns:a.s ns:m.02 } }", "(MINUS (JOIN (R a.r) m.01) (JOIN a.s m.02))"),
        ("SELECT ?x { ns:m.01 ns:a.r ?x FILTER NOT EXISTS { ?x ns:a.s ns:m.02 } }",
         "(MINUS (JOIN (R a.r) m.01) (JOIN a.s m.02))"),
        ("ASK { wd:Q1 wdt:P1 wd:Q2 }", "(HOLDS (JOIN P1 Q2) Q1)"),
        ("ASK { wd:Q1 wdt:P1 wd:Q2 . wd:Q1 wdt:P1 wd:Q3 }", "(HOLDS (AND (JOIN P1 Q2) (JOIN P1 Q3)) Q1)"),
        ("ASK { wd:Q1 wdt:P1 ?n FILTER(?n < 30.0) }", "(HOLDS (lt P1 30.0) Q1)"),
        ("SELECT ?o { wd:Q1 p:P1 ?s . ?s ps:P1 ?o . ?s pq:P805 wd:Q2 }", "(JOIN (R P1) Q1 (eq P805 Q2))"),
        ("SELECT ?o { wd:Q1 p:P1 ?s . ?s ps:P1 ?o . ?s pq:P585 ?t filter(contains(YEAR(?t),'1952')) }",
         "(JOIN (R P1) Q1 (eq P585 1952^^xsd:gYear))"),
        ("SELECT (?x0 AS ?v) WHERE { SELECT DISTINCT ?x0 WHERE { ?x0 ns:type.object.type ns:a.b . "
         "{ SELECT (MAX(?y1) AS ?x1) WHERE { ?y0 ns:type.object.type ns:a.b . ?y0 ns:a.n ?y1 . } } ?x0 ns:a.n ?x1 . "
         "FILTER ( ?x0 != ?x1 ) } }", "(ARGMAX a.b a.n)"),
        ("SELECT (SUM(?n) AS ?s) { ?x ns:type.object.type ns:a.b . ?x ns:a.n ?n }", "(SUM a.b a.n)"),
        ("SELECT (AVG(?n) AS ?s) { ?x ns:a.r ns:m.01 . ?x ns:a.s/ns:a.n ?n }",
         "(AVG (JOIN (R a.s) (JOIN a.r m.01)) a.n)"),
        ("SELECT (MAX(?n) AS ?s) { ns:m.01 ns:a.r ?x . ?x ns:a.n ?n }", "(MAX (JOIN (R a.r) m.01) a.n)"),
        ("SELECT ?k (COUNT(?x) AS ?n) { ?x ns:type.object.type ns:a.b . ?x ns:a.c ?k } GROUP BY ?k ORDER BY DESC(?n)",
         "(GROUP a.b a.c)"),
        ("SELECT ?k (SUM(?n) AS ?s) { ?x ns:type.object.type ns:a.b . ?x ns:a.c ?k . ?x ns:a.n ?n } GROUP BY ?k",
         "(GROUP a.b a.c (SUM a.n))"),
        ("SELECT ?x { ?x ns:a.r ns:m.01 . ?x ns:a.n ?n } ORDER BY ?n LIMIT 3", "(FIRSTMIN 3 (JOIN a.r m.01) a.n)"),
        ("SELECT (COUNT(?x0) AS ?v) WHERE { SELECT DISTINCT ?x0 WHERE { VALUES ?x1 { ns:m.01 } ?x1 ns:a.r ?x0 } }",
         "(COUNT (JOIN (R a.r) m.01))"),
    ],
)  # fmt: skip
def test_queries_of_the_fragment_read_as_forms(sparql, text):
    assert isomorphic(from_sparql(NS + sparql), parse(text))


@pytest.mark.parametrize(
    ("sparql", "reason"),
    [
        ("SELECT ?x ?y { ?x ns:a.r ?y }", "several answers"),
        ("SELECT ?x { ?x ns:a.r ns:m.01 OPTIONAL { ?x ns:a.s ?y } }", "OPTIONAL"),
        ("SELECT ?x { ns:m.01 ?r ?x }", "a variable relation"),
        ("SELECT ?x { ?x ns:a.r ?y . ?y ns:a.s ?z . ?z ns:a.t ?x }", "variables in a cycle"),
        ("SELECT ?x { ?x ns:a.r ns:m.01 . ?y ns:a.s ns:m.02 }", "patterns that are not joined"),
        ("SELECT ?x { ?x ns:a.r ns:m.01 } LIMIT 5", "LIMIT without ORDER BY"),
        ("SELECT ?x { ?x ns:a.n ?n } ORDER BY ?n LIMIT 5 OFFSET 2", "the best few after others"),
        ("SELECT ?k (COUNT(?x) AS ?n) { ?x ns:a.c ?k } GROUP BY ?k ORDER BY ?n LIMIT 1",
         "the best of several groups, or an aggregate of a subquery"),
        ("SELECT ?k (COUNT(?x) AS ?n) { ?x ns:a.c ?k } GROUP BY ?k HAVING (COUNT(?x) > 3)",
         "GROUP BY with HAVING, or by several things"),
        ("SELECT (SUM(DISTINCT ?n) AS ?s) { ?x ns:a.r ns:m.01 . ?x ns:a.n ?n }", "a sum of distinct values"),
        ("SELECT (SUM(?n) AS ?s) { ?x ns:a.r ns:m.01 . ?x ns:a.n ?n . FILTER(?n > 3) }",
         "an aggregate of values that are not beside what has them"),
        ("SELECT ?v { wd:Q1 p:P1 ?s . ?s ps:P1 wd:Q2 . ?s pq:P585 ?v }",
         "the answer is a qualifier or a bare statement"),
        ("SELECT ?x { ?x ns:a.n ?n . ?x ns:a.m ?m . FILTER(?n < ?m) }", "filter on two variables or a computed value"),
        ("SELECT ?x { ?x wdt:P1 ?l . FILTER(REGEX(?l, 'a')) }", "filter"),
        ("DESCRIBE ns:m.01", "DESCRIBE instead of SELECT or ASK"),
        ("SELECT ?x { ?x ns:a.r ns:m.01 . ?y ns:a.s ?x . ?y ns:a.t ns:m.02 . ?y ns:a.n ?n } ORDER BY ?n LIMIT 1",
         "a superlative with conditions on both ends of its path"),
    ],
)  # fmt: skip
def test_what_no_form_writes_has_a_reason(sparql, reason):
    with pytest.raises(Outside) as caught:
        from_sparql(NS + sparql)
    assert caught.value.reason == reason


@pytest.mark.parametrize("sparql", ["SELECT ?x { ?x ns:a.r", "SELECT ?x { ?x zz:r ns:m.01 }", "SELECT ?x { ?x ~ }"])
def test_what_is_no_sparql_says_where(sparql):
    with pytest.raises(FormError, match="SPARQL, character"):
        from_sparql(NS + sparql)
