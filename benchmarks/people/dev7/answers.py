"""Computes the gold answers of dev7 from graph files of dev2, dev4, dev5 and dev6, and writes a file for each graph.

    python -m benchmarks.people.dev7.answers

The files are read as in those sets.  A question may begin with its style in brackets.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from statistics import median

from benchmarks.people.dev2.answers import read_league
from benchmarks.people.dev4.answers import read_hospital
from benchmarks.people.dev5.answers import read_housing
from benchmarks.people.dev6.answers import GRAPHS
from benchmarks.people.gold import ENTITY, RELATION, TYPE, Answer, Graph, fill, mean, order, read_tables, write

HERE = Path(__file__).resolve().parent
FACT = "missing fact"


def than(g: Graph, kind: str, relation: str, name: str, low: bool = False) -> set[str]:
    """The things of a type whose number or date is above that of a thing, or below it."""
    (bound,) = (order(value) for value in g.of(name, relation))
    return g.test(kind, relation, lambda value: order(value) < bound if low else order(value) > bound)


def more_often(counts: dict[str, float], name: str) -> set[str]:
    return {other for other, number in counts.items() if number > counts[name]}


def same(g: Graph, names: str | Iterable[str], relation: str, name: str) -> set[str]:
    return g.eq(names, relation, *g.of(name, relation)) - {name}


def has_all(g: Graph, names: Iterable[str], things: set[str], *path: str) -> set[str]:
    """Of the names those from which a path leads to all things, of which there is at least one."""
    assert things
    return {name for name in names if things <= g.of(name, *path)}


def has_only(g: Graph, names: Iterable[str], thing: str, *path: str) -> set[str]:
    return {name for name in names if g.of(name, *path) == {thing}}


def exactly(g: Graph, names: Iterable[str], number: int, *path: str) -> set[str]:
    return {name for name in names if len(g.of(name, *path)) == number}


def best_of_each(g: Graph, names: str, group: str, value: str, low: bool = False) -> set[str]:
    """`group: member` for the members with the largest value, or the least; groups without a value have none."""
    known = g.all(names) - g.lacks(names, value)
    return {
        f"{own}: {name}" for own in g.of(known, group) for name in g.top(known & g.of(own, "~" + group), value, low=low)
    }


def leaders(counts: dict[str, float]) -> set[str]:
    return {name for name, number in counts.items() if number == max(counts.values())}


def league() -> Graph:
    g = read_league()
    player, team, match = "player", "team", "match"
    height = mean(g.numbers(g.all(player), "height in cm"))
    games = {own: float(len(g.of(own, "~home team") | g.of(own, "~away team"))) for own in g.all(team)}
    referees = {own: g.of(g.of(own, "~home team") | g.of(own, "~away team"), "refereed by") for own in g.all(team)}
    whistled = {name: {own for own in g.all(team) if name in referees[own]} for name in g.all("referee")}
    questions: dict[str, dict[str, Answer]] = {
        "than x": {
            "who is taller than dmitri vale": than(g, player, "height in cm", "Dmitri Vale"),
            "which clubs were already around before the owls were founded": than(
                g, team, "founded", "Osterby Owls", low=True
            ),
            "refs who have taken charge of more games than joost pereira": more_often(
                g.tally(match, "refereed by"), "Joost Pereira"
            ),
            "which ground holds more people than lantern park": than(g, "stadium", "capacity", "Lantern Park"),
        },
        "than average": {
            "[typo] wich players are shorter than the average player": g.less(player, "height in cm", height),
        },
        "same as": {
            "which team plays in the same colour as the tidewick gulls": same(
                g, team, "shirt colour", "Tidewick Gulls"
            ),
            "team mates of yann beck": same(g, player, "plays for", "Yann Beck"),
        },
        "only": {
            "what team has only ever had marcus bly as referee": {
                own for own, names in referees.items() if names == {"Marcus Bly"}
            },
        },
        "exactly": {
            "which sides have played exactly three matches, home and away together": {
                own for own, number in games.items() if number == 3
            },
        },
        "every": {
            "which teams have had every one of the referees in their matches": {
                own for own, names in referees.items() if names == g.all("referee")
            },
            "which ref has had a match with every single team": {
                name for name, teams in whistled.items() if teams == g.all(team)
            },
        },
        "best of each": {
            "top scorer of each club this season": best_of_each(g, player, "plays for", "goals this season"),
            "[keyword] tallest player per position": best_of_each(g, player, "position", "height in cm"),
        },
        "best group": {
            "which team is the tallest on average": leaders(g.tally(player, "plays for", "height in cm", mean=True)),
            "in what position do we find the most left-footed players": leaders(
                g.tally(g.eq(player, "left-footed", "true"), "position")
            ),
        },
        "median": {"[keyword] median attendance": median(g.numbers(g.all(match), "attendance"))},
        "two properties": {
            "who coaches the osterby owls and what colour do they play in": g.of("Osterby Owls", "coach")
            | g.of("Osterby Owls", "shirt colour"),
        },
        "other than": {
            "who else plays for the owls besides eli fontaine": same(g, player, "plays for", "Eli Fontaine"),
        },
    }
    missing = {
        RELATION: {
            "who earns more than kofi brandt": "salary",
            "which player has the same shoe size as rui castanho": "shoe size",
        },
        ENTITY: {"clubs founded earlier than the marlow magpies": "Marlow Magpies"},
        FACT: {"which players are older than owen tarrant": "date of birth of Owen Tarrant"},
    }
    return fill(g, questions, missing)


def hospital() -> Graph:
    g = read_hospital()
    doctor, patient, ward, visit = "doctors", "patients", "wards", "visits"
    surgeons = g.eq(doctor, "speciality", "surgeon")
    seen = ("~patient_id", "doctor_id")
    peanuts = g.eq(patient, "allergy", "peanuts")
    questions: dict[str, dict[str, Answer]] = {
        "than x": {
            "which docs earn more than lena kowalczyk": than(g, doctor, "salary_eur", "Dr. Lena Kowalczyk"),
            "wards with fewer beds than neurology": than(g, ward, "beds", "Neurology", low=True),
            "which patients have been in here more often than gwen prosser": more_often(
                g.tally(visit, "patient_id"), "Gwen Prosser"
            ),
            "which patients are older than walter pike": than(g, patient, "date_of_birth", "Walter Pike", low=True),
        },
        "than average": {
            "[typo] which doctors get less than the averge salary": g.less(
                doctor, "salary_eur", mean(g.numbers(g.all(doctor), "salary_eur"))
            ),
            "wards with more beds than the median ward": g.more(ward, "beds", median(g.numbers(g.all(ward), "beds"))),
        },
        "same as": {
            "colleagues of wendy ashgrove on her ward": same(g, doctor, "ward_id", "Dr. Wendy Ashgrove"),
            "which patient has the same allergy as jasper kline": same(g, patient, "allergy", "Jasper Kline"),
        },
        "only": {
            "which procedures are only ever done under local anaesthesia": has_only(
                g, g.of(g.all("treatments"), "procedure"), "local", "~procedure", "anaesthesia"
            ),
            "on which wards do all the doctors have one and the same speciality": exactly(
                g, g.all(ward), 1, "~ward_id", "speciality"
            ),
        },
        "exactly": {
            "who supervises exactly one other doctor": exactly(g, g.all(doctor), 1, "~supervisor_id"),
        },
        "every": {
            "which doctor has seen every patient who is allergic to peanuts": {
                name for name in g.all(doctor) if peanuts <= g.of(name, "~doctor_id", "patient_id")
            },
            "which patients have been under every surgeon we have": has_all(g, g.all(patient), surgeons, *seen),
        },
        "best of each": {
            "best paid doctor on each ward": best_of_each(g, doctor, "ward_id", "salary_eur"),
            "oldest patient from every town": best_of_each(g, patient, "town", "date_of_birth", low=True),
        },
        "best group": {
            "so which town has the most smokers": leaders(g.tally(g.eq(patient, "smoker", "yes"), "town")),
        },
        "median": {"whats the median salary of our doctors": median(g.numbers(g.all(doctor), "salary_eur"))},
        "two properties": {
            "blood group and insurance of rosa delgado": g.of("Rosa Delgado", "blood_group")
            | g.of("Rosa Delgado", "insurance"),
        },
        "other than": {
            "who else is allergic to penicillin apart from agnes thornbury": same(
                g, patient, "allergy", "Agnes Thornbury"
            ),
        },
    }
    missing = {
        RELATION: {
            "which patients are taller than hamid rostami": "height",
            "doctors who went to the same university as amara nwosu": "university",
            "heaviest patient on each ward": "weight",
        },
        ENTITY: {"who has a higher salary than dr. benedikt strauss": "Dr. Benedikt Strauss"},
        TYPE: {"median age of our ambulance drivers": "ambulance drivers"},
    }
    return fill(g, questions, missing)


def housing() -> Graph:
    g = read_housing()
    building, flat, tenant, firm, repair = "buildings", "flats", "tenants", "contractors", "repairs"
    docks = g.eq(building, "district", "Docks")
    worked = ("~contractor_id", "flat_id", "building_id")
    flats = {own: len(g.all(flat) & g.of(own, "~building_id")) for own in g.all(building)}
    questions: dict[str, dict[str, Answer]] = {
        "than x": {
            "flats that are dearer than station 2": than(g, flat, "monthly_rent", "Station 2"),
            "who moved in later than kalinda rao": than(g, tenant, "moved_in", "Kalinda Rao"),
            "firms that got more repair jobs from us than keymaster lenz": more_often(
                g.tally(repair, "contractor_id"), "Keymaster Lenz"
            ),
            "Which building is older than Chapel Yard?": than(g, building, "year_built", "Chapel Yard", low=True),
        },
        "than average": {
            "which contractors charge less than the average hourly rate": g.less(
                firm, "hourly_rate", mean(g.numbers(g.all(firm), "hourly_rate"))
            ),
        },
        "same as": {
            "who does the same job as boris vale": same(g, tenant, "occupation", "Boris Vale"),
            "which other houses are heated the same way as the tannery": same(
                g, building, "heating_type", "The Tannery"
            ),
        },
        "only": {
            "which contractor has only had repairs in quay court": has_only(g, g.all(firm), "Quay Court", *worked),
            "what districts do we have only one building in": exactly(
                g, g.of(g.all(building), "district"), 1, "~district"
            ),
        },
        "exactly": {
            "which house has exactly four flats": {own for own, number in flats.items() if number == 4},
            "buildings with exactly 5 flats": {own for own, number in flats.items() if number == 5},
        },
        "every": {
            "[typo] which contractors have had repairs in all bulidings in the docks": has_all(
                g, g.all(firm), docks, *worked
            ),
        },
        "best of each": {"biggest flat in each building pls": best_of_each(g, flat, "building_id", "size_m2")},
        "best group": {
            "ok which building has the highest rent on average": leaders(
                g.tally(flat, "building_id", "monthly_rent", mean=True)
            ),
            "which firm has cost us the most for repairs altogether": leaders(g.tally(repair, "contractor_id", "cost")),
        },
        "median": {"[keyword] median monthly rent": median(g.numbers(g.all(flat), "monthly_rent"))},
        "two properties": {
            "when was quay court built and who's the caretaker there": g.of("Quay Court", "year_built")
            | g.of("Quay Court", "caretaker"),
        },
        "other than": {
            "what other contractors are there in elmstead apart from brandt heating": same(
                g, firm, "town", "Brandt Heating"
            ),
        },
    }
    missing = {
        RELATION: {
            "which tenants have the same shoe size as greta lund": "shoe size",
            "flats that use more electricity than linden 4": "electricity use",
            "best reviewed contractor of each trade": "reviews of contractors",
        },
        ENTITY: {"which flats are bigger than birchwood 2": "Birchwood 2"},
    }
    return fill(g, questions, missing)


def bestiary() -> Graph:
    g = read_tables("bestiary", GRAPHS / "bestiary", {"creatures": "name", "biomes": "name"}, "; ")
    creature, biome = "creatures", "biomes"
    every = g.all(creature)
    oozes, constructs, fey, dragons, beasts = (
        g.eq(every, "kind", kind) for kind in ("Ooze", "Construct", "Fey", "Dragon", "Beast")
    )
    eldermark = g.eq(biome, "region", "Eldermark")
    questions: dict[str, dict[str, Answer]] = {
        "than x": {
            "dragons with more hit points than cindermaw": dragons & than(g, creature, "hit_points", "Cindermaw"),
            "places that are more dangerous than the frozen reach": than(g, biome, "danger_rating", "Frozen Reach"),
            "who has discovered more creatures than corwin hale": more_often(
                g.tally(creature, "discovered_by"), "Corwin Hale"
            ),
            "which creatures were discovered after the pit overseer": than(
                g, creature, "discovered_in", "Pit Overseer"
            ),
        },
        "than average": {
            "oozes with more hp than the average ooze": g.more(
                oozes, "hit_points", mean(g.numbers(oozes, "hit_points"))
            ),
        },
        "same as": {
            "constructs that share a weakness with the clay golem": same(g, constructs, "weakness", "Clay Golem"),
            "Which other biome has the same climate as the Ember Peaks?": same(g, biome, "climate", "Ember Peaks"),
        },
        "only": {
            "creatures that live only in the scorched dunes": has_only(g, every, "Scorched Dunes", "biome"),
            "which monsters drop nothing but a cursed ring": has_only(g, every, "cursed ring", "drops"),
        },
        "exactly": {
            "[typo] fey that live in exactly two diffrent biomes": exactly(g, fey, 2, "biome"),
        },
        "every": {
            "beasts that live in every place of the eldermark": has_all(g, beasts, eldermark, "biome"),
            "who has discovered creatures of every kind": has_all(
                g, g.of(every, "discovered_by"), g.of(every, "kind"), "~discovered_by", "kind"
            ),
        },
        "best of each": {"heaviest creature of each kind": best_of_each(g, creature, "kind", "weight_kg")},
        "best group": {
            "what kind of creature has the most hit points on average": leaders(
                g.tally(every, "kind", "hit_points", mean=True)
            ),
            "which kind has the most creatures you can tame": leaders(g.tally(g.eq(every, "tameable", "yes"), "kind")),
        },
        "median": {"median level of the dragons": median(g.numbers(dragons, "level"))},
        "two properties": {
            "what is the redcap weak to and what does it drop": g.of("Redcap", "weakness") | g.of("Redcap", "drops"),
        },
        "other than": {
            "i already killed the frostwyrm, what else drops a fire gland": g.of("fire gland", "~drops")
            - {"Frostwyrm"},
        },
    }
    missing = {
        RELATION: {
            "creatures that are smarter than the deep gnome": "intelligence",
            "which item costs the same as pixie dust": "price of items",
            "loudest creature of each kind": "loudness",
        },
        ENTITY: {"monsters with more hp than the basilisk": "Basilisk"},
        FACT: {"which creatures are heavier than the hollow knight": "weight of the Hollow Knight"},
    }
    return fill(g, questions, missing)


if __name__ == "__main__":
    write(HERE, (league(), hospital(), housing(), bestiary()))
