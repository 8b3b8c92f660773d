"""Question files of other benchmarks, written by hand in their published formats."""

from __future__ import annotations

from typing import Any

_GRAZ = {"name": "Q13298", "entityType": "entity", "label": "Graz", "mention": "Graz", "span": [25, 29]}


def _mintaka(own: str, text: str, kind: str, answer: Any, entities: list[Any], answer_type: str) -> dict[str, Any]:
    return {
        "id": own,
        "question": text,
        "translations": {"de": f"{text} (de)", "fr": f"{text} (fr)"},
        "questionEntity": entities,
        "answer": {"answerType": answer_type, "answer": answer, "mention": "a mention"},
        "category": "geography",
        "complexityType": kind,
    }


_MUR = {"name": "Q16021", "label": {"en": "Mur", "de": "Mur (Fluss)"}}
_ORDINAL = {"name": 1, "entityType": "ordinal", "mention": "first", "span": [0, 5]}
_UNKNOWN = {"name": None, "entityType": "entity", "label": None, "mention": "Somebody", "span": [0, 8]}

MINTAKA: list[Any] = [
    _mintaka("m1", "Which river runs through Graz?", "multihop", [_MUR], [_GRAZ, _ORDINAL, _UNKNOWN], "entity"),
    _mintaka("m2", "Is Athens in Greece?", "yesno", [True], [{**_GRAZ, "name": "Q41"}], "boolean"),
    _mintaka("m3", "How many bridges has Graz?", "count", [3], [_GRAZ], "numerical"),
    _mintaka("m4", "When was the tower of Graz opened?", "generic", ["1956-10-20"], [_GRAZ], "date"),
    _mintaka("m5", "Did Graz grow?", "comparative", None, [_GRAZ], "entity"),
]
MINTAKA[0]["translations"]["de"] = "Welcher Fluss fließt durch Graz?"
MINTAKA[4]["answer"]["mention"] = "Decrease"
MINTAKA[4]["translations"] = {"fr": "?"}


def _lcquad2(own: int, text: str, paraphrase: str, sparql: str) -> dict[str, Any]:
    return {
        "NNQT_question": "What is the {country} of {Graz} ?",
        "uid": own,
        "subgraph": "simple question right",
        "template_index": 65,
        "question": text,
        "sparql_wikidata": sparql,
        "sparql_dbpedia18": "select ?a where { ?s ?p ?a }",
        "template": "E REF ?F",
        "answer": [],
        "template_id": "statement_property_1",
        "paraphrased_question": paraphrase,
    }


LCQUAD2 = [
    _lcquad2(1, "Which country?", "Of which country is Graz a city?", " select ?a where { wd:Q13298 wdt:P17 ?a} "),
    _lcquad2(2, "How many states has Austria?", "n/a", "SELECT (COUNT(?s) AS ?value) { wd:Q40 wdt:P150 ?s }"),
    _lcquad2(3, "Both?", "Both of them?", "SELECT ?a ?b WHERE { wd:Q13298 wdt:P17 ?a . wd:Q13298 wdt:P36 ?b }"),
]

_RESOURCE, _ONTOLOGY = "http://dbpedia.org/resource/", "http://dbpedia.org/ontology/"

LCQUAD1 = [
    {
        "_id": "1501",
        "corrected_question": "Which river runs through Graz?",
        "intermediary_question": "What is the <river> of <Graz>?",
        "sparql_query": f"SELECT DISTINCT ?uri WHERE {{ <{_RESOURCE}Graz> <{_ONTOLOGY}river> ?uri }} ",
        "sparql_template_id": 2,
    },
    {
        "_id": "1502",
        "corrected_question": "How many twin towns has Graz?",
        "intermediary_question": "How many <twin towns> has <Graz>?",
        "sparql_query": f"SELECT DISTINCT COUNT(?uri) WHERE {{ <{_RESOURCE}Graz> <{_ONTOLOGY}twinTown> ?uri . }}",
        "sparql_template_id": 102,
    },
]

RELATION_LINKING = [
    {
        "q_id": 19719,
        "text": "Which country is Graz in?",
        "gold_rels": ["P17"],
        "query": "select ?a { wd:Q13298 wdt:P17 ?a }",
    },
    {
        "q_id": "1",
        "text": "Which river?",
        "gold_rels": [],
        "query": f"SELECT ?a {{ <{_RESOURCE}Graz> ?p ?a }}",
    },
]


def _qald(own: Any, texts: dict[str, str], sparql: str, answers: list[Any]) -> dict[str, Any]:
    return {
        "id": own,
        "question": [{"language": language, "string": text} for language, text in texts.items()],
        "query": {"sparql": sparql},
        "answers": answers,
    }


def _bindings(variable: str, *terms: dict[str, str]) -> list[Any]:
    return [{"head": {"vars": [variable]}, "results": {"bindings": [{variable: term} for term in terms]}}]


_PREFIXES = f"PREFIX dbo: <{_ONTOLOGY}> PREFIX res: <{_RESOURCE}> "
_XSD = "http://www.w3.org/2001/XMLSchema#"

QALD9: dict[str, Any] = {
    "dataset": {"id": "qald-9-train-multilingual"},
    "questions": [
        {
            **_qald(
                "1",
                {"en": "Which rivers run through Graz?", "de": "Welche Flüsse fließen durch Graz?"},
                _PREFIXES + "SELECT DISTINCT ?uri WHERE { res:Graz dbo:river ?uri }",
                _bindings("uri", *({"type": "uri", "value": _RESOURCE + name} for name in ("Mur", "Kainach"))),
            ),
            "answertype": "resource", "aggregation": False, "onlydbo": True, "hybrid": False,
        },
        _qald("2", {"en": "Is Graz in Italy?"}, _PREFIXES + "ASK WHERE { res:Graz dbo:country res:Italy }",
              [{"head": {}, "boolean": False}]),
        _qald("3", {"en": "How many live in Graz?"}, _PREFIXES + "SELECT ?n WHERE { res:Graz dbo:population ?n }",
              _bindings("n", {"type": "typed-literal", "datatype": _XSD + "integer", "value": "289440"})),
        _qald("4", {"en": "When was Graz first named?"}, _PREFIXES + "SELECT ?d WHERE { res:Graz dbo:date ?d }",
              _bindings("d", {"type": "literal", "datatype": _XSD + "date", "value": "1128-02-20"})),
        _qald("5", {"en": "Which sea is Graz at?"}, _PREFIXES + "SELECT ?s WHERE { res:Graz dbo:sea ?s }",
              [{"head": {"vars": ["s"]}, "results": {"bindings": []}}]),
    ],
}  # fmt: skip

QALD10: dict[str, Any] = {
    "questions": [
        _qald(
            "0",
            {"en": "In which country is Graz?", "zh": "格拉茨在哪个国家？"},
            "PREFIX wd: <http://www.wikidata.org/entity/> PREFIX wdt: <http://www.wikidata.org/prop/direct/> "
            "SELECT DISTINCT ?c WHERE { wd:Q13298 wdt:P17 ?c }",
            _bindings("c", {"type": "uri", "value": "http://www.wikidata.org/entity/Q40"}),
        )
    ]
}


def _kqapro(answer: str | None, *program: tuple[str, list[str]]) -> dict[str, Any]:
    row: dict[str, Any] = {"question": "A question about Graz?", "choices": ["Mur", "Enns"]}
    if answer is not None:
        row["program"] = [{"function": name, "dependencies": [], "inputs": inputs} for name, inputs in program]
        row["sparql"] = 'SELECT DISTINCT ?e WHERE { ?e <river> ?f . ?f <pred:name> "Graz" . }'
        row["answer"] = answer
    return row


_FIND, _RELATE = ("Find", ["Graz"]), ("Relate", ["river", "forward"])

KQAPRO = [
    _kqapro("Mur", _FIND, _RELATE, _RELATE, ("What", [])),
    _kqapro("2", _FIND, _RELATE, ("Count", [])),
    _kqapro("no", _FIND, ("QueryAttr", ["area"]), ("VerifyNum", ["3", ">"])),
    _kqapro("1128-02-20", _FIND, ("QueryAttr", ["inception"])),
    _kqapro("127.5 square kilometre", _FIND, ("QueryAttr", ["area"])),
    _kqapro("Graz", _FIND, ("Find", ["Linz"]), ("SelectBetween", ["area", "less"])),
    _kqapro(None),
]

POPQA = (
    "id\tsubj\tprop\tobj\tsubj_id\tprop_id\tobj_id\ts_aliases\to_aliases\ts_uri\to_uri\ts_wiki_title\to_wiki_title\ts_pop"
    "\to_pop\tquestion\tpossible_answers\n"
    '4222362\tGeorge Rankin\toccupation\tpolitician\t1850297\t22\t2834605\t"[""George James Rankin""]"\t"[""polit.""]"'
    "\thttp://www.wikidata.org/entity/Q1042738\thttp://www.wikidata.org/entity/Q82955\tGeorge Rankin\tPolitician\t142"
    '\t25692\tWhat is George Rankin\'s occupation?\t"[""politician"", ""political leader"", ""polit.""]"\n'
)

WITQA = (
    "question,possible_answers,subject,predicate,object,object_surfaceform,triple\n"
    'What is the capital of Tattnall County?,"[""Reidsville"", """"]",Q505310,P36,Q1311821,Reidsville,a triple\n'
)

ENTITY_QUESTIONS = [
    {"question": "Where was Alma Mahler born?", "answers": ["Vienna", "Wien"]},
    {"question": "In what town was she born?", "answers": ["Vienna"]},
]

FREEBASE_LINES = (
    "www.freebase.com/m/04whkz5\twww.freebase.com/book/written_work/subjects\twww.freebase.com/m/01cj3p\t"
    "what is the book e about\n"
)

WIKIDATA_LINES = "Q126799\tP136\tQ217117\twhat genre is it\n"


def official_files() -> list[tuple[str, Any, str]]:
    """(name of the file, its content: a JSON document or text, the source that reads it)."""
    return [
        ("mintaka_dev.json", MINTAKA, "mintaka"),
        ("lcquad2.json", LCQUAD2, "lcquad2"),
        ("lcquad1.json", LCQUAD1, "lcquad1"),
        ("qald-9.json", QALD9, "qald9"),
        ("qald_10.json", QALD10, "qald10"),
        ("val.json", KQAPRO, "kqapro"),
        ("popQA.tsv", POPQA, "popqa"),
        ("witqa.csv", WITQA, "witqa"),
        ("P19.dev.json", ENTITY_QUESTIONS, "entityquestions"),
        ("freebase.txt", FREEBASE_LINES, "simplequestions_freebase"),
        ("wikidata.txt", WIKIDATA_LINES, "simplequestions"),
    ]
