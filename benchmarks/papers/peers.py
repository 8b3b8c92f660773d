"""Peers' methods as they run here: an agent over the graph, graph-constrained decoding, TransferNet.

    python -m benchmarks.papers.peers --work DIR --shared ../shared [--only agent|gcr|gcr_trained|atlas|metaqa|minilm …]
        [--questions N] [--train N] [--json benchmarks/results/peers.json]
        [--transcripts benchmarks/results/peers_transcripts.txt]

Only dev questions are answered and measured; test questions are removed before anything reads them.

agent: an endpoint on loopback whose model is a script (tests/support/scripted_agent.py), over Atlas, with each policy
and protocol, once well-behaved and once with replies that cannot be read; tokens as the builtin model's tokenizer
counts them.  How often the script is right is no figure of any language model and is not given.
gcr: the builtin model, and a Llama of random weights made here, over Atlas; `paths_of_graph`: share of decoded paths
whose every step was found in the graph again; `hits_at_1` of dev questions: of models that were not trained for it, the
builtin one on reading facts, the other on nothing.
gcr_trained: the builtin model after two passes over gold paths of training questions (half of `--train`), as the
published method trains its model.
atlas, metaqa: rigel, hop_path and transfernet trained on the same training questions (a seeded sample of `--train`
where there are more) with a small encoder learnt from them, and the baselines; hits_at_1 of the first entity over the
dev questions, at most 1,500, and seconds of training, which ends when five epochs brought nothing or after 36 (more
where these are fewer than 300 steps).  metaqa learns from nine tenths of its dev set and is measured on the other.
minilm: TransferNet with the packaged encoder beside that, on Atlas.
"""

from __future__ import annotations

import argparse
import json
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import results_file
from benchmarks.answers.auto_work import Work
from benchmarks.conditions import ROOT, conditions
from benchmarks.papers.peers_paths import train_path_model
from benchmarks.results_file import fields_below
from kgqa_core.answering.exploration import Exploration
from kgqa_core.answering.explore import counts_of
from kgqa_core.config import (
    AgentOptions,
    ConstrainedOptions,
    HopPathOptions,
    LlmOptions,
    RetrievalOptions,
    RigelOptions,
    TransferNetOptions,
)
from kgqa_core.datasets.question import write_questions
from kgqa_core.dkg.csr import Dkg
from kgqa_core.dkg.export import export
from kgqa_core.kg.store import KgStore
from kgqa_core.kg.verbalise import Wording
from kgqa_core.llm.builtin.model import load_builtin
from kgqa_core.llm.hf import HFModel
from kgqa_core.llm.openai_api import OpenAIModel
from kgqa_core.llm.tokens import counter
from kgqa_core.monitor import Log
from kgqa_core.papers.peers.agent.explorer import GraphAgent
from kgqa_core.papers.peers.agent.operations import NamedGraph
from kgqa_core.papers.peers.constrained.explorer import ConstrainedReasoner
from kgqa_core.retrieval.api import TrainingInputs
from kgqa_core.retrieval.collect import collect
from kgqa_core.retrieval.registry import RETRIEVERS
from kgqa_core.types import Question
from tests.support.chat_server import ChatServer
from tests.support.models import save_random_reader
from tests.support.scripted_agent import ScriptedAgent

FIELDS = ("benchmark", *fields_below("results/*"), "results/*/rows/...")
"""What the result file holds (benchmarks/results_file.py)."""
SEED = 7
ATTEMPTS = 3
SHOWN_TRANSCRIPTS = 2
MISCHIEF = {1: "garbled", 2: "stranger", 3: "no call", "choose_relations": "garbled", "judge": "refusal"}
"""What the misbehaving script does: at some replies of the loop, and at prunings and judgements of the beam."""
MOST_DEV = 1_500
"""Dev questions that a retriever is measured on, drawn by the seed where there are more."""
UNTIL_NO_BETTER: dict[str, Any] = {"epochs": 36, "patience": 5, "batch_size": 32}
"""Of all three retrievers, so that each trains until its dev score no longer improves."""
SCRATCH: dict[str, Any] = {"encoder": "scratch", "device": "cpu"}
log = logging.getLogger("kgqa")

Part = dict[str, Any]


class Bench:
    """What the parts share.  questions: of the agent and of constrained decoding.  train: to train with, at most."""

    def __init__(self, work: Work, questions: int, train: int, transcripts: Path) -> None:
        self.work, self.questions, self.train, self.transcripts = work, questions, train, transcripts
        self.texts: list[str] = []

    def dkg(self, graph: str) -> Path:
        """Folder of the arrays of a graph."""
        folder = self.work.folder / f"dkg-{self.work.kg(graph).name}"
        if not (folder / "meta.json").is_file():
            folder.mkdir(parents=True, exist_ok=True)
            export(folder, kg=self.work.kg(graph))
        return folder

    def sample(self, graph: str) -> list[Question]:
        """Dev questions without an operation that an annotated relation path answers, drawn by the seed."""
        dev = [one for one in self.work.split(graph, "dev") if one.complexity in ("generic", "multi-hop")]
        fit = [one for one in dev if one.topic_entities and one.answers and one.relation_paths]
        return self.work.sample(fit, self.questions, "peers")

    def note(self, title: str, questions: Sequence[Question], found: Sequence[Exploration], store: KgStore) -> None:
        """Keeps transcripts of the first questions of a part."""
        for question, one in list(zip(questions, found, strict=True))[:SHOWN_TRANSCRIPTS]:
            proof = Wording(store, list(one.facts), qualifiers=True).texts([(triple, 1) for triple in one.facts[:5]])
            lines = [f"## {title}", f"question: {question.text}", *(f"  {step}" for step in one.steps)]
            lines += [f"answers: {', '.join(one.names[:8]) or '(none)'} [{one.end}]"]
            lines += [f"calls: {one.calls}, tokens: {one.prompt_tokens} + {one.completion_tokens}"]
            self.texts.append("\n".join([*lines, *(f"  proof: {text}" for text in proof)]))


def agent(bench: Bench) -> Mapping[str, Part]:
    """The agent, each policy in each protocol, well-behaved and not."""
    graph, store = Dkg.open(bench.dkg("atlas")), KgStore.open(bench.work.kg("atlas"))
    questions, count = bench.sample("atlas"), counter("builtin", LlmOptions())[0]
    found: dict[str, Part] = {}
    for policy in ("loop", "beam"):
        for protocol in ("tools", "json"):
            for mischief in (None, MISCHIEF):
                options = AgentOptions(policy=policy, protocol=protocol)
                scripted = ScriptedAgent(hops=2, mischief=mischief or {})
                with ChatServer(act=scripted, tokens=count) as server:
                    model = OpenAIModel("scripted", base_url=server.base_url, key_env=None)
                    explorer = GraphAgent(NamedGraph(graph, store, options.shown), model, options, attempts=ATTEMPTS)
                    started = time.monotonic()
                    explored = explorer.explore(questions)
                    seconds = time.monotonic() - started
                    served = server.stats()
                counts = counts_of(explored)
                assert counts["calls"] >= served["requests"], "equal requests of two questions are sent once"
                name = f"{policy}, {protocol}{', misbehaving' if mischief else ''}"
                found[name] = {
                    key: counts[key]
                    for key in ("questions", "ends", "calls_a_question", "tokens_a_question", "operations", "refused",
                                "unreadable")
                } | {
                    "calls_sent": served["requests"],
                    "with_proof": sum(bool(one.facts) for one in explored),
                    "seconds_a_question": round(seconds / len(questions), 4),
                }  # fmt: skip
                bench.note(f"agent: {name}", questions, explored, store)
    return found


def gcr(bench: Bench) -> Mapping[str, Part]:
    """Constrained decoding by the builtin model and by random weights, both ways of answering."""
    graph, store = Dkg.open(bench.dkg("atlas")), KgStore.open(bench.work.kg("atlas"))
    random_folder = save_random_reader(bench.work.folder / "random_reader", seed=SEED)
    builtin = load_builtin()
    found = decoded(bench, "builtin", builtin, graph, store)
    found |= decoded(bench, "random weights", HFModel(random_folder, device="cpu"), graph, store)
    return found | {"trie": trie_growth(bench.sample("atlas"), builtin, NamedGraph(graph, store, 1))}


def gcr_trained(bench: Bench) -> Mapping[str, Part]:
    """The same by the builtin model after a training on gold paths of training questions without an operation."""
    graph, store = Dkg.open(bench.dkg("atlas")), KgStore.open(bench.work.kg("atlas"))
    plain = [one for one in bench.work.split("atlas", "train") if one.complexity in ("generic", "multi-hop")]
    learn = bench.work.sample(plain, bench.train // 2, "paths")
    folder = bench.work.folder / "path_model"
    model, how = train_path_model(folder, learn, NamedGraph(graph, store, 1), epochs=2, seed=SEED)
    found = decoded(bench, "trained on paths", model, graph, store, "gcr_trained")
    return {name: how | row for name, row in found.items()}


def decoded(bench: Bench, name: str, model: HFModel, graph: Dkg, store: KgStore, part: str = "gcr") -> dict[str, Part]:
    """Rows of one model, by how it answers."""
    questions, found = bench.sample("atlas"), dict[str, Part]()
    for final in ("paths", "model"):
        view = NamedGraph(graph, store, 1)
        reasoner = ConstrainedReasoner(view, model, ConstrainedOptions(final=final))
        started = time.monotonic()
        explored = reasoner.explore(questions, Log("questions", every=20))
        seconds = time.monotonic() - started
        counts, hits = counts_of(explored), 0
        for question, one in zip(questions, explored, strict=True):
            gold = set(store.entity_keys(question.answers).values())
            hits += bool(one.keys) and one.keys[0] in gold
        found[f"{name}, {final}"] = {
            "questions": len(questions),
            "ends": counts["ends"],
            "hits_at_1": round(hits / len(questions), 4),
            "paths_a_question": round(sum(len(one.steps) for one in explored) / len(questions), 2),
            "paths_of_graph": faithful(questions, explored, view),
            "calls_a_question": counts["calls_a_question"],
            "tokens_a_question": counts["tokens_a_question"],
            "seconds_a_question": round(seconds / len(questions), 3),
        }
        bench.note(f"{part}: {name}, {final}", questions, explored, store)
    return found


def faithful(questions: Sequence[Question], explored: Sequence[Exploration], view: NamedGraph) -> float:
    """Share of the decoded paths, as text, that walking the graph by names finds again, without the trie."""
    right = total = 0
    for question, one in zip(questions, explored, strict=True):
        for step in one.steps:
            total += 1
            right += walks(step.rpartition(" (")[0], question.topic_entities, view)
    return round(right / max(1, total), 4)


def walks(text: str, topics: Sequence[int], view: NamedGraph) -> bool:
    """Whether a path that was written so leads from a topic through the graph."""
    names = view.entity_names(topics)
    states = {(topic, len(" ".join(names[topic].split()))) for topic in topics
              if text.startswith(" ".join(names[topic].split()))}  # fmt: skip
    while states:
        if any(place == len(text) for _, place in states):
            return True
        following = set()
        for entity, place in states:
            for out, arrow in ((True, "->"), (False, "<-")):
                for relation in view.relations(entity, out=out):
                    prefix = f" {arrow} {view.relation_names[relation]} {arrow} "
                    if text.startswith(prefix, place):
                        tails = view.dkg.tail[view.follow(entity, relation, out=out)].tolist()
                        for tail, name in view.entity_names(tails).items():
                            written = " ".join(name.split())
                            if text.startswith(written, place + len(prefix)):
                                following.add((tail, place + len(prefix) + len(written)))
        states = following
    return False


def trie_growth(questions: Sequence[Question], model: HFModel, view: NamedGraph) -> Part:
    """Names that a search of five beams looks up, against those of all entities within two hops."""
    touched, within = 0, 0
    for question in questions:
        own = NamedGraph(view.dkg, view.store, 1)
        ConstrainedReasoner(own, model, ConstrainedOptions(final="paths")).explore([question])
        touched += len(own._names)
        reached = set(question.topic_entities)
        for _ in range(2):
            reached |= {int(tail) for entity in reached for out in (True, False)
                        for relation in own.relations(entity, out=out)
                        for tail in own.dkg.tail[own.follow(entity, relation, out=out)]}  # fmt: skip
        within += len(reached)
    return {
        "questions": len(questions),
        "names_looked_up_a_question": round(touched / len(questions), 1),
        "entities_within_two_hops": round(within / len(questions), 1),
    }


def retrievers(bench: Bench, graph: str, encoder: str = "scratch", only: Sequence[str] = ()) -> dict[str, Part]:
    """Retrievers trained on the same questions, measured on dev."""
    dkg, kg = bench.dkg(graph), bench.work.kg(graph)
    learn = bench.work.sample(bench.work.split(graph, "train"), bench.train, "train")
    develop = bench.work.sample(bench.work.split(graph, "dev"), MOST_DEV, "dev")
    folder = bench.work.folder / f"peers-{graph}-{encoder}"
    (folder / "questions").mkdir(parents=True, exist_ok=True)
    write_questions(folder / "questions", [*learn, *develop])
    profile = bench.work.profile(graph)
    common = {**SCRATCH, "encoder": encoder, "max_tokens": 64, **UNTIL_NO_BETTER}
    hops = 3 if graph == "metaqa" else 2
    exclude = profile.rigel.exclude_topic
    sections: dict[str, Any] = {
        "random": None,
        "oracle": None,
        "rigel": RigelOptions(**common, hops=hops, loss=profile.rigel.loss, exclude_topic=exclude),
        "hop_path": HopPathOptions(**common, max_hops=hops),
        "transfernet": TransferNetOptions(**common, hops=hops, exclude_topic=exclude),
    }
    found: dict[str, Part] = {}
    for name, options in sections.items():
        if only and name not in only:
            continue
        spec, trained, seconds, counts = RETRIEVERS[name], None, 0.0, {}
        log.info("%s: %s", graph, name)
        if spec.train is not None:
            trained = folder / f"{name}-{int(time.time())}"
            trained.mkdir(parents=True)
            started = time.monotonic()
            inputs = TrainingInputs(dkg, folder / "questions", options, SEED, kg=kg, monitor=Log("dev_", every=200))
            counts = dict(spec.train(trained, inputs))
            seconds = time.monotonic() - started
        out = folder / f"facts-{name}-{int(time.time())}"
        out.mkdir(parents=True)
        started = time.monotonic()
        own = collect(
            out, dkg=dkg, questions=folder / "questions", name=name, options=RetrievalOptions(edge_budget=2_000_000),
            seed=SEED, retriever=trained, kg=kg,
        )  # fmt: skip
        found[name] = {
            "train": len(learn),
            "dev": len(develop),
            "encoder": encoder if spec.train is not None else None,
            "hits_at_1": round(own["hits_at_1"]["dev"], 4),
            "training_seconds": round(seconds, 1),
            "epochs": counts.get("epochs"),
            "milliseconds_a_question": round(1000 * (time.monotonic() - started) / len(develop), 2),
        }
        log.info("%s: %s: %s", graph, name, found[name])
    return found


PARTS: dict[str, Callable[[Bench], Mapping[str, Part]]] = {
    "agent": agent,
    "gcr": gcr,
    "gcr_trained": gcr_trained,
    "atlas": lambda bench: retrievers(bench, "atlas"),
    "metaqa": lambda bench: retrievers(bench, "metaqa"),
    "minilm": lambda bench: retrievers(bench, "atlas", "minilm", ("transfernet",)),
}


def table(document: Mapping[str, Any]) -> str:
    """The markdown tables of the results."""
    lines: list[str] = []
    for part, result in document["results"].items():
        rows = {name: row for name, row in result["rows"].items() if name != "trie"}
        columns = list(dict.fromkeys(key for row in rows.values() for key in row))
        lines += ["", f"**{part}**", "", f"| | {' | '.join(columns)} |", "|---" * (len(columns) + 1) + "|"]
        for name, row in rows.items():
            lines.append(f"| {name} | {' | '.join(shown(row.get(column)) for column in columns)} |")
        if "trie" in result["rows"]:
            own = result["rows"]["trie"]
            lines += ["", ", ".join(f"{key.replace('_', ' ')}: {value}" for key, value in own.items())]
    return "\n".join(lines).strip() + "\n"


def shown(value: object) -> str:
    """A figure as tables have it."""
    if isinstance(value, dict):
        return ", ".join(f"{key} {number}" for key, number in value.items())
    return "–" if value is None else str(value)


def main() -> None:
    """Measures parts and writes each as it is done."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path)
    parser.add_argument("--shared", type=Path, default=ROOT.parent / "shared")
    parser.add_argument("--only", action="append", choices=list(PARTS))
    parser.add_argument("--questions", type=int, default=60)
    parser.add_argument("--train", type=int, default=4000)
    parser.add_argument("--json", type=Path, default=ROOT / "benchmarks/results/peers.json")
    parser.add_argument("--transcripts", type=Path, default=ROOT / "benchmarks/results/peers_transcripts.txt")
    given = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    logging.getLogger("httpx2").setLevel(logging.WARNING)
    logging.getLogger("httpx").setLevel(logging.WARNING)
    work = Work(given.work, given.shared / "data", SEED)
    for name in given.only or PARTS:
        bench = Bench(work, given.questions, given.train, given.transcripts)
        rows = PARTS[name](bench)
        document = {"benchmark": "peers", "results": {}}
        if given.json.is_file():
            document = json.loads(given.json.read_text(encoding="utf-8"))
        document["results"][name] = {"conditions": conditions(SEED), "rows": rows}
        order = [part for part in PARTS if part in document["results"]]
        document["results"] = {part: document["results"][part] for part in order}
        results_file.write(given.json, document, FIELDS)
        if bench.texts:
            write_transcripts(given.transcripts, name, bench.texts)


def write_transcripts(path: Path, part: str, texts: Sequence[str]) -> None:
    """Puts the transcripts of a part in place of its earlier ones."""
    earlier = path.read_text(encoding="utf-8").split("\n\n") if path.is_file() else []
    others = [text.rstrip() for text in earlier if not text.startswith(f"## {part}:")]
    path.write_text("\n\n".join(sorted([*others, *texts], key=lambda text: text.startswith("## gcr"))) + "\n")


if __name__ == "__main__":
    main()
