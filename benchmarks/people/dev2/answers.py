"""Computes the gold answers of dev2 from its graph files, and writes a file of questions for each graph.

    python -m benchmarks.people.dev2.answers

It reads the files with csv, json and rdflib.
"""

from __future__ import annotations

import json
from pathlib import Path

import rdflib

from benchmarks.people.gold import (
    ENTITY,
    RELATION,
    TYPE,
    Answer,
    Graph,
    fill,
    mean,
    percent,
    read_nodes,
    read_tables,
    read_triples,
    write,
)

HERE = Path(__file__).resolve().parent
GRAPHS = HERE / "graphs"


def read_league() -> Graph:
    graph, triples = Graph("league"), rdflib.Graph().parse(GRAPHS / "league" / "league.ttl")
    label = {subject: str(value) for subject, value in triples.subject_objects(rdflib.RDFS.label)}
    for subject, relation, value in triples:
        if relation == rdflib.RDF.type:
            graph.things[label[value]].append(label[subject])
        elif relation != rdflib.RDFS.label:
            graph.add(label[subject], label[relation], label.get(value, str(value)))
    return graph


def read_festival() -> Graph:
    ends = {"bands": "plays", "stages": "stands on", "slots": "on stage", "sponsors": "gives euros"}
    ends["labels"] = "has office in"
    graph = read_triples("festival", GRAPHS / "festival" / "festival.tsv", ends)
    graph.things["genres"] = sorted(graph.of(graph.all("bands"), "plays"))
    return graph


def read_kitchen() -> Graph:
    document = json.loads((GRAPHS / "kitchen" / "kitchen.json").read_text(encoding="utf-8"))
    return read_nodes("kitchen", document["nodes"], document["links"], "relationship")


def zoo() -> Graph:
    g = read_tables(
        "zoo", GRAPHS / "zoo", dict.fromkeys(("animals", "keepers", "enclosures"), "name") | {"feedings": "feeding"}
    )
    animals, endangered = "animals", g.eq("animals", "endangered", "true")
    questions: dict[str, dict[str, Answer]] = {
        "direct": {
            "who looks after malou": g.of("Malou", "keeper"),
            "what was basil fed": g.of("Basil", "~animal", "food"),
        },
        "path of two": {
            "which zone does kasimir live in": g.of("Kasimir", "enclosure", "zone"),
            "whats the specialty of the keeper of slate": g.of("Slate", "keeper", "specialty"),
            "which animals have a mother that imke tanaka looks after": g.of("Imke Tanaka", "~keeper", "~mother"),
        },
        "path of three": {
            "who trained the keeper of runa's mother": g.of("Runa", "mother", "keeper", "trained_by"),
            "in which zone is the enclosure of Pip's mother": g.of("Pip", "mother", "enclosure", "zone"),
            "[keyword] species of the animals in the south zone": g.of("South Zone", "~zone", "~enclosure", "species"),
        },
        "type condition": {
            "[keyword] all female animals in reptile hall": g.eq(
                g.eq(animals, "enclosure", "Reptile Hall"), "sex", "female"
            ),
            "which keepers were trained by yusuf": g.eq("keepers", "trained_by", "Yusuf Ferreira"),
        },
        "number condition": {
            "[keyword] animals over 500 kilos": g.more(animals, "weight_kg", 500),
            "animals heavier than 4000 kg": g.more(animals, "weight_kg", 4000),
        },
        "date condition": {
            "which of our keepers were hired after 2015, i want to invite them to the newcomers evening": g.since(
                "keepers", "hired", "2016"
            ),
            "which enclosures opened between 2017 and 2021": g.before(
                g.since("enclosures", "opened", "2017"), "opened", "2022"
            ),
        },
        "text": {
            "what does the sign at bear gorge say": g.of("Bear Gorge", "sign_text"),
            "which enclosure has a sign that mentions dogs": g.says("enclosures", "sign_text", "dogs"),
        },
        "boolean": {
            "which enclosures are heated": g.eq("enclosures", "heated", "true"),
            "[keyword] endangered animals in the river meadow": g.eq(endangered, "enclosure", "River Meadow"),
        },
        "negation": {
            "enclosures that are not in the south zone or west zone": g.all("enclosures")
            - g.eq("enclosures", "zone", "South Zone", "West Zone"),
            "[typo] penguin bay animals that arent endangered": g.eq(animals, "enclosure", "Penguin Bay") - endangered,
        },
        "absence": {
            "animals without a keeper": g.lacks(animals, "keeper"),
            "which keepers have nobody who trained them": g.lacks("keepers", "trained_by"),
        },
        "union": {
            "animals kept in the bamboo house or the cliff run": g.eq(
                animals, "enclosure", "Bamboo House", "Cliff Run"
            ),
        },
        "intersection": {
            "endangered males looked after by Yusuf Ferreira": g.eq(
                g.eq(endangered, "sex", "male"), "keeper", "Yusuf Ferreira"
            ),
            "enclosures that are heated and in the north zone": g.eq(
                g.eq("enclosures", "heated", "true"), "zone", "North Zone"
            ),
        },
        "subtract": {
            "animals of wendeline frost minus the sea lions": g.eq(animals, "keeper", "Wendeline Frost")
            - g.eq(animals, "species", "sea lion"),
        },
        "rank": {
            "[keyword] oldest animal in the zoo": g.top(animals, "born", low=True),
            "[keyword short-form] largest enclosure": g.top("enclosures", "area_m2"),
        },
        "rank inside a path": {
            "who looks after the lightest humboldt penguin": g.of(
                g.top(g.eq(animals, "species", "Humboldt penguin"), "weight_kg", low=True), "keeper"
            ),
            "which animals does the longest serving keeper have": g.of(g.top("keepers", "hired", low=True), "~keeper"),
        },
        "first k": {
            "[keyword] three heaviest animals": g.top(animals, "weight_kg", 3),
            "the two keepers hired last": g.top("keepers", "hired", 2),
        },
        "count": {
            "how many animals does rhea castellan look after": len(g.eq(animals, "keeper", "Rhea Castellan")),
            "how many animals live in owl tower": len(g.eq(animals, "enclosure", "Owl Tower")),
        },
        "sum": {
            "total area of the west zone enclosures": sum(
                g.numbers(g.eq("enclosures", "zone", "West Zone"), "area_m2")
            ),
            "how many kg of hay were fed in all": sum(g.numbers(g.eq("feedings", "food", "hay"), "amount_kg")),
        },
        "average": {
            "average weight of the brown bears": mean(g.numbers(g.eq(animals, "species", "brown bear"), "weight_kg")),
            "mean area of the heated enclosures": mean(g.numbers(g.eq("enclosures", "heated", "true"), "area_m2")),
        },
        "share": {
            "what percentage of the animals is endangered": percent(endangered, g.all(animals)),
            "[keyword] share of head keepers among the keepers": percent(
                g.eq("keepers", "head_keeper", "true"), g.all("keepers")
            ),
        },
        "group": {
            "[keyword] number of animals per enclosure": g.groups(animals, "enclosure"),
            "[keyword] total kg fed by food": g.groups("feedings", "food", "amount_kg"),
        },
        "compare": {
            "who is heavier, bruno or captain": g.top({"Bruno", "Captain"}, "weight_kg"),
            "Is Owl Tower bigger than Bamboo House?": g.numbers({"Owl Tower"}, "area_m2")
            > g.numbers({"Bamboo House"}, "area_m2"),
        },
        "yes/no": {
            "is luna endangered": "Luna" in endangered,
            "does oskar lindqvist look after tamba": g.of("Tamba", "keeper") == {"Oskar Lindqvist"},
        },
        "where/when": {
            "when was clementine born": g.of("Clementine", "born"),
            "where does neela live": g.of("Neela", "enclosure"),
        },
    }
    missing = {
        RELATION: {
            "what is the salary of imke tanaka": "salary",
            "how many visitors came to penguin bay": "visitors",
            "who is the father of runa": "father",
            "which vet treated bruno": "vet",
            "how tall is malou": "height",
        },
        ENTITY: {
            "[keyword] keeper of the gorilla Mbeki": "Mbeki",
            "how big is the butterfly dome": "butterfly dome",
            "when was Lotte Brandvold hired": "Lotte Brandvold",
            "what is zuri fed on": "Zuri",
        },
        TYPE: {
            "which restaurants are in the zoo": "restaurants",
            "[short-form] list the volunteers": "volunteers",
        },
    }
    more = {
        RELATION: {
            "[keyword] phone number of wendeline frost": "phone number",
            "which animals are on loan from another zoo": "loan",
            "[keyword] animals with a microchip": "microchip",
        },
        TYPE: {
            "how many souvenir shops do we have": "souvenir shops",
        },
    }
    return fill(fill(g, questions, missing), {}, more)


def league() -> Graph:
    g = read_league()
    player, match, team, stadium = "player", "match", "team", "stadium"
    questions: dict[str, dict[str, Answer]] = {
        "direct": {
            "who coaches osterby owls": g.of("Osterby Owls", "coach"),
            "[keyword] home stadium of the linfell wheelers": g.of("Linfell Wheelers", "home stadium"),
        },
        "path of two": {
            "where does ravi sunder play his home games": g.of("Ravi Sunder", "plays for", "home stadium"),
            "who refereed the home games of the gulls": g.of("Tidewick Gulls", "~home team", "refereed by"),
        },
        "path of three": {
            "what region does the team of eli fontaine come from": g.of("Eli Fontaine", "plays for", "city", "region"),
            "capacity of the stadium of the home team of Harrowmere Rovers v Osterby Owls": g.of(
                "Harrowmere Rovers v Osterby Owls", "home team", "home stadium", "capacity"
            ),
            "players of the teams that have their stadium in harrowmere": g.of(
                "Harrowmere", "~city", "~home stadium", "~plays for"
            ),
        },
        "type condition": {
            "[keyword] teams from harrowmere": g.eq(team, "city", "Harrowmere"),
            "which goalkeepers play for Osterby Owls": g.eq(
                g.eq(player, "plays for", "Osterby Owls"), "position", "goalkeeper"
            ),
        },
        "number condition": {
            "players with more than 8 goals": g.more(player, "goals this season", 8),
            "stadiums that hold over 30000": g.more(stadium, "capacity", 30000),
            "i need all players who are at least 190 cm tall for the back row of the photo": g.more(
                player, "height in cm", 189.9
            ),
        },
        "date condition": {
            "matches played in march 2026": g.before(g.since(match, "date", "2026-03-01"), "date", "2026-04-01"),
            "which games were on or after 1 April 2026": g.since(match, "date", "2026-04-01"),
        },
        "text": {
            "what is quarrington town's nickname": g.of("Quarrington Town", "nickname"),
            "which team is called the Spokes": g.eq(team, "nickname", "the Spokes"),
        },
        "boolean": {
            "which stadiums are covered": g.eq(stadium, "covered", "true"),
            "[short-form] any left-footed goalkeepers?": g.eq(
                g.eq(player, "left-footed", "true"), "position", "goalkeeper"
            ),
        },
        "negation": {
            "teams whose shirt colour is not blue": g.all(team) - g.eq(team, "shirt colour", "blue"),
            "owls players who are not forwards": g.eq(player, "plays for", "Osterby Owls")
            - g.eq(player, "position", "forward"),
        },
        "absence": {
            "which teams have no nickname": g.lacks(team, "nickname"),
            "[keyword] games with no attendance figure": g.lacks(match, "attendance"),
            "teams without a home stadium": g.lacks(team, "home stadium"),
        },
        "union": {
            "players of rovers or united": g.eq(player, "plays for", "Harrowmere Rovers", "Harrowmere United"),
            "which matches did lena hartog or joost pereira referee": g.eq(
                match, "refereed by", "Lena Hartog", "Joost Pereira"
            ),
        },
        "intersection": {
            "midfielders born since 2001 that scored more than 2": g.more(
                g.since(g.eq(player, "position", "midfielder"), "born", "2001"), "goals this season", 2
            ),
            "which teams play in blue and come from Linfell": g.eq(
                g.eq(team, "shirt colour", "blue"), "city", "Linfell"
            ),
        },
        "subtract": {
            "all goalkeepers except mateo quist": g.eq(player, "position", "goalkeeper") - {"Mateo Quist"},
        },
        "rank": {
            "[keyword short-form] top scorer": g.top(player, "goals this season"),
            "which team was founded first": g.top(team, "founded", low=True),
        },
        "rank inside a path": {
            "[keyword] city of the smallest stadium": g.of(g.top(stadium, "capacity", low=True), "city"),
            "who refereed the match with the highest attendance": g.of(g.top(match, "attendance"), "refereed by"),
        },
        "first k": {
            "[keyword] two biggest stadiums by capacity": g.top(stadium, "capacity", 2),
            "the 3 youngest players": g.top(player, "born", 3),
        },
        "count": {
            "how many teams come from the northmark": len(g.of("Northmark", "~region", "~city") & g.all(team)),
            "[keyword] number of goalkeepers at the gulls": len(
                g.eq(g.eq(player, "plays for", "Tidewick Gulls"), "position", "goalkeeper")
            ),
        },
        "sum": {
            "how many goals have the defenders scored together this season": sum(
                g.numbers(g.eq(player, "position", "defender"), "goals this season")
            ),
            "goals this season by all goalkeepers added up": sum(
                g.numbers(g.eq(player, "position", "goalkeeper"), "goals this season")
            ),
        },
        "average": {
            "[typo] average hight of the forwards": mean(
                g.numbers(g.eq(player, "position", "forward"), "height in cm")
            ),
            "mean capacity of the stadiums": mean(g.numbers(g.all(stadium), "capacity")),
        },
        "share": {
            "what percent of the matches did marcus bly referee": percent(
                g.eq(match, "refereed by", "Marcus Bly"), g.all(match)
            ),
            "[keyword] percentage of the players that are forwards": percent(
                g.eq(player, "position", "forward"), g.all(player)
            ),
        },
        "group": {
            "goals by team, all players summed": g.groups(player, "plays for", "goals this season"),
            "[keyword] number of matches per referee": g.groups(match, "refereed by"),
        },
        "compare": {
            "who scored more, hugo lasker or felix orme": g.top({"Hugo Lasker", "Felix Orme"}, "goals this season"),
            "is Millfield older than the Pier Stadium": min(g.of("Millfield", "opened"))
            < min(g.of("Pier Stadium", "opened")),
        },
        "yes/no": {
            "does kofi brandt play for united": g.of("Kofi Brandt", "plays for") == {"Harrowmere United"},
            "is lantern park covered": g.of("Lantern Park", "covered") == {"true"},
        },
        "where/when": {
            "where is referee lena hartog from": g.of("Lena Hartog", "city"),
        },
    }
    missing = {
        RELATION: {
            "how much does eli fontaine earn": "salary",
            "how many yellow cards did owen tarrant get": "yellow cards",
            "which shirt number does sami oduya wear": "shirt number",
            "who sponsors the tidewick gulls": "sponsor",
            "[keyword] nationality of mateo quist": "nationality",
            "who is the captain of the owls": "captain",
        },
        ENTITY: {
            "how many goals has Petr Skala scored": "Petr Skala",
            "where do the Brackley Bears play": "Brackley Bears",
            "[keyword] capacity of Highbridge Stadium": "Highbridge Stadium",
            "which matches did sofia renner referee": "Sofia Renner",
        },
        TYPE: {
            "[short-form] list the physiotherapists": "physiotherapists",
            "how many fan clubs are there": "fan clubs",
        },
    }
    more = {
        RELATION: {
            "who was man of the match in the gulls rovers game": "man of the match",
            "[keyword] transfer fee paid for cato imani": "transfer fee",
        },
        TYPE: {
            "which youth academies are in the league": "youth academies",
        },
    }
    return fill(fill(g, questions, missing), {}, more)


def festival() -> Graph:
    g = read_festival()
    bands, slots, stages, sponsors = "bands", "slots", "stages", "sponsors"
    questions: dict[str, dict[str, Answer]] = {
        "direct": {
            "what do the velvet moths play": g.of("The Velvet Moths", "plays"),
            "who has toured with brass tactics": g.of("Brass Tactics", "toured with")
            | g.of("Brass Tactics", "~toured with"),
        },
        "path of two": {
            "what is the genre of grindstone choir a kind of": g.of("Grindstone Choir", "plays", "is a kind of"),
            "which stages do copper lanterns play on": g.of("Copper Lanterns", "~band", "on stage"),
            "which bands play on the dawn stage": g.of("Dawn Stage", "~on stage", "band"),
        },
        "path of three": {
            "who sponsors the stage that mono lagoon plays on": g.of(
                "Mono Lagoon", "~band", "on stage", "sponsored by"
            ),
            "genres played on the cellar stage": g.of("Cellar Stage", "~on stage", "band", "plays"),
        },
        "type condition": {
            "[keyword] swing bands from Cinder Bay": g.eq(g.eq(bands, "plays", "swing"), "comes from", "Cinder Bay"),
        },
        "number condition": {
            "[keyword] bands with more than 4 members": g.more(bands, "number of members", 4),
            "sponsors that give more than 100000 euros": g.more(sponsors, "gives euros", 100000),
        },
        "date condition": {
            "[keyword] slots on 18 july 2026": g.eq(slots, "on day", "2026-07-18"),
            "which slots are after 19 july 2026": g.since(slots, "on day", "2026-07-20"),
        },
        "text": {
            "[keyword] slogan of juniper cola": g.of("Juniper Cola", "slogan"),
            "which sponsor has a slogan with the word stars in it": g.says(sponsors, "slogan", "stars"),
        },
        "boolean": {
            "[keyword] stages that have a roof": g.eq(stages, "has roof", "yes"),
            "which stages on the east shore have a roof": g.eq(
                g.eq(stages, "has roof", "yes"), "stands on", "East Shore"
            ),
        },
        "negation": {
            "which stages are not sponsored by juniper cola but do have a sponsor": g.all(stages)
            - g.lacks(stages, "sponsored by")
            - g.eq(stages, "sponsored by", "Juniper Cola"),
            "[typo] bands from ironvale that dont play metal of any kind": g.eq(bands, "comes from", "Ironvale")
            - g.eq(bands, "plays", *g.of("metal", "~is a kind of")),
        },
        "absence": {
            "[keyword] bands without a label": g.lacks(bands, "signed to"),
            "which stage has no sponsor": g.lacks(stages, "sponsored by"),
            "bands that have no slot": g.lacks(bands, "~band"),
        },
        "union": {
            "which bands come from brackwater or cinder bay": g.eq(bands, "comes from", "Brackwater", "Cinder Bay"),
        },
        "intersection": {
            "[keyword] folk rock bands signed to Hollow Tree Records": g.eq(
                g.eq(bands, "plays", "folk rock"), "signed to", "Hollow Tree Records"
            ),
            "which bands play both the meadow stage and the lake stage": g.of("Meadow Stage", "~on stage", "band")
            & g.of("Lake Stage", "~on stage", "band"),
            "bands from Saltham that are signed to Big Spoon": g.eq(
                g.eq(bands, "comes from", "Saltham"), "signed to", "Big Spoon"
            ),
        },
        "subtract": {
            "dream pop bands except nocturne motel": g.eq(bands, "plays", "dream pop") - {"Nocturne Motel"},
            "all black metal bands without those from Ironvale or Thistledown": g.eq(bands, "plays", "black metal")
            - g.eq(bands, "comes from", "Ironvale", "Thistledown"),
        },
        "rank": {
            "which band has the most members": g.top(bands, "number of members"),
            "[keyword short-form] longest slot": g.top(slots, "minutes"),
        },
        "rank inside a path": {
            "[keyword] genre of the oldest band": g.of(g.top(bands, "founded in", low=True), "plays"),
            "who sponsors the stage with the smallest capacity": g.of(
                g.top(stages, "capacity", low=True), "sponsored by"
            ),
        },
        "first k": {
            "[keyword] three longest slots": g.top(slots, "minutes", 3),
            "the two newest bands": g.top(bands, "founded in", 2),
        },
        "count": {
            "how many bands come from thistledown": len(g.eq(bands, "comes from", "Thistledown")),
            "number of swing bands from saltham": len(g.eq(g.eq(bands, "plays", "swing"), "comes from", "Saltham")),
        },
        "sum": {
            "how many minutes of music on the meadow stage altogether": sum(
                g.numbers(g.of("Meadow Stage", "~on stage"), "minutes")
            ),
        },
        "average": {
            "average slot length on 17 july 2026": mean(g.numbers(g.eq(slots, "on day", "2026-07-17"), "minutes")),
            "mean number of members of the folk rock bands": mean(
                g.numbers(g.eq(bands, "plays", "folk rock"), "number of members")
            ),
        },
        "share": {
            "what share of the stages has a roof in percent": percent(g.eq(stages, "has roof", "yes"), g.all(stages)),
            "[keyword] percentage of bands that play dream pop": percent(
                g.eq(bands, "plays", "dream pop"), g.all(bands)
            ),
        },
        "group": {
            "how many bands per label": g.groups(bands, "signed to"),
            "[keyword] total minutes by stage": g.groups(slots, "on stage", "minutes"),
        },
        "compare": {
            "which gives more, cobble bank or moss outdoor": g.top({"Cobble Bank", "Moss Outdoor"}, "gives euros"),
            "is silt older than the velvet moths": g.numbers({"Silt"}, "founded in")
            < g.numbers({"The Velvet Moths"}, "founded in"),
        },
        "yes/no": {
            "is electric heron from brackwater": g.of("Electric Heron", "comes from") == {"Brackwater"},
            "does the dawn stage have a roof": g.of("Dawn Stage", "has roof") == {"yes"},
        },
        "where/when": {
            "[typo] when do paper satelites play": g.of("Paper Satellites", "~band", "on day"),
            "where is finch cycles based": g.of("Finch Cycles", "based in"),
        },
    }
    missing = {
        RELATION: {
            "how much is a weekend ticket": "ticket price",
            "who sings in nocturne motel": "singer",
            "which albums has silt released": "albums",
            "[keyword] fee of copper lanterns": "fee",
            "which stage manager runs the barn stage": "stage manager",
            "how many people went to see rustbelt romeo": "audience",
        },
        ENTITY: {
            "where do the Paisley Owls come from": "Paisley Owls",
            "who plays on the Forest Stage": "Forest Stage",
            "what does Larkspur Insurance give": "Larkspur Insurance",
            "which bands are signed to Tin Roof Music": "Tin Roof Music",
        },
        TYPE: {
            "[keyword] food trucks with vegan food": "food trucks",
            "[short-form] list all campsites": "campsites",
            "which volunteers work on saturday": "volunteers",
        },
    }
    more = {
        RELATION: {
            "what instrument does ola ferngrove play": "instrument",
            "who is the drummer of wolfbane parade": "drummer",
        },
    }
    return fill(fill(g, questions, missing), {}, more)


def kitchen() -> Graph:
    g = read_kitchen()
    dish, ingredient, supplier, menu = "Dish", "Ingredient", "Supplier", "Menu"
    vegetarian, allergens = g.eq(dish, "vegetarian", "true"), g.eq(ingredient, "allergen", "true")
    questions: dict[str, dict[str, Answer]] = {
        "direct": {
            "whats in the potato gratin": g.of("potato gratin", "contains"),
        },
        "path of two": {
            "which city is the supplier of cod in": g.of("cod", "supplied by", "city"),
            "who supplies what goes into the almond cake": g.of("almond cake", "contains", "supplied by"),
        },
        "path of three": {
            "menus with a dish that has something from nordcatch in it": g.of(
                "Nordcatch", "~supplied by", "~contains", "on menu"
            ),
            "cities that the ingredients of cod with saffron come from": g.of(
                "cod with saffron", "contains", "supplied by", "city"
            ),
        },
        "type condition": {
            "which starters are on the harbour menu": g.eq(g.eq(dish, "course", "starter"), "on menu", "Harbour Menu"),
            "[keyword] suppliers in Monteluz": g.eq(supplier, "city", "Monteluz"),
        },
        "number condition": {
            "which ingredients cost more than 30 per kg": g.more(ingredient, "price_per_kg", 30),
            "menus for less than 20": g.less(menu, "price", 20),
        },
        "date condition": {
            "[keyword] dishes created in 2021": g.before(g.since(dish, "created", "2021"), "created", "2022"),
            "which menus are valid from july 2026 or later": g.since(menu, "valid_from", "2026-07"),
        },
        "text": {
            "what is the note on nordcatch": g.of("Nordcatch", "note"),
        },
        "boolean": {
            "[keyword] vegetarian main courses": g.eq(vegetarian, "course", "main course"),
            "[keyword] allergens from the spice lantern": g.eq(allergens, "supplied by", "Spice Lantern"),
        },
        "negation": {
            "starters that are not vegetarian": g.eq(dish, "course", "starter") - vegetarian,
            "[typo] which desserts dont contain egg": g.eq(dish, "course", "dessert") - g.eq(dish, "contains", "egg"),
        },
        "absence": {
            "dishes that are on no menu": g.lacks(dish, "on menu"),
            "for which ingredients do we still have no supplier": g.lacks(ingredient, "supplied by"),
            "which dish has no creation date": g.lacks(dish, "created"),
        },
        "union": {
            "dishes with cod or mussel in it": g.eq(dish, "contains", "cod", "mussel"),
            "everything by noor sandell or on the brunch menu": g.eq(dish, "created by", "Noor Sandell")
            | g.eq(dish, "on menu", "Brunch Menu"),
        },
        "intersection": {
            "dishes that have both egg and butter": g.eq(dish, "contains", "egg") & g.eq(dish, "contains", "butter"),
            "[keyword] dishes with chorizo and cream": g.eq(dish, "contains", "chorizo")
            & g.eq(dish, "contains", "cream"),
        },
        "subtract": {
            "teodor wicks dishes except the almond cake": g.eq(dish, "created by", "Teodor Wick") - {"almond cake"},
            "ingredients of the leek and potato soup without the allergens": g.of("leek and potato soup", "contains")
            - allergens,
            "brunch menu dishes minus those with egg": g.eq(dish, "on menu", "Brunch Menu")
            - g.eq(dish, "contains", "egg"),
        },
        "rank": {
            "[keyword short-form] most expensive dish": g.top(dish, "price"),
            "which ingredient is the cheapest per kg": g.top(ingredient, "price_per_kg", low=True),
        },
        "rank inside a path": {
            "where is our oldest supplier": g.of(g.top(supplier, "supplier_since", low=True), "city"),
            "[keyword] ingredients of the cheapest main course": g.of(
                g.top(g.eq(dish, "course", "main course"), "price", low=True), "contains"
            ),
        },
        "first k": {
            "[keyword] three priciest ingredients per kg": g.top(ingredient, "price_per_kg", 3),
            "the two dishes that were created first": g.top(dish, "created", 2, low=True),
        },
        "count": {
            "how many vegetarian dishes are on the harbour menu": len(g.eq(vegetarian, "on menu", "Harbour Menu")),
            "[keyword] number of desserts with chorizo": len(
                g.eq(g.eq(dish, "course", "dessert"), "contains", "chorizo")
            ),
        },
        "sum": {
            "total calories of the garden menu": sum(g.numbers(g.eq(dish, "on menu", "Garden Menu"), "calories")),
            "if somebody orders every starter once, what do they cost together": sum(
                g.numbers(g.eq(dish, "course", "starter"), "price")
            ),
        },
        "average": {
            "average price of a dessert": mean(g.numbers(g.eq(dish, "course", "dessert"), "price")),
            "Mean calories of the vegetarian dishes?": mean(g.numbers(vegetarian, "calories")),
        },
        "share": {
            "what percentage of the dishes is vegetarian": percent(vegetarian, g.all(dish)),
            "[keyword] share of suppliers that are organic": percent(
                g.eq(supplier, "organic", "true"), g.all(supplier)
            ),
        },
        "group": {
            "dishes per course, how many": g.groups(dish, "course"),
            "[keyword] average price by course": g.groups(dish, "course", "price", mean=True),
        },
        "compare": {
            "what has more calories, roast pear or almond cake": g.top({"roast pear", "almond cake"}, "calories"),
            "is the garden menu dearer than the harbour menu": g.numbers({"Garden Menu"}, "price")
            > g.numbers({"Harbour Menu"}, "price"),
        },
        "yes/no": {
            "is there butter in the beetroot carpaccio": "butter" in g.of("beetroot carpaccio", "contains"),
            "is the nettle omelette on the spring menu": "Spring Menu" in g.of("nettle omelette", "on menu"),
        },
        "where/when": {
            "when did noor sandell start": g.of("Noor Sandell", "started"),
            "[typo] where is milbrook dairy": g.of("Millbrook Dairy", "city"),
        },
    }
    missing = {
        RELATION: {
            "how long does the almond cake bake": "baking time",
            "which wine goes with the cod cakes": "wine",
            "how many portions of roast pear did we sell": "portions sold",
            "[keyword] protein in the potato gratin": "protein",
            "who is the contact person at nordcatch": "contact person",
            "which guests complained about the chorizo hash": "complaints",
            "what rating did the chocolate pot get": "rating",
            "how much does amalia brook earn": "salary",
        },
        ENTITY: {
            "what is in the lobster bisque": "lobster bisque",
            "where is Frostvale Meats": "Frostvale Meats",
            "[keyword] price of the Lantern Night Menu": "Lantern Night Menu",
            "who supplies truffles": "truffles",
        },
        TYPE: {
            "[short-form] list the waiters": "waiters",
            "which ovens are being repaired": "ovens",
            "how many tables are booked tonight": "tables",
        },
    }
    return fill(g, questions, missing)


if __name__ == "__main__":
    write(HERE, (zoo(), league(), festival(), kitchen()))
