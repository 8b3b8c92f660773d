"""Units that are turned into one another, so that 180 cm and 1.8 m compare; by their Wikidata keys.

A value in a unit that is not here compares with values in the same unit only.
"""

from __future__ import annotations

from typing import NamedTuple


class Unit(NamedTuple):
    """A unit as `factor * value + offset` of its base unit."""

    base: str
    factor: float
    offset: float = 0.0


METRE, SQUARE_METRE, CUBIC_METRE, KILOGRAM, SECOND = "Q11573", "Q25343", "Q25517", "Q11570", "Q11574"
KELVIN, METRE_PER_SECOND, WATT, BYTE = "Q11579", "Q182429", "Q25236", "Q8799"

UNITS: dict[str, Unit] = {
    "Q11573": Unit(METRE, 1.0),
    "Q174789": Unit(METRE, 0.001),  # millimetre
    "Q174728": Unit(METRE, 0.01),  # centimetre
    "Q200323": Unit(METRE, 0.1),  # decimetre
    "Q828224": Unit(METRE, 1000.0),  # kilometre
    "Q218593": Unit(METRE, 0.0254),  # inch
    "Q3710": Unit(METRE, 0.3048),  # foot
    "Q482798": Unit(METRE, 0.9144),  # yard
    "Q253276": Unit(METRE, 1609.344),  # mile
    "Q93318": Unit(METRE, 1852.0),  # nautical mile
    "Q25343": Unit(SQUARE_METRE, 1.0),
    "Q712226": Unit(SQUARE_METRE, 1e6),  # square kilometre
    "Q35852": Unit(SQUARE_METRE, 1e4),  # hectare
    "Q232291": Unit(SQUARE_METRE, 2589988.110336),  # square mile
    "Q81292": Unit(SQUARE_METRE, 4046.8564224),  # acre
    "Q857027": Unit(SQUARE_METRE, 0.09290304),  # square foot
    "Q25517": Unit(CUBIC_METRE, 1.0),
    "Q4243638": Unit(CUBIC_METRE, 1e9),  # cubic kilometre
    "Q11582": Unit(CUBIC_METRE, 0.001),  # litre
    "Q11570": Unit(KILOGRAM, 1.0),
    "Q41803": Unit(KILOGRAM, 0.001),  # gram
    "Q191118": Unit(KILOGRAM, 1000.0),  # tonne
    "Q100995": Unit(KILOGRAM, 0.45359237),  # pound
    "Q11574": Unit(SECOND, 1.0),
    "Q723733": Unit(SECOND, 0.001),  # millisecond
    "Q7727": Unit(SECOND, 60.0),  # minute
    "Q25235": Unit(SECOND, 3600.0),  # hour
    "Q573": Unit(SECOND, 86400.0),  # day
    "Q11579": Unit(KELVIN, 1.0),
    "Q25267": Unit(KELVIN, 1.0, 273.15),  # degree Celsius
    "Q42289": Unit(KELVIN, 5 / 9, 459.67 * 5 / 9),  # degree Fahrenheit
    "Q182429": Unit(METRE_PER_SECOND, 1.0),
    "Q180154": Unit(METRE_PER_SECOND, 1 / 3.6),  # kilometre per hour
    "Q211256": Unit(METRE_PER_SECOND, 0.44704),  # mile per hour
    "Q128822": Unit(METRE_PER_SECOND, 1852 / 3600),  # knot
    "Q25236": Unit(WATT, 1.0),
    "Q3320608": Unit(WATT, 1e3),  # kilowatt
    "Q6982035": Unit(WATT, 1e6),  # megawatt
    "Q8799": Unit(BYTE, 1.0),
    "Q79726": Unit(BYTE, 1e3),  # kilobyte
    "Q79735": Unit(BYTE, 1e6),  # megabyte
    "Q79738": Unit(BYTE, 1e9),  # gigabyte
}


def base_unit(unit: str | None) -> str:
    """The unit that values in this one are turned into; the unit itself where there is none, "" for bare numbers."""
    if unit is None:
        return ""
    return UNITS[unit].base if unit in UNITS else unit
