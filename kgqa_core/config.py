"""Every parameter of a run, documented under its field and checked before anything starts.

A profile is a YAML file that binds to `Profile`; `--set section.key=value` overrides single keys.  All faults of a
profile are reported at once, each with the nearest known name.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from kgqa_core.errors import PASSWORD, ConfigError
from kgqa_core.input_files import read_document

RetrieverName = Literal[
    "rigel", "hop_path", "kaping", "rank_llm", "rank_embedding", "rank_pair", "rank_amr", "random", "oracle"
]

FORMATS = ("none", "triples", "template", "rewritten", "both")
"""Forms of knowledge: none, triple-form text, sentences by rule, sentences by the rewriter, triples and passages."""

PASSAGES = "passages"
"""Knowledge that comes from text: its name as retriever and as format."""


MAX_PROFILE, MAX_NODES = 4 << 20, 100_000
"""Bytes of a profile file, and the values in it with its anchors written out."""

LTGEN_TOKENS = 128
"""Longest response in tokens of the template `ltgen2024` (Huang et al. 2024)."""


SYMBOLIC, HYBRID = "symbolic", "hybrid"
"""Answerers that compute: alone, and for a language model."""


LINKED = "@linked"
"""Ends the name of a retriever that starts from linked topics."""

ALWAYS_GOLD = ("random", "oracle")
"""Yardsticks: they start from the gold topics, whatever `retrieval.topics` says."""


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


class QuestionSource(Options):
    """Where a question set comes from and how it is split."""

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


class QuestionsOptions(QuestionSource):
    """The questions that the system is made for, and further sets that the retriever learns from."""

    execution: ClassVar[frozenset[str]] = QuestionSource.execution | {"more"}

    more: tuple[QuestionSource, ...] = ()
    """Further question sets over the same graph, each under a name of its own, that the retriever `rigel` is trained on
    too (`retriever.mix` says how often); their dev questions are measured, and nothing of them is answered."""

    @field_validator("more")
    @classmethod
    def _names_differ(cls, more: tuple[QuestionSource, ...]) -> tuple[QuestionSource, ...]:
        names = [one.name for one in more]
        if len(set(names)) < len(names):
            raise ValueError(f"the sets are named {', '.join(names)}; give each a name of its own")
        return more


class RetrieverOptions(Options):
    """The Rigel retriever and its training."""

    execution: ClassVar[frozenset[str]] = frozenset({"checkpoint_seconds", "device", "feedback"})

    decoder: Literal["layer", "label"] = "layer"
    """`layer` has one output for each relation of the graph it is trained on; `label` scores relations by the encoded
    text of their labels, so that relations added later can be used without training."""
    encoder: str = "minilm"
    """`minilm` (packaged), `scratch` (learnt from the training questions), or a folder or hub id of a HF encoder."""
    hops: int | None = Field(default=None, ge=1, le=4)
    """Largest number of hops; without a number, what the training questions need (their annotated relation paths, else
    the distance to their answers), at least 2 and at most 4."""
    loss: Literal["bce", "normalised"] = "bce"
    """`bce` is the paper's; `normalised` maximises the share of the answers in the retrieved mass."""
    exclude_topic: bool = False
    """Take the topic entities out of the entity set after each hop."""
    soft_start: bool = False
    """Learn from linked questions: start at the candidates of their mentions, with weights that are learnt from the
    linker's confidence, the question, and the candidate's popularity, types and description.  Topics that are given
    for certain keep the weight 1."""
    candidates: int = Field(default=3, ge=1)
    """Candidates of a mention that a soft start begins at, best first."""
    intersect: Literal["none", "product", "min"] = "none"
    """Follow each topic of a question apart, with relations of its own, and mix the union of what they lead to with the
    intersection: the product of the entities' weights or the smallest; how much of each is learnt."""
    mix: dict[str, float] = {}
    """How often a pass takes each question of a set of `questions.more`, by the set's name: 0.5 draws half of them, 2
    takes each twice; 1 where a set is not named."""
    feedback: str | None = None
    """An earlier run of the home whose right answers speak for relation paths: its id or the beginning of it.  Only
    answers to training questions count (`retrieval.training=true answering.split=train` in that run)."""
    feedback_weight: float = Field(default=0.3, ge=0)
    """Weight in the loss of the paths that `feedback` speaks for."""
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
    max_hops: int | None = Field(default=None, ge=1, le=4)
    """Largest number of hops; without a number, what the training questions need, as for `retriever.hops`."""
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


class LinkingOptions(Options):
    """How the entities of a bare question are found: a tagger of the TAGME type over the graph's own names."""

    threshold: float = Field(default=0.22, ge=0, le=1)
    """Smallest confidence ρ of an entity that is taken (LTGen's)."""
    top: int = Field(default=5, ge=1)
    """Entities taken of one question at most, the most confident first."""
    candidates: int = Field(default=10, ge=1)
    """Entities of one name that are weighed against each other, the most common first."""
    fallback: bool = True
    """Where no entity reaches the threshold, take the best one all the same."""
    appositions: Literal["first", "all"] = "first"
    """Of names side by side whose entities the graph relates, as in `Seoul, Korea`, take the first only, which is what
    a question is about; or all, as in a text of which every entity is wanted."""
    typos: int = Field(default=0, ge=0, le=2)
    """Typing errors allowed in a name, where the words are nothing else; 0 looks for names as they are written."""
    context: Literal["none", "words", "encoder"] = "words"
    """What breaks ties between entities of one name: nothing, words that the question shares with types and relations
    of an entity, or also the likeness of its encoded description."""
    encoder: str = "minilm"
    """Sentence encoder of `context: encoder`: `minilm` (packaged), or a folder or hub id."""
    turns: int = Field(default=4, ge=0)
    """Earlier turns of a dialogue whose mentions stay candidates."""
    turn_weight: float = Field(default=0.8, gt=0, le=1)
    """What the confidence of a mention is multiplied with for each turn that it lies back."""


class RetrievalOptions(Options):
    """What is kept of each question's graph neighbourhood."""

    execution: ClassVar[frozenset[str]] = frozenset({"retrievers", "topics"})

    retrievers: tuple[RetrieverName, ...] = ("rigel", "hop_path", "random", "oracle")
    """Retrievers whose facts are collected and compared."""
    topics: Literal["gold", "linked", "both"] = "gold"
    """Entities that retrieval starts from: `gold` are those of the question file, `linked` those that the tagger finds
    in the text; `both` compares the two, named `RETRIEVER` and `RETRIEVER@linked`.  Random and oracle always start from
    the gold ones, and so does training."""
    training: bool = False
    """Collect facts for training questions too, so that a model can be asked them (`answering.split=train`)."""
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

    @field_validator("retrievers", mode="before")
    @classmethod
    def _plain_names(cls, given: Any) -> Any:
        for name in given if isinstance(given, list | tuple) else ():
            if isinstance(name, str) and "@" in name:
                raise ValueError(f"{name!r} is no plain name; list {name.split('@')[0]!r} and set retrieval.topics")
        return given

    @property
    def collected(self) -> tuple[str, ...]:
        """Names that facts are collected under: each retriever as `topics` wants it."""
        return tuple(variant for name in self.retrievers for variant in self.variants(name))

    def variants(self, name: str) -> tuple[str, ...]:
        """The names that a retriever goes by: plain, with `@linked`, or both."""
        if self.topics == "gold" or name in ALWAYS_GOLD or name not in self.retrievers:
            return (name,)
        return (name, name + LINKED) if self.topics == "both" else (name + LINKED,)


class RelationRankingOptions(Options):
    """Retrieval by relation ranking: how relations are ranked, and the training of rankers (Huang et al. 2024)."""

    execution: ClassVar[frozenset[str]] = frozenset(
        {"training_sets", "amr_graphs", "amr_parser", "checkpoint_seconds", "device"}
    )

    relations: int = Field(default=5, ge=1)
    """Relations kept of each topic entity."""
    triples: int = Field(default=10, ge=1)
    """Triples of each pair of an entity and a relation, drawn with the seed where there are more."""
    most_relations: int = Field(default=200, ge=1)
    """Relations of one entity that are ranked, followed and against their direction: those of most triples."""
    model: str = "builtin"
    """Language model of `rank_llm`."""
    max_new_tokens: int = Field(default=64, ge=8)
    """Longest ranking of the language model in tokens."""
    sentence_encoder: str = "minilm"
    """Of `rank_embedding`: `minilm` (packaged), or a folder or hub id of a HF sentence encoder with mean pooling."""
    training_sets: tuple[str, ...] = ()
    """Files of relation linking, JSON lines of `source` and `target`, that rankers learn from beside the annotated
    training questions."""
    amr_graphs: str | None = None
    """A file of AMR graphs by question: blocks of PENMAN with `# ::snt`, or JSON from question to PENMAN."""
    amr_parser: str | None = None
    """Parser of questions that the file has not: `amrlib:FOLDER` with a local model.  `rank_amr` is trained where there
    are graphs, by file or parser; without any it is `rank_pair`."""
    encoder: str = "minilm"
    """Of `rank_pair` and `rank_amr`: `minilm` (packaged), `scratch` (learnt from the training pairs), or a folder or
    hub id of a HF encoder."""
    negatives: int = Field(default=7, ge=1)
    """Relations of the entity that are no gold ones, drawn anew in every pass for each question and entity."""
    amr_layers: int = Field(default=2, ge=1)
    """Layers of graph attention."""
    heads: int = Field(default=4, ge=1)
    """Heads of the graph attention and of the attention from a pair to the nodes; they divide the encoder's width."""
    epochs: int = Field(default=4, ge=1)
    """Largest number of passes over the training questions."""
    patience: int = Field(default=2, ge=1)
    """Passes without a better dev score before training stops."""
    batch_size: int = Field(default=8, ge=1)
    """Questions, each with one entity, in one step."""
    learning_rate: float = Field(default=1e-3, gt=0)
    """Peak learning rate of all but a pretrained encoder."""
    encoder_learning_rate: float = Field(default=5e-5, gt=0)
    """Peak learning rate of a pretrained encoder."""
    max_tokens: int = Field(default=64, ge=16)
    """Tokens of question, entity and relation read by the encoder; of a longer one the question's end gives way."""
    scratch_vocabulary: int = Field(default=6000, ge=100)
    """Tokens of the vocabulary learnt for a scratch encoder."""
    scratch_width: int = Field(default=256, ge=16)
    """Width of a scratch encoder's state."""
    checkpoint_seconds: float = Field(default=30.0, gt=0)
    """Seconds between checkpoints."""
    device: str = "auto"
    """`auto`, `cpu`, `cuda` or `cuda:N`."""


class PassagesOptions(Options):
    """Passages of text that answers are read from, beside facts or instead of them (Huang et al. 2024)."""

    execution: ClassVar[frozenset[str]] = frozenset({"corpus", "device"})

    corpus: str | None = None
    """The texts: a file, or a folder whose files are read in order of name; `.gz`, `.bz2` and `.zst` are unpacked."""
    format: Literal["auto", "jsonl", "text", "kilt"] = "auto"
    """`jsonl` has an object a line, `text` has blank lines between documents, `kilt` is KILT's knowledge source; `auto`
    looks at the beginning of each file."""
    fields: dict[Literal["id", "title", "text"], str] = {}
    """Names of the fields of JSON lines: `id`, `title`, `text` (the defaults), such as `{id: docid, text: contents}`;
    a document without id is called by its line."""
    words: int = Field(default=100, ge=10, le=1000)
    """Longest passage in words; of scripts without spaces two characters count as a word."""
    retriever: Literal["dense", "bm25", "hybrid"] = "dense"
    """`dense` compares vectors, `bm25` words, `hybrid` joins both by reciprocal rank."""
    k: int = Field(default=10, ge=1)
    """Passages kept of a question."""
    history: int = Field(default=2, ge=0)
    """Earlier turns of a dialogue that are searched for along with its last query."""
    encoder: str = "minilm"
    """`minilm` (packaged), or a folder or hub id of a HF encoder with mean pooling, such as Contriever."""
    max_tokens: int = Field(default=256, ge=16)
    """Tokens of a passage that the encoder reads."""
    index: Literal["flat", "ivf", "auto"] = "auto"
    """FAISS index: `flat` compares all vectors, `ivf` those of the nearest cells; `auto` is flat up to half a million
    passages."""
    device: str = "auto"
    """Of the encoder: `auto`, `cpu`, `cuda` or `cuda:N`."""


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
        {
            "batch_tokens", "concurrency", "timeout_seconds", "max_reply_mb", "retries", "device", "prices", "budget",
            "tokenizers",
        }
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
    """Longest wait for one request, from its first byte to the last of its reply."""
    max_reply_mb: float = Field(default=8, gt=0, le=4096)
    """Largest reply of an endpoint after decompression, in MiB; a larger one is not read."""
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


class OperatorOptions(Options):
    """The classifier that picks the operation of a question, for the answerers `symbolic` and `hybrid`."""

    execution: ClassVar[frozenset[str]] = frozenset({"checkpoint_seconds", "device"})

    encoder: str = "scratch"
    """`scratch` (learnt from the training questions), `minilm` (packaged), or a folder or hub id of a HF encoder."""
    epochs: int = Field(default=15, ge=1)
    """Largest number of passes over the distinct wordings of the training questions."""
    patience: int = Field(default=3, ge=1)
    """Passes without a better dev score before training stops."""
    batch_size: int = Field(default=64, ge=1)
    """Wordings in one step."""
    learning_rate: float = Field(default=2e-3, gt=0)
    """Peak learning rate of the classifier, and of a scratch encoder."""
    encoder_learning_rate: float = Field(default=5e-5, gt=0)
    """Peak learning rate of a pretrained encoder."""
    max_tokens: int = Field(default=64, ge=8)
    """Question tokens read by the encoder."""
    scratch_vocabulary: int = Field(default=3000, ge=100)
    """Tokens of the vocabulary learnt for a scratch encoder."""
    scratch_width: int = Field(default=128, ge=16)
    """Width of a scratch encoder's state."""
    checkpoint_seconds: float = Field(default=30.0, gt=0)
    """Seconds between checkpoints."""
    device: str = "auto"
    """`auto`, `cpu`, `cuda` or `cuda:N`."""


class SymbolicOptions(Options):
    """How the answerers `symbolic` and `hybrid` compute: where arguments come from, and what is tried."""

    execution: ClassVar[frozenset[str]] = frozenset({"parser"})

    parser: Literal["none", "rng", "decode"] = "none"
    """A semantic parser of the section `parsing` whose forms are tried before those made of the retriever's facts: rank
    and generate, or retrieve and decode.  A run trains it; `kgqa ask` and `kgqa answer` do without."""
    most_forms: int = Field(default=40, ge=1)
    """Forms that are run for a question, the likeliest first, until one finds something."""
    margin: float = Field(default=8.0, gt=0)
    """How much less than the likeliest a form may weigh, as a logarithm; what weighs less is no answer to the question,
    whatever it finds."""
    most_answers: int = Field(default=200, ge=1)
    """Names that an answer lists; a count is never cut."""
    seconds: float = Field(default=10.0, gt=0)
    """Longest run of one form; one that takes longer counts as having found nothing."""
    dates: bool = True
    """Put a date of the question on the statements that say when they hold, as a condition on their qualifiers."""
    told: int = Field(default=20, ge=1)
    """Names of a computed result that `hybrid` puts before the language model."""
    facts: bool = True
    """Keep the retrieved facts below computed results; without them a small model follows the result more often."""


class AnsweringOptions(Options):
    """The language model that answers, what it is given to read, and which questions it is asked."""

    execution: ClassVar[frozenset[str]] = frozenset({"knowledge"})

    answerer: str = "builtin"
    """A language model: `builtin`, `hf:FOLDER_OR_ID`, `openai:MODEL` or `openai:MODEL@ENDPOINT`.  `symbolic` computes
    the answers from a retriever's facts, without a model; `hybrid:MODEL` puts computed results before the facts that
    the model reads (`hybrid` alone is `hybrid:builtin`).  Both leave out `none` and `passages` of `knowledge`."""
    knowledge: tuple[str, ...] = ("none", "random", "rigel", "hop_path", "oracle")
    """What is put before the model: `retriever/format` with a retriever of `retrieval.retrievers` and a format among
    triples, template, rewritten and both; a retriever alone means its triples, `none` asks without facts, `passages`
    are those of the section `passages`, which `both` puts below the triples."""
    template: Literal["sen2023", "rra2023", "ltgen2024"] = "sen2023"
    """Wording of the prompt with knowledge, the same for every format; `ltgen2024` is a chat that shows the earlier
    turns of a dialogue and takes responses of several sentences."""
    qualifiers: bool = False
    """Triples are told with the qualifiers of their statement, `(head, relation, tail; qualifier: value)`."""
    split: Literal["test", "dev", "train"] = "test"
    """Questions that are answered; `train` needs `retrieval.training` and serves `retriever.feedback`."""
    limit: int | None = Field(default=None, ge=1)
    """Answer only so many questions, drawn with the seed; all when absent."""
    max_new_tokens: int = Field(default=32, ge=1)
    """Longest answer in tokens; of the template `ltgen2024` 128 where nothing else is said."""
    log_probabilities: bool = False
    """Keep how likely the model finds what it writes, which abstention reads.  What it wrote without is asked anew."""

    @model_validator(mode="before")
    @classmethod
    def _length_of_template(cls, given: Any) -> Any:
        if isinstance(given, Mapping) and given.get("template") == "ltgen2024" and "max_new_tokens" not in given:
            return {**given, "max_new_tokens": LTGEN_TOKENS}
        return given


class EntailmentOptions(Options):
    """How responses are compared with their references by `evaluation.nli`."""

    execution: ClassVar[frozenset[str]] = frozenset({"device"})

    max_tokens: int = Field(default=256, ge=32)
    """Tokens of a response and its reference together; longer responses are read in runs of sentences."""
    device: str = "auto"
    """`auto`, `cpu`, `cuda` or `cuda:N`."""


class EvaluationOptions(Options):
    """Scores and their intervals."""

    execution: ClassVar[frozenset[str]] = frozenset({"nli", "entailment"})

    bootstrap: int = Field(default=1000, ge=100)
    """Bootstrap samples behind each 95 % interval."""
    examples: int = Field(default=8, ge=0)
    """Worked examples in the report."""
    nli: str | None = None
    """Classifier that tells whether a response entails its reference, where questions have one: a folder or hub id of
    any HF sequence-pair classifier with the labels entailment and contradiction; `default` is that of Huang et al. 2024
    (1.7 GB).  None leaves these scores out, and so does a hub id that cannot be had."""
    entailment: EntailmentOptions = EntailmentOptions()
    """How that classifier reads."""


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


class PopularityOptions(Options):
    """How well known an entity is, for the levels of LTGen (Huang et al. 2024, section 3)."""

    execution: ClassVar[frozenset[str]] = frozenset(
        {"files", "titles", "rate", "retries", "timeout_seconds", "max_reply_mb", "user_agent"}
    )

    source: Literal["auto", "graph", "api", "dump", "table", "degree"] = "auto"
    """`api` asks the Wikimedia REST API for page views, `dump` reads published monthly files, `table` lines of
    `key<TAB>views`, `graph` takes the views that the graph was built with, `degree` counts triples.  `auto` takes
    `files` where there are any, else the graph's views, else the degree; it never asks the API."""
    files: tuple[str, ...] = ()
    """Published files of page views (one a month), or tables."""
    months: int = Field(default=1, ge=1)
    """Months that the views of a graph or of a table are the sum of; 1 where they are a month's mean already."""
    titles: str | None = None
    """A table `key<TAB>title` of Wikipedia titles; else an entity's label is taken for its title."""
    base_url: str = "https://wikimedia.org/api/rest_v1"
    """Address of the page-view API."""
    project: str = "en.wikipedia"
    """Wikipedia whose views count."""
    access: str = "all-access"
    """Views by `all-access`, `desktop`, `mobile-app` or `mobile-web`, in the API."""
    agent: str = "user"
    """Views of `user`, `spider`, `automated` or `all-agents`, in the API."""
    first_month: str = Field(default="2021-01", pattern=r"^\d{4}-(0[1-9]|1[0-2])$")
    """First month that the API is asked for."""
    last_month: str = Field(default="2023-01", pattern=r"^\d{4}-(0[1-9]|1[0-2])$")
    """Last month that the API is asked for."""
    rate: float = Field(default=10.0, gt=0)
    """Most requests a second to the API."""
    retries: int = Field(default=6, ge=0)
    """Further tries of a request to the API that failed."""
    timeout_seconds: float = Field(default=30.0, gt=0)
    """Longest wait for one reply of the API, from the first byte of the request to the last of the reply."""
    max_reply_mb: float = Field(default=1, gt=0, le=4096)
    """Largest reply of the API after decompression, in MiB."""
    user_agent: str | None = None
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
    lookups: int = Field(default=20_000, ge=1)
    """Entities, drawn with the seed, that the page-view API is asked for before a level is given up."""
    least_triples: int = Field(default=5, ge=1)
    """Entities with fewer informative triples, both ways, are left out."""
    most_triples: int = Field(default=100, ge=1)
    """Entities with more informative triples are left out."""
    informative_only: bool = True
    """Leave out relations that say little in words: identifiers, names, media, categories."""
    drop_relations: tuple[str, ...] = ()
    """Further relations to leave out, by key or label."""
    most_answers: int = Field(default=10, ge=1)
    """Entity-relation pairs with more answers make no question."""


class WritingOptions(Options):
    """Who writes the questions and dialogues of an LTGen benchmark, and what is kept."""

    execution: ClassVar[frozenset[str]] = frozenset({"kinds", "sheet_share"})

    kinds: tuple[Literal["qa", "conv"], ...] = ("qa", "conv")
    """`qa` for single questions, `conv` for dialogues."""
    writer: str = "template"
    """`template` (rules over relation labels, no model), or a model's name."""
    questions_per_entity: int = Field(default=3, ge=1)
    """Entity-relation pairs of an entity that a question is asked for."""
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
    sheet_share: float = Field(default=0.03, gt=0, le=1)
    """Share of the items that the annotation sheet holds."""

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


Training = Literal["A", "A+U"]
"""What a parser is trained on: answerable questions, or also those that have no answer."""


class GeneratorOptions(Options):
    """The generator of rank and generate: it reads a question and the best forms, and writes one (Ye et al. 2022)."""

    use: bool = False
    """Write forms; without, the ranker's order stands."""
    model: str = "scratch"
    """`scratch` (a small T5 learnt from the training questions), or a folder or hub id of a HF sequence-to-sequence or
    causal model."""
    forms: int = Field(default=10, ge=1)
    """Best forms that are read."""
    beam: int = Field(default=10, ge=1)
    """Width of the search, and forms that are written."""
    weight: float = Field(default=0.5, ge=0, le=1)
    """Weight of what the generator says beside the ranker, where both score a form."""
    executable: bool = False
    """Put the first form that finds something first, and never say that there is no form.  Off wherever abstention is
    measured, which it defeats."""
    epochs: int = Field(default=6, ge=1)
    """Passes over the training questions."""
    batch_size: int = Field(default=32, ge=1)
    """Questions in one step."""
    learning_rate: float = Field(default=1e-3, gt=0)
    """Peak learning rate of a scratch model."""
    encoder_learning_rate: float = Field(default=5e-5, gt=0)
    """Peak learning rate of a pretrained model."""
    width: int = Field(default=128, ge=16)
    """Width of a scratch model."""
    layers: int = Field(default=2, ge=1)
    """Layers of a scratch model's encoder, and of its decoder."""
    max_tokens: int = Field(default=320, ge=16)
    """Tokens that are read, question and forms."""


class DecodeOptions(Options):
    """The parser retrieve and decode: schema items are retrieved, and a form is decoded that can only be one of the
    graph's (Chen et al. 2021)."""

    execution: ClassVar[frozenset[str]] = frozenset({"checkpoint_seconds", "device"})

    learn_unanswerable: bool = True
    """Learn from questions that the graph has no form for, too (A+U): "no form" is then one of the actions."""
    failed: Literal["auto", "no form", "keep"] = "auto"
    """What is said where the best form finds nothing: `no form`, that there is none, as the paper does, or `keep`, the
    form itself, which is right where only its facts are missing.  `auto` keeps it where the parser has learnt to say
    that there is no form (A+U), and does as the paper where it cannot say so otherwise (A)."""
    model: str = "scratch"
    """What decodes: `scratch` (a small T5 that points at slots, learnt from the training questions), or a folder or hub
    id of a HF sequence-to-sequence or causal model that writes actions as text."""
    encoder: str = "scratch"
    """What retrieves: `scratch` (learnt from the training questions), `minilm` (packaged), or a folder or hub id of a
    HF encoder."""
    relations: int = Field(default=10, ge=1)
    """Relations of the graph that are retrieved for a question; those that its topics have come before others."""
    classes: int = Field(default=3, ge=0)
    """Types of the graph that are retrieved for a question; none where no gold form of the training names a type."""
    mentions: int = Field(default=4, ge=1, le=6)
    """Mentions of a question that are read as topics, the most confident ones."""
    candidates: int = Field(default=3, ge=1)
    """Entities of one mention that are tried."""
    rho_weight: float = Field(default=1.0, ge=0)
    """Weight of the logarithm of the linker's confidence in the least certain entity, beside the decoder's score."""
    beam: int = Field(default=5, ge=1)
    """Width of the search, and forms that are written down of a question."""
    most_actions: int = Field(default=24, ge=3)
    """Length of a form, in actions."""
    measured_steps: int = Field(default=2, ge=1, le=3)
    """Longest path that is ranked or compared by."""
    width: int = Field(default=96, ge=16)
    """Width of the scratch decoder."""
    layers: int = Field(default=2, ge=1)
    """Layers of the scratch decoder's encoder, and of its decoder."""
    heads: int = Field(default=4, ge=1)
    """Heads of each layer."""
    dropout: float = Field(default=0.1, ge=0, lt=1)
    """Share of the scratch decoder's values that are dropped in training, and of its words that are hidden."""
    missing: float = Field(default=0.2, ge=0, lt=1)
    """Share of the answerable questions that a step shows without a relation that they need, so that "no form" is right
    of them; only where unanswerable ones are learnt from too (A+U)."""
    scratch_width: int = Field(default=128, ge=16)
    """Width of a scratch retriever's state."""
    scratch_vocabulary: int = Field(default=3000, ge=100)
    """Tokens of the vocabularies learnt from the training questions."""
    max_tokens: int = Field(default=64, ge=8)
    """Tokens read of a question."""
    retriever_epochs: int = Field(default=4, ge=1)
    """Largest number of passes in which the retriever learns."""
    epochs: int = Field(default=20, ge=1)
    """Largest number of passes in which the decoder learns."""
    repeats: int = Field(default=2, ge=1)
    """Questions of one masked wording that a pass takes at most; each pass draws others of them."""
    patience: int = Field(default=4, ge=1)
    """Passes without a better dev score before training stops."""
    batch_size: int = Field(default=64, ge=1)
    """Questions in one step."""
    learning_rate: float = Field(default=2e-3, gt=0)
    """Peak learning rate of what is learnt from nothing."""
    encoder_learning_rate: float = Field(default=5e-5, gt=0)
    """Peak learning rate of a pretrained encoder or model."""
    checkpoint_seconds: float = Field(default=30.0, gt=0)
    """Seconds between checkpoints."""
    device: str = "auto"
    """`auto`, `cpu`, `cuda` or `cuda:N`."""


class ParsingOptions(Options):
    """The parser rank and generate: forms are enumerated, ranked and, if wanted, written (Ye et al. 2022, as
    GrailQAbility uses it)."""

    execution: ClassVar[frozenset[str]] = frozenset({"checkpoint_seconds", "device", "decode"})

    learn_unanswerable: bool = True
    """Learn from questions that the graph has no form for, too (A+U): "no form" is then ranked with the forms."""
    hops: int = Field(default=2, ge=1, le=3)
    """Longest path from a topic."""
    starts: Literal["schema", "facts"] = "schema"
    """Relations that a path may start with: those that things of the topic's types have, so that a form whose facts are
    missing is found, or the topic's own only, as RnG-KBQA."""
    most_forms: int = Field(default=4_000, ge=10)
    """Candidate forms of one reading of a question (about one of its entities, or two)."""
    mentions: int = Field(default=4, ge=1)
    """Mentions of a question that are read as topics, the most confident ones."""
    candidates: int = Field(default=3, ge=1)
    """Entities of one mention that are tried."""
    rho_weight: float = Field(default=1.0, ge=0)
    """Weight of the logarithm of the linker's confidence beside the ranker's score."""
    encoder: str = "scratch"
    """`scratch` (learnt from the training questions), `minilm` (packaged), or a folder or hub id of a HF encoder."""
    scratch_width: int = Field(default=128, ge=16)
    """Width of a scratch encoder's state."""
    scratch_vocabulary: int = Field(default=3000, ge=100)
    """Tokens of the vocabulary learnt for a scratch encoder."""
    max_tokens: int = Field(default=64, ge=8)
    """Tokens read of a question and of a form."""
    negatives: int = Field(default=95, ge=1)
    """Wrong forms beside the right one."""
    missing: float = Field(default=0.2, ge=0, le=1)
    """Share of the answerable questions that are also learnt without the forms that use some relation of the right one,
    so that "no form" is right of them; only where unanswerable ones are learnt from too (A+U)."""
    hard: float = Field(default=0.5, ge=0, le=1)
    """Share of hard ones among them in the later phase: those that the model of the first phase scores highest."""
    pruned: int = Field(default=100, ge=2)
    """Forms that are left to the ranker by the cheap first stage."""
    kept: int = Field(default=10, ge=1)
    """Forms that are written down of a question."""
    epochs: int = Field(default=3, ge=1)
    """Largest number of passes with random wrong forms."""
    hard_epochs: int = Field(default=1, ge=0)
    """Largest number of passes of the later phase."""
    patience: int = Field(default=2, ge=1)
    """Passes without a better dev score before a phase stops."""
    batch_size: int = Field(default=16, ge=1)
    """Questions in one step; equal wordings are one."""
    learning_rate: float = Field(default=8e-3, gt=0)
    """Peak learning rate of a scratch encoder and of what compares."""
    encoder_learning_rate: float = Field(default=3e-5, gt=0)
    """Peak learning rate of a pretrained encoder."""
    checkpoint_seconds: float = Field(default=30.0, gt=0)
    """Seconds between checkpoints."""
    device: str = "auto"
    """`auto`, `cpu`, `cuda` or `cuda:N`."""
    generator: GeneratorOptions = GeneratorOptions()
    decode: DecodeOptions = DecodeOptions()


class AnswerabilityOptions(Options):
    """The answerability benchmark that is built from a graph and questions (`kgqa answerability build`)."""

    execution: ClassVar[frozenset[str]] = frozenset({"parsers", "training", "topics"})

    p_u: float = Field(default=0.33, gt=0, lt=1)
    """Share of the questions that the modified graph cannot answer."""
    parts: tuple[float, float, float, float] = (0.25, 0.25, 0.25, 0.25)
    """Parts of `p_u` that drops of types, relations, entities and facts make; what one cannot fill goes to the next."""
    split_shares: tuple[float, float, float] = (0.7, 0.1, 0.2)
    """Shares of train, dev and test; each has its share `p_u`."""
    zero_shot: float = Field(default=0.5, ge=0, le=1)
    """Share of the unanswerable questions of dev and test that miss something that no training question touches."""
    full: float = Field(default=0.25, ge=0, le=1)
    """Share of the zero-shot ones of whose form training has nothing at all."""
    largest: float = Field(default=0.5, gt=0, le=1)
    """Largest share of its quota that one type or relation may take, so that there are several of a kind."""
    schema_share: float = Field(default=0.9, gt=0.5, le=1)
    """Share of the entities at one end of a relation that are of a type when the relation belongs to it."""
    limit: int | None = Field(default=None, ge=10)
    """Questions that are drawn with the seed where there are more; none draws all."""
    parsers: tuple[Literal["rng", "decode"], ...] = ("rng", "decode")
    """Parsers that `kgqa answerability evaluate` trains and scores: rank and generate, retrieve and decode."""
    training: tuple[Training, ...] = ("A", "A+U")
    """What each is trained on: answerable questions, or also those that the graph cannot answer."""
    topics: Literal["gold", "linked"] = "linked"
    """Entities that parsers start from: those that the tagger finds in the modified graph, or the annotated ones that
    are left, which give away what was dropped."""

    @field_validator("parts", "split_shares")
    @classmethod
    def _some_share(cls, shares: tuple[float, ...]) -> tuple[float, ...]:
        if min(shares) < 0 or not sum(shares):
            raise ValueError(f"shares must be 0 or more, and not all 0; they are {list(shares)}")
        return shares


class AbstentionOptions(Options):
    """When a question is not answered because the graph does not hold the answer, where retriever and language model
    answer; learnt from an answerability benchmark (`kgqa answerability abstain`)."""

    execution: ClassVar[frozenset[str]] = frozenset({"knowledge", "topics"})

    knowledge: str = "rigel"
    """What the language model reads, `retriever/format`; `ask` learns when not to answer from the same."""
    topics: Literal["linked", "gold"] = "linked"
    """Whether retrievers start from the topics that are found in the questions or from those that are given."""
    training: int = Field(default=4000, ge=10)
    """Training questions that it learns from, drawn with the seed; of each the language model is asked."""
    features: tuple[Literal["links", "facts", "model", "wording"], ...] = ("links", "facts", "model", "wording")
    """What it reads of a question: how sure linking is; what the retrievers found and whether they agree; what the
    language model said and how surely; how near the wording is to answerable training questions."""
    strength: float = Field(default=1.0, gt=0)
    """How much of its freedom the classifier gives up for simplicity (the precision of its prior)."""
    min_confidence: float | None = Field(default=None, ge=0, le=1)
    """A question is not answered where the confidence that the graph holds the answer is below; without a number it is
    the one that decides most dev questions rightly."""


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
    linking: LinkingOptions = LinkingOptions()
    retrieval: RetrievalOptions = RetrievalOptions()
    relation_ranking: RelationRankingOptions = RelationRankingOptions()
    passages: PassagesOptions = PassagesOptions()
    llm: LlmOptions = LlmOptions()
    corpus: CorpusOptions = CorpusOptions()
    rewriter: RewriterOptions = RewriterOptions()
    operator: OperatorOptions = OperatorOptions()
    symbolic: SymbolicOptions = SymbolicOptions()
    answering: AnsweringOptions = AnsweringOptions()
    evaluation: EvaluationOptions = EvaluationOptions()
    operations: OperationsOptions = OperationsOptions()
    ltgen: LtgenOptions = LtgenOptions()
    parsing: ParsingOptions = ParsingOptions()
    answerability: AnswerabilityOptions = AnswerabilityOptions()
    abstention: AbstentionOptions = AbstentionOptions()

    @model_validator(mode="after")
    def _something_to_compute_from(self) -> Profile:
        if self.computes and self.answering.knowledge and not self.knowledge:
            raise ValueError(
                f"answering.answerer {self.answering.answerer!r} computes from a retriever's facts, and "
                f"answering.knowledge names only {', '.join(self.answering.knowledge)}; add rigel or hop_path to it"
            )
        return self

    @model_validator(mode="after")
    def _known_variants(self) -> Profile:
        for name in self.answering.knowledge:
            retriever = name.partition("/")[0]
            plain, at, variant = retriever.partition("@")
            if not at:
                continue
            if at + variant != LINKED or plain in (*ALWAYS_GOLD, "none", PASSAGES):
                why = (
                    f"{plain} always starts from gold topics"
                    if at + variant == LINKED
                    else f"the one variant is {LINKED}"
                )
                raise ValueError(f"answering.knowledge {name!r} names no retriever: {why}; write {plain!r}")
            if self.retrieval.topics == "gold":
                raise ValueError(
                    f"answering.knowledge {name!r} needs linked topics; set retrieval.topics to linked or both"
                )
        return self

    @property
    def knowledge(self) -> tuple[str, ...]:
        """What the answering model reads, each `retriever/format` once, in the variants that `retrieval.topics` wants.

        Where both variants are collected, a list that names any with `@linked` itself is read as it stands.
        """
        listed = [split_knowledge(name) for name in self.answering.knowledge]
        if self.computes:
            listed = [(retriever, form) for retriever, form in listed if retriever not in ("none", PASSAGES)]
        if self.answering.answerer == SYMBOLIC:
            listed = [(retriever, "triples") for retriever, _ in listed]
        chosen = self.retrieval.topics == "both" and any(name.endswith(LINKED) for name, _ in listed)
        found: dict[str, None] = {}
        for retriever, form in listed:
            names = (retriever,) if chosen else self.retrieval.variants(retriever)
            found.update(dict.fromkeys(f"{name}/{form}" for name in names))
        return tuple(found)

    @property
    def computes(self) -> bool:
        """Whether answers are computed, alone or for a language model to read."""
        return split_answerer(self.answering.answerer)[0] != "model"

    @property
    def links_topics(self) -> bool:
        """Whether any retriever starts from linked topics."""
        return any(name.endswith(LINKED) for name in self.retrieval.collected)

    @property
    def reads_links(self) -> bool:
        """Whether anything starts or learns from linked topics, so that questions are linked."""
        return self.links_topics or (self.retriever.soft_start and "rigel" in self.retrieval.retrievers)

    @property
    def rewrites(self) -> bool:
        """Whether any knowledge is put into sentences by a language model."""
        return any(split_knowledge(name)[1] == "rewritten" for name in self.answering.knowledge)

    @property
    def reads_passages(self) -> bool:
        """Whether any knowledge holds passages, so that their corpus is needed."""
        return any(split_knowledge(name)[1] in (PASSAGES, "both") for name in self.answering.knowledge)

    @property
    def learns(self) -> bool:
        """Whether a run trains anything on the questions."""
        learners = {"rigel", "hop_path", "rank_pair", "rank_amr"}
        return bool(learners & set(self.retrieval.retrievers)) or self.trains_rewriter or self.computes

    @property
    def hop_limits(self) -> list[tuple[str, int | None]]:
        """The largest numbers of hops of the retrievers that a run trains, by key; None is not set."""
        limits = {
            "rigel": ("retriever.hops", self.retriever.hops),
            "hop_path": ("hop_path.max_hops", self.hop_path.max_hops),
        }
        return [limit for name, limit in limits.items() if name in self.retrieval.retrievers]

    @property
    def needed_splits(self) -> dict[str, str]:
        """The splits in which a run needs questions, each with what for."""
        needs = (
            {"train": "models learn from it", "dev": "it chooses the best pass of a training"} if self.learns else {}
        )
        return needs | {self.answering.split: "its questions are answered and scored"}

    @property
    def trains_rewriter(self) -> bool:
        """Whether the model that puts knowledge into sentences is trained for it, so that a corpus is needed."""
        return self.rewrites and self.rewriter.adapt


def split_knowledge(name: str) -> tuple[str, str]:
    """Retriever and format of a `knowledge` entry: `rigel` is `("rigel", "triples")`, `none` is `("none", "none")`,
    `passages` is `("passages", "passages")`.

    Raises ConfigError for a format that is unknown.
    """
    retriever, slash, form = name.partition("/")
    own = {"none": "none", PASSAGES: PASSAGES}
    if not slash or (retriever == "none" and not form):
        form = own.get(retriever, "triples")
    if (form not in (*FORMATS, PASSAGES)) or own.get(retriever) != (form if form in own.values() else None):
        raise ConfigError(
            f"answering.knowledge {name!r} has no known format; write none, passages, or retriever/format with a "
            f"format among {', '.join(FORMATS[1:])}"
        )
    return retriever, form


def split_answerer(spec: str) -> tuple[Literal["model", "symbolic", "hybrid"], str | None]:
    """How an answerer works and the name of its language model, None for `symbolic`.

    >>> split_answerer("hybrid"), split_answerer("symbolic"), split_answerer("openai:gpt")
    (('hybrid', 'builtin'), ('symbolic', None), ('model', 'openai:gpt'))
    """
    kind, colon, model = spec.strip().partition(":")
    if kind == SYMBOLIC and not colon:
        return "symbolic", None
    if kind == HYBRID:
        return "hybrid", model or "builtin"
    return "model", spec


def split_retriever(name: str) -> tuple[str, bool]:
    """A retriever's plain name, and whether it starts from linked topics: `rigel@linked` is `("rigel", True)`."""
    return name.removesuffix(LINKED), name.endswith(LINKED)


def check_knowledge(wanted: Iterable[str], collected: Iterable[str]) -> None:
    """Raise ConfigError when the language model is to be given facts that no configured retriever collects."""
    there = sorted(collected)
    for name in wanted:
        retriever, _ = split_knowledge(name)
        if retriever not in ("none", PASSAGES) and retriever not in there:
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
        if PASSWORD.search(setting):
            raise ConfigError(
                f"--set {key.partition(':')[0]}: the value holds an address with a password, which others can read in "
                "the list of processes and in the records of runs; put it into the environment (an endpoint's key into "
                "the variable that llm.endpoints.NAME.key_env names, MLflow's address into MLFLOW_TRACKING_URI)"
            )
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
            elif error["type"] == "value_error":
                lines.append(f"{key}: {error['ctx']['error']}".removeprefix(": "))
            else:
                lines.append(f"{key}: {error['msg']}, but it is {error['input']!r}")
        raise ConfigError(f"{origin} has {len(lines)} fault(s):\n  " + "\n  ".join(lines)) from None


def read_profile(path: Path) -> dict[str, Any]:
    """The nested mapping of a profile file.  Raises ConfigError."""
    text = read_document(path, ConfigError, MAX_PROFILE, "sections such as kg and questions")
    try:
        nodes = _nodes(yaml.compose(text, yaml.SafeLoader), {})
        if nodes > MAX_NODES:
            raise ConfigError(
                f"profile {path} expands to more than {MAX_NODES:,} values by its anchors; write out what it means"
            )
        tree = yaml.safe_load(text)
    except yaml.YAMLError as fault:
        raise ConfigError(f"profile {path} cannot be read: {fault}") from None
    except RecursionError:
        raise ConfigError(f"profile {path} is nested too deeply; sections hold keys, and keys values") from None
    if not isinstance(tree, dict):
        raise ConfigError(f"profile {path} must be a mapping of sections, but it is {type(tree).__name__}")
    return tree


def _nodes(node: Any, known: dict[int, float]) -> float:
    """Values of a YAML document with its aliases written out; without end where an alias holds itself."""
    if node is None or isinstance(node, yaml.ScalarNode):
        return 1
    if id(node) not in known:
        known[id(node)] = math.inf
        parts = [part for pair in node.value for part in (pair if isinstance(pair, tuple) else (pair,))]
        known[id(node)] = 1 + sum(_nodes(part, known) for part in parts)
    return known[id(node)]


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
