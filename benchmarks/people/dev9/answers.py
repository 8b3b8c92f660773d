"""Computes the gold answers of dev9 from its graph files, and writes a file of questions for each graph.

    python -m benchmarks.people.dev9.answers            # --check fails where a file is not what would be written

It reads the files with csv, json and rdflib.  A question may begin with its style in brackets.
"""

from __future__ import annotations

import json
import sys
from datetime import date
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.people.dev7.answers import best_of_each, exactly, has_only, leaders, same, than
from benchmarks.people.dev8.answers import lengths
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
    read_csv,
    read_keyed,
    read_rdf,
    write,
)

HERE = Path(__file__).resolve().parent
GRAPHS = HERE / "graphs"
FACT = "missing fact"


def age(g: Graph, name: str, start: str, end: str) -> float:
    """Full years from one date of a thing to another."""
    (first,), (last,) = ({date.fromisoformat(day) for day in g.of(name, relation)} for relation in (start, end))
    return last.year - first.year - ((last.month, last.day) < (first.month, first.day))


def least(counts: dict[str, float]) -> set[str]:
    """Those with the smallest number."""
    return {name for name, number in counts.items() if number == min(counts.values())}


def month(g: Graph, names: set[str], relation: str, start: str) -> set[str]:
    """Those whose date begins with what is given: a year, or a year and a month."""
    return g.test(names, relation, lambda value: value.startswith(start))


def port() -> Graph:
    g = read_rdf("port", GRAPHS / "port" / "skarnholm.ttl")
    ships, boxes, ferries, tankers, bulkers, tugs = (
        g.all(kind) for kind in "Ship ContainerShip Ferry Tanker BulkCarrier Tug".split()
    )
    pilots, captains, lines, terminals, berths, calls = (
        g.all(kind) for kind in "Pilot Captain ShippingLine Terminal Berth PortCall".split()
    )
    stays = lengths(g, calls, "arrived", "departed")
    oil = g.of("Oil Jetty", "~partOf", "~berth")
    questions: dict[str, dict[str, Answer]] = {
        "direct": {
            "which company does the cormorant belong to": g.of("Cormorant", "operatedBy"),
            "skipper of golden halcyon": g.of("Golden Halcyon", "captain"),
            "[typo] which langauges does kadri tamm know": g.of("Kadri Tamm", "speaks"),
            "[keyword] successor old henrik": g.of("Old Henrik", "replacedBy"),
        },
        "path of two": {
            "Which country is Baltfeeder's head office in?": g.of("Baltfeeder", "headquarters", "country"),
            "ships commanded by greeks": g.of(g.eq(captains, "nationality", "Greece"), "~captain"),
            "do we know who manages the terminal that berth k2 belongs to": g.of("Berth K2", "partOf", "manager"),
        },
        "path of three": {
            "which terminals has the cormorant been at": g.of("Cormorant", "~ship", "berth", "partOf"),
            "which pilots have handled ships of aegean pioneer": g.of(
                "Aegean Pioneer", "~operatedBy", "~ship", "pilot"
            ),
        },
        "type condition": {
            "which ferries fly the norwegian flag": g.eq(ferries, "flag", "Norway"),
            "tugs of lusomar": g.eq(tugs, "operatedBy", "Lusomar"),
        },
        "number condition": {
            "which berths take ships with 14 metres of draught": g.test(
                berths, "maxDraughtMetres", lambda value: float(value) >= 14
            ),
            "calls that cost more than 50000 euros in fees": g.more(calls, "portFeeEur", 50000),
            "shipping lines with fewer than 40 staff": g.less(lines, "employees", 40),
        },
        "date condition": {
            "Who became a pilot after 2015?": g.since(pilots, "licensedSince", "2016"),
            "which ships came in april 2025": g.of(month(g, calls, "arrived", "2025-04"), "ship"),
            "terminals opened since 2000": g.since(terminals, "opened", "2000"),
        },
        "text": {
            "calls with something about customs in the remarks": g.says(calls, "remarks", "customs"),
            "any call where a strike is mentioned": g.says(calls, "remarks", "strike"),
        },
        "boolean": {
            "at which berths can ships plug in to shore power": g.eq(berths, "shorePower", "true"),
            "do any bulk carriers have ice class? which": g.eq(bulkers, "iceClass", "true"),
        },
        "negation": {
            "container ships that aren't ice class": g.eq(boxes, "iceClass", "false"),
            "pilots who don't speak english": pilots - g.eq(pilots, "speaks", "English"),
        },
        "absence": {
            "which call had no pilot": g.lacks(calls, "pilot"),
            "container ships without a captain": g.lacks(boxes, "captain"),
            "which ships are still in port, i mean no departure yet": g.of(g.lacks(calls, "departed"), "ship"),
        },
        "union": {"captains from estonia or portugal": g.eq(captains, "nationality", "Estonia", "Portugal")},
        "intersection": {
            "who speaks both greek and russian": g.eq("Person", "speaks", "Greek")
            & g.eq("Person", "speaks", "Russian"),
            "ships that have been at k1 and also at k2": g.of("Berth K1", "~berth", "ship")
            & g.of("Berth K2", "~berth", "ship"),
        },
        "subtract": {"all ships under norwegian flag but not the tugs": g.eq(ships, "flag", "Norway") - tugs},
        "rank": {
            "oldest captain": g.top(captains, "born", low=True),
            "[typo] fastest ferrry": g.top(ferries, "speedKnots"),
            "which call was the longest stay": leaders(stays),
        },
        "rank inside a path": {
            "captain of the longest ship": g.of(g.top(ships, "lengthMetres"), "captain"),
            "who was the pilot when the most cargo was unloaded": g.of(g.top(calls, "unloadedTonnes"), "pilot"),
        },
        "first k": {"3 ships with the most people working on board": g.top(ships, "crew", 3)},
        "count": {
            "how many calls did silje aune handle": len(g.of("Silje Aune", "~pilot")),
            "How many tankers does Fjordlink run?": len(g.eq(tankers, "operatedBy", "Fjordlink")),
        },
        "sum": {
            "tonnes unloaded at the oil jetty altogether": sum(g.numbers(oil, "unloadedTonnes")),
            "total teu of the nordkap fleet": sum(g.numbers(g.of("Nordkap Lines", "~operatedBy"), "capacityTeu")),
        },
        "average": {
            "[typo] how many days do calls at the oil jetty last on avarage": mean(
                list(lengths(g, oil, "arrived", "departed").values())
            ),
        },
        "share": {"what percentage of our ships is ice class": percent(g.eq(ships, "iceClass", "true"), ships)},
        "group": {"number of ships per flag": g.groups(ships, "flag")},
        "compare": {"which is longer, wheatear or harvest moon": g.top({"Wheatear", "Harvest Moon"}, "lengthMetres")},
        "yes/no": {
            "is petrel a sister of cormorant": "Cormorant" in g.of("Petrel", "sisterShip"),
            "Does Magnus Eide speak Russian?": "Russian" in g.of("Magnus Eide", "speaks"),
            "is thalassa dawn faster than oleander": one(g.of("Thalassa Dawn", "speedKnots"))
            > one(g.of("Oleander", "speedKnots")),
        },
        "where/when": {
            "when did tagus trader leave": g.of("Tagus Trader", "~ship", "departed"),
            "where is lusomar based": g.of("Lusomar", "headquarters"),
        },
        "two properties": {
            "how old was kadri tamm when she got her licence": age(g, "Kadri Tamm", "born", "licensedSince")
        },
        "than x": {"what's faster than the aurelia star": than(g, "Ship", "speedKnots", "Aurelia Star")},
        "than average": {
            "ferries with more crew than the average ferry": g.more(ferries, "crew", mean(g.numbers(ferries, "crew")))
        },
        "same as": {"other ships under the same flag as oleander": same(g, ships, "flag", "Oleander")},
        "exactly": {"pilots who speak exactly two languages": exactly(g, pilots, 2, "speaks")},
        "best group": {"which line has the most ships": leaders(g.tally(ships, "operatedBy"))},
    }
    missing: dict[str, dict[str, str]] = {
        RELATION: {
            "which shipyard built the princess liisa": "shipyard",
            "salary of rein lepik": "salary",
            "how much fuel does lady sunniva burn per day": "fuel consumption",
            "Which port did the Tagus Trader come from?": "previous port",
            "what colour is ulv": "colour",
            "how many passengers were on board the princess liisa in february": "passengers on board",
            "who is ingvild thorsen married to": "spouse",
        },
        ENTITY: {
            "captain of the sea eagle": "Sea Eagle",
            "length of berth k7": "Berth K7",
            "what ships does hansa bulk operate": "Hansa Bulk",
        },
        TYPE: {
            "list of lighthouses": "lighthouses",
            "[typo] which customs oficers are on duty": "customs officers",
        },
        FACT: {
            "how many people work for lusomar": "employees of Lusomar",
            "When was Tord Rasmussen born?": "date of birth of Tord Rasmussen",
            "what was the fee for call 320": "fee of Call 320",
        },
    }
    return fill(g, questions, missing)


def read_brigade() -> Graph:
    """The graph of the tables; `vehicle` and `attended` are those of the tables of links.

    No two tables share a key.
    """
    folder = GRAPHS / "brigade"
    naming = {
        "districts": "district",
        "stations": "station_name",
        "firefighters": "name",
        "vehicles": "nickname",
        "callouts": "title",
        "courses": "course",
    }
    rows = {table: read_csv(folder / f"{table}.csv") for table in naming}
    people = dict.fromkeys("officer_in_charge supervisor_id leader_id instructor_id".split(), "firefighters")
    places = {"district_id": "districts", "part_of": "districts", "station_id": "stations", "replaced_by": "vehicles"}
    g = read_keyed("brigade", {table: (rows[table], column) for table, column in naming.items()}, people | places)
    called = {next(iter(row.values())): row[naming[table]] for table in rows for row in rows[table]}
    for row in read_csv(folder / "callout_vehicles.csv"):
        g.add(called[row["callout_id"]], "vehicle", called[row["vehicle_id"]])
    for row in read_csv(folder / "attendance.csv"):
        g.add(called[row["ff_id"]], "attended", called[row["course_id"]])
    return g


def brigade() -> Graph:
    g = read_brigade()
    people, vehicles, callouts, courses, stations, districts = (
        g.all(kind) for kind in "firefighters vehicles callouts courses stations districts".split()
    )
    false = g.eq(callouts, "false_alarm", "yes")
    pumpers = g.eq(vehicles, "kind", "pumper")
    services = lengths(g, vehicles, "bought_on", "retired_on")
    baths, pier = "Chlorine leak at the public baths", "Warehouse fire at Pier Nine"
    questions: dict[str, dict[str, Answer]] = {
        "direct": {
            "who leads quayside station": g.of("Quayside Station", "officer_in_charge"),
            "who reports to polly hargreave": g.of("Polly Hargreave", "~supervisor_id"),
            "[typo] which vehicels went to the warehouse fire at pier nine": g.of(pier, "vehicle"),
            "What took the place of Old Smoky?": g.of("Old Smoky", "replaced_by"),
        },
        "path of two": {
            "in which district is joan ellery stationed": g.of("Joan Ellery", "station_id", "district_id"),
            "who sat in a course given by margit oswald": g.of("Margit Oswald", "~instructor_id", "~attended"),
            "which courses have callum reddy's people been to": g.of("Callum Reddy", "~supervisor_id", "attended"),
        },
        "path of three": {
            "which stations sent vehicles to callouts in millfield": g.of(
                "Millfield", "~district_id", "vehicle", "station_id"
            ),
            "the person in command at the burning bins behind the arcade, what district is her station in": g.of(
                "Burning bins behind the arcade", "leader_id", "station_id", "district_id"
            ),
        },
        "type condition": {
            "pumpers at bell street": g.eq(pumpers, "station_id", "Bell Street Station"),
            "foam trucks at ashgrove station": g.eq(
                g.eq(vehicles, "kind", "foam truck"), "station_id", "Ashgrove Station"
            ),
        },
        "number condition": {
            "districts with more than 9000 people": g.more(districts, "inhabitants", 9000),
            "Which callouts took over five hours?": g.more(callouts, "duration_min", 300),
            "any vehicle that cost over a million euros": g.more(vehicles, "price_eur", 1000000),
        },
        "date condition": {
            "stations older than 1950": g.before(stations, "opened", "1950"),
            "callouts in may 2025": month(g, callouts, "alarm_date", "2025-05"),
            "courses starting in july 2025": month(g, courses, "starts_on", "2025-07"),
        },
        "text": {
            "callouts with strong wind noted": g.says(callouts, "remark", "strong wind"),
        },
        "boolean": {
            "which stations are run by volunteers": g.eq(stations, "volunteer", "yes"),
            "false alarms in the old town": g.eq(false, "district_id", "Old Town"),
            "probationers with a truck licence": g.eq(g.eq(people, "rank", "probationer"), "truck_licence", "yes"),
        },
        "negation": {
            "who at quayside station may not drive trucks": g.eq(
                g.of("Quayside Station", "~station_id") & people, "truck_licence", "no"
            ),
        },
        "absence": {
            "station without officer in charge": g.lacks(stations, "officer_in_charge"),
            "vehicles that never went to a callout": g.lacks(vehicles, "~vehicle"),
            "callouts where no vehicle was sent": g.lacks(callouts, "vehicle"),
        },
        "union": {
            "who has been to leading a crew or to rope rescue": g.eq(
                people, "attended", "Leading a Crew", "Rope Rescue"
            )
        },
        "intersection": {
            "Who did both Water Rescue and Rope Rescue?": g.eq(people, "attended", "Water Rescue")
            & g.eq(people, "attended", "Rope Rescue"),
            "vehicles that were at the warehouse fire at pier nine and at the gas smell in tiller street": g.of(
                pier, "vehicle"
            )
            & g.of("Gas smell in Tiller Street", "vehicle"),
        },
        "subtract": {
            "pumpers without the retired ones": pumpers & g.lacks(vehicles, "retired_on"),
        },
        "rank": {
            "longest callout": g.top(callouts, "duration_min"),
            "best paid crew commander": g.top(g.eq(people, "rank", "crew commander"), "monthly_pay_eur"),
            "who was youngest on joining": least(lengths(g, people, "birth_date", "joined")),
        },
        "rank inside a path": {
            "who led the callout where most people were saved": g.of(g.top(callouts, "people_rescued"), "leader_id"),
            "[typo] at wich station is the dearest vehicle": g.of(g.top(vehicles, "price_eur"), "station_id"),
        },
        "first k": {"the two districts where the most people live": g.top(districts, "inhabitants", 2)},
        "count": {
            "how many callouts in the docklands": len(g.of("Docklands", "~district_id") & callouts),
            "how many callouts has joan ellery led": len(g.of("Joan Ellery", "~leader_id")),
        },
        "sum": {
            "people rescued in water callouts all in all": sum(
                g.numbers(g.eq(callouts, "kind", "water"), "people_rescued")
            ),
        },
        "average": {
            "How long does a false alarm take on average?": mean(g.numbers(false, "duration_min")),
        },
        "share": {"how many percent of the callouts were false alarms": percent(false, callouts)},
        "group": {"people rescued for each kind of callout": g.groups(callouts, "kind", "people_rescued")},
        "compare": {
            "who's been in the brigade longer, gerda lohmann or walter prewitt": g.top(
                {"Gerda Lohmann", "Walter Prewitt"}, "joined", low=True
            )
        },
        "yes/no": {
            "does hilde baumann report to irena kowalczyk": "Irena Kowalczyk" in g.of("Hilde Baumann", "supervisor_id"),
            "Is Polly Hargreave allowed to drive trucks?": g.of("Polly Hargreave", "truck_licence") == {"yes"},
            "was giraffe at the barn fire at coppock farm": "Giraffe" in g.of("Barn fire at Coppock Farm", "vehicle"),
        },
        "where/when": {
            "when did rosalind teague leave": g.of("Rosalind Teague", "left_on"),
            "where was lorry driving held": g.of("Lorry Driving", "venue"),
        },
        "two properties": {
            "vehicles that were in service for more than 28 years": {
                name for name, length in services.items() if length > 28 * 365.25
            },
            "age of albert finch when he left": age(g, "Albert Finch", "birth_date", "left_on"),
        },
        "than x": {
            "callouts longer than the chlorine leak at the public baths": than(g, "callouts", "duration_min", baths)
        },
        "same as": {"who else has polly hargreave's boss": same(g, people, "supervisor_id", "Polly Hargreave")},
        "only": {
            "vehicles used only for callouts in the docklands": has_only(
                g, vehicles, "Docklands", "~vehicle", "district_id"
            )
        },
        "exactly": {"callouts with exactly four vehicles": exactly(g, callouts, 4, "vehicle")},
        "best of each": {
            "the dearest vehicle of every station": best_of_each(g, "vehicles", "station_id", "price_eur")
        },
        "best group": {"which vehicle was called out most often": leaders(g.tally(callouts, "vehicle"))},
    }
    missing: dict[str, dict[str, str]] = {
        RELATION: {
            "blood group of callum reddy": "blood group",
            "phone number ashgrove station": "phone number",
            "what's the number plate of hector": "number plate",
            "who reported the heath fire above the quarry": "caller",
            "How much damage did the warehouse fire at Pier Nine do?": "damage in money",
            "top speed of goat": "top speed",
            "how many kids does gerda lohmann have": "children",
        },
        ENTITY: {
            "when was kevin marlow hired": "Kevin Marlow",
            "which vehicles are at castle street station": "Castle Street Station",
            "who led the fire at the opera": "fire at the opera",
        },
        TYPE: {
            "hydrants in millfield": "hydrants",
            "[typo] wich hospitals take people with burns": "hospitals",
        },
        FACT: {
            "how long did the diesel spill at ferry steps take": "duration of Diesel spill at Ferry Steps",
            "what did we pay for old smoky": "price of Old Smoky",
            "inhabitants of tarn weir": "inhabitants of Tarn Weir",
        },
    }
    return fill(g, questions, missing)


def read_platform() -> Graph:
    """The graph of the document; what is nested leads to what it is in by `department` or `team`."""
    data: dict[str, Any] = json.loads((GRAPHS / "platform" / "quillhouse.json").read_text(encoding="utf-8"))
    g = Graph("platform")

    def thing(kind: str, row: dict[str, Any], naming: str = "name") -> str:
        g.things[kind].append(row[naming])
        for key in row.keys() - {naming, "teams", "members", "services", "database"}:
            for value in row[key] if isinstance(row[key], list) else [row[key]]:
                g.add(row[naming], key, value)
        return str(row[naming])

    for department in data["departments"]:
        whole = thing("department", department)
        for team in department["teams"]:
            g.add(own := thing("team", team), "department", whole)
            for member in team["members"]:
                g.add(thing("person", member), "team", own)
            for service in team["services"]:
                g.add(name := thing("service", service), "team", own)
                if "database" in service:
                    g.add(name, "database", thing("database", service["database"]))
    for incident in data["incidents"]:
        thing("incident", incident, "title")
    for vendor in data["vendors"]:
        thing("vendor", vendor)
    return g


def platform() -> Graph:
    g = read_platform()
    people, services, databases, teams, incidents, vendors = (
        g.all(kind) for kind in "person service database team incident vendor".split()
    )
    worst, second = (g.eq(incidents, "severity", number) for number in "12")
    fixes = lengths(g, incidents, "started", "resolved")
    questions: dict[str, dict[str, Answer]] = {
        "direct": {
            "[keyword] programming language postbox": g.of("postbox", "language"),
            "what is lotte verhulst good at": g.of("Lotte Verhulst", "skills"),
            "Which services need newsflash to run?": g.of("newsflash", "~depends_on"),
            "[typo] wich services were hit by double charges": g.of("Double charges", "affected_services"),
        },
        "path of two": {
            "who heads the department the basket team is in": g.of("Basket", "department", "head"),
            "where does bashir noori's mentor live": g.of("Bashir Noori", "mentor", "city"),
            "countries of the vendors that paybridge uses": g.of("paybridge", "~used_by", "country"),
        },
        "path of three": {
            "which database engines do the services of the basket team use": g.of(
                g.of("Basket", "~team") & services, "database", "engine"
            ),
            "which department had to deal with the mails sent twice, going by the service": g.of(
                "Mails sent twice", "affected_services", "team", "department"
            ),
        },
        "type condition": {
            "team leads in valencia": g.eq(g.eq(people, "job", "team lead"), "city", "Valencia"),
            "any designers in ghent": g.eq(g.eq(people, "job", "designer"), "city", "Ghent"),
        },
        "number condition": {
            "services with over 5000 requests a minute": g.more(services, "requests_per_minute", 5000),
            "Which incidents hit more than 50,000 customers?": g.more(incidents, "customers_affected", 50000),
            "services that cost more than 10k a month": g.more(services, "monthly_cost_eur", 10000),
        },
        "date condition": {
            "who came to us in 2021": month(g, people, "joined", "2021"),
            "incidents that began in march": g.test(incidents, "started", lambda value: value[5:7] == "03"),
            "teams founded since 2022": g.since(teams, "founded", "2022"),
        },
        "text": {
            "incidents with orders in the title": {name for name in incidents if "orders" in name.lower()},
            "services whose purpose has something to do with cards": g.says(services, "purpose", "card"),
        },
        "boolean": {
            "public services written in kotlin": g.eq(g.eq(services, "language", "Kotlin"), "public", "true"),
            "heads of department who are on call": g.eq(g.eq(people, "job", "head of department"), "on_call", "true"),
        },
        "negation": {
            "severity 1 incidents without a postmortem": g.eq(worst, "postmortem", "false"),
            "people in storefront who don't know typescript": (g.of("Storefront", "~team") & people)
            - g.eq(people, "skills", "TypeScript"),
        },
        "absence": {
            "services with no database": g.lacks(services, "database"),
            "incidents that are still not resolved": g.lacks(incidents, "resolved"),
            "which severity 1 incidents are still open": g.lacks(worst, "resolved"),
        },
        "union": {"who knows kafka or elixir": g.eq(people, "skills", "Kafka", "Elixir")},
        "intersection": {
            "somebody with python and also postgresql": g.eq(people, "skills", "Python")
            & g.eq(people, "skills", "PostgreSQL"),
            "incidents that hit both pricebook and shopwindow": g.eq(incidents, "affected_services", "pricebook")
            & g.eq(incidents, "affected_services", "shopwindow"),
        },
        "subtract": {
            "go people who are not in payments": g.eq(people, "skills", "Go") - g.eq(people, "team", "Payments")
        },
        "rank": {
            "cheapest vendor": g.top(vendors, "yearly_fee_eur", low=True),
            "[typo] bigest database": g.top(databases, "size_gb"),
            "which incident took longest to fix": leaders(fixes),
        },
        "rank inside a path": {
            "who led the incident with the most customers affected": g.of(
                g.top(incidents, "customers_affected"), "led_by"
            ),
        },
        "first k": {"top 3 services by monthly cost": g.top(services, "monthly_cost_eur", 3)},
        "count": {
            "how many incidents has checkout been part of": len(g.of("checkout", "~affected_services")),
            "how many incidents did priscilla amadi lead": len(g.of("Priscilla Amadi", "~led_by")),
        },
        "sum": {
            "total monthly cost of the payments services": sum(
                g.numbers(g.of("Payments", "~team") & services, "monthly_cost_eur")
            ),
        },
        "average": {
            "How many days does it take on average to resolve a severity 2 incident?": mean(
                list(lengths(g, second, "started", "resolved").values())
            ),
        },
        "share": {
            "share of incidents with a postmortem in percent": percent(g.eq(incidents, "postmortem", "true"), incidents)
        },
        "group": {"how many services have we got in each programming language": g.groups(services, "language")},
        "compare": {
            "what gets more requests, bookfinder or gatekeeper": g.top(
                {"bookfinder", "gatekeeper"}, "requests_per_minute"
            )
        },
        "yes/no": {
            "does checkout depend on postbox": "postbox" in g.of("checkout", "depends_on"),
            "is ledger public": g.of("ledger", "public") == {"true"},
            "Was paybridge affected by the login loop?": "paybridge" in g.of("Login loop", "affected_services"),
        },
        "where/when": {
            "where does oskari lehto live": g.of("Oskari Lehto", "city"),
            "when did birgit aasen leave us": g.of("Birgit Aasen", "left"),
        },
        "two properties": {
            "how many days did slow product pages last": days(g, "Slow product pages", "started", "resolved"),
        },
        "than x": {"services that cost more than checkout": than(g, "service", "monthly_cost_eur", "checkout")},
        "than average": {
            "databases larger than average": g.more(databases, "size_gb", mean(g.numbers(databases, "size_gb")))
        },
        "every": {
            "which team has everybody on call": {
                team for team in teams if g.of(g.of(team, "~team") & people, "on_call") == {"true"}
            }
        },
        "best of each": {
            "per severity, the incident with the most customers affected": best_of_each(
                g, "incident", "severity", "customers_affected"
            )
        },
        "best group": {"what is the most frequent cause of incidents": leaders(g.tally(incidents, "cause"))},
        "median": {
            "median traffic of our services in requests per minute": median(g.numbers(services, "requests_per_minute"))
        },
        "other than": {
            "storefront people who live elsewhere than leeds": g.test(
                g.of("Storefront", "~team") & people, "city", lambda value: value != "Leeds"
            )
        },
    }
    missing: dict[str, dict[str, str]] = {
        RELATION: {
            "salary of robin taverner": "salary",
            "which git repo is checkout in": "repository",
            "how much memory does vault use": "memory",
            "Winnie Lau's email address?": "email address",
            "what postgres version runs orders-db": "version of the database",
            "who first reported the login loop": "reporter",
            "how many open bugs has ledger got": "bugs",
        },
        ENTITY: {
            "who maintains the recommender service": "recommender",
            "when did frank osborne join": "Frank Osborne",
            "incidents of delivery-api": "delivery-api",
        },
        TYPE: {
            "list our data centres": "data centres",
            "[typo] whats the next public holliday": "public holidays",
        },
        FACT: {
            "when was winnie lau born": "date of birth of Winnie Lau",
            "how many customers were affected by search without umlauts": "customers of Search without umlauts",
            "what caused the late card refunds": "cause of Late card refunds",
        },
    }
    return fill(g, questions, missing)


if __name__ == "__main__":
    write(HERE, (port(), brigade(), platform()), check="--check" in sys.argv[1:])
