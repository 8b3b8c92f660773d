"""Options of the graph: where it comes from, what its predicates mean, how it is stored for retrieval."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from kgqa_core.config.base import Execution, Options
from kgqa_core.config.sources import Neo4jOptions, PropertyGraphOptions, SparqlGraphOptions, TableOptions

Texts = Annotated[tuple[str, ...], BeforeValidator(lambda one: [one] if one and isinstance(one, str) else one or ())]
Names = Annotated[dict[str, Texts], BeforeValidator(lambda one: one or {})]


class OwnNames(Options):
    """Other names of what a graph has, by key or label; hide: keys of relations to leave out."""

    entities: Names = {}
    """Names of entities."""
    relations: Names = {}
    """Names of relations."""
    types: Names = {}
    """Names of types."""
    values: Names = {}
    """Words for short texts, as `paused` for `on hold`."""
    hide: Texts = ()
    """Relations that are left out."""


class KgOptions(Options):
    """Where the graph comes from and what its predicates mean."""

    name: Execution[str] = "kg"
    """Name of the graph, shown in run names and the report."""
    files: Execution[tuple[str, ...]] = ()
    """Graph files, read as one graph; `bundled:atlas` is the graph in the package; `sparql+https://…`, `neo4j://…` and
    `bolt://…` are graphs on servers."""
    format: str = "auto"
    """`auto` (each file by its content and name), or the name of a reader; `kgqa kg formats` lists them."""
    delimiter: str | None = None
    """Field separator of delimited triples; found from the first lines when absent."""
    columns: dict[str, str] = {}
    """Roles of the columns of a CSV or TSV with a header: `subject`, `predicate`, `object`, and if wanted `language`,
    `datatype`, `rank`; a value `=text` is a constant for every row (`predicate: "=label"`)."""
    table: TableOptions = TableOptions()
    """Of tables of nodes and edges."""
    map: Execution[str | None] = None
    """Mapping of several tables of one database, as `kgqa kg map` writes it; the files are those that it names."""
    names: Annotated[OwnNames, BeforeValidator(lambda one: one or {})] = OwnNames()
    """Words of one's own: see `kgqa kg words`; also a file of its own, of `--names`."""
    property_graph: PropertyGraphOptions = PropertyGraphOptions()
    """Of nodes and edges with properties: Neo4j, GraphML, tables."""
    sparql: SparqlGraphOptions = SparqlGraphOptions()
    """Of SPARQL endpoints."""
    neo4j: Neo4jOptions = Neo4jOptions()
    """Of Neo4j servers."""
    max_age: Execution[float] = Field(default=24.0, ge=0)
    """Hours after which a graph that was fetched from a server is fetched again."""
    fetched: Execution[str | None] = None
    """Folder of what was fetched from servers; `fetched` in the home when absent."""
    context: dict[str, str] = {}
    """Files with contexts of JSON-LD, by the address that a document names; under `''` one for every address."""
    label_predicates: tuple[str, ...] = (
        "http://www.w3.org/2000/01/rdf-schema#label",
        "http://www.w3.org/2004/02/skos/core#prefLabel",
        "http://schema.org/name",
        "rdfs:label",
    )
    """Predicates whose objects are labels, best first."""
    alias_predicates: tuple[str, ...] = ("http://www.w3.org/2004/02/skos/core#altLabel", "skos:altLabel")
    """Predicates whose objects are aliases."""
    description_predicates: tuple[str, ...] = (
        "http://schema.org/description",
        "http://www.w3.org/2000/01/rdf-schema#comment",
    )
    """Predicates whose objects describe the subject."""
    type_predicates: tuple[str, ...] = ("http://www.w3.org/1999/02/22-rdf-syntax-ns#type", "rdf:type", "P31")
    """Predicates that give an entity its type."""
    subtype_predicates: tuple[str, ...] = ("http://www.w3.org/2000/01/rdf-schema#subClassOf", "rdfs:subClassOf", "P279")
    """Predicates that put a type under another."""
    literal: bool = False
    """Take OWL's, SKOS's and RDF's own vocabulary as plain relations: derive nothing, leave no declaration out."""
    infer_values: bool = True
    """A relation without datatypes gets one where at least 90 % of its values are numbers, dates or booleans; strings
    that are numbers with units (`135 MW`) get the number and the unit beside their text."""
    infer_types: bool = True
    """Where no types are stated, a relation of plain triples called `is a`, `instance of` or `type` gives them, or the
    word that the names of things at an end of a relation end in, or that a file of them is called by.  Where things
    have no label, relations called `name`, `title` and the like name them."""
    types_as_triples: bool = True
    """Keep type statements as triples too, so that retrieval can follow them."""
    languages: tuple[str, ...] = ("en", "")
    """Languages of labels in order of preference; an empty name is a label without language."""
    only_languages: bool = False
    """Leave out labels, descriptions and aliases in other languages than `languages`."""
    ranks: Literal["truthy", "normal", "all"] = "truthy"
    """Statements of a ranked source: `truthy` takes the preferred ones of a subject and relation, the normal ones where
    none is preferred; `normal` all but the deprecated; `all` every one."""
    qualifiers: Literal["rows", "triples", "none"] = "rows"
    """`rows` keeps qualifiers beside their triple; `triples` also makes each one a triple of the head, by the relation
    `relation/qualifier`, which retrieval can follow; `none` leaves them out."""
    named_graphs: Literal["keep", "drop"] = "keep"
    """`keep` makes the graph that states a triple (N-Quads, TriG, JSON-LD) its qualifier `graph`; `drop` leaves the
    names of graphs out, which is faster."""
    unknown_values: Literal["keep", "drop"] = "keep"
    """`keep` stores Wikidata's unknown value and no value as literals; `drop` filters such statements."""
    relations: tuple[str, ...] = ()
    """Relations to keep, by key; all when empty.  Names and types are always kept."""
    drop_relations: tuple[str, ...] = ()
    """Relations to leave out, by key."""
    drop_datatypes: tuple[str, ...] = ()
    """Datatypes of literals to leave out, by IRI or its last part: `ExternalId`, `CommonsMedia`."""
    informative_only: bool = False
    """Leave out relations that say little in words: identifiers, names, media, categories (LTGen's rule)."""
    page_views: Execution[str | None] = None
    """A file of page views by entity: `key<TAB>views`, or a published page-view dump."""
    bridges: tuple[str, ...] = ("P646", "http://www.wikidata.org/prop/direct/P646")
    """Relations whose objects name the subject in another graph (Freebase ids, say); such ids work as keys."""
    max_reject_share: float = Field(default=0.01, ge=0, le=1)
    """Largest share of a file's statements that may be rejected; unless it is 0, three always may if most are good."""
    memory_limit: Execution[str] = "4GB"
    """Memory that DuckDB may use before it spills to disk."""
    threads: Execution[int] = Field(default=2, ge=1)
    """Threads of the build."""

    def reading_files(self) -> dict[str, str]:
        """The files that say how others are read, by what they are."""
        files = {f"context {name}": file for name, file in self.context.items()}
        return files if self.map is None else {"map": self.map, **files}


class DkgOptions(Options):
    """The differentiable KG."""

    literal_inverses: bool = False
    """Also store edges that lead out of literals (a year is a hub)."""
