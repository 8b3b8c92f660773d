"""Known KGQA benchmarks: what they are, where they come from, their licence, and what of them lies in a folder.

Nothing here downloads anything.  A licence is the one that the place named under `where` states; `see its page` means
that we have not found one that is beyond doubt.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kgqa_core.errors import QuestionFileError


@dataclass(frozen=True, slots=True)
class Benchmark:
    """One data set.

    where: project page or repository.  files: patterns of its question files, relative to a folder that holds data
    sets or to the data set's own folder.  loader: value of `questions.source` that reads it, or None.
    """

    name: str
    about: str
    graph: str
    questions: str
    where: str
    licence: str
    files: tuple[str, ...]
    loader: str | None = None


BENCHMARKS: tuple[Benchmark, ...] = (
    Benchmark(
        "Atlas",
        "nine complexity types over countries, cities, languages and currencies",
        "bundled",
        "12,000 and more",
        "in this package (`kgqa demo`)",
        "CC BY 4.0 (GeoNames)",
        (),
        "atlas",
    ),
    Benchmark(
        "MetaQA",
        "one to three hops about films",
        "its own, 134,741 triples",
        "407,513",
        "github: yuyuz/MetaQA",
        "CC BY 3.0",
        ("metaqa/*-hop/*.txt", "MetaQA/*-hop/vanilla/*.txt", "*-hop/*.txt", "*-hop/vanilla/*.txt"),
        "metaqa",
    ),
    Benchmark(
        "ZJQA",
        "Chinese, one and two hops, sport and culture of Zhejiang",
        "its own, 11,256 triples",
        "20,491",
        "github: wuyike2000/Retrieve-Rewrite-Answer",
        "none stated",
        ("zjqa/data/*.txt", "data/valid.txt"),
        "zjqa",
    ),
    Benchmark(
        "WebQuestions",
        "questions asked to a search engine",
        "Freebase",
        "5,810",
        "nlp.stanford.edu/software/sempre",
        "CC BY 4.0",
        ("webquestions/*.json", "WebQuestions/*.json"),
    ),
    Benchmark(
        "WebQSP",
        "WebQuestions with SPARQL and inferential chains",
        "Freebase",
        "4,737",
        "Microsoft Research: WebQuestions Semantic Parses Dataset",
        "see its page",
        ("webqsp/WebQSP.*.json", "WebQSP/data/WebQSP.*.json", "WebQSP.*.json"),
        "webqsp",
    ),
    Benchmark(
        "CWQ",
        "ComplexWebQuestions: compositions, conjunctions, superlatives, comparatives",
        "Freebase",
        "34,689",
        "tau-nlp.sites.tau.ac.il/compwebq",
        "see its page",
        ("cwq/ComplexWebQuestions_*.json", "ComplexWebQuestions_*.json"),
    ),
    Benchmark(
        "GrailQA",
        "i.i.d., compositional and zero-shot generalisation, with s-expressions",
        "Freebase",
        "64,331",
        "dki-lab.github.io/GrailQA",
        "see its page",
        ("grailqa/*.json", "grailqa/tog/*.json", "GrailQA*/grailqa_*.json", "grailqa_*.json"),
    ),
    Benchmark(
        "GrailQAbility",
        "GrailQA with questions that the graph cannot answer",
        "Freebase with facts taken out",
        "50,507",
        "github: dair-iitd/GrailQAbility",
        "see its page",
        ("grailqa/grailqability/**/*.json", "grailqability/**/*.json", "GrailQAbility/**/*.json"),
    ),
    Benchmark(
        "Mintaka",
        "nine complexity types in nine languages",
        "Wikidata",
        "20,000",
        "github: amazon-science/mintaka",
        "CC BY 4.0",
        ("mintaka/mintaka_*.json", "mintaka_*.json"),
    ),
    Benchmark(
        "LC-QuAD 2",
        "complex questions with SPARQL, some with qualifiers",
        "Wikidata, DBpedia",
        "30,226",
        "github: AskNowQA/LC-QuAD2.0",
        "see its page",
        ("lcquad2/**/*.json", "LC-QuAD2*/**/*.json"),
    ),
    Benchmark(
        "LC-QuAD 1",
        "templates over DBpedia, paraphrased",
        "DBpedia",
        "5,000",
        "github: AskNowQA/LC-QuAD",
        "GPL-3.0",
        ("relation_linking/lcquad1/*.json", "lcquad1/*.json"),
    ),
    Benchmark(
        "QALD-9",
        "written by people, with SPARQL, several languages",
        "DBpedia",
        "558",
        "github: ag-sc/QALD",
        "see its page",
        ("relation_linking/qald9/*.json", "qald9/*.json", "amr/qald-9-amr/**/*.txt"),
    ),
    Benchmark(
        "SimpleQuestions-Wikidata",
        "one fact each, mapped from Freebase",
        "Wikidata",
        "27,924 answerable",
        "github: askplatypus/wikidata-simplequestions",
        "CC BY 3.0",
        ("simplequestions_wikidata/annotated_wd_data_*.txt", "annotated_wd_data_*.txt"),
        "simplequestions",
    ),
    Benchmark(
        "PopQA",
        "one fact each, with the popularity of subject and object",
        "Wikidata",
        "14,267",
        "github: AlexTMallen/adaptive-retrieval",
        "MIT",
        ("longtail/**/*[Pp]op[Qq][Aa]*.csv", "popqa/*.tsv", "popQA.tsv"),
    ),
)


@dataclass(frozen=True, slots=True)
class Found:
    """Files of a benchmark below a folder, sorted, and their size in bytes."""

    files: tuple[Path, ...]
    size: int


def look_for(folder: Path) -> dict[str, Found]:
    """Benchmark name → its files below `folder`, for those that have any.  Raises QuestionFileError."""
    if not folder.is_dir():
        raise QuestionFileError(f"{folder} is not a folder; name the folder that holds your data sets")
    found = {}
    for benchmark in BENCHMARKS:
        files = sorted({path for pattern in benchmark.files for path in folder.glob(pattern) if path.is_file()})
        if files:
            found[benchmark.name] = Found(tuple(files), sum(path.stat().st_size for path in files))
    return found


def catalogue(folder: Path | None = None) -> list[dict[str, Any]]:
    """One row a benchmark for the table of `kgqa datasets`; with a folder, what of it lies there.

    Raises QuestionFileError when the folder is none.
    """
    found = look_for(folder) if folder is not None else {}
    rows = []
    for benchmark in BENCHMARKS:
        row: dict[str, Any] = {
            "name": benchmark.name,
            "about": benchmark.about,
            "graph": benchmark.graph,
            "questions": benchmark.questions,
            "where": benchmark.where,
            "licence": benchmark.licence,
            "loader": benchmark.loader,
        }
        if folder is not None:
            here = found.get(benchmark.name)
            row["found"] = f"{len(here.files)} files, {here.size / 1e6:.1f} MB" if here else None
        rows.append(row)
    return rows
