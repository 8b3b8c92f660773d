"""Options of the questions that are made from a graph alone, and of the way in which people type."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from kgqa_core.config.base import Execution, Options

GRAILQA_KINDS = (
    "one_hop", "two_hops", "typed", "intersection", "count", "best_of_path", "best_of_type", "best_of_typed_path",
    "bounds",
)  # fmt: skip
"""Kinds of questions whose forms GrailQA writes."""

Rate = Annotated[float, Field(ge=0, le=1)]


class NoiseOptions(Options):
    """How often each change is made to the text of a question that is to read as if somebody had typed it."""

    share: Rate = 0.7
    """Share of the questions that are changed at all; the other rates are of these."""
    synonyms: Rate = 0.15
    """Another word for a relation or a type."""
    relative_clauses: Rate = 0.1
    """`whose R is X` as `with R X` or `that has X as R`."""
    passive: Rate = 0.1
    """`who directed X` as `X was directed by whom`."""
    imperative: Rate = 0.12
    """`what are …` as `list …`, `name …`, `give me …`."""
    question_words: Rate = 0.25
    """Leading question words left out: `the capital of X`, `capital of X`."""
    telegraphic: Rate = 0.12
    """`capital of X` as `capital X` or `X capital`."""
    keywords: Rate = 0.08
    """All function words left out."""
    articles: Rate = 0.12
    """Articles left out."""
    contractions: Rate = 0.25
    """`what is` as `what's` or `whats`."""
    abbreviations: Rate = 0.06
    """Common short forms of words."""
    numerals: Rate = 0.4
    """`second` as `2nd`, `two` as `2`, and back."""
    preambles: Rate = 0.15
    """Politeness and talk before or after the question."""
    typing_errors: Rate = 0.12
    """Questions with typing errors."""
    word_errors: Rate = 0.2
    """Of these, share of the words of five letters or more that have one; of words of names a third of that."""
    lower_case: Rate = 0.5
    """All in lower case, names too."""
    apostrophes: Rate = 0.15
    """Apostrophes left out."""
    punctuation: Rate = 0.6
    """The mark at the end left out."""

    @classmethod
    def none(cls) -> NoiseOptions:
        """Options that change nothing."""
        return cls(**{name: 0.0 for name in cls.model_fields})


class KindShares(Options):
    """How many questions of each kind are made, relative to each other; 0 makes none."""

    one_hop: float = Field(default=28, ge=0)
    """What a relation leads to from an entity, either way."""
    two_hops: float = Field(default=16, ge=0)
    """Two relations in a row."""
    three_hops: float = Field(default=5, ge=0)
    """Three relations in a row."""
    siblings: float = Field(default=7, ge=0)
    """What shares a value with an entity, without that entity itself."""
    typed: float = Field(default=8, ge=0)
    """Members of a type that a path leads to."""
    members: float = Field(default=1, ge=0)
    """All members of a type."""
    intersection: float = Field(default=9, ge=0)
    """What two or three conditions hold of."""
    union: float = Field(default=1, ge=0)
    """What one of two conditions holds of."""
    difference: float = Field(default=3, ge=0)
    """What one condition holds of and another does not."""
    count: float = Field(default=6, ge=0)
    """How many there are."""
    best_of_path: float = Field(default=4, ge=0)
    """The best by a measure of what a path leads to."""
    best_of_type: float = Field(default=3, ge=0)
    """The best by a measure of all members of a type."""
    best_of_typed_path: float = Field(default=3, ge=0)
    """The best by a measure of the members of a type that a path leads to."""
    ordinal: float = Field(default=4, ge=0)
    """The second, third, … by a measure, of the same three kinds of sets."""
    comparative: float = Field(default=5, ge=0)
    """Which of two entities has more."""
    bounds: float = Field(default=5, ge=0)
    """Members of a type, or of what a path leads to, with a value above or below a bound."""
    yes_no: float = Field(default=7, ge=0)
    """Whether something is so; half of them are not."""
    existence: float = Field(default=2, ge=0)
    """Whether there is anything of that description."""
    total: float = Field(default=0, ge=0)
    """The sum of a measure of the members of a set."""
    average: float = Field(default=0, ge=0)
    """Its average."""
    greatest_value: float = Field(default=0, ge=0)
    """The largest number or the last date of the members of a set."""
    least_value: float = Field(default=0, ge=0)
    """The smallest number or the first date."""
    share: float = Field(default=0, ge=0)
    """How many percent of a set a condition holds of."""
    first_k: float = Field(default=0, ge=0)
    """The first few of a ranking."""
    group: float = Field(default=0, ge=0)
    """How many members there are, or a sum of theirs, for each value of a relation; the values of each member."""
    qualified: float = Field(default=2, ge=0)
    """Statements with a qualifier, where the graph has them."""
    after_best: float = Field(default=0, ge=0)
    """What a relation leads to from the best of a set."""
    absence: float = Field(default=0, ge=0)
    """Members of a set that have nothing of a relation."""
    text_value: float = Field(default=0, ge=0)
    """Members of a set whose value is a word or two, or true or false."""
    empty: float = Field(default=0, ge=0)
    """Questions whose answer is none, or 0, of conditions that hold of other things."""


class GeneratedQuestionsOptions(Options):
    """Questions made from a graph alone (`kgqa questions generate`, and a run without a question file)."""

    size: int = Field(default=5_000, ge=10)
    """Questions to make; fewer where the graph is too small for as many that differ."""
    writer: str = "template"
    """`template` (a grammar over labels, no model), or a model's name, `openai:MODEL` or `hf:FOLDER_OR_ID`."""
    shares: KindShares = KindShares()
    """Kinds of questions."""
    forms: Literal["plain", "grailqa"] = "plain"
    """How forms are written: `plain`, or as GrailQA does, every set with the type of its members, `(AND class …)`;
    kinds of questions that GrailQA's forms do not write are not made then."""
    unanswerable: float = Field(default=0.15, ge=0, lt=1)
    """Share of all questions that the graph cannot answer."""
    max_answers: int = Field(default=200, ge=1)
    """Questions with more answers are dropped; counts are exempt."""
    read_back: int = Field(default=10, ge=0)
    """A question is left out where none of the first so many candidates of the packaged head start gives its answer;
    0 leaves none out.  English questions with plain forms only."""
    min_per_relation: int = Field(default=3, ge=0)
    """Questions of one hop that every usable relation gets, where there is room, before the kinds are filled."""
    patience: int = Field(default=400, ge=1)
    """Draws in a row that give no new question after which no more of a kind are made."""
    max_ties: int = Field(default=3, ge=1)
    """Largest number of equal best answers."""
    max_random_hit: Rate = 1.0
    """Questions are dropped where `random_facts` random triples of their topics name an answer with a probability above
    this; 1 drops none.  Counts, and yes or no, have no answer that a triple names."""
    random_facts: int = Field(default=10, ge=1)
    """Triples that `max_random_hit` draws; as many as the retriever `random` retrieves, `retrieval.k`."""
    max_answer_share: Annotated[float, Field(gt=0, le=1)] = 1.0
    """Largest share of the questions that any one answer, an entity, value or count, may be in; 1 drops none.  Yes and
    no are always about as frequent as each other."""
    noise: NoiseOptions = NoiseOptions()
    """How the text is made to read as people type."""
    split_shares: tuple[float, float, float] = (0.8, 0.1, 0.1)
    """Shares of train, dev and test; no form with its entities is in two of them."""
    split_by: Literal["form", "topics"] = "form"
    """What no two splits share: `form`, the entities with their relation paths; `topics`, the set of topic entities, so
    that no test question starts where a training question of the same topics does."""
    language: str = "auto"
    """Language of the grammar: `en`, `zh`, or `auto` by the labels of the relations."""
    repeat: int = Field(default=5, ge=1)
    """How often each real training question counts beside the generated ones, where a run has a few of both."""
    max_new_tokens: Execution[int] = Field(default=128, ge=16)
    """Longest completion of a writing model in tokens."""

    @model_validator(mode="after")
    def _usable(self) -> GeneratedQuestionsOptions:
        if self.language not in ("auto", "en", "zh"):
            raise ValueError(f"language {self.language!r} has no grammar; use auto, en or zh")
        if min(self.split_shares) < 0 or not sum(self.split_shares):
            raise ValueError(f"split_shares must be 0 or more, and not all 0; they are {list(self.split_shares)}")
        if not any(self.shares.model_dump().values()):
            raise ValueError("shares are all 0, so that no question would be made; set some of them above 0")
        if self.forms == "grailqa" and not any(self.shares.model_dump()[kind] for kind in GRAILQA_KINDS):
            raise ValueError(
                f"GrailQA's forms write {', '.join(GRAILQA_KINDS)}, and these have no share; set one above 0"
            )
        return self
