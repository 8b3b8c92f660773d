"""Options of graphs that are no files of triples: property graphs, tables, SPARQL endpoints, Neo4j servers."""

from __future__ import annotations

from pydantic import Field

from kgqa_core.config.base import Execution, Options


class PropertyGraphOptions(Options):
    """How nodes, relationships and properties become entities, triples, names, literals and qualifiers."""

    key: str | None = None
    """Property of a node whose value is the entity's key (`uri`, for example); the node's id when absent."""
    names: tuple[str, ...] = ("name", "label", "title")
    """Properties that may be a node's label; the first that a node has is, the others are literals."""
    types: tuple[str, ...] = ("labels",)
    """Properties of GraphML's nodes that name their types, beside the attribute `labels`; `:A:B` are two."""
    relations: tuple[str, ...] = ("label", "relation", "type")
    """Properties of GraphML's edges that may name the relation, beside the attribute `label`; the first that is there
    counts, and an edge without one is of the relation `edge`."""
    datatypes: dict[str, str] = {}
    """Datatypes of properties and columns that their source leaves open, by name: `integer`, `double`, `boolean`,
    `date`, `dateTime`, `gYear`, `anyURI` … of XML Schema, or `entity` for the key of an entity."""


class TableOptions(Options):
    """Which column of a table (CSV, TSV, Parquet) is what; every further column is a property."""

    id: str | None = None
    """Column with the keys of nodes."""
    label: str | None = None
    """Column with the names of nodes."""
    type: str | None = None
    """Column with the types of nodes, several with `;` between, or `=text` for one type of all."""
    source: str | None = None
    """Column with the keys at which edges begin; a table that has this column and `target` is one of edges."""
    target: str | None = None
    """Column with the keys at which edges end."""
    relation: str | None = None
    """Column with the relations of edges, or `=text` for one relation of all."""


class SparqlGraphOptions(Options):
    """What is fetched from a SPARQL endpoint that `kg.files` names, and how."""

    classes: Execution[tuple[str, ...]] = ()
    """IRIs of classes whose instances' statements are fetched; all statements when empty."""
    names: Execution[bool] = True
    """With `classes`: also fetch the names of what these statements lead to, and of their relations."""
    query: Execution[str | None] = None
    """A SELECT query that gives ?s, ?p and ?o, or a CONSTRUCT query, whose statements are fetched; `@FILE` reads it."""
    graphs: Execution[tuple[str, ...]] = ()
    """IRIs of named graphs to read in the place of the endpoint's default graph."""
    page_size: Execution[int] = Field(default=10_000, ge=1)
    """Rows of one reply."""
    delay: Execution[float] = Field(default=1.0, ge=0)
    """Seconds between the end of a request and the next one."""
    retries: Execution[int] = Field(default=6, ge=0)
    """Further tries of a request after a time-out, a cut or broken reply, and the statuses 408, 429 and 5xx."""
    timeout: Execution[float] = Field(default=90.0, gt=0)
    """Seconds that one request may take."""


class Neo4jOptions(Options):
    """What is fetched from a Neo4j server that `kg.files` names, and how; user and password are those of the variables
    NEO4J_USERNAME and NEO4J_PASSWORD."""

    database: Execution[str | None] = None
    """Name of the database; the user's own when absent."""
    page_size: Execution[int] = Field(default=10_000, ge=1)
    """Nodes or relationships of one query."""
    delay: Execution[float] = Field(default=0.0, ge=0)
    """Seconds between two queries."""
    retries: Execution[int] = Field(default=6, ge=0)
    """Further tries of a query after a cut connection or a transient error."""
    timeout: Execution[float] = Field(default=90.0, gt=0)
    """Seconds that making a connection may take."""
