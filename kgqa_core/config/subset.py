"""Options of `kgqa kg subset`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from kgqa_core.config.base import Execution, Options


class SparqlEndpointOptions(Options):
    """How a SPARQL endpoint is queried."""

    batch: Execution[int] = Field(default=50, ge=1)
    """Entities in one query; a query that the endpoint does not finish is repeated with half of them."""
    page: Execution[int] = Field(default=10_000, ge=1)
    """Rows of one reply; the next page is asked for until a page is not full."""
    delay: Execution[float] = Field(default=1.0, ge=0)
    """Seconds between the end of a request and the next one."""
    retries: Execution[int] = Field(default=6, ge=0)
    """Further tries of a request after a time-out, a cut or broken reply, and the statuses 408, 429 and 5xx."""
    timeout: Execution[float] = Field(default=90.0, gt=0)
    """Seconds that one request may take."""


class SubsetOptions(Options):
    """What of a graph belongs to the neighbourhood of a question set's entities."""

    hops: int = Field(default=2, ge=1, le=8)
    """Hops from topic entities and gold answers."""
    relations: tuple[str, ...] = ()
    """Relations to follow and to keep, by key; all when empty.  Names and types are always kept."""
    direction: Literal["both", "forward"] = "both"
    """`both` follows a relation from head to tail and back; `forward` from head to tail only."""
    max_degree: int = Field(default=1000, ge=0)
    """Most triples of one relation, in one direction, that an entity is followed along; of a hub's longer runs nothing
    is followed or kept from its side.  0 is no limit."""
    languages: tuple[str, ...] = ()
    """Languages of names to keep, and names without language; all when empty."""
    ranks: Literal["truthy", "normal", "all"] = "truthy"
    """Statements of Wikidata's JSON to read, as `kg.ranks`."""
    format: str = "auto"
    """Format of the dump files, as `kg.format`."""
    max_reject_share: float = Field(default=0.01, ge=0, le=1)
    """Largest share of a file's statements that may be rejected, as `kg.max_reject_share`."""
    memory_limit: Execution[str] = "4GB"
    """Memory for the sets of entities; a neighbourhood that does not fit is an error."""
    endpoint: SparqlEndpointOptions = SparqlEndpointOptions()
    """Of a SPARQL endpoint."""
