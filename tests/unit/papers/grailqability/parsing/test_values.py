"""Numbers, dates and strings in questions, and the datatypes that a graph writes them with."""

from __future__ import annotations

import pytest

from kgqa_core.datasets.derived.form_values import as_stored, datatypes, values_in
from kgqa_core.logic.parser import parse
from tests.support.graphs import small_graph


@pytest.mark.parametrize(
    ("text", "found", "literal"),
    [
        ("after the date of 05/08/2008, which song", "05/08/2008", "2008-05-08"),
        ("added after aug. the 11st, 2009 to it", "aug. the 11st, 2009", "2009-08-11"),
        ("born on 5 May 1910", "5 May 1910", "1910-05-05"),
        ("released in june 2009", "june 2009", "2009-06"),
        ("mass of at most 2.3e+06?", "2.3e+06", "2.3e+06"),
        ("more than 1.5 million people", "1.5 million", "1500000"),
        ('the code is "FR" there', '"FR"', "FR"),
        ("2008-13-45 is no date", None, None),
    ],
)
def test_a_value_is_read_as_people_write_it(text, found, literal):
    values = values_in(text)
    assert (values[0].text if values else None) == found
    assert not values or (values[0].number or values[0].time or values[0].string).text == literal


def test_a_number_gets_the_datatype_that_its_relation_has_in_the_graph():
    with small_graph() as store:
        numbers = datatypes(store)
    assert numbers["population"].endswith("integer") and numbers["height"].endswith("decimal")
    xsd = "http://www.w3.org/2001/XMLSchema#"
    form = parse("(AND (TYPE city) (AND (gt height 5) (JOIN population 7.5)))")
    stored = parse(f"(AND (TYPE city) (AND (gt height 5^^{xsd}decimal) (JOIN population 7.5^^{xsd}integer)))")
    assert as_stored(form, numbers) == stored
    dated = parse("(gt born 1952^^xsd:gYear)")
    assert as_stored(dated, numbers) == dated
