"""What a run is going to ask of its language models, before anything is paid.

Stages that ask no model are run and kept, so that the prompts of the others are known; of a training with `max_steps`
only the first steps, which say how long it takes.  Of the others the library's own functions run in a scratch folder
against models that record what would be sent (`llm.forecast.Recorder`).  A pilot sends a few of the prompts first,
under the budget and on the accounts of the stages, and is kept for the run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any

from prefect import flow

from kgqa_core.answering.forecast import ExplorationLimits, forecast_exploration, typical_answer
from kgqa_core.answering.registry import answerer_spec, knowledge_spec, model_spec
from kgqa_core.config import AUTO, Knowledge, Profile
from kgqa_core.datasets.files.question import read_questions
from kgqa_core.llm.factory import load_model
from kgqa_core.llm.forecast import Assumed, Pilot, Recorder, Row, Sent, StagePlan, at_endpoint, recorded
from kgqa_core.llm.protocol import LanguageModel
from kgqa_core.monitor import QUIET, Monitor
from kgqa_core.rewriting.forecast import pilot_corpus, plan_corpus
from kgqa_core.store.artifacts import ArtifactRef, content_digest, read_manifest
from kgqa_core.store.home import read_run
from kgqa_core.workspace import Workspace
from tasks.answering import answer, answer_computed, compute, compute_all, compute_calls, explore, sample_of
from tasks.engine.artifacts import RunArtifacts
from tasks.engine.run import Run, tracked_run
from tasks.engine.stage import Stage
from tasks.evaluation import judge_answers
from tasks.kg import build_kg, export_dkg
from tasks.linking import link_topics
from tasks.passages import passages_of
from tasks.questions import questions_of
from tasks.retrieval import paid_model, retrieve, retrieve_calls, train_retrievers, untrained
from tasks.rewriting import finetune_rewriter, generate_corpus, sentence_request, write_knowledge, write_sentences

SHORT = 100
"""Steps that are done of a training with `max_steps` to measure its speed, where it is longer and not finished."""


@flow(name="kgqa-forecast", flow_run_name="forecast {profile.kg.name}/{profile.questions.name}")
def forecast(profile: Profile, pilot: int = 0) -> list[StagePlan]:
    """The plan of every stage of a profile that asks a language model, in the order of the pipeline.

    Of several question sets the plans of each follow each other, with the set's name; what is paid for one is not
    planned again for the next.  pilot: questions of each stage that are asked first, at endpoints only.
    Raises what the stages raise, with a pilot also BudgetReached and EndpointError.
    """
    with tracked_run(profile, several=True) as run:
        plans: list[StagePlan] = []
        sent: dict[int | None, Sent] = {None: {}, 0: {}, 1: {}}
        for own in profile.each_set:
            for plan in _plans(own, run, sent, pilot):
                name = f"{own.questions.name}: {plan.stage}" if profile.further_questions else plan.stage
                plans.append(replace(plan, stage=name))
        run.save(status="forecast")
        return plans


def _plans(profile: Profile, run: Run, sent: dict[int | None, Sent], pilot: int) -> list[StagePlan]:
    """The plans of one question set.  sent: of the sets before."""
    kg = build_kg(profile.kg)
    dkg = export_dkg(kg, profile.dkg)
    questions = questions_of(kg, profile)
    plans: list[StagePlan] = []
    if long := untrained(kg, dkg, questions, profile, SHORT):
        profile = profile.model_copy(
            update={key: getattr(profile, key).model_copy(update={"max_steps": SHORT}) for key in long}
        )
    retrievers = train_retrievers(kg, dkg, questions, profile)
    plans += [_training(run, ref, profile, name, long[name]) for name, ref in retrievers.items() if name in long]
    artifacts = link_topics(RunArtifacts(kg, dkg, questions, retrievers), profile)
    with TemporaryDirectory() as scratch:
        facts, unpaid = _facts(run, artifacts, profile, sent, Path(scratch))
        plans += unpaid
        return plans + _reading_plans(run, artifacts, facts, profile, sent, pilot)


def _facts(
    run: Run, artifacts: RunArtifacts, profile: Profile, sent: dict[int | None, Sent], scratch: Path
) -> tuple[dict[str, ArtifactRef], list[StagePlan]]:
    """The facts of every retriever, and the plans of those that ask a model and are not finished.

    The facts of these are what stands for the model's rankings leads to, in a folder of `scratch`.
    """
    facts: dict[str, ArtifactRef] = {}
    plans: list[StagePlan] = []
    for name, call in retrieve_calls(artifacts, profile).items():
        model = paid_model(name, profile)
        if model is None or retrieve.find(*call) is not None:
            facts[name] = retrieve(*call)
            continue
        facts[name], recorded_plans = _unpaid_facts(run, name, model, call, sent, scratch)
        plans += recorded_plans
    return facts, plans


def _unpaid_facts(
    run: Run, name: str, model: str, call: tuple[Any, ...], sent: dict[int | None, Sent], scratch: Path
) -> tuple[ArtifactRef, list[StagePlan]]:
    """The facts of one retriever behind recorded rankings, and its plan."""
    outs: dict[int | None, Path] = {}
    *_, llm, _ = call

    def record(end: int | None) -> list[Row]:
        first = Assumed(length="rankings that name an entity's first relations")
        recorder = Recorder(f"facts {name}", model, llm, end, first, sent=sent[end])
        out = outs[end] = Path(mkdtemp(dir=scratch))
        retrieve.body(Workspace(out, out, run.home.cache, model=recorder), *call)
        return [recorder]

    plans = recorded(record, sent)
    return ArtifactRef(kind="facts", path=str(outs[None]), digest=content_digest(outs[None])), plans


def _reading_plans(
    run: Run, artifacts: RunArtifacts, facts: dict[str, ArtifactRef], profile: Profile, sent: dict[int | None, Sent],
    pilot: int,
) -> list[StagePlan]:  # fmt: skip
    """The plans of the stages behind retrieval."""
    kg, dkg, questions = artifacts.kg, artifacts.dkg, artifacts.questions
    plans: list[StagePlan] = []
    rewriter = None
    if profile.trains_rewriter:
        given = (profile.corpus, profile.llm, profile.seed)
        if (corpus := generate_corpus.find(kg, dkg, questions, *given)) is not None:
            plans.append(_finished("corpus", profile.corpus.teacher))
            rewriter = finetune_rewriter.find(corpus, profile.rewriter, profile.seed)
        else:
            folders = (kg.folder, dkg.folder, questions.folder, *given)
            if pilot:
                budget = run.budget(generate_corpus.account(kg, dkg, questions, *given))
                with run.monitor("pilot") as monitor:
                    workspace = Workspace(run.home.root, cache=run.home.cache, monitor=monitor, budget=budget)
                    pilot_corpus(workspace, *folders, pilot)
            plans += plan_corpus(*folders, run.home.cache)
    passages = passages_of(questions, profile)
    experiments = []
    for own in profile.each_answerer:
        options, spec = own.answering, answerer_spec(own.answering.answerer)
        computed: dict[str, ArtifactRef] = {}
        calls: dict[str, Any] = {}
        if own.computes and own.symbolic.chooser:
            calls = compute_calls(artifacts, facts, own)
            computed = {name: ref for name, call in calls.items() if (ref := compute.find(*call))}
        elif own.computes and profile.evaluation.judge:
            computed = compute_all(artifacts, facts, own)
        for name in own.knowledge:
            read, form = Knowledge.parse(name), knowledge_spec(name)
            variant = str(read.variant)
            each = _Experiment(own, f"{variant}/{read.format}", facts.get(variant), computed.get(variant))
            each.choosing = calls.get(variant, ())
            if spec.explores:
                started = artifacts.questions_for(variant)
                call = (started, variant, options.answerer, spec.section(own), own.llm, sample_of(own))
                explored = explore.find({"kg": kg, "dkg": dkg}, *call)
                each.answers = explored and answer_computed(explored, name, options.answerer)
                limits = spec.section(own)
                if isinstance(limits, ExplorationLimits):
                    most = forecast_exploration(
                        questions=started.folder, name=name, options=options, limits=limits, llm=own.llm,
                        seed=own.seed,
                    )  # fmt: skip
                    each.plan = _finished(most.stage, options.answerer) if explored else most
            elif not spec.reads:
                each.answers = each.computed and answer_computed(each.computed, name, spec.name)
            elif not form.rewriter and (form.facts or form.passages):
                each.knowledge = write_knowledge(kg, questions, each.facts, passages, None, name, own)
            elif form.rewriter:
                absent = ArtifactRef(kind="rewriter", path="", digest="") if own.rewriter.adapt else None
                request = sentence_request(name, own)
                each.sentences = (kg, questions, facts[variant], rewriter or absent, request, own.rewriter, own.llm)
                each.knowledge = write_sentences.find(*each.sentences)
            if spec.reads or spec.explores or each.answers is not None or each.choosing:
                experiments.append(each)
    if pilot:
        with run.monitor("pilot") as monitor:
            _Recording(run, profile, questions, None, {}, pilot, monitor).rows_of(experiments)
    return plans + recorded(
        lambda end: _Recording(run, profile, questions, end, sent[end]).rows_of(experiments), sent
    )  # fmt: skip


@dataclass
class _Experiment:
    """One kind of knowledge with one answerer; an artifact is None where a model has to make it first.

    profile: with this answerer alone.  name: `retriever/format`.  sentences: the arguments of `write_sentences`, where
    a model writes the knowledge.  choosing: those of `compute`, where a model chooses plans.  plan: of answers that are
    not recorded.
    """

    profile: Profile
    name: str
    facts: ArtifactRef | None
    computed: ArtifactRef | None
    sentences: tuple[Any, ...] = ()
    choosing: tuple[Any, ...] = ()
    knowledge: ArtifactRef | None = None
    answers: ArtifactRef | None = None
    plan: StagePlan | None = None


@dataclass
class _Recording:
    """The stages of a question set from knowledge to verdicts, recorded at one end of a range, or piloted."""

    run: Run
    profile: Profile
    questions: ArtifactRef
    end: int | None
    sent: Sent
    pilot: int = 0
    monitor: Monitor = QUIET

    def rows_of(self, experiments: Sequence[_Experiment]) -> list[Row]:
        """A row for each stage that asks a model, the last one for the judge."""
        self.rows: list[Row] = []
        self.assumed = Assumed(
            typical_answer(read_questions(self.questions.folder)),
            "answers as long as the median gold answer",
            "knowledge not written yet, its length is a guess",
        )
        judge, llm = self.profile.evaluation.judge, self.profile.llm
        with TemporaryDirectory() as self.scratch:
            answers = [(each.name, *self._answers(each)) for each in experiments]
            if judge is not None and not self.pilot:
                unwritten = "answers not written yet, as long as the median gold answer and all different"
                verdicts = Assumed("yes", "verdicts of one token", unwritten)
                readers = [reader for _, _, reader in answers if reader is not None]
                recorder = Recorder("judged", judge, llm, self.end, verdicts, reads=readers)
                self.rows.append(recorder)
                for name, ref, reader in answers:
                    if reader is not None and self.end != 0:  # at best all experiments give the same answers
                        recorder.sent = {}
                    self._fill(judge_answers, recorder, self.questions, ref, name, judge, llm)
        return self.rows

    def _answers(self, each: _Experiment) -> tuple[ArtifactRef, Recorder | None]:
        """The answers of an experiment, or what stands for them, with the recorder of these."""
        own, llm, answerer = each.profile, each.profile.llm, each.profile.answering.answerer
        reads, knowledge, writers = answerer_spec(answerer).reads, each.knowledge, list[Recorder]()
        if each.plan is not None:
            self.rows.append(each.plan)
        if each.sentences and knowledge is not None:
            self.rows.append(_finished(f"knowledge {each.name}", own.rewriter.base))
        elif each.sentences:
            stage, texts = f"knowledge {each.name}", Assumed(length="texts as long as the template's")
            known = not own.rewriter.adapt
            writers.append(Recorder(stage, own.rewriter.base, llm, self.end, texts, known=known, sent=self.sent))
            self.rows += writers
            knowledge = self._fill(write_sentences, *writers, *each.sentences, pays=not own.rewriter.adapt)
        call = (self.questions, knowledge, each.name, own.answering, llm, own.seed)
        answers = each.answers
        if each.choosing:
            stage, spec = f"computed {each.name}", str(own.symbolic.chooser)
            if answers is not None:
                self.rows.append(_finished(stage, spec))
                return answers, None
            chooser = Recorder(stage, spec, llm, self.end, Assumed(length="replies that name a plan"), sent=self.sent)
            self.rows.append(chooser)
            computed = self._fill(compute, chooser, *each.choosing, pays=True)
            return self._fill(answer_computed, chooser, computed, each.name, AUTO), chooser
        if reads and not writers and (answers := answer.find(*call)) is not None:
            self.rows.append(_finished(f"answers {each.name}", answerer))
        if answers is not None:
            return answers, None
        stage, sent = f"answers {each.name}", self.sent if reads else None
        reader = Recorder(stage, model_spec(answerer), llm, self.end, self.assumed, reads=writers, sent=sent)
        self.rows += [reader] * reads
        return self._fill(answer, reader, *call, pays=reads and not writers), reader

    def _fill(self, stage: Stage[Any], recorder: Recorder, *call: Any, pays: bool = False) -> ArtifactRef:
        """What the body of a stage writes into the scratch folder with a recorder, or with the pilot where it pays."""
        model: LanguageModel | None = recorder
        if self.pilot and pays and at_endpoint(recorder.name):
            budget = self.run.budget(stage.account(*call))
            model = Pilot(load_model(recorder.name, recorder.llm, budget=budget), self.pilot, self.profile.seed)
        out = Path(mkdtemp(dir=self.scratch))
        stage.body(Workspace(out, out, self.run.home.cache, self.monitor, model=model), *call)
        return ArtifactRef(kind=stage.options.kind, path=str(out), digest="")


def _training(run: Run, trained: ArtifactRef, profile: Profile, name: str, steps: int) -> StagePlan:
    """The plan of a training at the speed of its first `SHORT` steps, which `trained` is of."""
    earlier = read_run(run.home.root, str(read_manifest(trained.folder)["run_id"])) or {"stages": []}
    timed = [(stage.artifact.digest, stage.seconds) for stage in run.stages if stage.artifact is not None]
    timed += [(stage["artifact"]["digest"], stage["seconds"]) for stage in earlier["stages"] if stage["artifact"]]
    took = max(seconds for digest, seconds in timed if digest == trained.digest)
    text = f"{steps:,} steps at the speed of the first {SHORT}; facts are those of a retriever that had no more steps"
    encoder = getattr(profile, name).encoder
    return StagePlan(f"training {name}", encoder, 0, 0, 0, seconds=took * steps / SHORT, assumptions=(text,))


def _finished(stage: str, model: str) -> StagePlan:
    """The plan of a stage whose artifact is there."""
    return StagePlan(stage, model, 0, 0, 0, assumptions=("the stage is finished",))
