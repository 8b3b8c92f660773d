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

RetrieverName = Literal["rigel", "hop_path", "kaping", "random", "oracle"]

FORMATS = ("none", "triples", "template", "rewritten")
"""Forms of knowledge: none, triple-form text, sentences by rule, sentences by the rewriter."""


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
    source: Literal["jsonl", "atlas", "zjqa", "metaqa", "simplequestions", "webqsp"] = "jsonl"
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


class HopPathOptions(Options):
    """The path retriever of Retrieve-Rewrite-Answer and its training (Wu et al. 2023, section 3.1)."""

    execution: ClassVar[frozenset[str]] = frozenset({"checkpoint_seconds", "device"})

    encoder: str = "minilm"
    """`minilm` (packaged), `scratch` (learnt from the training questions), or a folder or hub id of a HF encoder."""
    max_hops: int = Field(default=2, ge=1, le=4)
    """Largest number of hops."""
    gold_hops: bool = False
    """Take the number of hops from the question where it is given, as the paper does on MetaQA."""
    beam: int = Field(default=5, ge=1)
    """Relations kept for every partial path (K)."""
    reasoning_paths: int = Field(default=5, ge=1)
    """Grounded paths kept of a question (M)."""
    searched_paths: int = Field(default=3, ge=0)
    """Gold paths searched in the graph for a training question that has answers and no annotated path; 0 searches
    none."""
    epochs: int = Field(default=10, ge=1)
    """Largest number of passes over the training questions."""
    patience: int = Field(default=2, ge=1)
    """Passes without a better dev score before training stops."""
    batch_size: int = Field(default=64, ge=1)
    """Questions in one step."""
    learning_rate: float = Field(default=1e-3, gt=0)
    """Peak learning rate of the classifiers, and of a scratch encoder."""
    encoder_learning_rate: float = Field(default=5e-5, gt=0)
    """Peak learning rate of a pretrained encoder."""
    max_tokens: int = Field(default=64, ge=8)
    """Tokens of question and path read by the encoder."""
    scratch_vocabulary: int = Field(default=6000, ge=100)
    """Tokens of the vocabulary learnt for a scratch encoder."""
    scratch_width: int = Field(default=256, ge=16)
    """Width of a scratch encoder's state."""
    checkpoint_seconds: float = Field(default=30.0, gt=0)
    """Seconds between checkpoints."""
    device: str = "auto"
    """`auto`, `cpu`, `cuda` or `cuda:N`."""


class KapingOptions(Options):
    """KAPING: the triples near the topic that are most similar to the question (Baek et al. 2023)."""

    encoder: str = "minilm"
    """`minilm` (packaged), or a folder or hub id of a HF sentence encoder with mean pooling."""
    hops: int = Field(default=2, ge=1, le=2)
    """Neighbourhood of the topic entities whose triples are compared."""
    most_triples: int = Field(default=2_000, ge=1)
    """Triples compared for a question: those of one hop first, then of two, within a hop the relations taking turns in
    order of id; the rest counts as truncated."""


class RetrievalOptions(Options):
    """What is kept of each question's graph neighbourhood."""

    execution: ClassVar[frozenset[str]] = frozenset({"retrievers"})

    retrievers: tuple[RetrieverName, ...] = ("rigel", "hop_path", "random", "oracle")
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
    kaping: KapingOptions = KapingOptions()
    """How KAPING compares triples."""


class Endpoint(Options):
    """A server that speaks the OpenAI chat-completions protocol."""

    base_url: str
    """Its address, such as http://localhost:8000/v1."""
    key_env: str | None = None
    """Name of the environment variable that holds its key; without one no key is sent."""


class Price(Options):
    """What an endpoint charges, in one currency of your choice."""

    prompt: float = Field(default=0.0, ge=0)
    """For a million prompt tokens."""
    completion: float = Field(default=0.0, ge=0)
    """For a million completion tokens."""


class BudgetOptions(Options):
    """Limits of what the results of a run may cost at endpoints; local models are free.

    Reserved before each request with its largest possible output, so that they are never exceeded.  What was paid for
    the same stages in an earlier, killed try counts too.
    """

    max_calls: int | None = Field(default=None, ge=0)
    """Requests that may be sent, repeated ones included."""
    max_tokens: int | None = Field(default=None, ge=0)
    """Prompt and completion tokens together."""
    max_cost: float | None = Field(default=None, ge=0)
    """Money, by `llm.prices`."""


class LlmOptions(Options):
    """Where and how language models run; the same for teacher, rewriter, QA model and answerer.

    A model is named by `builtin`, `hf:FOLDER_OR_ID`, `openai:MODEL`, or `openai:MODEL@ENDPOINT` with a name from
    `endpoints`.
    """

    execution: ClassVar[frozenset[str]] = frozenset(
        {"batch_tokens", "concurrency", "timeout_seconds", "retries", "device", "prices", "budget", "tokenizers"}
    )  # fmt: skip

    base_url: str | None = None
    """Endpoint of `openai:MODEL`; its key comes from OPENAI_API_KEY."""
    endpoints: dict[str, Endpoint] = {}
    """Further endpoints, by name."""
    batch_tokens: int = Field(default=8192, ge=64)
    """Tokens in one batch of a local model, padding and room for the output included."""
    dtype: Literal["auto", "fp32", "bf16"] = "auto"
    """Numbers of a local model: `auto` is fp32 on a CPU and what the weights are stored in on a GPU."""
    device: str = "auto"
    """`auto`, `cpu`, `cuda` or a device map of Accelerate."""
    concurrency: int = Field(default=16, ge=1)
    """Requests under way at once to an endpoint."""
    timeout_seconds: float = Field(default=60, gt=0)
    """Longest wait for one request."""
    retries: int = Field(default=4, ge=0)
    """Further tries of a request that failed."""
    attempts: int = Field(default=3, ge=1)
    """Completions of one prompt that may be rejected by the caller's check before the item is given up."""
    prices: dict[str, Price] = {}
    """Price of each `openai:MODEL`, for `budget.max_cost` and `kgqa forecast`."""
    tokenizers: dict[str, str] = {}
    """Tokenizer of an endpoint's model, as a folder or hub id, or `builtin`; a forecast estimates tokens without."""
    budget: BudgetOptions = BudgetOptions()
    """Limits of calls, tokens and money."""


class CorpusOptions(Options):
    """The KG-to-Text corpus that the rewriter learns from (Wu et al. 2023, section 3.2)."""

    teacher: str = "template"
    """Who writes the sentences: `template` (rules over relation labels, no model), or a model's name."""
    qa_model: str = "builtin"
    """Who must find a gold answer in the text for a pair to be kept."""
    imported: str | None = None
    """An Alpaca file of pairs (`instruction`, `output`) that is read instead of asking a teacher; no QA check."""
    size: int = Field(default=2000, ge=1)
    """Training questions that are taken, drawn with the seed in equal shares of relation paths."""
    candidates: int = Field(default=1, ge=1)
    """Texts written for one graph; the best by QA feedback, then by faithfulness, is kept."""
    temperature: float = Field(default=0.7, ge=0)
    """Temperature of the teacher where it writes several candidates, or again after a rejected one; else 0."""
    most_triples: int = Field(default=20, ge=1)
    """Triples of one graph; gold paths of more keep those that lead to answers first."""
    max_new_tokens: int = Field(default=256, ge=1)
    """Longest text of the teacher in tokens."""
    language: str | None = None
    """Language of the instruction (`en`, `zh`); that of the questions when absent."""
    dev_share: float = Field(default=0.1, gt=0, lt=1)
    """Share of the pairs, by graph, that is held out for the rewriter's dev loss."""


class RewriterOptions(Options):
    """The language model that turns reasoning paths into sentences, and its LoRA training (Wu et al. 2023, 4.1)."""

    execution: ClassVar[frozenset[str]] = frozenset({"checkpoint_seconds", "device"})

    base: str = "builtin"
    """Model that is adapted: `builtin` or `hf:FOLDER_OR_ID`, causal or seq2seq."""
    adapt: bool = True
    """Train LoRA weights on the corpus; without, the base writes as it is: a data-to-text model, or an endpoint's."""
    rank: int = Field(default=64, ge=1)
    """LoRA rank."""
    alpha: float = Field(default=128, gt=0)
    """LoRA scale."""
    dropout: float = Field(default=0.05, ge=0, lt=1)
    """LoRA dropout."""
    learning_rate: float = Field(default=1e-4, gt=0)
    """Peak learning rate; cosine decay."""
    warmup: float = Field(default=0.03, ge=0, lt=1)
    """Share of the steps in which the rate rises."""
    batch_size: int = Field(default=128, ge=1)
    """Pairs in one optimiser step, over all processes and by accumulation."""
    micro_tokens: int = Field(default=4096, ge=64)
    """Tokens in one forward pass, padding included."""
    epochs: int = Field(default=10, ge=1)
    """Passes over the corpus."""
    max_length: int = Field(default=1024, ge=16)
    """Tokens of a prompt and its text; longer pairs are left out and counted."""
    precision: Literal["fp32", "bf16"] = "fp32"
    """Numbers of the forward and backward pass."""
    measure_steps: int = Field(default=0, ge=0)
    """Steps between further measurements of the dev loss, for its curve; 0 is after each pass only."""
    samples: int = Field(default=8, ge=0)
    """Dev pairs whose generated text is shown after each pass."""
    max_new_tokens: int = Field(default=256, ge=1)
    """Longest rewritten text in tokens."""
    wording: Literal["rra2023", "mvp2022"] = "rra2023"
    """Prompt of a model that rewrites untrained: T1, or what data-to-text models of the MVP type read.  A rewriter that
    is trained here always reads T1."""
    on_unfaithful: Literal["replace", "keep", "drop"] = "replace"
    """What happens to a sentence that names something that is in no triple: the triples stand in its place, it is kept,
    or it is left out.  A sentence that tells none of the triples is left out unless everything is kept."""
    checkpoint_seconds: float = Field(default=30.0, gt=0)
    """Seconds between checkpoints."""
    device: str = "auto"
    """`auto`, `cpu`, `cuda` or `cuda:N`."""


class AnsweringOptions(Options):
    """The language model that answers, what it is given to read, and which questions it is asked."""

    execution: ClassVar[frozenset[str]] = frozenset({"knowledge"})

    answerer: str = "builtin"
    """`builtin`, `hf:FOLDER_OR_ID`, `openai:MODEL` or `openai:MODEL@ENDPOINT`."""
    knowledge: tuple[str, ...] = ("none", "random", "rigel", "hop_path", "oracle")
    """What is put before the model: `retriever/format` with a retriever of `retrieval.retrievers` and a format among
    triples, template and rewritten; a retriever alone means its triples, `none` asks without facts."""
    template: Literal["sen2023", "rra2023"] = "sen2023"
    """Wording of the prompt with knowledge, the same for every format."""
    qualifiers: bool = False
    """Triples are told with the qualifiers of their statement, `(head, relation, tail; qualifier: value)`."""
    split: Literal["test", "dev"] = "test"
    """Questions that are answered."""
    limit: int | None = Field(default=None, ge=1)
    """Answer only so many questions, drawn with the seed; all when absent."""
    max_new_tokens: int = Field(default=32, ge=1)
    """Longest answer in tokens."""


class EvaluationOptions(Options):
    """Scores and their intervals."""

    bootstrap: int = Field(default=1000, ge=100)
    """Bootstrap samples behind each 95 % interval."""
    examples: int = Field(default=8, ge=0)
    """Worked examples in the report."""


class RunnerOptions(Options):
    """Where the parts of a map stage run; none of this changes what they make."""

    kind: Literal["inline", "thread", "process", "dask", "ray"] = "inline"
    """Prefect's task runner for parts: in the flow itself, on threads or processes here, on a Dask or a Ray cluster."""
    shards: int = Field(default=1, ge=1, le=4096)
    """Parts that facts, sentences and answers are made in."""
    workers: int | None = Field(default=None, ge=1)
    """Parts at once; as many as cores when absent."""
    address: str | None = None
    """Of a running Dask scheduler (`tcp://…`) or Ray cluster (`ray://…`); a local one is started when absent."""


class OperationsOptions(Options):
    """How runs are operated: where work runs, when models are trained again, what becomes the champion."""

    runner: RunnerOptions = RunnerOptions()
    gpu_stages: Literal["here", "deployments", "auto"] = "auto"
    """Where trainings and the corpus are made: in this process, by deployments on the pool `gpu`, or there when a
    Prefect server has such a deployment."""
    secrets: dict[str, str] = {}
    """Environment variables that Secret blocks of Prefect fill where they are not set: `{OPENAI_API_KEY: my-block}`."""
    retrain_share: float = Field(default=0.05, ge=0, le=1)
    """A refresh trains again when this share of the triples came, went or changed, or when a relation came or went."""
    champion_metric: str = "hits_at_1"
    """Metric that a new system must be better in."""
    champion_experiment: str | None = None
    """Experiment whose metric counts, such as `rigel/triples/builtin`; the first of the run that has it when absent."""
    confidence: float = Field(default=0.95, gt=0.5, lt=1)
    """Level of the interval of the difference, above 0 of which the champion moves."""


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
    hop_path: HopPathOptions = HopPathOptions()
    retrieval: RetrievalOptions = RetrievalOptions()
    llm: LlmOptions = LlmOptions()
    corpus: CorpusOptions = CorpusOptions()
    rewriter: RewriterOptions = RewriterOptions()
    answering: AnsweringOptions = AnsweringOptions()
    evaluation: EvaluationOptions = EvaluationOptions()
    operations: OperationsOptions = OperationsOptions()

    @property
    def rewrites(self) -> bool:
        """Whether any knowledge is put into sentences by a language model."""
        return any(split_knowledge(name)[1] == "rewritten" for name in self.answering.knowledge)

    @property
    def trains_rewriter(self) -> bool:
        """Whether the model that puts knowledge into sentences is trained for it, so that a corpus is needed."""
        return self.rewrites and self.rewriter.adapt


def split_knowledge(name: str) -> tuple[str, str]:
    """Retriever and format of a `knowledge` entry: `rigel` is `("rigel", "triples")`, `none` is `("none", "none")`.

    Raises ConfigError for a format that is unknown.
    """
    retriever, slash, form = name.partition("/")
    if retriever == "none":
        form = form or "none"
    form = form if slash or retriever == "none" else "triples"
    if (form not in FORMATS) or (retriever == "none") != (form == "none"):
        raise ConfigError(
            f"answering.knowledge {name!r} has no known format; write none, or retriever/format with a format among "
            f"{', '.join(FORMATS[1:])}"
        )
    return retriever, form


def check_knowledge(wanted: Iterable[str], collected: Iterable[str]) -> None:
    """Raise ConfigError when the language model is to be given facts that no configured retriever collects."""
    there = sorted(collected)
    for name in wanted:
        retriever, _ = split_knowledge(name)
        if retriever != "none" and retriever not in there:
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
