"""Computes the gold answers of dev3 from its graph files, and writes a file of questions for each graph.

    python -m benchmarks.people.dev3.answers

It reads the files with csv and rdflib.
"""

from __future__ import annotations

import csv
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
    ask(g, "date condition", "which roads have been opened since 2020", g.since(road, "opened", "2020"))
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
        "typo",
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
    ask(g, "first k", "what are the 3 most popluous provinces", g.top(province, "population", 3), "typo")
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
    ask(
        g,
        "compare",
        "Does Lake Orrin cover more area than Lake Vess?",
        g.numbers({"Lake Orrin"}, "area") > g.numbers({"Lake Vess"}, "area"),
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
    no(g, "how far is it from Tarrowick to Eskholm as the crow flies", RELATION, "distance")
    no(g, "the road with the most accidents", RELATION, "accidents", "keyword")
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
        "which abilites did the creature have that vexmaw's predecessor evolved from",
        g.of("Vexmaw", "Evolves From", "Evolves From", "Abilities"),
        "typo",
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
    no(g, "In which expansion did Wispdrake first appear?", RELATION, "expansion")
    no(g, "What level is Galedrake?", ENTITY, "Galedrake")
    no(g, "abilities of thunderhulk", ENTITY, "Thunderhulk", "keyword")
    no(g, "which creatures evolve from Mossfang", ENTITY, "Mossfang")
    no(g, "is Stormtalon faster than Mireplume", ENTITY, "Stormtalon")
    no(g, "who lives in the Moon Temple", ENTITY, "Moon Temple")
    no(g, "Which potion cures poison?", TYPE, "potions")
    no(g, "list all weapons that deal fire damage", TYPE, "weapons")
    no(g, "quests that take place in the swamp", TYPE, "quests", "keyword")
    no(g, "which trainer has the most dragons", TYPE, "trainers")
    return g


def read_firm() -> Graph:
    """Ids are read as the names of what they stand for; a row of assignments is called by the names of both."""
    tables = {
        "departments": ("dept_id", "dept_name"),
        "employees": ("employee_id", "full_name"),
        "projects": ("projectId", "projectName"),
        "products": ("product_id", "product_name"),
        "assignments": ("", ""),
    }
    graph, rows, names = Graph("firm"), {}, {}
    for table, (key, name) in tables.items():
        with (GRAPHS / "firm" / f"{table}.csv").open(encoding="utf-8", newline="") as file:
            rows[table] = list(csv.DictReader(file))
        if key:
            names |= {row[key]: row[name] for row in rows[table]}
    for table, (key, name) in tables.items():
        for row in rows[table]:
            own = row[name] if name else f"{names[row['employee_id']]} on {names[row['projectId']]}"
            graph.things[table].append(own)
            for column in row.keys() - {key, name}:
                graph.add(own, column, names.get(row[column], row[column]))
    return graph


def firm() -> Graph:
    g = read_firm()
    staff, project, product, task = "employees", "projects", "products", "assignments"
    remote, active = g.eq(staff, "remote", "yes"), g.eq(project, "status", "active")
    dropped = g.eq(product, "discontinued", "yes")

    def on(name: str) -> set[str]:
        return g.of(name, "~projectId", "employee_id")

    load = g.tally(task, "employee_id")
    pay = g.tally(g.test(staff, "dept_id", bool), "dept_id", "salary")
    ask(g, "direct", "who does priya report to", g.of("Priya Vellore", "manager_id"))
    ask(g, "direct", "Who's leading Lighthouse?", g.of("Lighthouse", "leadId"))
    ask(g, "direct", "how many hours did yara put into bluebird", g.of("Yara Nkemelu on Bluebird", "hours"))
    ask(
        g,
        "direct",
        "What was Mei Castellano's role on Lighthouse?",
        g.of("Mei Castellano on Lighthouse", "role_on_project"),
    )
    ask(
        g,
        "path of two",
        "in which office does Yara Nkemelu's department sit",
        g.of("Yara Nkemelu", "dept_id", "office"),
    )
    ask(
        g,
        "path of two",
        "Manager of whoever leads Open Door",
        g.of("Open Door", "leadId", "manager_id"),
        "keyword",
    )
    ask(
        g,
        "path of three",
        "who heads the department of the person responsible for the bamboo steamer",
        g.of("bamboo steamer", "responsible_id", "dept_id", "head_id"),
    )
    ask(
        g,
        "path of three",
        "Who is the boss of the boss of Casper Lund's boss?",
        g.of("Casper Lund", "manager_id", "manager_id", "manager_id"),
    )
    ask(g, "type condition", "everyone in logistics", g.eq(staff, "dept_id", "Logistics"), "keyword")
    ask(g, "type condition", "What do we get from Castell & Sons?", g.eq(product, "supplierName", "Castell & Sons"))
    ask(g, "type condition", "employees in Legal", g.eq(staff, "dept_id", "Legal"), "keyword")
    ask(g, "number condition", "Who makes more than 100000 a year?", g.more(staff, "salary", 100000))
    ask(g, "number condition", "products that go for less than 20", g.less(product, "unit_price", 20))
    ask(
        g,
        "number condition",
        "who works on more than one project",
        {name for name, number in load.items() if number > 1},
    )
    ask(
        g,
        "number condition",
        "Does anyone in Design get more than 100000, and if so who?",
        g.more(g.eq(staff, "dept_id", "Design"), "salary", 100000),
    )
    ask(g, "number condition", "is there anyone whose salary is below 20000, and who", g.less(staff, "salary", 20000))
    ask(
        g,
        "date condition",
        "Which projects have a start date after June 2023?",
        g.since(project, "startDate", "2023-07"),
    )
    ask(
        g,
        "date condition",
        "people who were taken on in 2019",
        g.before(g.since(staff, "hire_date", "2019"), "hire_date", "2020"),
    )
    ask(
        g,
        "date condition",
        "projects that ended in 2020",
        g.before(g.since(project, "endDate", "2020"), "endDate", "2021"),
        "keyword",
    )
    ask(g, "text", "what is noted about the linen apron", g.of("linen apron", "note"))
    ask(g, "text", "Which project has drivers in its description?", g.says(project, "description", "drivers"))
    ask(g, "boolean", "who in sales works remotely", g.eq(remote, "dept_id", "Sales"))
    ask(g, "boolean", "Products that have been discontinued", dropped, "keyword")
    ask(
        g,
        "boolean",
        "Which of the things Holzwerk Arnau supplies are discontinued?",
        g.eq(dropped, "supplierName", "Holzwerk Arnau"),
    )
    ask(
        g,
        "negation",
        "which account managers do not work remotely",
        g.eq(staff, "job_title", "account manager") - remote,
    )
    ask(
        g,
        "negation",
        "Projects that are neither active nor finished",
        g.all(project) - active - g.eq(project, "status", "finished"),
        "keyword",
    )
    ask(g, "absence", "employes without any project", g.lacks(staff, "~employee_id"), "keyword typo")
    ask(g, "absence", "which project still lacks a lead", g.lacks(project, "leadId"))
    ask(g, "absence", "Who doesn't report to anybody?", g.lacks(staff, "manager_id"))
    ask(g, "union", "who all works in finance or design", g.eq(staff, "dept_id", "Finance", "Design"))
    ask(
        g,
        "union",
        "Everything supplied by Marlow Textiles or by Hoshino Trading",
        g.eq(product, "supplierName", "Marlow Textiles", "Hoshino Trading"),
    )
    ask(g, "intersection", "Who was on Lighthouse and on Bluebird too?", on("Lighthouse") & on("Bluebird"))
    ask(
        g,
        "intersection",
        "remote people that report to ottilie brandis",
        g.eq(remote, "manager_id", "Ottilie Brandis"),
    )
    ask(
        g,
        "intersection",
        "Finished projects of which Priya was the lead",
        g.eq(g.eq(project, "status", "finished"), "leadId", "Priya Vellore"),
        "keyword",
    )
    ask(g, "intersection", "anyone on paper trail as well as on fresh coat", on("Paper Trail") & on("Fresh Coat"))
    ask(
        g,
        "subtract",
        "Henrik Dalgaard's direct reports except for the tester",
        g.eq(staff, "manager_id", "Henrik Dalgaard") - g.eq(staff, "job_title", "tester"),
    )
    ask(
        g,
        "subtract",
        "the people in engineering, not counting those who work remotely",
        g.eq(staff, "dept_id", "Engineering") - remote,
    )
    ask(g, "rank", "who has been here the longest", g.top(staff, "hire_date", low=True))
    ask(g, "rank", "Of which product do we have the most units in stock?", g.top(product, "units_in_stock"))
    ask(g, "rank", "which department spends the most on salaries", {max(pay, key=lambda name: pay[name])})
    ask(g, "rank", "Who is on the largest number of projects?", {max(load, key=lambda name: load[name])})
    ask(
        g,
        "rank inside a path",
        "To whom does the employee report who was hired most recently?",
        g.of(g.top(staff, "hire_date"), "manager_id"),
    )
    ask(
        g,
        "rank inside a path",
        "supplier of the dearest product",
        g.of(g.top(product, "unit_price"), "supplierName"),
        "keyword",
    )
    ask(
        g,
        "rank inside a path",
        "which people work on the active project with the biggest budget",
        g.of(g.top(active, "budget"), "~projectId", "employee_id"),
    )
    ask(g, "first k", "the 3 best paid employees", g.top(staff, "salary", 3), "keyword")
    ask(g, "first k", "Which two projects were the first to start?", g.top(project, "startDate", 2, low=True))
    ask(g, "first k", "top four products by unit price", g.top(product, "unit_price", 4), "keyword")
    ask(g, "count", "how many people report to ottilie directly", len(g.eq(staff, "manager_id", "Ottilie Brandis")))
    ask(
        g,
        "count",
        "Of the finished projects, how many did Agata Wilk lead?",
        len(g.eq(g.eq(project, "status", "finished"), "leadId", "Agata Wilk")),
    )
    ask(g, "count", "how many warehouse clerks work remotely", len(g.eq(remote, "job_title", "warehouse clerk")))
    ask(g, "sum", "Total budget of the active projects", sum(g.numbers(active, "budget")), "keyword")
    ask(
        g,
        "sum",
        "how many hours went into bluebird altogether",
        sum(g.numbers(g.of("Bluebird", "~projectId"), "hours")),
    )
    ask(
        g,
        "average",
        "What does somebody in Sales earn on average?",
        mean(g.numbers(g.eq(staff, "dept_id", "Sales"), "salary")),
    )
    ask(
        g,
        "average",
        "mean unit price of what hoshino trading delivers",
        mean(g.numbers(g.eq(product, "supplierName", "Hoshino Trading"), "unit_price")),
    )
    ask(g, "share", "what percentge of our employees work remotely", percent(remote, g.all(staff)), "typo")
    ask(
        g, "share", "Discontinued products as a percentage of all products", percent(dropped, g.all(product)), "keyword"
    )
    ask(
        g,
        "group",
        "How many employees are there in each department?",
        g.groups(g.test(staff, "dept_id", bool), "dept_id"),
    )
    ask(g, "group", "hours per project, summed up", g.groups(task, "projectId", "hours"))
    ask(g, "compare", "who earns more, agata or joris", g.top({"Agata Wilk", "Joris Vantongeren"}, "salary"))
    ask(
        g,
        "compare",
        "Did Yara Nkemelu join earlier than Lucia Ferrante?",
        g.top({"Yara Nkemelu", "Lucia Ferrante"}, "hire_date", low=True) == {"Yara Nkemelu"},
    )
    ask(
        g,
        "compare",
        "how many more hours than Salma did Tobias spend on Lighthouse",
        g.numbers({"Tobias Renck on Lighthouse"}, "hours")[0] - g.numbers({"Salma Quist on Lighthouse"}, "hours")[0],
    )
    ask(g, "yes/no", "Is Priya the manager of Tobias?", "Priya Vellore" in g.of("Tobias Renck", "manager_id"))
    ask(g, "yes/no", "does greta olander work on kestrel", "Greta Olander" in on("Kestrel"))
    ask(g, "where/when", "when did Long Haul finish", g.of("Long Haul", "endDate"))
    ask(g, "where/when", "Where has Legal got its office?", g.of("Legal", "office"))
    no(g, "when is priya's birthday", RELATION, "birthday")
    no(g, "Which extension do I dial for Anselm Pike?", RELATION, "telephone extension")
    no(g, "how many days of leave does Salma Quist have left", RELATION, "leave")
    no(g, "customers of Open Door", RELATION, "customers", "keyword")
    no(g, "where does samir live", RELATION, "place of residence")
    no(g, "how many copper pans did we sell last month", RELATION, "units sold")
    no(g, "what grade did hugo stamm get in his last review", RELATION, "review")
    no(g, "Who approved the budget of Fresh Coat?", RELATION, "approval")
    no(g, "products that weigh more than 3 kilos", RELATION, "weight", "keyword")
    no(g, "who stood in for leopold while he was ill", RELATION, "substitute")
    no(g, "What is Veluna Glass's delivery time?", RELATION, "delivery time")
    no(g, "how many hours did rosa lindner put into compass", ENTITY, "Rosa Lindner")
    no(g, "Who does Barnaby Finch report to?", ENTITY, "Barnaby Finch")
    no(g, "whats the budget of nightingale", ENTITY, "Nightingale")
    no(g, "Everyone in Marketing", ENTITY, "Marketing", "keyword")
    no(g, "price of the marble mortar", ENTITY, "marble mortar", "keyword")
    no(g, "which meeting rooms does the Lindhaven office have", TYPE, "meeting rooms")
    no(g, "List all unpaid invoices.", TYPE, "invoices")
    no(g, "who drives which company car", TYPE, "company cars")
    return g


def read_archive() -> Graph:
    """The file has no types: what is a person, a book and so on is what stands at an end of these relations."""
    graph = Graph("archive")
    for line in (GRAPHS / "archive" / "archive.tsv").read_text(encoding="utf-8").splitlines():
        graph.add(*line.split("\t"))
    ends = {"people": "profession", "books": "~wrote", "paintings": "~painted", "groups": "founded in year"}
    for kind, relation in ends.items():
        graph.things[kind] = [name for name, own in graph.values if own == relation]
    return graph


def archive() -> Graph:
    g = read_archive()
    people, book, painting, group = "people", "books", "paintings", "groups"
    painters, poets, composers, philosophers = (
        g.eq(people, "profession", word) for word in ("painter", "poet", "composer", "philosopher")
    )
    quill, circle = g.of("The Quill Society", "~member of"), g.of("The Lantern Circle", "~member of")
    signed, heron = g.eq(painting, "signed", "yes"), g.eq(book, "publisher", "Heron Press")
    vane, harrow = g.of("Beatrix Vane", "wrote"), g.of("Ludovic Harrow", "~student of")
    finnegrave = g.of("Aldous Finnegrave", "~student of")
    ask(g, "direct", "who wrote the glass orchard", g.of("The Glass Orchard", "~wrote"))
    ask(g, "direct", "By whom was Red Thread translated?", g.of("Red Thread", "translated by"))
    ask(g, "direct", "whom did Celestine Duroy marry", g.of("Celestine Duroy", "~spouse"))
    ask(
        g,
        "path of two",
        "who translted the books that celestine duroy wrote",
        g.of("Celestine Duroy", "wrote", "translated by"),
        "typo",
    )
    ask(
        g,
        "path of two",
        "Birthplace of the author of Small Weather",
        g.of("Small Weather", "~wrote", "born in"),
        "keyword",
    )
    ask(
        g,
        "path of two",
        "in what city do i have to go to a gallery to see harvest moon",
        g.of("Harvest Moon", "held at", "located in"),
    )
    ask(
        g,
        "path of three",
        "Who was the teacher of the teacher of Noor Abellard's teacher?",
        g.of("Noor Abellard", "student of", "student of", "student of"),
    )
    ask(
        g,
        "path of three",
        "where was the one born who was married to the painter of nets drying",
        g.of("Nets Drying", "~painted", "spouse", "born in"),
    )
    ask(
        g,
        "path of three",
        "Which publishers brought out books by pupils of Aldous Finnegrave?",
        g.of(finnegrave, "wrote", "publisher"),
    )
    ask(g, "type condition", "painters born in Castrel", g.eq(painters, "born in", "Castrel"), "keyword")
    ask(g, "type condition", "who was born in port lumiere", g.eq(people, "born in", "Port Lumière"))
    ask(g, "type condition", "composers that died in halmouth", g.eq(composers, "died in", "Halmouth"), "keyword")
    ask(g, "type condition", "Which books are set in Vessany?", g.eq(book, "set in", "Vessany"))
    ask(g, "number condition", "Which books have more than 400 pages?", g.more(book, "number of pages", 400))
    ask(g, "number condition", "books with fewer than 60 pages", g.less(book, "number of pages", 60), "keyword")
    ask(g, "date condition", "who was born after 1850", g.since(people, "date of birth", "1851"))
    ask(
        g,
        "date condition",
        "What books were published in the 1820s?",
        g.less(g.more(book, "published in year", 1819), "published in year", 1830),
    )
    ask(
        g,
        "date condition",
        "paintings made between 1815 and 1825",
        g.less(g.more(painting, "year of painting", 1814), "year of painting", 1826),
        "keyword",
    )
    ask(g, "date condition", "poets born after 1880", g.since(poets, "date of birth", "1881"), "keyword")
    ask(g, "text", "How does The Glass Orchard begin?", g.of("The Glass Orchard", "first line"))
    ask(g, "text", "the book with a stove in its first line", g.says(book, "first line", "stove"))
    ask(g, "boolean", "signed paintings in the senlow museum", g.eq(signed, "held at", "Senlow Museum"), "keyword")
    ask(
        g,
        "boolean",
        "Which of the paintings by Matthias Orlo is not signed?",
        g.eq(g.of("Matthias Orlo", "painted"), "signed", "no"),
    )
    ask(
        g,
        "boolean",
        "unsigned pictures painted by Pia Lindqvist Oram",
        g.eq(g.of("Pia Lindqvist Oram", "painted"), "signed", "no"),
        "keyword",
    )
    ask(g, "negation", "members of the lantern circle who were not painters", circle - painters)
    ask(g, "negation", "Which books by Beatrix Vane did Heron Press not publish?", vane - heron)
    ask(g, "absence", "What books has nobody translated?", g.lacks(book, "translated by"))
    ask(g, "absence", "which painting is held nowhere", g.lacks(painting, "held at"))
    ask(g, "absence", "people whose date of death is not recorded", g.lacks(people, "date of death"))
    ask(g, "union", "Who studied under Aldous Finnegrave or under Ludovic Harrow?", finnegrave | harrow)
    ask(
        g,
        "union",
        "everything held at castrel gallery or halmouth town hall",
        g.eq(painting, "held at", "Castrel Gallery", "Halmouth Town Hall"),
    )
    ask(
        g,
        "intersection",
        "who was born in Graywick and also died there",
        g.eq(people, "born in", "Graywick") & g.eq(people, "died in", "Graywick"),
    )
    ask(
        g,
        "intersection",
        "What have both Jonas Petrakis and Wilhelmina Strand translated?",
        g.of("Jonas Petrakis", "~translated by") & g.of("Wilhelmina Strand", "~translated by"),
    )
    ask(
        g,
        "intersection",
        "which pupils of aldous finnegrave became members of the quill society",
        finnegrave & quill,
    )
    ask(g, "intersection", "philosophers in the Lantern Circle", philosophers & circle, "keyword")
    ask(
        g,
        "subtract",
        "beatrix vane's books minus the one dedicated to tomas iriarte bell",
        vane - g.eq(book, "dedicated to", "Tomas Iriarte Bell"),
    )
    ask(g, "subtract", "All members of the Quill Society bar the poets", quill - poets)
    ask(g, "rank", "What is the oldest painting?", g.top(painting, "year of painting", low=True))
    ask(g, "rank", "which book is the longest", g.top(book, "number of pages"))
    ask(g, "rank", "Which of the four societies and academies was founded last?", g.top(group, "founded in year"))
    ask(
        g,
        "rank inside a path",
        "who painted the newest picture that the castrel gallery holds",
        g.of(g.top(g.eq(painting, "held at", "Castrel Gallery"), "year of painting"), "~painted"),
    )
    ask(
        g,
        "rank inside a path",
        "To whom is the shortest book of Heron Press dedicated?",
        g.of(g.top(heron, "number of pages", low=True), "dedicated to"),
    )
    ask(g, "first k", "the two books with the most pages", g.top(book, "number of pages", 2))
    ask(
        g,
        "first k",
        "Which three people were born earliest?",
        g.top(people, "date of birth", 3, low=True),
    )
    ask(g, "count", "How many books are by Beatrix Vane?", len(vane))
    ask(g, "count", "how many pupils did ludovic harow have", len(harrow), "typo")
    ask(
        g,
        "count",
        "how many paintings by Pia Lindqvist Oram hang in the Senlow Museum",
        len(g.eq(g.of("Pia Lindqvist Oram", "painted"), "held at", "Senlow Museum")),
    )
    ask(
        g,
        "sum",
        "How many pages do Celestine Duroy's books come to in total?",
        sum(g.numbers(g.of("Celestine Duroy", "wrote"), "number of pages")),
    )
    ask(
        g,
        "sum",
        "pages of everything academy books published, added together",
        sum(g.numbers(g.eq(book, "publisher", "Academy Books"), "number of pages")),
    )
    ask(
        g,
        "average",
        "How many pages does a Heron Press book have on average?",
        mean(g.numbers(heron, "number of pages")),
    )
    ask(
        g,
        "average",
        "average number of pages of the books set in graywick",
        mean(g.numbers(g.eq(book, "set in", "Graywick"), "number of pages")),
        "keyword",
    )
    ask(g, "share", "how many percent of the people are painters", percent(painters, g.all(people)))
    ask(
        g,
        "share",
        "What percentage of the books did Wilhelmina Strand translate?",
        percent(g.of("Wilhelmina Strand", "~translated by"), g.all(book)),
    )
    ask(g, "group", "Books by publisher: how many each?", g.groups(book, "publisher"))
    ask(g, "group", "how many people were born in each town", g.groups(people, "born in"))
    ask(
        g,
        "compare",
        "Who was born first, Jonas Petrakis or Ludovic Harrow?",
        g.top({"Jonas Petrakis", "Ludovic Harrow"}, "date of birth", low=True),
    )
    ask(
        g,
        "compare",
        "does swallows have more pages than small weather",
        g.numbers({"Swallows"}, "number of pages") > g.numbers({"Small Weather"}, "number of pages"),
    )
    ask(g, "compare", "how old was wilhelmina strand when she died", age(g, "Wilhelmina Strand"))
    ask(
        g,
        "yes/no",
        "Was Isolde Farrant a pupil of Ambrose Kettering?",
        "Ambrose Kettering" in g.of("Isolde Farrant", "student of"),
    )
    ask(
        g,
        "yes/no",
        "is storm over senlow in the castrel gallery",
        "Castrel Gallery" in g.of("Storm over Senlow", "held at"),
    )
    ask(g, "where/when", "when did ottokar lind die", g.of("Ottokar Lind", "date of death"))
    ask(g, "where/when", "In which town did the Lantern Circle meet?", g.of("The Lantern Circle", "meets in"))
    no(g, "Where is Aldous Finnegrave buried?", RELATION, "grave")
    no(g, "who illustrated red thread", RELATION, "illustrator")
    no(g, "how much did the castrel gallery pay for harvest moon", RELATION, "price")
    no(g, "mother of Rosalind Okafor", RELATION, "mother", "keyword")
    no(g, "What prizes was Noor Abellard given?", RELATION, "prizes")
    no(g, "how wide is The Flooded Mill", RELATION, "width")
    no(g, "into which languages has the quiet machine been translated", RELATION, "language")
    no(g, "Who conducted Overture in Grey when it was first performed?", RELATION, "conductor")
    no(g, "how many copies of Swallows were printed", RELATION, "print run")
    no(g, "the editor of Small Weather", RELATION, "editor", "keyword")
    no(g, "where did Elowen Marchetti go to school", RELATION, "school")
    no(g, "Who is the author of The Crooked Bridge?", ENTITY, "The Crooked Bridge")
    no(g, "when was philippa strome born", ENTITY, "Philippa Strome")
    no(g, "paintings held at the Oxbow Museum", ENTITY, "Oxbow Museum", "keyword")
    no(g, "which pupils did Leander Voss have", ENTITY, "Leander Voss")
    no(g, "whom did Cosimo Aldane marry", ENTITY, "Cosimo Aldane")
    no(g, "Which sculptures does the Senlow Museum hold?", TYPE, "sculptures")
    no(g, "newspapers founded before 1800", TYPE, "newspapers", "keyword")
    no(g, "name the architects who were born in Castrel", TYPE, "architects")
    return g


def age(graph: Graph, name: str) -> float:
    """Whole years from a person's birth to the death."""
    born, died = (min(graph.of(name, relation)) for relation in ("date of birth", "date of death"))
    return int(died[:4]) - int(born[:4]) - (died[5:] < born[5:])


if __name__ == "__main__":
    write(HERE, (realm(), creatures(), firm(), archive()))
