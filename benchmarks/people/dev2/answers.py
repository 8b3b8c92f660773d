"""Computes the gold answers of dev2 from its graph files, and writes a file of questions for each graph.

    python -m benchmarks.people.dev2.answers

It reads the files with csv, json and rdflib.
"""

from __future__ import annotations

import json
from pathlib import Path

import rdflib

from benchmarks.people.gold import ENTITY, RELATION, TYPE, Graph, ask, mean, no, percent, read_tables, write

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
    """The file has no types: what is a band, a genre and so on is what stands at an end of these relations."""
    graph = Graph("festival")
    for line in (GRAPHS / "festival" / "festival.tsv").read_text(encoding="utf-8").splitlines():
        graph.add(*line.split("\t"))
    ends = {"bands": "plays", "stages": "stands on", "slots": "on stage", "sponsors": "gives euros"}
    for kind, relation in (ends | {"labels": "has office in"}).items():
        graph.things[kind] = [name for name, own in graph.values if own == relation]
    graph.things["genres"] = sorted(graph.of(graph.all("bands"), "plays"))
    return graph


def read_kitchen() -> Graph:
    graph, document = Graph("kitchen"), json.loads((GRAPHS / "kitchen" / "kitchen.json").read_text(encoding="utf-8"))
    names = {node["id"]: node["name"] for node in document["nodes"]}
    for node in document["nodes"]:
        graph.things[node["type"]].append(node["name"])
        for attribute, value in node.items():
            if attribute not in ("id", "type", "name"):
                graph.add(node["name"], attribute, value)
    for link in document["links"]:
        graph.add(names[link["source"]], link["relationship"], names[link["target"]])
    return graph


def zoo() -> Graph:
    g = read_tables(
        "zoo", GRAPHS / "zoo", dict.fromkeys(("animals", "keepers", "enclosures"), "name") | {"feedings": "feeding"}
    )
    animals, endangered = "animals", g.eq("animals", "endangered", "true")
    ask(g, "direct", "who looks after malou", g.of("Malou", "keeper"))
    ask(g, "direct", "what was basil fed", g.of("Basil", "~animal", "food"))
    ask(g, "path of two", "which zone does kasimir live in", g.of("Kasimir", "enclosure", "zone"))
    ask(g, "path of two", "whats the specialty of the keeper of slate", g.of("Slate", "keeper", "specialty"))
    ask(
        g,
        "path of two",
        "which animals have a mother that imke tanaka looks after",
        g.of("Imke Tanaka", "~keeper", "~mother"),
    )
    ask(g, "path of three", "who trained the keeper of runa's mother", g.of("Runa", "mother", "keeper", "trained_by"))
    ask(
        g,
        "path of three",
        "in which zone is the enclosure of Pip's mother",
        g.of("Pip", "mother", "enclosure", "zone"),
    )
    ask(
        g,
        "path of three",
        "species of the animals in the south zone",
        g.of("South Zone", "~zone", "~enclosure", "species"),
        "keyword",
    )
    ask(
        g,
        "type condition",
        "all female animals in reptile hall",
        g.eq(g.eq(animals, "enclosure", "Reptile Hall"), "sex", "female"),
        "keyword",
    )
    ask(g, "type condition", "which keepers were trained by yusuf", g.eq("keepers", "trained_by", "Yusuf Ferreira"))
    ask(g, "number condition", "animals over 500 kilos", g.more(animals, "weight_kg", 500), "keyword")
    ask(g, "number condition", "animals heavier than 4000 kg", g.more(animals, "weight_kg", 4000))
    ask(
        g,
        "date condition",
        "which of our keepers were hired after 2015, i want to invite them to the newcomers evening",
        g.since("keepers", "hired", "2016"),
    )
    ask(
        g,
        "date condition",
        "which enclosures opened between 2017 and 2021",
        g.before(g.since("enclosures", "opened", "2017"), "opened", "2022"),
    )
    ask(g, "text", "what does the sign at bear gorge say", g.of("Bear Gorge", "sign_text"))
    ask(g, "text", "which enclosure has a sign that mentions dogs", g.says("enclosures", "sign_text", "dogs"))
    ask(g, "boolean", "which enclosures are heated", g.eq("enclosures", "heated", "true"))
    ask(
        g, "boolean", "endangered animals in the river meadow", g.eq(endangered, "enclosure", "River Meadow"), "keyword"
    )
    ask(
        g,
        "negation",
        "enclosures that are not in the south zone or west zone",
        g.all("enclosures") - g.eq("enclosures", "zone", "South Zone", "West Zone"),
    )
    ask(
        g,
        "negation",
        "penguin bay animals that arent endangered",
        g.eq(animals, "enclosure", "Penguin Bay") - endangered,
        "typo",
    )
    ask(g, "absence", "animals without a keeper", g.lacks(animals, "keeper"))
    ask(g, "absence", "which keepers have nobody who trained them", g.lacks("keepers", "trained_by"))
    ask(
        g,
        "union",
        "animals kept in the bamboo house or the cliff run",
        g.eq(animals, "enclosure", "Bamboo House", "Cliff Run"),
    )
    ask(
        g,
        "intersection",
        "endangered males looked after by Yusuf Ferreira",
        g.eq(g.eq(endangered, "sex", "male"), "keeper", "Yusuf Ferreira"),
    )
    ask(
        g,
        "intersection",
        "enclosures that are heated and in the north zone",
        g.eq(g.eq("enclosures", "heated", "true"), "zone", "North Zone"),
    )
    ask(
        g,
        "subtract",
        "animals of wendeline frost minus the sea lions",
        g.eq(animals, "keeper", "Wendeline Frost") - g.eq(animals, "species", "sea lion"),
    )
    ask(g, "rank", "oldest animal in the zoo", g.top(animals, "born", low=True), "keyword")
    ask(g, "rank", "largest enclosure", g.top("enclosures", "area_m2"), "keyword short-form")
    ask(
        g,
        "rank inside a path",
        "who looks after the lightest humboldt penguin",
        g.of(g.top(g.eq(animals, "species", "Humboldt penguin"), "weight_kg", low=True), "keeper"),
    )
    ask(
        g,
        "rank inside a path",
        "which animals does the longest serving keeper have",
        g.of(g.top("keepers", "hired", low=True), "~keeper"),
    )
    ask(g, "first k", "three heaviest animals", g.top(animals, "weight_kg", 3), "keyword")
    ask(g, "first k", "the two keepers hired last", g.top("keepers", "hired", 2))
    ask(g, "count", "how many animals does rhea castellan look after", len(g.eq(animals, "keeper", "Rhea Castellan")))
    ask(g, "count", "how many animals live in owl tower", len(g.eq(animals, "enclosure", "Owl Tower")))
    ask(
        g,
        "sum",
        "total area of the west zone enclosures",
        sum(g.numbers(g.eq("enclosures", "zone", "West Zone"), "area_m2")),
    )
    ask(g, "sum", "how many kg of hay were fed in all", sum(g.numbers(g.eq("feedings", "food", "hay"), "amount_kg")))
    ask(
        g,
        "average",
        "average weight of the brown bears",
        mean(g.numbers(g.eq(animals, "species", "brown bear"), "weight_kg")),
    )
    ask(
        g,
        "average",
        "mean area of the heated enclosures",
        mean(g.numbers(g.eq("enclosures", "heated", "true"), "area_m2")),
    )
    ask(g, "share", "what percentage of the animals is endangered", percent(endangered, g.all(animals)))
    ask(
        g,
        "share",
        "share of head keepers among the keepers",
        percent(g.eq("keepers", "head_keeper", "true"), g.all("keepers")),
        "keyword",
    )
    ask(g, "group", "number of animals per enclosure", g.groups(animals, "enclosure"), "keyword")
    ask(g, "group", "total kg fed by food", g.groups("feedings", "food", "amount_kg"), "keyword")
    ask(g, "compare", "who is heavier, bruno or captain", g.top({"Bruno", "Captain"}, "weight_kg"))
    ask(
        g,
        "compare",
        "Is Owl Tower bigger than Bamboo House?",
        g.numbers({"Owl Tower"}, "area_m2") > g.numbers({"Bamboo House"}, "area_m2"),
    )
    ask(g, "yes/no", "is luna endangered", "Luna" in endangered)
    ask(g, "yes/no", "does oskar lindqvist look after tamba", g.of("Tamba", "keeper") == {"Oskar Lindqvist"})
    ask(g, "where/when", "when was clementine born", g.of("Clementine", "born"))
    ask(g, "where/when", "where does neela live", g.of("Neela", "enclosure"))
    no(g, "what is the salary of imke tanaka", RELATION, "salary")
    no(g, "how many visitors came to penguin bay", RELATION, "visitors")
    no(g, "who is the father of runa", RELATION, "father")
    no(g, "which vet treated bruno", RELATION, "vet")
    no(g, "how tall is malou", RELATION, "height")
    no(g, "keeper of the gorilla Mbeki", ENTITY, "Mbeki", "keyword")
    no(g, "how big is the butterfly dome", ENTITY, "butterfly dome")
    no(g, "when was Lotte Brandvold hired", ENTITY, "Lotte Brandvold")
    no(g, "what is zuri fed on", ENTITY, "Zuri")
    no(g, "which restaurants are in the zoo", TYPE, "restaurants")
    no(g, "list the volunteers", TYPE, "volunteers", "short-form")
    no(g, "phone number of wendeline frost", RELATION, "phone number", "keyword")
    no(g, "which animals are on loan from another zoo", RELATION, "loan")
    no(g, "animals with a microchip", RELATION, "microchip", "keyword")
    no(g, "how many souvenir shops do we have", TYPE, "souvenir shops")
    return g


def league() -> Graph:
    g = read_league()
    player, match, team, stadium = "player", "match", "team", "stadium"
    ask(g, "direct", "who coaches osterby owls", g.of("Osterby Owls", "coach"))
    ask(g, "direct", "home stadium of the linfell wheelers", g.of("Linfell Wheelers", "home stadium"), "keyword")
    ask(
        g, "path of two", "where does ravi sunder play his home games", g.of("Ravi Sunder", "plays for", "home stadium")
    )
    ask(
        g,
        "path of two",
        "who refereed the home games of the gulls",
        g.of("Tidewick Gulls", "~home team", "refereed by"),
    )
    ask(
        g,
        "path of three",
        "what region does the team of eli fontaine come from",
        g.of("Eli Fontaine", "plays for", "city", "region"),
    )
    ask(
        g,
        "path of three",
        "capacity of the stadium of the home team of Harrowmere Rovers v Osterby Owls",
        g.of("Harrowmere Rovers v Osterby Owls", "home team", "home stadium", "capacity"),
    )
    ask(
        g,
        "path of three",
        "players of the teams that have their stadium in harrowmere",
        g.of("Harrowmere", "~city", "~home stadium", "~plays for"),
    )
    ask(g, "type condition", "teams from harrowmere", g.eq(team, "city", "Harrowmere"), "keyword")
    ask(
        g,
        "type condition",
        "which goalkeepers play for Osterby Owls",
        g.eq(g.eq(player, "plays for", "Osterby Owls"), "position", "goalkeeper"),
    )
    ask(g, "number condition", "players with more than 8 goals", g.more(player, "goals this season", 8))
    ask(g, "number condition", "stadiums that hold over 30000", g.more(stadium, "capacity", 30000))
    ask(
        g,
        "number condition",
        "i need all players who are at least 190 cm tall for the back row of the photo",
        g.more(player, "height in cm", 189.9),
    )
    ask(
        g,
        "date condition",
        "matches played in march 2026",
        g.before(g.since(match, "date", "2026-03-01"), "date", "2026-04-01"),
    )
    ask(g, "date condition", "which games were on or after 1 April 2026", g.since(match, "date", "2026-04-01"))
    ask(g, "text", "what is quarrington town's nickname", g.of("Quarrington Town", "nickname"))
    ask(g, "text", "which team is called the Spokes", g.eq(team, "nickname", "the Spokes"))
    ask(g, "boolean", "which stadiums are covered", g.eq(stadium, "covered", "true"))
    ask(
        g,
        "boolean",
        "any left-footed goalkeepers?",
        g.eq(g.eq(player, "left-footed", "true"), "position", "goalkeeper"),
        "short-form",
    )
    ask(g, "negation", "teams whose shirt colour is not blue", g.all(team) - g.eq(team, "shirt colour", "blue"))
    ask(
        g,
        "negation",
        "owls players who are not forwards",
        g.eq(player, "plays for", "Osterby Owls") - g.eq(player, "position", "forward"),
    )
    ask(g, "absence", "which teams have no nickname", g.lacks(team, "nickname"))
    ask(g, "absence", "games with no attendance figure", g.lacks(match, "attendance"), "keyword")
    ask(g, "absence", "teams without a home stadium", g.lacks(team, "home stadium"))
    ask(g, "union", "players of rovers or united", g.eq(player, "plays for", "Harrowmere Rovers", "Harrowmere United"))
    ask(
        g,
        "union",
        "which matches did lena hartog or joost pereira referee",
        g.eq(match, "refereed by", "Lena Hartog", "Joost Pereira"),
    )
    ask(
        g,
        "intersection",
        "midfielders born since 2001 that scored more than 2",
        g.more(g.since(g.eq(player, "position", "midfielder"), "born", "2001"), "goals this season", 2),
    )
    ask(
        g,
        "intersection",
        "which teams play in blue and come from Linfell",
        g.eq(g.eq(team, "shirt colour", "blue"), "city", "Linfell"),
    )
    ask(g, "subtract", "all goalkeepers except mateo quist", g.eq(player, "position", "goalkeeper") - {"Mateo Quist"})
    ask(g, "rank", "top scorer", g.top(player, "goals this season"), "keyword short-form")
    ask(g, "rank", "which team was founded first", g.top(team, "founded", low=True))
    ask(
        g,
        "rank inside a path",
        "city of the smallest stadium",
        g.of(g.top(stadium, "capacity", low=True), "city"),
        "keyword",
    )
    ask(
        g,
        "rank inside a path",
        "who refereed the match with the highest attendance",
        g.of(g.top(match, "attendance"), "refereed by"),
    )
    ask(g, "first k", "two biggest stadiums by capacity", g.top(stadium, "capacity", 2), "keyword")
    ask(g, "first k", "the 3 youngest players", g.top(player, "born", 3))
    ask(g, "count", "how many teams come from the northmark", len(g.of("Northmark", "~region", "~city") & g.all(team)))
    ask(
        g,
        "count",
        "number of goalkeepers at the gulls",
        len(g.eq(g.eq(player, "plays for", "Tidewick Gulls"), "position", "goalkeeper")),
        "keyword",
    )
    ask(
        g,
        "sum",
        "how many goals have the defenders scored together this season",
        sum(g.numbers(g.eq(player, "position", "defender"), "goals this season")),
    )
    ask(
        g,
        "sum",
        "goals this season by all goalkeepers added up",
        sum(g.numbers(g.eq(player, "position", "goalkeeper"), "goals this season")),
    )
    ask(
        g,
        "average",
        "average hight of the forwards",
        mean(g.numbers(g.eq(player, "position", "forward"), "height in cm")),
        "typo",
    )
    ask(g, "average", "mean capacity of the stadiums", mean(g.numbers(g.all(stadium), "capacity")))
    ask(
        g,
        "share",
        "what percent of the matches did marcus bly referee",
        percent(g.eq(match, "refereed by", "Marcus Bly"), g.all(match)),
    )
    ask(
        g,
        "share",
        "percentage of the players that are forwards",
        percent(g.eq(player, "position", "forward"), g.all(player)),
        "keyword",
    )
    ask(g, "group", "goals by team, all players summed", g.groups(player, "plays for", "goals this season"))
    ask(g, "group", "number of matches per referee", g.groups(match, "refereed by"), "keyword")
    ask(
        g,
        "compare",
        "who scored more, hugo lasker or felix orme",
        g.top({"Hugo Lasker", "Felix Orme"}, "goals this season"),
    )
    ask(
        g,
        "compare",
        "is Millfield older than the Pier Stadium",
        min(g.of("Millfield", "opened")) < min(g.of("Pier Stadium", "opened")),
    )
    ask(g, "yes/no", "does kofi brandt play for united", g.of("Kofi Brandt", "plays for") == {"Harrowmere United"})
    ask(g, "yes/no", "is lantern park covered", g.of("Lantern Park", "covered") == {"true"})
    ask(g, "where/when", "where is referee lena hartog from", g.of("Lena Hartog", "city"))
    no(g, "how much does eli fontaine earn", RELATION, "salary")
    no(g, "how many yellow cards did owen tarrant get", RELATION, "yellow cards")
    no(g, "which shirt number does sami oduya wear", RELATION, "shirt number")
    no(g, "who sponsors the tidewick gulls", RELATION, "sponsor")
    no(g, "nationality of mateo quist", RELATION, "nationality", "keyword")
    no(g, "who is the captain of the owls", RELATION, "captain")
    no(g, "how many goals has Petr Skala scored", ENTITY, "Petr Skala")
    no(g, "where do the Brackley Bears play", ENTITY, "Brackley Bears")
    no(g, "capacity of Highbridge Stadium", ENTITY, "Highbridge Stadium", "keyword")
    no(g, "which matches did sofia renner referee", ENTITY, "Sofia Renner")
    no(g, "list the physiotherapists", TYPE, "physiotherapists", "short-form")
    no(g, "how many fan clubs are there", TYPE, "fan clubs")
    no(g, "who was man of the match in the gulls rovers game", RELATION, "man of the match")
    no(g, "transfer fee paid for cato imani", RELATION, "transfer fee", "keyword")
    no(g, "which youth academies are in the league", TYPE, "youth academies")
    return g


def festival() -> Graph:
    g = read_festival()
    bands, slots, stages, sponsors = "bands", "slots", "stages", "sponsors"
    ask(g, "direct", "what do the velvet moths play", g.of("The Velvet Moths", "plays"))
    ask(
        g,
        "direct",
        "who has toured with brass tactics",
        g.of("Brass Tactics", "toured with") | g.of("Brass Tactics", "~toured with"),
    )
    ask(
        g,
        "path of two",
        "what is the genre of grindstone choir a kind of",
        g.of("Grindstone Choir", "plays", "is a kind of"),
    )
    ask(g, "path of two", "which stages do copper lanterns play on", g.of("Copper Lanterns", "~band", "on stage"))
    ask(g, "path of two", "which bands play on the dawn stage", g.of("Dawn Stage", "~on stage", "band"))
    ask(
        g,
        "path of three",
        "who sponsors the stage that mono lagoon plays on",
        g.of("Mono Lagoon", "~band", "on stage", "sponsored by"),
    )
    ask(g, "path of three", "genres played on the cellar stage", g.of("Cellar Stage", "~on stage", "band", "plays"))
    ask(
        g,
        "type condition",
        "swing bands from Cinder Bay",
        g.eq(g.eq(bands, "plays", "swing"), "comes from", "Cinder Bay"),
        "keyword",
    )
    ask(g, "number condition", "bands with more than 4 members", g.more(bands, "number of members", 4), "keyword")
    ask(g, "number condition", "sponsors that give more than 100000 euros", g.more(sponsors, "gives euros", 100000))
    ask(g, "date condition", "slots on 18 july 2026", g.eq(slots, "on day", "2026-07-18"), "keyword")
    ask(g, "date condition", "which slots are after 19 july 2026", g.since(slots, "on day", "2026-07-20"))
    ask(g, "text", "slogan of juniper cola", g.of("Juniper Cola", "slogan"), "keyword")
    ask(g, "text", "which sponsor has a slogan with the word stars in it", g.says(sponsors, "slogan", "stars"))
    ask(g, "boolean", "stages that have a roof", g.eq(stages, "has roof", "yes"), "keyword")
    ask(
        g,
        "boolean",
        "which stages on the east shore have a roof",
        g.eq(g.eq(stages, "has roof", "yes"), "stands on", "East Shore"),
    )
    ask(
        g,
        "negation",
        "which stages are not sponsored by juniper cola but do have a sponsor",
        g.all(stages) - g.lacks(stages, "sponsored by") - g.eq(stages, "sponsored by", "Juniper Cola"),
    )
    ask(
        g,
        "negation",
        "bands from ironvale that dont play metal of any kind",
        g.eq(bands, "comes from", "Ironvale") - g.eq(bands, "plays", *g.of("metal", "~is a kind of")),
        "typo",
    )
    ask(g, "absence", "bands without a label", g.lacks(bands, "signed to"), "keyword")
    ask(g, "absence", "which stage has no sponsor", g.lacks(stages, "sponsored by"))
    ask(g, "absence", "bands that have no slot", g.lacks(bands, "~band"))
    ask(
        g,
        "union",
        "which bands come from brackwater or cinder bay",
        g.eq(bands, "comes from", "Brackwater", "Cinder Bay"),
    )
    ask(
        g,
        "intersection",
        "folk rock bands signed to Hollow Tree Records",
        g.eq(g.eq(bands, "plays", "folk rock"), "signed to", "Hollow Tree Records"),
        "keyword",
    )
    ask(
        g,
        "intersection",
        "which bands play both the meadow stage and the lake stage",
        g.of("Meadow Stage", "~on stage", "band") & g.of("Lake Stage", "~on stage", "band"),
    )
    ask(
        g,
        "intersection",
        "bands from Saltham that are signed to Big Spoon",
        g.eq(g.eq(bands, "comes from", "Saltham"), "signed to", "Big Spoon"),
    )
    ask(g, "subtract", "dream pop bands except nocturne motel", g.eq(bands, "plays", "dream pop") - {"Nocturne Motel"})
    ask(
        g,
        "subtract",
        "all black metal bands without those from Ironvale or Thistledown",
        g.eq(bands, "plays", "black metal") - g.eq(bands, "comes from", "Ironvale", "Thistledown"),
    )
    ask(g, "rank", "which band has the most members", g.top(bands, "number of members"))
    ask(g, "rank", "longest slot", g.top(slots, "minutes"), "keyword short-form")
    ask(
        g,
        "rank inside a path",
        "genre of the oldest band",
        g.of(g.top(bands, "founded in", low=True), "plays"),
        "keyword",
    )
    ask(
        g,
        "rank inside a path",
        "who sponsors the stage with the smallest capacity",
        g.of(g.top(stages, "capacity", low=True), "sponsored by"),
    )
    ask(g, "first k", "three longest slots", g.top(slots, "minutes", 3), "keyword")
    ask(g, "first k", "the two newest bands", g.top(bands, "founded in", 2))
    ask(g, "count", "how many bands come from thistledown", len(g.eq(bands, "comes from", "Thistledown")))
    ask(
        g,
        "count",
        "number of swing bands from saltham",
        len(g.eq(g.eq(bands, "plays", "swing"), "comes from", "Saltham")),
    )
    ask(
        g,
        "sum",
        "how many minutes of music on the meadow stage altogether",
        sum(g.numbers(g.of("Meadow Stage", "~on stage"), "minutes")),
    )
    ask(
        g,
        "average",
        "average slot length on 17 july 2026",
        mean(g.numbers(g.eq(slots, "on day", "2026-07-17"), "minutes")),
    )
    ask(
        g,
        "average",
        "mean number of members of the folk rock bands",
        mean(g.numbers(g.eq(bands, "plays", "folk rock"), "number of members")),
    )
    ask(
        g,
        "share",
        "what share of the stages has a roof in percent",
        percent(g.eq(stages, "has roof", "yes"), g.all(stages)),
    )
    ask(
        g,
        "share",
        "percentage of bands that play dream pop",
        percent(g.eq(bands, "plays", "dream pop"), g.all(bands)),
        "keyword",
    )
    ask(g, "group", "how many bands per label", g.groups(bands, "signed to"))
    ask(g, "group", "total minutes by stage", g.groups(slots, "on stage", "minutes"), "keyword")
    ask(
        g,
        "compare",
        "which gives more, cobble bank or moss outdoor",
        g.top({"Cobble Bank", "Moss Outdoor"}, "gives euros"),
    )
    ask(
        g,
        "compare",
        "is silt older than the velvet moths",
        g.numbers({"Silt"}, "founded in") < g.numbers({"The Velvet Moths"}, "founded in"),
    )
    ask(g, "yes/no", "is electric heron from brackwater", g.of("Electric Heron", "comes from") == {"Brackwater"})
    ask(g, "yes/no", "does the dawn stage have a roof", g.of("Dawn Stage", "has roof") == {"yes"})
    ask(g, "where/when", "when do paper satelites play", g.of("Paper Satellites", "~band", "on day"), "typo")
    ask(g, "where/when", "where is finch cycles based", g.of("Finch Cycles", "based in"))
    no(g, "how much is a weekend ticket", RELATION, "ticket price")
    no(g, "who sings in nocturne motel", RELATION, "singer")
    no(g, "which albums has silt released", RELATION, "albums")
    no(g, "fee of copper lanterns", RELATION, "fee", "keyword")
    no(g, "which stage manager runs the barn stage", RELATION, "stage manager")
    no(g, "how many people went to see rustbelt romeo", RELATION, "audience")
    no(g, "where do the Paisley Owls come from", ENTITY, "Paisley Owls")
    no(g, "who plays on the Forest Stage", ENTITY, "Forest Stage")
    no(g, "what does Larkspur Insurance give", ENTITY, "Larkspur Insurance")
    no(g, "which bands are signed to Tin Roof Music", ENTITY, "Tin Roof Music")
    no(g, "food trucks with vegan food", TYPE, "food trucks", "keyword")
    no(g, "list all campsites", TYPE, "campsites", "short-form")
    no(g, "which volunteers work on saturday", TYPE, "volunteers")
    no(g, "what instrument does ola ferngrove play", RELATION, "instrument")
    no(g, "who is the drummer of wolfbane parade", RELATION, "drummer")
    return g


def kitchen() -> Graph:
    g = read_kitchen()
    dish, ingredient, supplier, menu = "Dish", "Ingredient", "Supplier", "Menu"
    vegetarian, allergens = g.eq(dish, "vegetarian", "true"), g.eq(ingredient, "allergen", "true")
    ask(g, "direct", "whats in the potato gratin", g.of("potato gratin", "contains"))
    ask(g, "path of two", "which city is the supplier of cod in", g.of("cod", "supplied by", "city"))
    ask(g, "path of two", "who supplies what goes into the almond cake", g.of("almond cake", "contains", "supplied by"))
    ask(
        g,
        "path of three",
        "menus with a dish that has something from nordcatch in it",
        g.of("Nordcatch", "~supplied by", "~contains", "on menu"),
    )
    ask(
        g,
        "path of three",
        "cities that the ingredients of cod with saffron come from",
        g.of("cod with saffron", "contains", "supplied by", "city"),
    )
    ask(
        g,
        "type condition",
        "which starters are on the harbour menu",
        g.eq(g.eq(dish, "course", "starter"), "on menu", "Harbour Menu"),
    )
    ask(g, "type condition", "suppliers in Monteluz", g.eq(supplier, "city", "Monteluz"), "keyword")
    ask(g, "number condition", "which ingredients cost more than 30 per kg", g.more(ingredient, "price_per_kg", 30))
    ask(g, "number condition", "menus for less than 20", g.less(menu, "price", 20))
    ask(
        g,
        "date condition",
        "dishes created in 2021",
        g.before(g.since(dish, "created", "2021"), "created", "2022"),
        "keyword",
    )
    ask(g, "date condition", "which menus are valid from july 2026 or later", g.since(menu, "valid_from", "2026-07"))
    ask(g, "text", "what is the note on nordcatch", g.of("Nordcatch", "note"))
    ask(g, "boolean", "vegetarian main courses", g.eq(vegetarian, "course", "main course"), "keyword")
    ask(g, "boolean", "allergens from the spice lantern", g.eq(allergens, "supplied by", "Spice Lantern"), "keyword")
    ask(g, "negation", "starters that are not vegetarian", g.eq(dish, "course", "starter") - vegetarian)
    ask(
        g,
        "negation",
        "which desserts dont contain egg",
        g.eq(dish, "course", "dessert") - g.eq(dish, "contains", "egg"),
        "typo",
    )
    ask(g, "absence", "dishes that are on no menu", g.lacks(dish, "on menu"))
    ask(g, "absence", "for which ingredients do we still have no supplier", g.lacks(ingredient, "supplied by"))
    ask(g, "absence", "which dish has no creation date", g.lacks(dish, "created"))
    ask(g, "union", "dishes with cod or mussel in it", g.eq(dish, "contains", "cod", "mussel"))
    ask(
        g,
        "union",
        "everything by noor sandell or on the brunch menu",
        g.eq(dish, "created by", "Noor Sandell") | g.eq(dish, "on menu", "Brunch Menu"),
    )
    ask(
        g,
        "intersection",
        "dishes that have both egg and butter",
        g.eq(dish, "contains", "egg") & g.eq(dish, "contains", "butter"),
    )
    ask(
        g,
        "intersection",
        "dishes with chorizo and cream",
        g.eq(dish, "contains", "chorizo") & g.eq(dish, "contains", "cream"),
        "keyword",
    )
    ask(
        g,
        "subtract",
        "teodor wicks dishes except the almond cake",
        g.eq(dish, "created by", "Teodor Wick") - {"almond cake"},
    )
    ask(
        g,
        "subtract",
        "ingredients of the leek and potato soup without the allergens",
        g.of("leek and potato soup", "contains") - allergens,
    )
    ask(
        g,
        "subtract",
        "brunch menu dishes minus those with egg",
        g.eq(dish, "on menu", "Brunch Menu") - g.eq(dish, "contains", "egg"),
    )
    ask(g, "rank", "most expensive dish", g.top(dish, "price"), "keyword short-form")
    ask(g, "rank", "which ingredient is the cheapest per kg", g.top(ingredient, "price_per_kg", low=True))
    ask(
        g,
        "rank inside a path",
        "where is our oldest supplier",
        g.of(g.top(supplier, "supplier_since", low=True), "city"),
    )
    ask(
        g,
        "rank inside a path",
        "ingredients of the cheapest main course",
        g.of(g.top(g.eq(dish, "course", "main course"), "price", low=True), "contains"),
        "keyword",
    )
    ask(g, "first k", "three priciest ingredients per kg", g.top(ingredient, "price_per_kg", 3), "keyword")
    ask(g, "first k", "the two dishes that were created first", g.top(dish, "created", 2, low=True))
    ask(
        g,
        "count",
        "how many vegetarian dishes are on the harbour menu",
        len(g.eq(vegetarian, "on menu", "Harbour Menu")),
    )
    ask(
        g,
        "count",
        "number of desserts with chorizo",
        len(g.eq(g.eq(dish, "course", "dessert"), "contains", "chorizo")),
        "keyword",
    )
    ask(g, "sum", "total calories of the garden menu", sum(g.numbers(g.eq(dish, "on menu", "Garden Menu"), "calories")))
    ask(
        g,
        "sum",
        "if somebody orders every starter once, what do they cost together",
        sum(g.numbers(g.eq(dish, "course", "starter"), "price")),
    )
    ask(g, "average", "average price of a dessert", mean(g.numbers(g.eq(dish, "course", "dessert"), "price")))
    ask(g, "average", "Mean calories of the vegetarian dishes?", mean(g.numbers(vegetarian, "calories")))
    ask(g, "share", "what percentage of the dishes is vegetarian", percent(vegetarian, g.all(dish)))
    ask(
        g,
        "share",
        "share of suppliers that are organic",
        percent(g.eq(supplier, "organic", "true"), g.all(supplier)),
        "keyword",
    )
    ask(g, "group", "dishes per course, how many", g.groups(dish, "course"))
    ask(g, "group", "average price by course", g.groups(dish, "course", "price", mean=True), "keyword")
    ask(
        g,
        "compare",
        "what has more calories, roast pear or almond cake",
        g.top({"roast pear", "almond cake"}, "calories"),
    )
    ask(
        g,
        "compare",
        "is the garden menu dearer than the harbour menu",
        g.numbers({"Garden Menu"}, "price") > g.numbers({"Harbour Menu"}, "price"),
    )
    ask(g, "yes/no", "is there butter in the beetroot carpaccio", "butter" in g.of("beetroot carpaccio", "contains"))
    ask(g, "yes/no", "is the nettle omelette on the spring menu", "Spring Menu" in g.of("nettle omelette", "on menu"))
    ask(g, "where/when", "when did noor sandell start", g.of("Noor Sandell", "started"))
    ask(g, "where/when", "where is milbrook dairy", g.of("Millbrook Dairy", "city"), "typo")
    no(g, "how long does the almond cake bake", RELATION, "baking time")
    no(g, "which wine goes with the cod cakes", RELATION, "wine")
    no(g, "how many portions of roast pear did we sell", RELATION, "portions sold")
    no(g, "protein in the potato gratin", RELATION, "protein", "keyword")
    no(g, "who is the contact person at nordcatch", RELATION, "contact person")
    no(g, "which guests complained about the chorizo hash", RELATION, "complaints")
    no(g, "what rating did the chocolate pot get", RELATION, "rating")
    no(g, "how much does amalia brook earn", RELATION, "salary")
    no(g, "what is in the lobster bisque", ENTITY, "lobster bisque")
    no(g, "where is Frostvale Meats", ENTITY, "Frostvale Meats")
    no(g, "price of the Lantern Night Menu", ENTITY, "Lantern Night Menu", "keyword")
    no(g, "who supplies truffles", ENTITY, "truffles")
    no(g, "list the waiters", TYPE, "waiters", "short-form")
    no(g, "which ovens are being repaired", TYPE, "ovens")
    no(g, "how many tables are booked tonight", TYPE, "tables")
    return g


if __name__ == "__main__":
    write(HERE, (zoo(), league(), festival(), kitchen()))
