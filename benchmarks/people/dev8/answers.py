"""Computes the gold answers of dev8 from its graph files, and writes a file of questions for each graph.

    python -m benchmarks.people.dev8.answers            # --check fails where a file is not what would be written

It reads the files with csv, json and rdflib.  A question may begin with its style in brackets.
"""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path
from typing import Any

from benchmarks.people.dev7.answers import best_of_each, exactly, has_only, leaders, same, than
from benchmarks.people.gold import (
    ENTITY,
    RELATION,
    TYPE,
    Answer,
    Graph,
    days,
    fill,
    mean,
    one,
    percent,
    read_keyed,
    read_nodes,
    read_rdf,
    write,
)

HERE = Path(__file__).resolve().parent
GRAPHS = HERE / "graphs"
FACT = "missing fact"


def lengths(g: Graph, names: set[str], start: str, end: str) -> dict[str, float]:
    """Days from one date to another, of the names that have both."""
    return {name: days(g, name, start, end) for name in names - g.lacks(names, start) - g.lacks(names, end)}


def museum() -> Graph:
    g = read_rdf("museum", GRAPHS / "museum" / "werf.ttl")
    works, paintings, drawings, sculptures, artists, rooms, shows = (
        g.all(kind) for kind in "Work Painting Drawing Sculpture Artist Room Exhibition".split()
    )
    value = "insuredValueEur"
    loans = lengths(g, g.all("Loan"), "loanStart", "loanEnd")
    lives = lengths(g, artists, "born", "died")
    questions: dict[str, dict[str, Answer]] = {
        "direct": {
            "who painted the lace maker": g.of("Lace Maker", "creator"),
            "what can you see in Fish Market at Dawn?": g.of("Fish Market at Dawn", "depicts"),
            "[keyword] medium grid with yellow square": g.of("Grid with Yellow Square", "medium"),
            "do we have anything by anna weidlich, what": g.of("Anna Weidlich", "~creator"),
            "whose pupil was joris van aalten": g.of("Joris van Aalten", "taughtBy"),
            "[typo] wich exibition was in the mirror hall": g.of("Mirror Hall", "~heldIn"),
            "what did ilse van thal give to the museum": g.of("Ilse van Thal", "~donatedBy"),
        },
        "path of two": {
            "In which country was Paulo Serrão born?": g.of("Paulo Serrão", "birthplace", "country"),
            "works by fjord school artists": g.of("Fjord School", "~movement", "~creator"),
            "[typo] who is the boss of the curater who looks after the print room": g.of(
                "Print Room", "lookedAfterBy", "reportsTo"
            ),
        },
        "path of three": {
            "To which city was Mute Bell lent?": g.of("Mute Bell", "~loanedWork", "borrower", "city"),
            "What movements did the Dutch-born artists, I mean those from the Netherlands, belong to?": g.of(
                "Netherlands", "~country", "~birthplace", "movement"
            ),
        },
        "type condition": {
            "[keyword] photographs print room": g.all("Photograph") & g.of("Print Room", "~hangsIn"),
        },
        "number condition": {
            "paintings worth more than a million euros": g.more(paintings, value, 1e6),
            "works from between 1900 and 1910": g.less(g.more(works, "yearMade", 1899), "yearMade", 1911),
            "which exhibitions drew over 60,000 people?": g.more(shows, "visitors", 60000),
        },
        "date condition": {
            "What came into the collection before 1940?": g.before(works, "acquiredOn", "1940"),
            "curators hired after 2023": g.since("Curator", "hiredOn", "2024"),
        },
        "text": {
            "works with harbour in the title": {name for name in works if "harbour" in name.lower()},
            "what do we have that is painted on panel": g.says(works, "medium", "on panel"),
        },
        "boolean": {
            "[keyword] rooms without climate control": g.eq(rooms, "climateControlled", "false"),
            "which paintings are not on show at the moment": g.eq(paintings, "onDisplay", "false"),
        },
        "negation": {
            "sculptures that aren't bronze": sculptures - g.eq(sculptures, "medium", "bronze"),
        },
        "absence": {
            "is there a room where nothing hangs, which one": g.lacks(rooms, "~hangsIn"),
            "Which partner institutions have never borrowed anything from us?": g.lacks("Institution", "~borrower"),
            "are there works without an insured value, which": g.lacks(works, value),
        },
        "union": {
            "everything that's in the attic or down in the vault": g.eq(works, "hangsIn", "Attic", "Vault"),
        },
        "intersection": {
            "pictures that show both boats and the sea": g.of("boats", "~depicts") & g.of("sea", "~depicts"),
            "sculptures we got from the friends of the werf": sculptures & g.of("Friends of the Werf", "~donatedBy"),
            "drawings in the garden room": drawings & g.of("Garden Room", "~hangsIn"),
            "anything by hendrik sloet that has been lent to the bergen kunsthus?": g.of("Hendrik Sloet", "~creator")
            & g.of("Bergen Kunsthus", "~borrower", "loanedWork"),
            "[keyword] paintings nadia verhoeven": paintings & g.of("Nadia Verhoeven", "~creator"),
        },
        "subtract": {
            "whats in the mirror hall apart from the pictures by van aalten": g.of("Mirror Hall", "~hangsIn")
            - g.of("Joris van Aalten", "~creator"),
        },
        "rank": {
            "what's the most valuable thing we own": g.top(works, value),
            "which loan lasted the longest": leaders(loans),
        },
        "rank inside a path": {
            "Who made the tallest sculpture?": g.of(g.top(sculptures, "heightCm"), "creator"),
            "which room is our oldest dated work in": g.of(g.top(works, "yearMade", low=True), "hangsIn"),
        },
        "first k": {
            "our last two acquisitions": g.top(works, "acquiredOn", 2),
            "the 3 best attended exhibitions": g.top(shows, "visitors", 3),
        },
        "count": {
            "how many of greta holm's works are in the vault": len(
                g.of("Greta Holm", "~creator") & g.of("Vault", "~hangsIn")
            ),
            "number of loans to casa da luz": len(g.of("Casa da Luz", "~borrower")),
        },
        "sum": {
            "what is everything in the Mirror Hall worth all together": sum(
                g.numbers(g.of("Mirror Hall", "~hangsIn"), value)
            ),
        },
        "average": {
            "how tall are the sculptures on average, in cm": mean(g.numbers(sculptures, "heightCm")),
        },
        "share": {
            "What percentage of the works is currently on display?": percent(g.eq(works, "onDisplay", "true"), works),
        },
        "group": {
            "number of works per room": g.groups(works, "hangsIn"),
        },
        "compare": {
            "how many days was Silent Objects open": days(g, "Silent Objects", "opened", "closed"),
            "who lived longer, hendrik sloet or willem de graaf": leaders(
                {name: lives[name] for name in ("Hendrik Sloet", "Willem de Graaf")}
            ),
        },
        "yes/no": {
            "is the blue altar on display": "true" in g.of("The Blue Altar", "onDisplay"),
            "was anna weidlich taught by luca bertone": "Luca Bertone" in g.of("Anna Weidlich", "taughtBy"),
            "did the dune path ever go out on loan": bool(g.of("The Dune Path", "~loanedWork")),
        },
        "where/when": {
            "when did the museum get folded disc": g.of("Folded Disc", "acquiredOn"),
        },
        "than x": {
            "Which works are worth more than The Yellow Parasol?": than(g, "Work", value, "The Yellow Parasol"),
        },
        "same as": {
            "what else is in the room with the lace maker": same(g, works, "hangsIn", "Lace Maker"),
        },
        "only": {
            "Can you list the exhibitions that showed nothing but drawings?": {
                name for name in shows if g.of(name, "shows") and g.of(name, "shows") <= drawings
            },
        },
        "best of each": {
            "largest room on each floor": best_of_each(g, "Room", "floor", "areaM2"),
        },
    }
    missing = {
        RELATION: {
            "how much was a ticket for light over water": "ticket price",
            "Who restored Lace Maker?": "restorer",
            "what did the museum pay for bathers at noon": "purchase price",
            "Who was Elise Carpentier married to?": "spouse",
            "[keyword] phone number femke bos": "phone number",
            "how heavy is the mute bell": "weight",
            "which prizes did tomas leitner win": "prizes",
        },
        ENTITY: {
            "who painted girl with a lantern": "Girl with a Lantern",
            "what is hanging in the east wing": "East Wing",
            "when was pieter vos born": "Pieter Vos",
        },
        TYPE: {
            "what guided tours can i book": "guided tours",
            "who are the night guards": "guards",
        },
        FACT: {
            "where was the master of the blue altar born": "birthplace of Master of the Blue Altar",
            "how many people came to bronze and stone": "visitors of Bronze and Stone",
            "when will l-109 come back": "end of L-109",
        },
    }
    return fill(g, questions, missing)


def read_school() -> Graph:
    """A pupil's clubs are its `club`."""
    rows: dict[str, list[dict[str, str]]] = {}
    for path in (GRAPHS / "school").glob("*.csv"):
        with path.open(encoding="utf-8", newline="") as file:
            rows[path.stem] = list(csv.DictReader(file))
    naming = {
        "teachers": "name", "rooms": "room_name", "classes": "class", "courses": "title", "pupils": "name",
        "clubs": "club_name", "grades": "",
    }  # fmt: skip
    links = {
        "teacher_id": "teachers", "mentor_id": "teachers", "form_teacher_id": "teachers", "room_id": "rooms",
        "class": "classes", "buddy_id": "pupils", "pupil_id": "pupils", "course_id": "courses",
    }  # fmt: skip
    g = read_keyed("school", {table: (rows[table], column) for table, column in naming.items()}, links)
    pupils, clubs = (
        {row[key]: row[name] for row in rows[table]}
        for table, key, name in (("pupils", "pupil_id", "name"), ("clubs", "club_id", "club_name"))
    )
    for row in rows["club_members"]:
        g.add(pupils[row["pupil_id"]], "club", clubs[row["club_id"]])
    return g


def school() -> Graph:
    g = read_school()
    teachers, pupils, clubs, courses, rooms, grades = (
        g.all(kind) for kind in "teachers pupils clubs courses rooms grades".split()
    )
    by_bus = g.eq(pupils, "travels_by", "bus")

    def exams(course: str) -> set[str]:
        return grades & g.of(course, "~course_id")

    def members(*own: str) -> set[str]:
        return g.of(own, "~club")

    def of_class(name: str) -> set[str]:
        return pupils & g.of(name, "~class")

    durations = lengths(g, courses, "starts_on", "ends_on")
    questions: dict[str, dict[str, Answer]] = {
        "direct": {
            "[keyword] weekday chess club": g.of("Chess Club", "weekday"),
            "who's in charge of climbing": g.of("Climbing", "teacher_id"),
            "which kids live in tannrode": g.of("Tannrode", "~village"),
            "How does Clara Mbeki get to school?": g.of("Clara Mbeki", "travels_by"),
            "who is the buddy of noah petrov": g.of("Noah Petrov", "buddy_id"),
            "[typo] wich courses does helga brandt giv": courses & g.of("Helga Brandt", "~teacher_id"),
        },
        "path of two": {
            "who is luis ferreira's form teacher": g.of("Luis Ferreira", "class", "form_teacher_id"),
            "What courses has Greta Albers had exams in?": g.of("Greta Albers", "~pupil_id", "course_id"),
            "which clubs do the children from eichbach go to": g.of("Eichbach", "~village", "club"),
        },
        "path of three": {
            "Which teachers give courses in the Science Block?": g.of(
                courses & g.of("Science Block", "~building", "~room_id"), "teacher_id"
            ),
            "[typo] mentor of the form techer of mia albers": g.of(
                "Mia Albers", "class", "form_teacher_id", "mentor_id"
            ),
        },
        "type condition": {
            "rooms in the old wing": g.of("Old Wing", "~building"),
        },
        "number condition": {
            "which clubs cost less than 15 euros": g.less(clubs, "fee_eur", 15),
            "are there teachers who earn more than 6000 euros? who": g.more(teachers, "salary_eur", 6000),
            "Who got 15 points in an exam?": g.of(g.eq(grades, "points", "15"), "pupil_id"),
        },
        "date condition": {
            "pupils born in 2011": g.says(pupils, "date_of_birth", "2011-"),
            "who has been teaching here since before 2005": g.before(teachers, "hired_on", "2005"),
            "clubs founded after 2023": g.since(clubs, "founded", "2024"),
        },
        "text": {
            "kids called novak": {name for name in pupils if "Novak" in name},
        },
        "boolean": {
            "who works part time": g.eq(teachers, "full_time", "no"),
            "[keyword] scholarship pupils": g.eq(pupils, "scholarship", "yes"),
        },
        "negation": {
            "who in 10A doesn't come by bus": of_class("10A") - by_bus,
            "Which compulsory courses are not held in the Old Wing?": g.eq(courses, "compulsory", "yes")
            - g.of("Old Wing", "~building", "~room_id"),
        },
        "absence": {
            "which pupils aren't in any club": g.lacks(pupils, "club"),
            "Is there a course nobody teaches? Which one?": g.lacks(courses, "teacher_id"),
            "which pupil has not had a single exam yet": g.lacks(pupils, "~pupil_id"),
            "classes that have no form teacher": g.lacks("classes", "form_teacher_id"),
        },
        "union": {
            "pupils from kirchhain or moorfeld": g.eq(pupils, "village", "Kirchhain", "Moorfeld"),
        },
        "intersection": {
            "who sings in the choir and is in the theatre group as well": members("Choir") & members("Theatre Group"),
            "bus riders in 9b": by_bus & of_class("9B"),
            "who in the choir rides a moped": members("Choir") & g.of("moped", "~travels_by"),
            "7a kids in the chess club who come on foot": g.eq(of_class("7A"), "travels_by", "on foot")
            & members("Chess Club"),
        },
        "subtract": {
            "all robotics members except those from 9a": members("Robotics") - of_class("9A"),
        },
        "rank": {
            "who is the youngest pupil of the school": g.top(pupils, "date_of_birth"),
        },
        "rank inside a path": {
            "which village does the tallest pupil come from": g.of(g.top(pupils, "height_cm"), "village"),
            "who did best in mechanics": g.of(g.top(exams("Mechanics"), "points"), "pupil_id"),
        },
        "first k": {
            "the three oldest teachers": g.top(teachers, "birth_date", 3, low=True),
        },
        "count": {
            "how many pupils are in the debating society": len(members("Debating Society")),
            "how many pupils in 9b have a scholarship": len(g.eq(of_class("9B"), "scholarship", "yes")),
        },
        "sum": {
            "how many hours a week do the part time teachers work in total": sum(
                g.numbers(g.eq(teachers, "full_time", "no"), "hours_per_week")
            ),
        },
        "average": {
            "avg points in mechanics": mean(g.numbers(exams("Mechanics"), "points")),
        },
        "share": {
            "what percent of the pupils come by bicycle": percent(g.eq(pupils, "travels_by", "bicycle"), pupils),
        },
        "group": {
            "average points per course": g.groups(grades, "course_id", "points", mean=True),
        },
        "compare": {
            "how much taller is karl engstrom than ben achterberg": one(g.of("Karl Engstrom", "height_cm"))
            - one(g.of("Ben Achterberg", "height_cm")),
            "Which course runs longer, French for Beginners or Genetics?": leaders(
                {name: durations[name] for name in ("French for Beginners", "Genetics")}
            ),
            "how many days does studio drawing last": durations["Studio Drawing"],
        },
        "yes/no": {
            "does monica reyes work full time": "yes" in g.of("Monica Reyes", "full_time"),
            "is there a projector in the hall": "yes" in g.of("Hall", "projector"),
            "Is anyone from Kirchhain in the choir?": bool(members("Choir") & g.of("Kirchhain", "~village")),
        },
        "where/when": {
            "when was the choir started": g.of("Choir", "founded"),
        },
        "than x": {
            "who was hired after jonas feld": than(g, "teachers", "hired_on", "Jonas Feld"),
        },
        "than average": {
            "teachers earning above average": g.more(teachers, "salary_eur", mean(g.numbers(teachers, "salary_eur"))),
        },
        "same as": {
            "who lives in the same village as victor lam": same(g, pupils, "village", "Victor Lam"),
        },
        "only": {
            "which pupils do climbing and no other club": has_only(g, pupils, "Climbing", "club"),
        },
        "exactly": {
            "pupils who are in exactly two clubs": exactly(g, pupils, 2, "club"),
        },
    }
    missing = {
        RELATION: {
            "who are the parents of mia albers": "parents",
            "which street does jakob stern live in": "street",
            "what textbook do they use in mechanics": "textbook",
            "How many days has Anton Weiss been absent?": "absences",
            "[keyword] email lars nygaard": "email",
            "What university did Piotr Zielinski study at?": "university",
        },
        ENTITY: {
            "who teaches spanish": "Spanish",
            "which pupils are in 8b": "8B",
            "how many points did robin falk get in algebra": "Robin Falk",
        },
        TYPE: {
            "which school trips are planned": "school trips",
            "who's the janitor": "janitors",
        },
        FACT: {
            "how tall is emilia novak": "height of Emilia Novak",
            "what does the debating society cost": "fee of Debating Society",
            "When was Theo Martens born?": "birth date of Theo Martens",
            "[typo] how many points did hanna vogt get in the frensh exam": "points of Hanna Vogt",
        },
    }
    return fill(g, questions, missing)


def read_transit() -> Graph:
    """Types are called by the document's keys; an address is called by its values."""
    document = json.loads((GRAPHS / "transit" / "lindmouth.json").read_text(encoding="utf-8"))
    nodes = [
        {"type": kind, "name": f"{kind.removesuffix('s')} {row['id']}"} | row
        for kind, rows in document.items()
        for row in rows
    ]
    names = {node["id"]: node["name"] for node in nodes}
    addresses = {", ".join(node["address"].values()): node["address"] for node in nodes if "address" in node}

    def named(value: Any) -> Any:
        if isinstance(value, list):
            return [named(inner) for inner in value]
        return ", ".join(value.values()) if isinstance(value, dict) else names.get(value, value)

    g = read_nodes(
        "transit", [{key: value if key == "id" else named(value) for key, value in n.items()} for n in nodes], ()
    )
    for name, parts in addresses.items():
        for key, value in parts.items():
            g.add(name, key, value)
    return g


def transit() -> Graph:
    g = read_transit()
    lines, stops, vehicles, drivers, models, depots, incidents, inspections = (
        g.all(kind) for kind in "lines stops vehicles drivers models depots incidents inspections".split()
    )
    trams = g.eq(lines, "mode", "tram")
    old_town, zone_4 = g.of("Old Town", "~district"), g.eq(stops, "zone", "4")
    served = {stop: lines & g.of(stop, "~stops") for stop in stops}
    repairs = lengths(g, incidents, "reported", "resolved")

    def powered(power: str) -> set[str]:
        return g.of(power, "~power", "~model")

    def at(depot: str) -> set[str]:
        return vehicles & g.of(depot, "~depot")

    def on(*own: str) -> set[str]:
        return vehicles & g.of(own, "~line")

    questions: dict[str, dict[str, Answer]] = {
        "direct": {
            "what colour is line 12": g.of("Line 12", "colour"),
            "where does metro a stop": g.of("Metro A", "stops"),
            "who is in charge of gasworks depot": g.of("Gasworks Depot", "manager"),
            "which lines call at the opera house": g.of("Opera House", "~stops"),
            "who taught rosa kimani": g.of("Rosa Kimani", "trained_by"),
            "[keyword] power swift 200": g.of("Swift 200", "power"),
            "[typo] wich zone is stadium in": g.of("Stadium", "zone"),
        },
        "path of two": {
            "Which company built Puffin?": g.of("Puffin", "model", "manufacturer"),
            "how many seats does the hedgehog have": g.of("Hedgehog", "model", "seats"),
            "where can you walk to from the stops of line 5": g.of("Line 5", "stops", "walk_to"),
        },
        "path of three": {
            "what country is mole two from": g.of("Mole Two", "model", "manufacturer", "country"),
            "Which lines use vehicles made by Tamar Coachworks?": g.of(
                "Tamar Coachworks", "~manufacturer", "~model", "line"
            ),
            "what street is the depot of line 5 on": g.of("Line 5", "depot", "address", "street"),
        },
        "type condition": {
            "[keyword] tram lines": trams,
        },
        "number condition": {
            "stops with fewer than 2000 passengers a day": g.less(stops, "passengers_per_day", 2000),
            "what has done more than a million kilometres": g.more(vehicles, "mileage_km", 1e6),
            "are there models that do more than 100 km/h": g.more(models, "top_speed_kmh", 100),
        },
        "date condition": {
            "vehicles that entered service after 2018": g.since(vehicles, "in_service_since", "2019"),
            "lines that opened in the 1970s": g.before(g.since(lines, "opened", "1970"), "opened", "1980"),
        },
        "text": {
            "stops with gate in their name": {name for name in stops if "gate" in name.lower().split()},
        },
        "boolean": {
            "which lines run at night": g.eq(lines, "night_service", "true"),
            "[keyword] vehicles no wifi": g.eq(vehicles, "wifi", "false"),
            "Which vehicles have failed an inspection?": g.of(g.eq(inspections, "passed", "false"), "vehicle"),
        },
        "negation": {
            "electric models not built by rautner werke": g.eq(models, "power", "electric")
            - g.of("Rautner Werke", "~manufacturer"),
        },
        "absence": {
            "stops that no line goes to": {stop for stop in stops if not served[stop]},
            "manufacturers we have no models of": g.lacks("manufacturers", "~manufacturer"),
            "[typo] drivers who wernt trained by anybody": g.lacks(drivers, "trained_by"),
            "models that we don't have a single vehicle of": g.lacks(models, "~model"),
        },
        "union": {
            "stops in northfield or southbank": g.eq(stops, "district", "Northfield", "Southbank"),
        },
        "intersection": {
            "where can i change between line 1 and line 5": g.of("Line 1", "stops") & g.of("Line 5", "stops"),
            "Are there drivers who can do both ferry and bus? Who?": g.of("ferry", "~drives") & g.of("bus", "~drives"),
            "electric vehicles at the gasworks depot": powered("electric") & at("Gasworks Depot"),
            "zone 4 stops you can't get into with a wheelchair": g.eq(zone_4, "wheelchair_access", "false"),
            "wifi on line 2, which vehicles have it": g.eq(on("Line 2"), "wifi", "true"),
        },
        "subtract": {
            "night owl stops except those in the old town": g.of("Night Owl", "stops") - old_town,
        },
        "rank": {
            "who has been driving for us the longest": g.top(drivers, "hired", low=True),
            "which incident took longest to fix": leaders(repairs),
        },
        "rank inside a path": {
            "which line goes to the least used stop": lines
            & g.of(g.top(stops, "passengers_per_day", low=True), "~stops"),
            "Who makes the fastest model?": g.of(g.top(models, "top_speed_kmh"), "manufacturer"),
        },
        "first k": {
            "3 longest lines": g.top(lines, "length_km", 3),
        },
        "count": {
            "how many times has something gone wrong on line 31": len(incidents & g.of("Line 31", "~line")),
            "how many drivers are based at westwood sidings": len(drivers & g.of("Westwood Sidings", "~depot")),
        },
        "sum": {
            "total delay in minutes on line 1": sum(g.numbers(incidents & g.of("Line 1", "~line"), "delay_min")),
        },
        "average": {
            "how many people use an old town stop each day on average": mean(g.numbers(old_town, "passengers_per_day")),
        },
        "share": {
            "what share of the stops has a shelter, in percent": percent(g.eq(stops, "shelter", "true"), stops),
        },
        "group": {
            "number of incidents by cause": g.groups(incidents, "cause"),
        },
        "compare": {
            "how many days did it take to resolve IN7": repairs["incident IN7"],
        },
        "yes/no": {
            "can i get on at lighthouse with a wheelchair": "true" in g.of("Lighthouse", "wheelchair_access"),
            "is there wifi on otter": "true" in g.of("Otter", "wifi"),
            "are all tram lines kept at eastyard": g.of(trams, "depot") == {"Eastyard"},
        },
        "where/when": {
            "where is magpie parked": g.of("Magpie", "depot"),
        },
        "than x": {
            "Which stops have more passengers than City Hospital?": than(
                g, "stops", "passengers_per_day", "City Hospital"
            ),
        },
        "only": {
            "which stops are served by the harbour ferry and nothing else": {
                stop for stop in stops if served[stop] == {"Harbour Ferry"}
            },
        },
        "every": {
            "Which stops do all the tram lines go to?": {stop for stop in stops if trams <= served[stop]},
        },
        "best of each": {
            "busiest stop in each district": best_of_each(g, "stops", "district", "passengers_per_day"),
        },
    }
    missing = {
        RELATION: {
            "how much is a ticket for the harbour ferry": "fare",
            "what does pete lovell earn": "salary",
            "When does the last Metro A train leave?": "timetable",
            "[keyword] licence plate otter": "licence plate",
            "how many people were hurt in IN6": "injuries",
            "Who designed Central Station?": "architect",
            "how old is walter pym": "birth date",
        },
        ENTITY: {
            "where does line 7 go": "Line 7",
            "which lines stop at the zoo": "Zoo",
            "how many seats does the pelican have": "Pelican",
        },
        TYPE: {
            "which ticket machines are out of order": "ticket machines",
            "[typo] where are the bike rental statoins": "bike rental stations",
        },
        FACT: {
            "how long is the expo shuttle": "length of Expo Shuttle",
            "When was Cleo Abara hired?": "hiring date of Cleo Abara",
            "how many people use opera house per day": "passengers of Opera House",
        },
    }
    return fill(g, questions, missing)


if __name__ == "__main__":
    write(HERE, (museum(), school(), transit()), check="--check" in sys.argv[1:])
