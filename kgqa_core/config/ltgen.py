"""Options of the long-tail benchmark that is built from a graph."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from kgqa_core.config.base import Execution, Options


class PopularityOptions(Options):
    """How well known an entity is, for the levels of LTGen (Huang et al. 2024, section 3)."""

    source: Literal["auto", "graph", "api", "dump", "table", "degree"] = "auto"
    """`api` asks the Wikimedia REST API for page views, `dump` reads published monthly files, `table` lines of
    `key<TAB>views`, `graph` takes the views that the graph was built with, `degree` counts triples.  `auto` takes
    `files` where there are any, else the graph's views, else the degree; it never asks the API."""
    files: Execution[tuple[str, ...]] = ()
    """Published files of page views (one a month), or tables."""
    months: int = Field(default=1, ge=1)
    """Months that the views of a graph or of a table are the sum of; 1 where they are a month's mean already."""
    titles: Execution[str | None] = None
    """A table `key<TAB>title` of Wikipedia titles, or a dump of Wikidata's JSON, whose sitelinks are read; without it
    the sitelinks of a graph's file in that format, else an entity's label serves as its title."""
    base_url: str = "https://wikimedia.org/api/rest_v1"
    """Address of the page-view API."""
    project: str = "en.wikipedia"
    """Wikipedia whose views count."""
    access: str = "all-access"
    """Views by `all-access`, `desktop`, `mobile-app` or `mobile-web`, in the API."""
    agent: str = "user"
    """Views of `user`, `spider`, `automated` or `all-agents`, in the API."""
    first_month: str = Field(default="2021-01", pattern=r"^\d{4}-(0[1-9]|1[0-2])$")
    """First month requested from the API."""
    last_month: str = Field(default="2023-01", pattern=r"^\d{4}-(0[1-9]|1[0-2])$")
    """Last month requested from the API."""
    rate: Execution[float] = Field(default=10.0, gt=0)
    """Most requests a second to the API."""
    retries: Execution[int] = Field(default=6, ge=0)
    """Further tries of a request to the API that failed."""
    timeout_seconds: Execution[float] = Field(default=30.0, gt=0)
    """Longest wait for one reply of the API, from the first byte of the request to the last of the reply."""
    max_reply_mb: Execution[float] = Field(default=1, gt=0, le=4096)
    """Largest reply of the API after decompression, in MiB."""
    user_agent: Execution[str | None] = None
    """What requests to the API call themselves; Wikimedia wants an address at which you can be reached in it."""


class SamplingOptions(Options):
    """Which entities an LTGen benchmark is about, and which of their triples (Huang et al. 2024, section 3)."""

    levels: Literal["auto", "absolute", "quantiles"] = "auto"
    """`absolute` cuts the four levels at `thresholds`, `quantiles` into quarters of the graph's own entities (for small
    graphs); `auto` is absolute for page views and quantiles for the degree."""
    thresholds: tuple[float, float, float, float, float] = (10, 100, 1_000, 10_000, 100_000)
    """Bounds of the levels IV, III, II and I in mean monthly views; a level has its lower bound and not its upper."""
    per_level: int = Field(default=500, ge=1)
    """Entities of each level; fewer where there are not so many."""
    min_triples: int = Field(default=5, ge=1)
    """Entities with fewer informative triples, both ways, are left out."""
    max_triples: int = Field(default=100, ge=1)
    """Entities with more informative triples are left out."""
    informative_only: bool = True
    """Leave out relations that say little in words: identifiers, names, media, categories."""
    drop_relations: tuple[str, ...] = ()
    """Further relations to leave out, by key or label."""
    max_answers: int = Field(default=10, ge=1)
    """Entity-relation pairs with more answers make no question."""


class WritingOptions(Options):
    """Who writes the questions and dialogues of an LTGen benchmark, and what is kept."""

    kinds: Execution[tuple[Literal["qa", "conv"], ...]] = ("qa", "conv")
    """`qa` for single questions, `conv` for dialogues."""
    writer: str = "template"
    """`template` (rules over relation labels, no model), or a model's name."""
    rounds: int = Field(default=2, ge=1)
    """Prompts of one entity: further ones ask for other pairs in place of those that gave no good question."""
    temperature: float = Field(default=0.7, ge=0)
    """Temperature after a completion of which nothing was usable; 0 before."""
    max_new_tokens: int = Field(default=2_048, ge=16)
    """Longest completion in tokens."""
    train_share: float = Field(default=0.0, ge=0, lt=1)
    """Share of the entities whose questions are for training; none in the paper."""
    dev_share: float = Field(default=0.0, ge=0, lt=1)
    """Share of the entities whose questions are for development."""

    @model_validator(mode="after")
    def _some_are_left(self) -> WritingOptions:
        if self.train_share + self.dev_share >= 1:
            raise ValueError(
                f"train_share {self.train_share} and dev_share {self.dev_share} leave no entity for test; together "
                "they must be below 1"
            )
        return self


class LtgenOptions(Options):
    """The long-tail benchmark that is built from a graph (`kgqa ltgen build`)."""

    popularity: PopularityOptions = PopularityOptions()
    """How well known an entity is."""
    sampling: SamplingOptions = SamplingOptions()
    """Which entities, and which triples."""
    writing: WritingOptions = WritingOptions()
    """Who writes, and what is kept."""
