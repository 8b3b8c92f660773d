"""Every parameter of a run, documented under its field and checked before anything starts.

A profile is a YAML file that binds to `Profile`; `--set section.key=value` overrides single keys.  All faults of a
profile are reported at once, each with the nearest known name.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from kgqa_core.errors import ConfigError


class Options(BaseModel):
    """A frozen group of parameters that refuses names it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    execution: ClassVar[frozenset[str]] = frozenset()
    """Fields that say where, how fast or under what name work is done, and so are no part of a cache key."""

    def decisive(self) -> dict[str, Any]:
        """The fields that decide what comes out, as plain values."""
        return self.model_dump(mode="json", exclude=set(self.execution))


class KgOptions(Options):
    """Where the graph comes from and what its predicates mean."""

    execution: ClassVar[frozenset[str]] = frozenset({"name", "files", "page_views", "memory_limit", "threads"})

    name: str = "kg"
    """Name of the graph, shown in run names and the report."""
    files: tuple[str, ...] = ()
    """Graph files, read as one graph; `bundled:atlas` is the graph in the package."""
    format: str = "auto"
    """`auto` (each file by its content and name), or the name of a reader; `kgqa kg formats` lists them."""
    delimiter: str | None = None
    """Field separator of delimited triples; found from the first lines when absent."""
    columns: dict[str, str] = {}
    """Roles of the columns of a CSV or TSV with a header: `subject`, `predicate`, `object`, and if wanted `language`,
    `datatype`, `rank`; a value `=text` is a constant for every row (`predicate: "=label"`)."""
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
    page_views: str | None = None
    """A file of page views by entity: `key<TAB>views`, or a published page-view dump."""
    bridges: tuple[str, ...] = ("P646", "http://www.wikidata.org/prop/direct/P646")
    """Relations whose objects name the subject in another graph (Freebase ids, say); such ids work as keys."""
    max_reject_share: float = Field(default=0.01, ge=0, le=1)
    """Largest share of a file's statements that may be rejected; unless it is 0, three always may if most are good."""
    memory_limit: str = "4GB"
    """Memory that DuckDB may use before it spills to disk."""
    threads: int = Field(default=2, ge=1)
    """Threads of the build."""


class DkgOptions(Options):
    """The differentiable KG."""

    literal_inverses: bool = False
    """Also store edges that lead out of literals (a year is a hub)."""


class QuestionsOptions(Options):
    """Where the questions come from and how they are split."""

    execution: ClassVar[frozenset[str]] = frozenset({"name", "path"})

    name: str = "questions"
    """Name of the data set, shown in run names and the report."""
    source: Literal["jsonl", "atlas", "zjqa", "metaqa", "simplequestions"] = "jsonl"
    """Loader: a question file of ours, the bundled questions, or a known benchmark."""
    path: str | None = None
    """The question file, or the folder of the benchmark."""
    language: str = "en"
    """Language of the questions."""
    hops: tuple[int, ...] = ()
    """Hop counts to take from a benchmark that is divided by hops; empty takes all."""
    train_from: Literal["train", "dev"] = "train"
    """`dev` trains on nine tenths of a benchmark's dev split (MetaQA as it lies here has no train split)."""
    unscored: bool = False
    """Questions come without gold answers and all are to be answered (`kgqa answer`); their splits are ignored."""
    split_shares: tuple[float, float, float] = (0.7, 0.1, 0.2)
    """Shares of train, dev and test by topic entity, where a question file has no splits."""


class RetrieverOptions(Options):
    """The Rigel retriever and its training."""

    execution: ClassVar[frozenset[str]] = frozenset({"checkpoint_seconds", "device"})

    decoder: Literal["layer", "label"] = "layer"
    """`layer` has one output for each relation of the graph it is trained on; `label` scores relations by the encoded
    text of their labels, so that relations added later can be used without training."""
    encoder: str = "minilm"
    """`minilm` (packaged), `scratch` (learnt from the training questions), or a folder or hub id of a HF encoder."""
    hops: int = Field(default=2, ge=1, le=4)
    """Largest number of hops."""
    loss: Literal["bce", "normalised"] = "bce"
    """`bce` is the paper's; `normalised` maximises the share of the answers in the retrieved mass."""
    exclude_topic: bool = False
    """Take the topic entities out of the entity set after each hop."""
    epochs: int = Field(default=6, ge=1)
    """Largest number of passes over the training questions; more where they make less than `min_steps` steps."""
    min_steps: int = Field(default=300, ge=1)
    """Steps that a small question set trains for, by further passes; patience grows alike."""
    patience: int = Field(default=2, ge=1)
    """Passes without a better dev score before training stops."""
    batch_size: int = Field(default=32, ge=1)
    """Questions in one step."""
    learning_rate: float = Field(default=1e-3, gt=0)
    """Peak learning rate of the decoder, and of a scratch encoder."""
    encoder_learning_rate: float = Field(default=5e-5, gt=0)
    """Peak learning rate of a pretrained encoder."""
    max_tokens: int = Field(default=64, ge=8)
    """Question tokens read by the encoder."""
    scratch_vocabulary: int = Field(default=6000, ge=100)
    """Tokens of the vocabulary learnt for a scratch encoder."""
    scratch_width: int = Field(default=256, ge=16)
    """Width of a scratch encoder's state."""
    checkpoint_seconds: float = Field(default=30.0, gt=0)
    """Seconds between checkpoints."""
    device: str = "auto"
    """`auto`, `cpu`, `cuda` or `cuda:N`."""


class RetrievalOptions(Options):
    """What is kept of each question's graph neighbourhood."""

    execution: ClassVar[frozenset[str]] = frozenset({"retrievers"})

    retrievers: tuple[Literal["rigel", "random", "oracle"], ...] = ("rigel", "random", "oracle")
    """Retrievers whose facts are collected and compared."""
    k: int = Field(default=10, ge=1)
    """Triples kept per hop (k = 10 in the paper), and in all for random facts."""
    candidates: int = Field(default=50, ge=1)
    """Ranked entities kept per question."""
    edge_budget: int = Field(default=50_000, ge=1)
    """Edges followed per question and hop, heaviest sources first; the rest is cut and counted as truncated.  With
    50,000 a question of two hops takes some 10 ms at most, however large the graph."""
    min_hop_attention: float = Field(default=0.05, ge=0, le=1)
    """Facts of trailing hops whose joint attention is below this are left out."""


class AnsweringOptions(Options):
    """The language model that answers, and which questions it is asked."""

    execution: ClassVar[frozenset[str]] = frozenset(
        {"knowledge", "batch_tokens", "concurrency", "timeout_seconds", "retries", "device"}
    )

    answerer: str = "builtin"
    """`builtin`, `hf:FOLDER_OR_ID` or `openai:MODEL`."""
    base_url: str | None = None
    """Endpoint of an OpenAI-compatible server; the key comes from OPENAI_API_KEY."""
    knowledge: tuple[Literal["none", "random", "rigel", "oracle"], ...] = ("none", "random", "rigel", "oracle")
    """Retrievers whose facts are put before the model; `none` asks without facts."""
    qualifiers: bool = False
    """Facts are told with the qualifiers of their triple, `(head, relation, tail; qualifier: value)`."""
    split: Literal["test", "dev"] = "test"
    """Questions that are answered."""
    limit: int | None = Field(default=None, ge=1)
    """Answer only so many questions, drawn with the seed; all when absent."""
    max_new_tokens: int = Field(default=32, ge=1)
    """Longest answer in tokens."""
    batch_tokens: int = Field(default=8192, ge=64)
    """Prompt tokens in one batch of a local model."""
    concurrency: int = Field(default=16, ge=1)
    """Requests under way at once to an endpoint."""
    timeout_seconds: float = Field(default=60, gt=0)
    """Longest wait for one request."""
    retries: int = Field(default=4, ge=0)
    """Further tries of a failed request."""
    device: str = "auto"
    """`auto`, `cpu`, `cuda` or a device map of Accelerate."""


class EvaluationOptions(Options):
    """Scores and their intervals."""

    bootstrap: int = Field(default=1000, ge=100)
    """Bootstrap samples behind each 95 % interval."""
    examples: int = Field(default=8, ge=0)
    """Worked examples in the report."""


class Profile(Options):
    """Every parameter of a run."""

    name: str = "run"
    """Name of the profile."""
    description: str = ""
    """One sentence on what the profile is for."""
    seed: int = Field(default=7, ge=0)
    """Seed of everything that draws."""
    kg: KgOptions = KgOptions()
    dkg: DkgOptions = DkgOptions()
    questions: QuestionsOptions = QuestionsOptions()
    retriever: RetrieverOptions = RetrieverOptions()
    retrieval: RetrievalOptions = RetrievalOptions()
    answering: AnsweringOptions = AnsweringOptions()
    evaluation: EvaluationOptions = EvaluationOptions()


def check_knowledge(wanted: Iterable[str], collected: Iterable[str]) -> None:
    """Raise ConfigError when the language model is to be given facts that no configured retriever collects."""
    there = sorted(collected)
    for name in wanted:
        if name != "none" and name not in there:
            raise ConfigError(
                f"answering.knowledge asks for {name!r}, but retrieval.retrievers collects only {', '.join(there)}; "
                "add it there or leave it out here"
            )


def known_keys(model: type[BaseModel] = Profile, prefix: str = "") -> list[str]:
    """Every key of a profile in dotted form, `retriever.hops` for example."""
    keys: list[str] = []
    for name, info in model.model_fields.items():
        kind = info.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            keys += known_keys(kind, f"{prefix}{name}.")
        else:
            keys.append(prefix + name)
    return keys


def parse_settings(settings: Iterable[str]) -> dict[str, Any]:
    """`["retriever.hops=3"]` as a nested mapping; values are read as YAML.  Raises ConfigError."""
    tree: dict[str, Any] = {}
    known = known_keys()
    for setting in settings:
        key, equals, text = setting.partition("=")
        key = key.strip()
        if not equals:
            raise ConfigError(f"--set {setting!r} is not of the form key=value, for example retriever.hops=3")
        if key not in known:
            raise ConfigError(_unknown(key, known))
        node = tree
        *path, leaf = key.split(".")
        for part in path:
            node = node.setdefault(part, {})
        try:
            node[leaf] = yaml.safe_load(text)
        except yaml.YAMLError as fault:
            raise ConfigError(f"--set {key}: the value {text!r} is not valid YAML: {fault}") from None
    return tree


def make_profile(*layers: Mapping[str, Any], origin: str = "profile") -> Profile:
    """A profile from nested mappings, later ones winning.  Raises ConfigError that lists every fault."""
    merged: dict[str, Any] = {}
    for layer in layers:
        _merge(merged, layer)
    try:
        return Profile.model_validate(merged)
    except ValidationError as fault:
        known = known_keys()
        lines = []
        for error in fault.errors():
            key = ".".join(str(part) for part in error["loc"])
            if error["type"] == "extra_forbidden":
                lines.append(_unknown(key, known))
            else:
                lines.append(f"{key}: {error['msg']}, but it is {error['input']!r}")
        raise ConfigError(f"{origin} has {len(lines)} fault(s):\n  " + "\n  ".join(lines)) from None


def read_profile(path: Path) -> dict[str, Any]:
    """The nested mapping of a profile file.  Raises ConfigError."""
    try:
        tree = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as fault:
        raise ConfigError(f"profile {path} cannot be read: {fault}") from None
    if not isinstance(tree, dict):
        raise ConfigError(f"profile {path} must be a mapping of sections, but it is {type(tree).__name__}")
    return tree


def _unknown(key: str, known: list[str]) -> str:
    near = difflib.get_close_matches(key, known, n=1, cutoff=0.5)
    return f"unknown key '{key}'" + (
        f"; did you mean '{near[0]}'?" if near else "; `kgqa run --help` names the sections"
    )


def _merge(base: dict[str, Any], extra: Mapping[str, Any]) -> None:
    for key, value in extra.items():
        if isinstance(value, Mapping) and isinstance(base.get(key), dict):
            _merge(base[key], value)
        else:
            base[key] = dict(value) if isinstance(value, Mapping) else value
