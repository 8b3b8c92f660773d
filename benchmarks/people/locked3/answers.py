"""Computes the gold answers of locked3 from its graph files, and writes a file of questions for each graph.

    python -m benchmarks.people.locked3.answers

It reads the files with csv, xml and rdflib.  A question may begin with its style in brackets.
"""

from __future__ import annotations

import csv
from pathlib import Path
from xml.etree import ElementTree

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
SPACE = "{http://graphml.graphdrawing.org/xmlns}"


def read_powergrid() -> Graph:
    """An edge that is not directed is one in either direction."""
    root = ElementTree.parse(GRAPHS / "powergrid" / "powergrid.graphml").getroot()

    def data(element: ElementTree.Element) -> dict[str, str]:
        return {item.attrib["key"].removeprefix("e_"): item.text or "" for item in element.iter(SPACE + "data")}

    nodes = [{"id": node.attrib["id"], **data(node)} for node in root.iter(SPACE + "node")]
    links = []
    for edge in root.iter(SPACE + "edge"):
        ends = (edge.attrib["source"], edge.attrib["target"])
        for source, target in (ends, ends[::-1]) if edge.get("directed") == "false" else (ends,):
            rest = data(edge)
            links.append({"source": source, "target": target, "relation": rest.pop("label"), **rest})
    return read_nodes("powergrid", [{"type": node.pop("labels")[1:], **node} for node in nodes], links)


def powergrid() -> Graph:
    g = read_powergrid()
    town, plant, station = "Town", "PowerPlant", "Substation"
    worker, outage = "Technician", "Outage"
    coast, wind = g.eq(town, "region", "Coast"), g.eq(plant, "fuel", "wind")
    unmanned = g.eq(station, "manned", "false")
    questions: dict[str, dict[str, Answer]] = {
        "direct": {
            "who does tomas lind learn from": g.of("Tomas Lind", "trained_by"),
            "who do i ring about alder substation": g.of("Alder Substation", "~responsible_for"),
            "what does hagg dam run on": g.of("Hagg Dam", "fuel"),
            "which towns hang off dogwood": g.of("Dogwood Substation", "supplies"),
            "[keyword] mayor tolmers": g.of("Tolmers", "mayor"),
            "who's in charge at Coastal Energy?": g.of("Coastal Energy", "director"),
            "what is cedar substation wired up to": g.of("Cedar Substation", "connected_to"),
            "owner of the sallow mill turbine": g.of("Sallow Mill Turbine", "~owns"),
            "why did the lights go out in outage 2022-B": g.of("Outage 2022-B", "cause"),
        },
        "path of two": {
            "phone of whoever looks after hazel substation": g.of("Hazel Substation", "~responsible_for", "phone"),
            "Which company runs the substation that supplies Lissen?": g.of("Lissen", "~supplies", "~operates"),
            "power stations that feed the substation of sallow bridge": g.of("Sallow Bridge", "~supplies", "~feeds"),
            "what fuels does brightfield renewables use": g.of("Brightfield Renewables", "owns", "fuel"),
            "in what region is kestrel wind farm": g.of("Kestrel Wind Farm", "located_near", "region"),
            "who works for the firm that owns whitecliff array": g.of("Whitecliff Array", "~owns", "~works_for"),
            "[typo] wich outages began at a substation noor haddad takes care of": g.of(
                "Noor Haddad", "responsible_for", "~started_at"
            ),
        },
        "path of three": {
            "which towns do plants of uplands power cooperative end up supplying": g.of(
                "Uplands Power Cooperative", "owns", "feeds", "supplies"
            ),
            "employer of the technician who looks after dunmere's substation": g.of(
                "Dunmere", "~supplies", "~responsible_for", "works_for"
            ),
        },
        "type condition": {
            "[keyword] hydro plants": g.eq(plant, "fuel", "hydro"),
        },
        "number condition": {
            "plants of more than 300 megawatts": g.more(plant, "capacity_mw", 300),
            "towns with fewer than 6000 people": g.less(town, "population", 6000),
            "outages that lasted longer than a day": g.more(outage, "duration_hours", 24),
        },
        "date condition": {
            "power plants that went online after 2015": g.since(plant, "commissioned", "2016"),
            "what outages did we have in 2022": g.says(outage, "date", "2022"),
            "Who was taken on before the year 2000?": g.before(worker, "employed_since", "2000"),
            "substations built in the nineteen-fifties": g.before(g.since(station, "built", "1950"), "built", "1960"),
        },
        "text": {
            "outages blamed on a storm": g.says(outage, "cause", "storm"),
        },
        "boolean": {
            "[typo] unmaned substations": unmanned,
        },
        "negation": {
            "plants that run on something other than gas, coal or wind": g.all(plant)
            - g.eq(plant, "fuel", "gas", "coal", "wind"),
        },
        "absence": {
            "which towns are in nobody's supply area": g.lacks(town, "~supplies"),
            "substations no company operates": g.lacks(station, "~operates"),
        },
        "union": {
            "towns on the coast or in the plain": g.eq(town, "region", "Coast", "Plain"),
        },
        "intersection": {
            "coastal towns with a hospital": coast & g.eq(town, "has_hospital", "true"),
            "220 kV substations that nobody mans": unmanned & g.eq(station, "voltage_kv", "220"),
            "solar plants of coastal energy": g.eq(plant, "fuel", "solar") & g.of("Coastal Energy", "owns"),
        },
        "subtract": {
            "everything brightfield owns except wind": g.of("Brightfield Renewables", "owns") - wind,
        },
        "rank": {
            "oldest power station still on the books": g.top(plant, "commissioned", low=True),
            "third biggest town": g.top(town, "population", 3) - g.top(town, "population", 2),
        },
        "rank inside a path": {
            "who owns the plant with the worst co2 figure": g.of(g.top(plant, "co2_kilotonnes"), "~owns"),
            "towns hit by the longest outage": g.of(g.top(outage, "duration_hours"), "hit"),
        },
        "first k": {
            "the 3 largest plants by capacity": g.top(plant, "capacity_mw", 3),
        },
        "count": {
            "[typo] how many plants dose coastal energy own": len(g.of("Coastal Energy", "owns")),
            "how often was tolmers hit": len(g.of("Tolmers", "~hit")),
            "number of substations run by helio partners": len(g.of("Helio Partners", "operates")),
        },
        "sum": {
            "total capacity of all wind farms": sum(g.numbers(wind, "capacity_mw")),
        },
        "average": {
            "avg outage duration in hours": mean(g.numbers(g.all(outage), "duration_hours")),
        },
        "share": {
            "what percentage of the towns has a hospital": percent(g.eq(town, "has_hospital", "true"), g.all(town)),
        },
        "group": {
            "installed capacity by fuel": g.groups(plant, "fuel", "capacity_mw"),
        },
        "compare": {
            "how many more inhabitants has ostrand than brackwater": one(g.of("Ostrand", "population"))
            - one(g.of("Brackwater", "population")),
        },
        "yes/no": {
            "is there a line between elm substation and gorse substation": "Gorse Substation"
            in g.of("Elm Substation", "connected_to"),
            "is helio partners on the stock market": "true" in g.of("Helio Partners", "publicly_listed"),
        },
        "where/when": {
            "when does old tolmers coal station shut": g.of("Old Tolmers Coal Station", "closing"),
            "where does uplands power cooperative have its head office": g.of(
                "Uplands Power Cooperative", "headquartered_in"
            ),
            "at what substation did outage 2023-a begin": g.of("Outage 2023-A", "started_at"),
            "how long in km is the line from alder substation to elm substation": g.of(
                "Alder Substation|Elm Substation", "length_km"
            ),
        },
    }
    missing = {
        RELATION: {
            "[typo] wich bank lent money to helio partners": "lender",
            "efficiency of lissen biogas": "efficiency",
            "who delivers the gas for brackwater gas works": "supplier of fuel",
            "price per kilowatt hour at coastal energy": "price",
            "[keyword] salary marta quill": "salary",
            "how deep is the reservoir of hagg dam": "depth",
            "who built the elm substation": "builder",
            "how many turbines are there at whitecliff array": "number of turbines",
            "Is the Ostrand Incinerator insured?": "insurance",
            "how many staff has brightfield renewables": "number of employees",
        },
        ENTITY: {
            "did outage 2018-c hit ostrand": "Outage 2018-C",
            "who is responsible for willow substation": "Willow Substation",
            "when was the pennard tidal plant commissioned": "Pennard Tidal Plant",
        },
        TYPE: {
            "list our customers in tolmers": "customers",
            "which charging stations are there in ostrand": "charging stations",
        },
    }
    return fill(g, questions, missing)


def read_climbing() -> Graph:
    """Relations are called by the columns; an ascent, which has no name, by its table and key."""
    tables = {}
    for name, naming in {"crags": "name", "routes": "name", "climbers": "name", "ascents": ""}.items():
        with (GRAPHS / "climbing" / f"{name}.csv").open(encoding="utf-8", newline="") as file:
            tables[name] = (list(csv.DictReader(file)), naming)
    links = {"crag_id": "crags", "route_id": "routes", "climber_id": "climbers"}
    links |= {"first_climber_id": "climbers", "coach_climber_id": "climbers"}
    return read_keyed("climbing", tables, links)


def climbing() -> Graph:
    g = read_climbing()
    crag, route, person, ascent = "crags", "routes", "climbers", "ascents"
    trad, dogs = g.eq(route, "style", "trad"), g.eq(crag, "dogs_allowed", "true")
    top_rated, onsights = g.eq(route, "stars", "3"), g.eq(ascent, "how", "onsight")

    def done(name: str) -> set[str]:
        return g.of(name, "~climber_id", "route_id")

    questions: dict[str, dict[str, Answer]] = {
        "direct": {
            "what rock is seal point": g.of("Seal Point", "rock"),
            "who put up hot iron": g.of("Hot Iron", "first_climber_id"),
            "how hard is cauldron": g.of("Cauldron", "difficulty"),
            "whose coach is ada kerrigan": g.of("Ada Kerrigan", "~coach_climber_id"),
            "[keyword] phone greta nyman": g.of("Greta Nyman", "phone"),
            "how far do i have to walk to witch tower, in minutes": g.of("Witch Tower", "walk_in_minutes"),
            "Who opened Third Sister?": g.of("Third Sister", "first_climber_id"),
        },
        "path of two": {
            "what has ben thorsby climbed": done("Ben Thorsby"),
            "which way does the crag with selkie on it face": g.of("Selkie", "crag_id", "faces"),
            "who has done crow's feet": g.of("Crow's Feet", "~route_id", "climber_id"),
            "town near the rock where i find powder keg": g.of("Powder Keg", "crag_id", "nearest_town"),
            "job of the guy who coaches kira sand": g.of("Kira Sand", "coach_climber_id", "occupation"),
            "has anybody climbed melting point? who": g.of("Melting Point", "~route_id", "climber_id"),
            "[typo] at wich crags has lars penrose made first ascents": g.of(
                "Lars Penrose", "~first_climber_id", "crag_id"
            ),
        },
        "path of three": {
            "which areas has isla brand ticked something in": g.of(done("Isla Brand"), "crag_id", "region"),
            "what kinds of rock has Finn Oldcastle been on?": g.of(done("Finn Oldcastle"), "crag_id", "rock"),
            "routes that greta nyman's pupils have climbed": g.of(
                "Greta Nyman", "~coach_climber_id", "~climber_id", "route_id"
            ),
        },
        "type condition": {
            "[keyword] boulder problems": g.eq(route, "style", "boulder"),
            "granite crags": g.eq(crag, "rock", "granite"),
        },
        "number condition": {
            "anything harder than 22": g.more(route, "difficulty", 22),
            "routes with 15 bolts or more": g.more(route, "bolts", 14),
            "crags less than a quarter of an hour from the car": g.less(crag, "walk_in_minutes", 15),
        },
        "date condition": {
            "who joined the club in the nineties": g.before(
                g.since(person, "joined_club", "1990"), "joined_club", "2000"
            ),
            "lines first done since 2020": g.since(route, "first_climbed", "2020"),
            "what got climbed in 2018": g.of(g.says(ascent, "climbed_on", "2018"), "route_id"),
            "members born after 2008": g.since(person, "born", "2009"),
        },
        "boolean": {
            "where can i bring the dog": dogs,
        },
        "text": {
            "routes with blue in the name": {name for name in g.all(route) if "blue" in name.lower()},
        },
        "negation": {
            "routes at goat wall that don't have three stars": g.of("Goat Wall", "~crag_id") - top_rated,
        },
        "absence": {
            "routes without a single logged ascent": g.lacks(route, "~route_id"),
            "climbers without a coach who never logged an ascent": g.lacks(person, "coach_climber_id")
            & g.lacks(person, "~climber_id"),
        },
        "union": {
            "sandstone and slate crags please": g.eq(crag, "rock", "sandstone", "slate"),
        },
        "intersection": {
            "sport routes at the anvil": g.eq(g.of("The Anvil", "~crag_id"), "style", "sport"),
            "trad lines with three stars": trad & top_rated,
            "dog friendly crags in high fells": dogs & g.eq(crag, "region", "High Fells"),
            "routes both ada kerrigan and cleo marchetti have done": done("Ada Kerrigan") & done("Cleo Marchetti"),
            "students who coach somebody": g.eq(person, "occupation", "student")
            & g.of(g.all(person), "coach_climber_id"),
        },
        "subtract": {
            "what has dev patel-ross done that greta nyman hasn't": done("Dev Patel-Ross") - done("Greta Nyman"),
        },
        "rank": {
            "[typo] longst route": g.top(route, "length_m"),
            "[typo] second higest crag": g.top(crag, "height_m", 2) - g.top(crag, "height_m"),
            "youngest climber in the club": g.top(person, "born"),
        },
        "rank inside a path": {
            "who first climbed the oldest route": g.of(g.top(route, "first_climbed", low=True), "first_climber_id"),
            "in what region is the hardest line": g.of(g.top(route, "difficulty"), "crag_id", "region"),
        },
        "first k": {
            "top 3 hardest climbs": g.top(route, "difficulty", 3),
        },
        "count": {
            "how many routes are at butter rocks": len(g.of("Butter Rocks", "~crag_id")),
            "number of onsights by greta nyman": len(onsights & g.of("Greta Nyman", "~climber_id")),
            "how many first ascents has maud ferrier to her name": len(g.of("Maud Ferrier", "~first_climber_id")),
        },
        "sum": {
            "how many bolts are there in the hollow quarry": sum(g.numbers(g.of("Hollow Quarry", "~crag_id"), "bolts")),
        },
        "average": {
            "average number of tries for a redpoint": mean(g.numbers(g.eq(ascent, "how", "redpoint"), "attempts")),
        },
        "share": {
            "what fraction of routes is trad, in percent": percent(trad, g.all(route)),
        },
        "group": {
            "routes per crag": g.groups(route, "crag_id"),
            "mean difficulty for every style": g.groups(route, "style", "difficulty", mean=True),
        },
        "compare": {
            "which has more bolts, billy or nanny": g.top(["Billy", "Nanny"], "bolts"),
            "How much longer is Broomstick than Selkie?": one(g.of("Broomstick", "length_m"))
            - one(g.of("Selkie", "length_m")),
        },
        "yes/no": {
            "may dogs come to the anvil": "true" in g.of("The Anvil", "dogs_allowed"),
            "did cleo marchetti ever do drowned bell": "Drowned Bell" in done("Cleo Marchetti"),
        },
        "where/when": {
            "where is fern gully": g.of("Fern Gully", "crag_id"),
            "when did hugo lacey join": g.of("Hugo Lacey", "joined_club"),
            "[typo] what day did ned abara clim fern gully": g.of(
                g.of("Ned Abara", "~climber_id") & g.of("Fern Gully", "~route_id"), "climbed_on"
            ),
        },
    }
    missing = {
        RELATION: {
            "how much does ben thorsby weigh": "weight",
            "who drilled the bolts on cauldron": "bolter",
            "how tall is cleo marchetti": "height of a person",
            "what does the parking at seal point cost": "parking fee",
            "[keyword] gps raven slab": "coordinates",
            "which rope does esme holloway use": "equipment",
            "is broomstick safe in the rain": "weather",
            "who belayed ada kerrigan on nevermore": "belayer",
            "How many accidents were there on Goat Wall?": "accidents",
            "yearly fee of jonas wick": "membership fee",
        },
        ENTITY: {
            "Which routes are there on Pine Wall?": "Pine Wall",
            "who has climbed silver thread": "Silver Thread",
            "how high is eagle buttress": "Eagle Buttress",
        },
        TYPE: {
            "which guidebooks cover northvale": "guidebooks",
            "list the huts in high fells": "huts",
        },
    }
    return fill(g, questions, missing)


def instruments() -> Graph:
    g = read_rdf("instruments", GRAPHS / "instruments" / "instruments.rdf")
    thing, strings, maker, musician = "Instrument", "StringInstrument", "Maker", "Musician"
    loan, repair, room = "Loan", "Restoration", "Room"
    playable, lent = g.eq(thing, "playable", "true"), g.of(g.all(loan), "lentInstrument")
    boxed = g.eq(thing, "displayedIn", "Store")

    def borrowed(name: str) -> set[str]:
        return g.of(name, "~borrower", "lentInstrument")

    questions: dict[str, dict[str, Answer]] = {
        "direct": {
            "who made la rossa": g.of("La Rossa", "madeBy"),
            "what's the kilbrae harp made of": g.of("Kilbrae Harp", "material"),
            "Who gave us the Silver Bugle?": g.of("Silver Bugle", "donatedBy"),
            "who learned the trade from giacomo restelli": g.of("Giacomo Restelli", "~pupilOf"),
            "[keyword] twin of the widow": g.of("The Widow", "twinOf"),
            "what can rhona baird play": g.of("Rhona Baird", "plays"),
            "who built the shepherd's pipe": g.of("Shepherd's Pipe", "madeBy"),
            "stanislaw korda's enemy in the trade": g.of("Stanislaw Korda", "rivalOf"),
        },
        "path of two": {
            "who has borrowed la rossa": g.of("La Rossa", "~lentInstrument", "borrower"),
            "on which floor do i find the green harpsichord": g.of("Green Harpsichord", "displayedIn", "floor"),
            "the teacher of the man who made the korda cello": g.of("Korda Cello", "madeBy", "pupilOf"),
            "Who repaired the Moonlight Lute?": g.of("Moonlight Lute", "~restoredInstrument", "carriedOutBy"),
            "what has cosimo berti had on loan": borrowed("Cosimo Berti"),
            "who watches over the room where the kilbrae harp stands": g.of("Kilbrae Harp", "displayedIn", "guardedBy"),
            "instruments by makers born in brugenz": g.of("Brugenz", "~bornIn", "~madeBy"),
        },
        "path of three": {
            "whose instruments did hana vesely play on loan": g.of(borrowed("Hana Vesely"), "madeBy"),
            "in what country was the builder of the wolski bass born": g.of(
                "Wolski Bass", "madeBy", "bornIn", "country"
            ),
            "[typo] wich makers' work has teodor zych restored": g.of(
                "Teodor Zych", "~carriedOutBy", "restoredInstrument", "madeBy"
            ),
        },
        "type condition": {
            "[keyword] plucked instruments": g.all("PluckedInstrument"),
            "show all the winds we have": g.all("WindInstrument"),
        },
        "number condition": {
            "instruments worth over half a million": g.more(thing, "valueEuro", 500000),
            "anything heavier than 50 kilos": g.more(thing, "weightKg", 50),
            "rooms with a humidity above 60 percent": g.more(room, "humidityPercent", 60),
        },
        "date condition": {
            "what did the museum acquire in 1932": g.says(thing, "acquiredOn", "1932"),
            "instruments from the 17th century": g.less(thing, "yearMade", 1701),
            "which instruments were lent out from 2023 on": g.of(g.since(loan, "lentFrom", "2023"), "lentInstrument"),
        },
        "text": {
            "which one was hit by a cannonball": g.says(thing, "comment", "cannonball"),
            "tell me the story of the serpent of lanteuil": g.of("Serpent of Lanteuil", "comment"),
        },
        "boolean": {
            "what can no longer be played": g.eq(thing, "playable", "false"),
        },
        "negation": {
            "string instruments that weren't made in cremolo": g.all(strings) - g.eq(strings, "madeIn", "Cremolo"),
        },
        "absence": {
            "which instruments have no known maker": g.lacks(thing, "madeBy"),
            "makers of whom we own nothing": g.lacks(maker, "~madeBy"),
            "[typo] musicians who have never borowed anything": g.lacks(musician, "~borrower"),
        },
        "union": {
            "everything with ivory or ebony in it": g.eq(thing, "material", "ivory", "ebony"),
        },
        "intersection": {
            "playable keyboard instruments": playable & g.all("KeyboardInstrument"),
            "brass in the store": boxed & g.all("Brass"),
            "things lent out that were also restored": lent & g.of(g.all(repair), "restoredInstrument"),
        },
        "subtract": {
            "instruments in the quiet room apart from the harp and the lute": g.of("Quiet Room", "~displayedIn")
            - {"Kilbrae Harp", "Moonlight Lute"},
        },
        "rank": {
            "[typo] most valueable instrument": g.top(thing, "valueEuro"),
            "lightest of the string instruments": g.top(strings, "weightKg", low=True),
        },
        "rank inside a path": {
            "who carried out the most expensive restoration": g.of(g.top(repair, "costEuro"), "carriedOutBy"),
            "maker of the oldest instrument in the keyboard hall": g.of(
                g.top(g.of("Keyboard Hall", "~displayedIn"), "yearMade", low=True), "madeBy"
            ),
        },
        "first k": {
            "top four by value": g.top(thing, "valueEuro", 4),
        },
        "count": {
            "how many instruments are there by lucien arnoux": len(g.of("Lucien Arnoux", "~madeBy")),
            "how many times did beatrix lamm borrow something": len(g.of("Beatrix Lamm", "~borrower")),
            "How many drums come from Varsk?": len(g.eq("Drum", "madeIn", "Varsk")),
        },
        "sum": {
            "what did all of wilma graf's restorations cost together": sum(
                g.numbers(g.of("Wilma Graf", "~carriedOutBy"), "costEuro")
            ),
        },
        "average": {
            "[typo] avrage weight of a brass instrument": mean(g.numbers(g.all("Brass"), "weightKg")),
        },
        "share": {
            "share of the collection that is playable": percent(playable, g.all(thing)),
        },
        "group": {
            "number of instruments per maker": g.groups(thing, "madeBy"),
            "total value for each room": g.groups(thing, "displayedIn", "valueEuro"),
        },
        "compare": {
            "is the felber fortepiano or the green harpsichord worth more": g.top(
                ["Felber Fortepiano", "Green Harpsichord"], "valueEuro"
            ),
            "at what age did orsola vanni die": one(g.of("Orsola Vanni", "deathYear"))
            - one(g.of("Orsola Vanni", "birthYear")),
            "how many days was the travel clavichord out on loan": days(
                g, next(iter(g.of("Travel Clavichord", "~lentInstrument"))), "lentFrom", "lentUntil"
            ),
        },
        "yes/no": {
            "can the square felber still be played": "true" in g.of("Square Felber", "playable"),
            "were orsola vanni and paolo restelli a couple": "Paolo Restelli" in g.of("Orsola Vanni", "marriedTo"),
            "is the kilbrae harp a woodwind": "Kilbrae Harp" in g.all("Woodwind"),
        },
        "where/when": {
            "where is the hunter's horn kept": g.of("Hunter's Horn", "displayedIn"),
            "when did the museum get the ebony oboe": g.of("Ebony Oboe", "acquiredOn"),
            "which city does the arnoux guitar come from": g.of("Arnoux Guitar", "madeIn"),
            "what year did anton felber die": g.of("Anton Felber", "deathYear"),
            "which room is the wolski bass in": g.of("Wolski Bass", "displayedIn"),
        },
    }
    missing = {
        RELATION: {
            "how loud is the parade drum": "loudness",
            "how many keys does the green harpsichord have": "number of keys",
            "what is la rossa insured for": "insured sum",
            "who composed for the serpent of lanteuil": "composer",
            "[keyword] opening hours keyboard hall": "opening hours",
            "does oliver stroud have children": "children",
            "what pitch is the boxwood flute tuned to": "pitch",
            "Which strings are on the Korda Cello?": "strings",
            "who stole the widow": "thief",
        },
        ENTITY: {
            "who made the parrot viola": "Parrot Viola",
            "when was bartolo minetti born": "Bartolo Minetti",
            "whats in the costume gallery": "Costume Gallery",
        },
        TYPE: {
            "what sheet music do we have": "sheet music",
            "list all the concerts": "concerts",
        },
    }
    return fill(g, questions, missing)


def read_manor() -> Graph:
    """People are those with an occupation, rooms lie on a floor, and finds were discovered."""
    graph = Graph("manor")
    with (GRAPHS / "manor" / "manor.tsv").open(encoding="utf-8", newline="") as file:
        for fact in csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            graph.add(*fact)
    for kind, relation in {"people": "occupation", "rooms": "lies_on", "finds": "discovered_in"}.items():
        graph.things[kind] = [name for name, own in graph.values if own == relation]
    return graph


def manor() -> Graph:
    g = read_manor()
    people, room, find = "people", "rooms", "finds"
    victim, hale, library = "Lord Alaric Fenwick", "Inspector Maud Hale", "Library"
    motive, liars = g.all(people) - g.lacks(people, "motive"), g.eq(people, "lied_to_police", "yes")
    left_handed = g.eq(people, "writes_with", "left hand")
    seen_there = g.of(library, "~seen_in")
    staff = g.all(people) - g.lacks(people, "employed_by")
    questions: dict[str, dict[str, Answer]] = {
        "direct": {
            "who was seen in the cellar": g.of("Cellar", "~seen_in"),
            "what reason did hobbs have": g.of("Hobbs", "motive"),
            "who can vouch for ellen marsh": g.of("Ellen Marsh", "alibi_from"),
            "who was seen in the rose garden": g.of("Rose Garden", "~seen_in"),
            "whose is the revolver": g.of("revolver", "belongs_to"),
            "what did Toby Wicks find?": g.of("Toby Wicks", "~discovered_by"),
            "who does vivienne sable love": g.of("Vivienne Sable", "in_love_with"),
            "[keyword] occupation cuthbert fenwick": g.of("Cuthbert Fenwick", "occupation"),
            "who gives silas crane an alibi": g.of("Silas Crane", "alibi_from"),
            "what is the torn glove like": g.of("torn glove", "description"),
        },
        "path of two": {
            "who was seen in the room next to the gun room": g.of("Gun Room", "~door_to", "~seen_in"),
            "what is the owner of the empty vial by trade": g.of("empty vial", "belongs_to", "occupation"),
            "mother of the woman who loves dr. ambrose tell": g.of("Dr. Ambrose Tell", "~in_love_with", "~mother_of"),
            "which floor was the second will found on": g.of("second will", "discovered_in", "lies_on"),
            "things that turned up in rooms where dr. ambrose tell was seen": g.of(
                "Dr. Ambrose Tell", "seen_in", "~discovered_in"
            ),
            "to whom do cuthbert fenwick's creditors owe money themselves": g.of(
                "Cuthbert Fenwick", "owes_money_to", "owes_money_to"
            ),
            "what motive has whoever the pawn ticket belongs to": g.of("pawn ticket", "belongs_to", "motive"),
        },
        "path of three": {
            "who was seen where something of vivienne sable's was found": g.of(
                "Vivienne Sable", "~belongs_to", "discovered_in", "~seen_in"
            ),
            "where have the employees of the dead man been seen": g.of(victim, "~employed_by", "seen_in"),
        },
        "type condition": {
            "[keyword] rooms in the basement": g.eq(room, "lies_on", "basement"),
        },
        "number condition": {
            "who wears a shoe bigger than 43": g.more(people, "shoe_size", 43),
            "[typo] evidense worth more than 40 pounds": g.more(find, "worth_in_pounds", 40),
            "who owes over 200 pounds": g.more(people, "debt_in_pounds", 200),
        },
        "date condition": {
            "what was discovered on 6 november 1932": g.says(find, "discovered_on", "1932-11-06"),
            "anyone born before 1870": g.before(people, "born_in_year", "1870"),
            "which things were found after november 9th 1932": g.since(find, "discovered_on", "1932-11-10"),
        },
        "text": {
            "which object has blood on it": g.says(find, "description", "blood"),
            "any evidence that smells of something": g.says(find, "description", "smells"),
        },
        "boolean": {
            "who lied to the police": liars,
        },
        "negation": {
            "rooms that aren't on the ground floor or outdoors": g.all(room)
            - g.eq(room, "lies_on", "ground floor", "outdoors"),
        },
        "absence": {
            "who had a motive but no alibi": motive & g.lacks(people, "alibi_from"),
            "finds that belong to nobody": g.lacks(find, "belongs_to"),
            "where was nobody seen": g.lacks(room, "~seen_in"),
        },
        "union": {
            "everyone seen on the terrace or in the pantry": g.of({"Terrace", "Pantry"}, "~seen_in"),
        },
        "intersection": {
            "left handed liars": left_handed & liars,
            "[typo] left handet people with a motive": left_handed & motive,
            "liars seen in the library": liars & seen_there,
            "servants of lady honoria fenwick with a motive": g.of("Lady Honoria Fenwick", "~employed_by") & motive,
        },
        "subtract": {
            "seen in the library apart from the lord himself": seen_there - {victim},
        },
        "rank": {
            "tallest person": g.top(people, "height_cm"),
            "who is the youngest": g.top(people, "born_in_year"),
            "second largest debt, who has it": g.top(people, "debt_in_pounds", 2) - g.top(people, "debt_in_pounds"),
        },
        "rank inside a path": {
            "[typo] where was the most valuabel piece of evidence found": g.of(
                g.top(find, "worth_in_pounds"), "discovered_in"
            ),
            "who's the employer of the one with the smallest feet": g.of(
                g.top(people, "shoe_size", low=True), "employed_by"
            ),
        },
        "first k": {
            "three biggest rooms": g.top(room, "area_m2", 3),
        },
        "count": {
            "how many things did inspector maud hale find": len(g.of(hale, "~discovered_by")),
            "how many people worked for lord alaric fenwick": len(g.of(victim, "~employed_by")),
            "how many people were seen in the gun room and the chapel both": len(
                g.of("Gun Room", "~seen_in") & g.of("Chapel", "~seen_in")
            ),
        },
        "sum": {
            "sum of all debts in pounds": sum(g.numbers(g.all(people), "debt_in_pounds")),
        },
        "average": {
            "average height of the staff in service": mean(g.numbers(staff, "height_cm")),
        },
        "share": {
            "what percentage of the people write with the left hand": percent(left_handed, g.all(people)),
        },
        "group": {
            "finds per finder": g.groups(find, "discovered_by"),
        },
        "compare": {
            "who is taller, hobbs or silas crane": g.top(["Hobbs", "Silas Crane"], "height_cm"),
            "How many years older is Lord Alaric Fenwick than his wife?": one(
                g.of(victim, "married_to", "born_in_year")
            )
            - one(g.of(victim, "born_in_year")),
        },
        "yes/no": {
            "did silas crane lie to the police": "yes" in g.of("Silas Crane", "lied_to_police"),
            "is there a door between the library and the terrace": "Terrace" in g.of(library, "door_to"),
        },
        "where/when": {
            "what time did lord alaric die": g.of(victim, "time_of_death"),
            "where was his body": g.of(victim, "found_dead_in"),
            "when was the burnt letter found": g.of("burnt letter", "discovered_on"),
            "where did they see philippa": g.of("Philippa Fenwick", "seen_in"),
        },
    }
    missing = {
        RELATION: {
            "[typo] what was the wether like on the terrace": "weather",
            "who telephoned the police": "telephone call",
            "whose fingerprints are on the silver letter opener": "fingerprints",
            "what did colonel rudd have for dinner": "dinner",
            "[keyword] eye colour vivienne sable": "eye colour",
            "who painted the portrait in the library": "painter of a portrait",
            "which school did toby wicks go to": "school",
            "what regiment was colonel basil rudd in": "regiment",
            "how much is hobbs paid": "wage",
            "Which newspaper reported on the second will?": "newspaper",
        },
        ENTITY: {
            "what motive did nanny briggs have": "Nanny Briggs",
            "where was major trent seen": "Major Trent",
            "who found the hunting knife": "hunting knife",
        },
        TYPE: {
            "which dogs live in the manor": "dogs",
            "which horses are there": "horses",
            "list all the motor cars": "motor cars",
        },
    }
    return fill(g, questions, missing)


if __name__ == "__main__":
    write(HERE, (powergrid(), climbing(), instruments(), manor()))
