"""Random forms on random graphs: the evaluator in memory says what the one in plain Python says."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings

from kgqa_core.errors import FormError
from kgqa_core.logic.execute import execute
from kgqa_core.logic.forms import Entity, Join, Step, is_value
from kgqa_core.logic.memory import MemoryGraph
from tests.support import random_forms as some
from tests.support.graphs import ENTITIES, LINKS, random_graph, store_of
from tests.support.naive_logic import Naive

GRAPHS = range(2)
"""Seeds of the graphs that many forms are tried on."""


@pytest.mark.parametrize("seed", GRAPHS)
def test_results_are_those_of_the_evaluator_in_plain_python(seed):
    graph = random_graph(seed)
    naive = Naive(graph)
    with store_of(graph) as store:
        memory = MemoryGraph(store)

        @settings(max_examples=80, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
        @given(some.forms)
        def same(form):
            found, expected = memory.execute(form), naive.of(form)
            if is_value(form):
                assert found.value == expected and type(found.value) is type(expected)
            else:
                assert list(found.nodes) == sorted(expected)

        same()


def test_what_the_graph_has_not_is_said_in_the_same_words():
    graph = random_graph(1)
    with store_of(graph) as store:
        memory = MemoryGraph(store)
        for form in (
            Entity("nobody"),
            Join((Step("nothing"),), Entity(ENTITIES[0])),
            Join((Step(LINKS[0]),), Entity("x")),
        ):
            with pytest.raises(FormError) as said:
                memory.execute(form)
            with pytest.raises(FormError) as wanted:
                execute(form, store)
            assert str(said.value) == str(wanted.value)
