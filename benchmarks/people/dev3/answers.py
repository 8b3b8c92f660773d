"""Computes the gold answers of dev3 from its graph files, and writes a file of questions for each graph.

    python -m benchmarks.people.dev3.answers

It reads the files with csv and rdflib.
"""

from __future__ import annotations

from pathlib import Path

import rdflib

from benchmarks.people.gold import ENTITY, RELATION, TYPE, Graph, ask, mean, no, percent, read_tables, write

HERE = Path(__file__).resolve().parent
GRAPHS = HERE / "graphs"


def read_realm() -> Graph:
    """Relations are called by the ends of their IRIs, which have no labels."""
    graph, triples = Graph("realm"), rdflib.Graph().parse(GRAPHS / "realm" / "realm.ttl")
    label = {subject: str(value) for subject, value in triples.subject_objects(rdflib.RDFS.label)}
    for subject, relation, value in triples:
        name = str(relation).split("#")[-1]
        if relation == rdflib.RDF.type:
            graph.things[str(value).split("#")[-1]].append(label[subject])
        elif relation != rdflib.RDFS.label:
            graph.add(label[subject], name, label.get(value, str(value)))
    return graph


def realm() -> Graph:
    g = read_realm()
    province, city, river, mountain, lake, road = "Province", "City", "River", "Mountain", "Lake", "Road"
    coastal, people = g.eq(province, "coastal", "true"), g.top(province, "population")
    ask(g, "direct", "Capital of Brennick?", g.of("Brennick", "capital"), "keyword")
    ask(g, "direct", "into which lake does the Brack flow", g.of("Brack", "flowsInto"))
    ask(
        g,
        "path of two",
        "Name the provinces whose capital lies on the Border Road.",
        g.of("Border Road", "connects", "~capital"),
    )
    ask(
        g,
        "path of two",
        "rivers that run through the province whose capital is Quennel",
        g.of("Quennel", "~capital", "~flowsThrough"),
    )
    ask(g, "path of two", "how many people live in dunvale's capital", g.of("Dunvale", "capital", "population"))
    ask(
        g,
        "path of three",
        "Give me the capitals of the provinces that share a border with the one Mirrormere is in.",
        g.of("Mirrormere", "province", "borders", "capital"),
    )
    ask(
        g,
        "path of three",
        "what roads go to the capital of the province where Stag Crown stands",
        g.of("Stag Crown", "province", "capital", "~connects"),
    )
    ask(g, "type condition", "Which rivers empty into the Sea of Thole?", g.eq(river, "flowsInto", "Sea of Thole"))
    ask(g, "type condition", "mountains found in ilmarsh", g.eq(mountain, "province", "Ilmarsh"), "keyword")
    ask(g, "number condition", "peaks higher than 2500 m", g.more(mountain, "heightM", 2500), "keyword")
    ask(
        g,
        "number condition",
        "provinces in which fewer than 20 people live per square kilometre",
        g.less(province, "density", 20),
    )
    ask(g, "number condition", "Tell me which roads are over 500 km long.", g.more(road, "lengthKm", 500))
    ask(
        g,
        "date condition",
        "which of the mountains had been climbed before 1850",
        g.before(mountain, "firstClimbed", "1850"),
    )
    ask(
        g,
        "date condition",
        "Roads opened in the 1960s",
        g.before(g.since(road, "opened", "1960"), "opened", "1970"),
        "keyword",
    )
    ask(g, "text", "whats the motto of caldermark", g.of("Caldermark", "motto"))
    ask(g, "text", "The province that has the word sea in its motto is called what?", g.says(province, "motto", "sea"))
    ask(g, "boolean", "on which roads does one pay a toll", g.eq(road, "toll", "true"))
    ask(
        g,
        "boolean",
        "Are there navigable rivers in Brennick, and which?",
        g.eq(g.eq(river, "navigable", "true"), "flowsThrough", "Brennick"),
    )
    ask(
        g,
        "negation",
        "Which provinces do not border Kerrund?",
        g.all(province) - g.eq(province, "borders", "Kerrund"),
    )
    ask(
        g,
        "negation",
        "lakes not deeper than 50 metres that aren't in fennoway",
        g.test(lake, "depthM", lambda value: float(value) <= 50) - g.eq(lake, "province", "Fennoway"),
    )
    ask(g, "absence", "Which mountains has nobody climbed so far?", g.lacks(mountain, "firstClimbed"))
    ask(g, "absence", "the province with no neighbours at all", g.lacks(province, "borders"))
    ask(
        g,
        "union",
        "rivers crossing Ardenholt or Gristmoor",
        g.eq(river, "flowsThrough", "Ardenholt", "Gristmoor"),
        "keyword",
    )
    ask(
        g,
        "union",
        "cities that Pass Road or the Fen Motorway goes to",
        g.of({"Pass Road", "Fen Motorway"}, "connects"),
    )
    ask(
        g,
        "intersection",
        "Which river goes through Brennick as well as through Caldermark?",
        g.eq(river, "flowsThrough", "Brennick") & g.eq(river, "flowsThrough", "Caldermark"),
    )
    ask(
        g,
        "intersection",
        "provinces bordering both fennoway and ilmarsh",
        g.eq(province, "borders", "Fennoway") & g.eq(province, "borders", "Ilmarsh"),
    )
    ask(
        g,
        "subtract",
        "Fennoway's neighbours, leaving out the coastal ones",
        g.of("Fennoway", "borders") - coastal,
    )
    ask(
        g,
        "subtract",
        "all cities of Caldermark other than its capital",
        g.eq(city, "province", "Caldermark") - g.of("Caldermark", "capital"),
    )
    ask(g, "rank", "What is the deepest lake?", g.top(lake, "depthM"))
    ask(
        g,
        "rank",
        "highest peak that isnt in eskerra",
        g.top(g.all(mountain) - g.eq(mountain, "province", "Eskerra"), "heightM"),
    )
    ask(
        g,
        "rank inside a path",
        "How long is the longest river in Dunvale?",
        g.of(g.top(g.eq(river, "flowsThrough", "Dunvale"), "lengthKm"), "lengthKm"),
    )
    ask(g, "rank inside a path", "which provinces border the province with the most people", g.of(people, "borders"))
    ask(
        g,
        "rank inside a path",
        "capital of the province with the largest area",
        g.of(g.top(province, "area"), "capital"),
        "keyword",
    )
    ask(g, "first k", "The five longest rivers", g.top(river, "lengthKm", 5), "keyword")
    ask(g, "first k", "what are the 3 most populous provinces", g.top(province, "population", 3))
    ask(g, "count", "Through how many provinces does the Tarrow flow?", len(g.of("Tarrow", "flowsThrough")))
    ask(
        g,
        "count",
        "in how many provinces is there a mountain of more than 3000 m",
        len(g.of(g.more(mountain, "heightM", 3000), "province")),
    )
    ask(g, "count", "number of lakes in gristmoor", len(g.eq(lake, "province", "Gristmoor")), "keyword")
    ask(g, "sum", "How many people live in the coastal provinces all told?", sum(g.numbers(coastal, "population")))
    ask(g, "sum", "combined length of the toll roads", sum(g.numbers(g.eq(road, "toll", "true"), "lengthKm")))
    ask(
        g,
        "average",
        "averge height of the mountains of Brennick",
        mean(g.numbers(g.eq(mountain, "province", "Brennick"), "heightM")),
        "typo",
    )
    ask(
        g,
        "share",
        "how many percent of the rivers are navigable",
        percent(g.eq(river, "navigable", "true"), g.all(river)),
    )
    ask(g, "group", "count the mountains by province", g.groups(mountain, "province"))
    ask(
        g,
        "group",
        "For every province, what do the populations of its cities add up to?",
        g.groups(g.test(city, "province", bool), "province", "population"),
    )
    ask(g, "compare", "Which one is longer, the Ilver or the Menning?", g.top({"Ilver", "Menning"}, "lengthKm"))
    ask(
        g,
        "compare",
        "do more people live in isting than in draveny",
        g.numbers({"Isting"}, "population") > g.numbers({"Draveny"}, "population"),
    )
    ask(
        g,
        "compare",
        "by how many metres is Mount Corvane higher than Hallin Peak",
        g.numbers({"Mount Corvane"}, "heightM")[0] - g.numbers({"Hallin Peak"}, "heightM")[0],
    )
    ask(g, "yes/no", "Does Gristmoor touch Ilmarsh?", "Ilmarsh" in g.of("Gristmoor", "borders"))
    ask(g, "yes/no", "does the sarn flow into the tarrow", "Tarrow" in g.of("Sarn", "flowsInto"))
    ask(g, "where/when", "In which province would I find Sedge Water?", g.of("Sedge Water", "province"))
    ask(g, "where/when", "since when has Isting been independent", g.of("Isting", "independentSince"))
    no(g, "What currency do they pay with in Kerrund?", RELATION, "currency")
    no(g, "who governs eskerra", RELATION, "governor")
    no(g, "how cold does it get in Halverin in winter", RELATION, "temperature")
    no(g, "Mayor of Ardmouth", RELATION, "mayor", "keyword")
    no(g, "Which languages are spoken in Draveny?", RELATION, "languages")
    no(g, "what fish live in mirrormere", RELATION, "fish")
    no(g, "who was the first to climb Mount Corvane", RELATION, "climber")
    no(g, "the province whose cities pay the highest taxes", RELATION, "taxes")
    no(g, "What is the population of Farrowdene?", ENTITY, "Farrowdene")
    no(g, "which provinces border wexmoor", ENTITY, "Wexmoor")
    no(g, "height of Mount Ostrin", ENTITY, "Mount Ostrin", "keyword")
    no(g, "where does the river Lanner flow into the sea", ENTITY, "Lanner")
    no(g, "Which islands belong to Velmora?", TYPE, "islands")
    no(g, "airports close to tarrowick", TYPE, "airports", "keyword")
    no(g, "how many volcanoes are in Halverin", TYPE, "volcanoes")
    no(g, "name the oldest castle of Caldermark", TYPE, "castles")
    return g


def creatures() -> Graph:
    g = read_tables("creatures", GRAPHS / "creatures", {"creatures": "Name"}, "; ")
    every = g.all("creatures")
    flying, bosses = g.eq(every, "Can Fly", "yes"), g.eq(every, "Is Boss", "yes")
    dragons, golems, slimes, beasts, spirits, insects, birds, plants = (
        g.eq(every, "Family", family)
        for family in ("Dragon", "Golem", "Slime", "Beast", "Spirit", "Insect", "Bird", "Plant")
    )
    rare, epic, legendary = (g.eq(every, "Rarity", rarity) for rarity in ("Rare", "Epic", "Legendary"))
    ask(g, "direct", "What abilities does Gloomroot have?", g.of("Gloomroot", "Abilities"))
    ask(g, "direct", "tell me what bogwasp evolves from", g.of("Bogwasp", "Evolves From"))
    ask(
        g,
        "path of two",
        "where does the creature live that Wispmaw evolved from",
        g.of("Wispmaw", "Evolves From", "Habitat"),
    )
    ask(
        g,
        "path of two",
        "Rarity of everything that evolves from Ashwyrm",
        g.of("Ashwyrm", "~Evolves From", "Rarity"),
        "keyword",
    )
    ask(
        g,
        "path of two",
        "what evolves from something that itself evolves from ashroot",
        g.of("Ashroot", "~Evolves From", "~Evolves From"),
    )
    ask(
        g,
        "path of three",
        "Bogroot evolved from one that evolved from another: what is the damage type of that other one?",
        g.of("Bogroot", "Evolves From", "Evolves From", "Damage Type"),
    )
    ask(
        g,
        "path of three",
        "which abilities did the creature have that vexmaw's predecessor evolved from",
        g.of("Vexmaw", "Evolves From", "Evolves From", "Abilities"),
    )
    ask(g, "type condition", "show me the tundra golems", g.eq(golems, "Habitat", "Tundra"))
    ask(g, "type condition", "Which spirits deal ice damage?", g.eq(spirits, "Damage Type", "Ice"))
    ask(g, "type condition", "legendary golems", legendary & golems, "keyword short-form")
    ask(g, "number condition", "Anyone with more than 1500 health?", g.more(every, "Health", 1500))
    ask(
        g,
        "number condition",
        "birds whose speed is between 310 and 350",
        g.less(g.more(birds, "Speed", 309.5), "Speed", 350.5),
    )
    ask(g, "number condition", "creatures with a speed over 400", g.more(every, "Speed", 400), "keyword")
    ask(
        g,
        "date condition",
        "Which of the epic ones were added in 2025?",
        g.before(g.since(epic, "Added", "2025"), "Added", "2026"),
    )
    ask(g, "date condition", "dragons added before april 2021", g.before(dragons, "Added", "2021-04"), "keyword")
    ask(g, "text", "whats the lore on pyrebloom", g.of("Pyrebloom", "Lore"))
    ask(g, "text", "In whose lore are bells mentioned?", g.says(every, "Lore", "bells"))
    ask(g, "boolean", "Which beasts are able to fly?", beasts & flying)
    ask(g, "boolean", "give me all bosses at home in the volcano", g.eq(bosses, "Habitat", "Volcano"))
    ask(g, "negation", "birds that cant fly", birds - flying, "typo")
    ask(g, "negation", "Which legendaries are no bosses?", legendary - bosses)
    ask(
        g,
        "negation",
        "rare slimes that live neither in the cavern nor in the desert",
        (slimes & rare) - g.eq(every, "Habitat", "Cavern", "Desert") - g.lacks(every, "Habitat"),
    )
    ask(g, "absence", "Which birds don't have a single ability?", g.lacks(birds, "Abilities"))
    ask(g, "absence", "dragons for which no habitat is given", g.lacks(dragons, "Habitat"))
    ask(g, "absence", "plants with the cost missing", g.lacks(plants, "Cost"), "keyword")
    ask(g, "union", "Epics from the swamp or else the coast", g.eq(epic, "Habitat", "Swamp", "Coast"), "keyword")
    ask(
        g,
        "union",
        "rare insects having either Web or Burrow",
        g.eq(insects & rare, "Abilities", "Web", "Burrow"),
    )
    ask(
        g,
        "intersection",
        "who has both web and split",
        g.eq(every, "Abilities", "Web") & g.eq(every, "Abilities", "Split"),
    )
    ask(
        g,
        "intersection",
        "I'm looking for flying spirits that have Life Drain",
        g.eq(spirits & flying, "Abilities", "Life Drain"),
    )
    ask(
        g,
        "intersection",
        "legendary plants that can fly",
        legendary & plants & flying,
        "keyword",
    )
    ask(g, "subtract", "All bosses apart from the dragons and the birds", bosses - dragons - birds)
    ask(
        g,
        "subtract",
        "desert beasts excluding the ones that deal poison damage",
        g.eq(beasts, "Habitat", "Desert") - g.eq(beasts, "Damage Type", "Poison"),
    )
    ask(g, "rank", "the fastest golem", g.top(golems, "Speed"), "keyword short-form")
    ask(g, "rank", "Of all creatures that can fly, which one has the least health?", g.top(flying, "Health", low=True))
    ask(g, "rank", "what is the priciest creature", g.top(every, "Cost"))
    ask(
        g,
        "rank inside a path",
        "In what habitat does the slowest dragon live?",
        g.of(g.top(dragons, "Speed", low=True), "Habitat"),
    )
    ask(
        g,
        "rank inside a path",
        "what can the boss with the highest level do, i mean its abilities",
        g.of(g.top(bosses, "Level"), "Abilities"),
    )
    ask(g, "first k", "first five by speed, highest first", g.top(every, "Speed", 5), "keyword")
    ask(g, "first k", "Top 3 bosses by health", g.top(bosses, "Health", 3), "keyword")
    ask(g, "first k", "the four least expensive legendaries", g.top(legendary, "Cost", 4, low=True))
    ask(g, "count", "How many creatures have the Stun ability?", len(g.eq(every, "Abilities", "Stun")))
    ask(g, "count", "how many slimes can fly", len(slimes & flying))
    ask(
        g,
        "sum",
        "armour of all the forest golems put together",
        sum(g.numbers(g.eq(golems, "Habitat", "Forest"), "Armour")),
    )
    ask(g, "sum", "What do all of the rare beasts cost in total?", sum(g.numbers(rare & beasts, "Cost")))
    ask(g, "average", "What level are bosses on average?", mean(g.numbers(bosses, "Level")))
    ask(g, "average", "avg speed of rare birds", mean(g.numbers(rare & birds, "Speed")), "keyword")
    ask(g, "share", "what percentage of all creatures can fly", percent(flying, every))
    ask(g, "share", "Out of the dragons, what percent are bosses?", percent(bosses, dragons))
    ask(g, "group", "average health per family", g.groups(every, "Family", "Health", mean=True), "keyword")
    ask(g, "group", "How many bosses does each habitat have?", g.groups(bosses, "Habitat"))
    ask(
        g,
        "compare",
        "does quartzdrake have more armour than umberdrake",
        g.numbers({"Quartzdrake"}, "Armour") > g.numbers({"Umberdrake"}, "Armour"),
    )
    ask(
        g,
        "compare",
        "How much more health does Copperwasp have than Miretalon?",
        g.numbers({"Copperwasp"}, "Health")[0] - g.numbers({"Miretalon"}, "Health")[0],
    )
    ask(g, "compare", "what's quicker: Kelpooze or Sablefang", g.top({"Kelpooze", "Sablefang"}, "Speed"))
    ask(
        g,
        "compare",
        "Is Ironmaw more than twice as fast as Vexfang?",
        g.numbers({"Ironmaw"}, "Speed")[0] > 2 * g.numbers({"Vexfang"}, "Speed")[0],
    )
    ask(g, "yes/no", "is pyredrake a boss", "Pyredrake" in bosses)
    ask(g, "yes/no", "Can Zephyrblob fly?", "Zephyrblob" in flying)
    ask(g, "where/when", "where would i run into hollowroot", g.of("Hollowroot", "Habitat"))
    ask(g, "where/when", "When did they add Quartzdrake?", g.of("Quartzdrake", "Added"))
    no(g, "What does Ashtalon drop when it dies?", RELATION, "drops")
    no(g, "what is sablewasp weak against", RELATION, "weakness")
    no(g, "catch rate of zephyrblob", RELATION, "catch rate", "keyword")
    no(g, "how heavy is Irondrake", RELATION, "weight")
    no(g, "Who designed Umberwyrm?", RELATION, "designer")
    no(g, "how many players have caught wispfang", RELATION, "players who caught it")
    no(g, "slimes that need more than 50 mana", RELATION, "mana", "keyword")
    no(g, "The dragon with the longest wingspan", RELATION, "wingspan", "keyword")
    no(g, "how much damage does Copperwasp do per hit", RELATION, "amount of damage")
    no(g, "What level is Galedrake?", ENTITY, "Galedrake")
    no(g, "abilities of thunderhulk", ENTITY, "Thunderhulk", "keyword")
    no(g, "which creatures evolve from Mossfang", ENTITY, "Mossfang")
    no(g, "is Stormtalon faster than Mireplume", ENTITY, "Stormtalon")
    no(g, "Which potion cures poison?", TYPE, "potions")
    no(g, "list all weapons that deal fire damage", TYPE, "weapons")
    no(g, "quests that take place in the swamp", TYPE, "quests", "keyword")
    no(g, "which trainer has the most dragons", TYPE, "trainers")
    return g


if __name__ == "__main__":
    write(HERE, (realm(), creatures()))
