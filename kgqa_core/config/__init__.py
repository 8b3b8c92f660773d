"""Every parameter of a run, documented under its field and checked before anything starts.

A profile is a YAML file that binds to `Profile`; `--set section.key=value` overrides single keys.  Each section has a
module here.
"""

from __future__ import annotations

from kgqa_core.config.answerability import AbstentionOptions, AnswerabilityOptions, Training
from kgqa_core.config.answering import AnsweringOptions, SymbolicOptions
from kgqa_core.config.base import EncoderOptions, Execution, LayeredEncoderOptions, Options, TrainingOptions
from kgqa_core.config.evaluation import EntailmentOptions, EvaluationOptions
from kgqa_core.config.experiment import (
    AGENT,
    AUTO,
    CONSTRAINED,
    PASSAGES,
    TOPICS,
    Answerer,
    Experiment,
    Knowledge,
    RetrieverVariant,
)
from kgqa_core.config.exploring import AgentOptions, ConstrainedOptions
from kgqa_core.config.generated_questions import GeneratedQuestionsOptions, KindShares, NoiseOptions
from kgqa_core.config.kg import DkgOptions, KgOptions, OwnNames
from kgqa_core.config.label_parser import LabelParserOptions
from kgqa_core.config.linking import LinkerEndpoint, LinkingOptions
from kgqa_core.config.llm import BudgetOptions, Endpoint, LlmOptions, Price
from kgqa_core.config.ltgen import LtgenOptions, PopularityOptions, SamplingOptions, WritingOptions
from kgqa_core.config.operations import OperationsOptions, RunnerOptions
from kgqa_core.config.parsing import DecodeOptions, GeneratorOptions, ParsingOptions, RngOptions
from kgqa_core.config.passages import PassagesOptions
from kgqa_core.config.profile import Profile, known_keys
from kgqa_core.config.questions import QuestionsOptions, QuestionSource
from kgqa_core.config.read import make_profile, parse_profile, parse_settings, read_profile, recorded_profile
from kgqa_core.config.retrieval import (
    HopPathOptions,
    KapingOptions,
    RelationRankingOptions,
    RetrievalOptions,
    RigelOptions,
    TransferNetOptions,
)
from kgqa_core.config.rewriting import CorpusOptions, RewriterOptions
from kgqa_core.config.sources import Neo4jOptions, PropertyGraphOptions, SparqlGraphOptions, TableOptions
from kgqa_core.config.subset import SparqlEndpointOptions, SubsetOptions
from kgqa_core.config.tracking import TrackingOptions
