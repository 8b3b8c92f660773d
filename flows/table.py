"""The flow of the whole table: several question sets over one graph, every answerer on each, in one run.

Each set is a run of the pipeline of its own, nested under this one: what has not changed is not computed again when a
set is added, and a set that fails does not lose the others.
"""

from __future__ import annotations

from typing import Any

from prefect import flow

from flows.pipeline import pipeline
from flows.refresh import refresh
from kgqa_core.config import Profile
from kgqa_core.errors import ConfigError
from tasks.engine.publish_table import publish_table
from tasks.engine.run import completed, tracked_run
from tasks.engine.sets import raise_failed, run_sets
from tasks.evaluation import table_sets


@flow(name="kgqa-table", flow_run_name="table {profile.kg.name}")
def whole_table(profile: Profile, newer_dump: bool = False) -> dict[str, Any]:
    """Answer and score every question set of a profile, and put all answerers, knowledge and sets into one table.

    Args:
        profile: What is run: the graph, the question sets, the answerers, and how.
        newer_dump: Whether the graph's files are a newer dump, which each set's champion is refreshed to.
    """
    if newer_dump and profile.questions_train == "union":
        raise ConfigError(
            "questions_train is union, and a refresh follows the training of one question set; say `kgqa run`, which "
            "trains again on all sets, or set questions_train=each"
        )
    with tracked_run(profile, several=True) as run:
        sets = run_sets(run, profile, refresh if newer_dump else pipeline)
        scores = {name: made["scores"] for name, made in sets.items()}
        questions = {name: made["questions"] for name, made in sets.items()}
        tables = table_sets(scores, questions, profile.seed)
        summary = publish_table(run, profile, tables)
    raise_failed(run)
    return completed(f"{len(sets)} question sets in one table", summary)
