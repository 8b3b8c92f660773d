"""Computes the gold answers of dev3 from its graph files, and writes a file of questions for each graph.

    python -m benchmarks.people.dev3.answers

It reads the files by gold.py.
"""

from __future__ import annotations

from pathlib import Path

from benchmarks.people.gold import (
    ENTITY,
    RELATION,
    TYPE,
    Answer,
    Graph,
    fill,
    mean,
    percent,
    read_csv,
    read_rdf,
    read_tables,
    read_triples,
    write,
)

HERE = Path(__file__).resolve().parent
GRAPHS = HERE / "graphs"


def realm() -> Graph:
    g = read_rdf("realm", GRAPHS / "realm" / "realm.ttl")
    province, city, river, mountain, lake, road = "Province", "City", "River", "Mountain", "Lake", "Road"
    coastal, people = g.eq(province, "coastal", "true"), g.top(province, "population")
    questions: dict[str, dict[str, Answer]] = {
        "direct": {
            "[keyword] Capital of Brennick?": g.of("Brennick", "capital"),
            "into which lake does the Brack flow": g.of("Brack", "flowsInto"),
        },
        "path of two": {
            "Name the provinces whose capital lies on the Border Road.": g.of("Border Road", "connects", "~capital"),
            "rivers that run through the province whose capital is Quennel": g.of(
                "Quennel", "~capital", "~flowsThrough"
            ),
            "how many people live in dunvale's capital": g.of("Dunvale", "capital", "population"),
        },
        "path of three": {
            "Give me the capitals of the provinces that share a border with the one Mirrormere is in.": g.of(
                "Mirrormere", "province", "borders", "capital"
            ),
            "what roads go to the capital of the province where Stag Crown stands": g.of(
                "Stag Crown", "province", "capital", "~connects"
            ),
        },
        "type condition": {
            "Which rivers empty into the Sea of Thole?": g.eq(river, "flowsInto", "Sea of Thole"),
            "[keyword] mountains found in ilmarsh": g.eq(mountain, "province", "Ilmarsh"),
        },
        "number condition": {
            "[keyword] peaks higher than 2500 m": g.more(mountain, "heightM", 2500),
            "provinces in which fewer than 20 people live per square kilometre": g.less(province, "density", 20),
            "Tell me which roads are over 500 km long.": g.more(road, "lengthKm", 500),
        },
        "date condition": {
            "which of the mountains had been climbed before 1850": g.before(mountain, "firstClimbed", "1850"),
            "[keyword] Roads opened in the 1960s": g.before(g.since(road, "opened", "1960"), "opened", "1970"),
            "which roads have been opened since 2020": g.since(road, "opened", "2020"),
        },
        "text": {
            "whats the motto of caldermark": g.of("Caldermark", "motto"),
            "The province that has the word sea in its motto is called what?": g.says(province, "motto", "sea"),
        },
        "boolean": {
            "on which roads does one pay a toll": g.eq(road, "toll", "true"),
            "Are there navigable rivers in Brennick, and which?": g.eq(
                g.eq(river, "navigable", "true"), "flowsThrough", "Brennick"
            ),
        },
        "negation": {
            "Which provinces do not border Kerrund?": g.all(province) - g.eq(province, "borders", "Kerrund"),
            "lakes not deeper than 50 metres that aren't in fennoway": g.test(
                lake, "depthM", lambda value: float(value) <= 50
            )
            - g.eq(lake, "province", "Fennoway"),
        },
        "absence": {
            "Which mountains has nobody climbed so far?": g.lacks(mountain, "firstClimbed"),
            "the province with no neighbours at all": g.lacks(province, "borders"),
        },
        "union": {
            "[keyword] rivers crossing Ardenholt or Gristmoor": g.eq(river, "flowsThrough", "Ardenholt", "Gristmoor"),
            "cities that Pass Road or the Fen Motorway goes to": g.of({"Pass Road", "Fen Motorway"}, "connects"),
        },
        "intersection": {
            "Which river goes through Brennick as well as through Caldermark?": g.eq(river, "flowsThrough", "Brennick")
            & g.eq(river, "flowsThrough", "Caldermark"),
            "provinces bordering both fennoway and ilmarsh": g.eq(province, "borders", "Fennoway")
            & g.eq(province, "borders", "Ilmarsh"),
        },
        "subtract": {
            "Fennoway's neighbours, leaving out the coastal ones": g.of("Fennoway", "borders") - coastal,
            "all cities of Caldermark other than its capital": g.eq(city, "province", "Caldermark")
            - g.of("Caldermark", "capital"),
        },
        "rank": {
            "What is the deepest lake?": g.top(lake, "depthM"),
            "[typo] highest peak that isnt in eskerra": g.top(
                g.all(mountain) - g.eq(mountain, "province", "Eskerra"), "heightM"
            ),
        },
        "rank inside a path": {
            "How long is the longest river in Dunvale?": g.of(
                g.top(g.eq(river, "flowsThrough", "Dunvale"), "lengthKm"), "lengthKm"
            ),
            "which provinces border the province with the most people": g.of(people, "borders"),
            "[keyword] capital of the province with the largest area": g.of(g.top(province, "area"), "capital"),
        },
        "first k": {
            "[keyword] The five longest rivers": g.top(river, "lengthKm", 5),
            "[typo] what are the 3 most popluous provinces": g.top(province, "population", 3),
        },
        "count": {
            "Through how many provinces does the Tarrow flow?": len(g.of("Tarrow", "flowsThrough")),
            "in how many provinces is there a mountain of more than 3000 m": len(
                g.of(g.more(mountain, "heightM", 3000), "province")
            ),
            "[keyword] number of lakes in gristmoor": len(g.eq(lake, "province", "Gristmoor")),
        },
        "sum": {
            "How many people live in the coastal provinces all told?": sum(g.numbers(coastal, "population")),
            "combined length of the toll roads": sum(g.numbers(g.eq(road, "toll", "true"), "lengthKm")),
        },
        "average": {
            "[typo] averge height of the mountains of Brennick": mean(
                g.numbers(g.eq(mountain, "province", "Brennick"), "heightM")
            ),
        },
        "share": {
            "how many percent of the rivers are navigable": percent(g.eq(river, "navigable", "true"), g.all(river)),
        },
        "group": {
            "count the mountains by province": g.groups(mountain, "province"),
            "For every province, what do the populations of its cities add up to?": g.groups(
                g.test(city, "province", bool), "province", "population"
            ),
        },
        "compare": {
            "Which one is longer, the Ilver or the Menning?": g.top({"Ilver", "Menning"}, "lengthKm"),
            "do more people live in isting than in draveny": g.numbers({"Isting"}, "population")
            > g.numbers({"Draveny"}, "population"),
            "by how many metres is Mount Corvane higher than Hallin Peak": g.numbers({"Mount Corvane"}, "heightM")[0]
            - g.numbers({"Hallin Peak"}, "heightM")[0],
            "Does Lake Orrin cover more area than Lake Vess?": g.numbers({"Lake Orrin"}, "area")
            > g.numbers({"Lake Vess"}, "area"),
        },
        "yes/no": {
            "Does Gristmoor touch Ilmarsh?": "Ilmarsh" in g.of("Gristmoor", "borders"),
            "does the sarn flow into the tarrow": "Tarrow" in g.of("Sarn", "flowsInto"),
        },
        "where/when": {
            "In which province would I find Sedge Water?": g.of("Sedge Water", "province"),
            "since when has Isting been independent": g.of("Isting", "independentSince"),
        },
    }
    missing = {
        RELATION: {
            "What currency do they pay with in Kerrund?": "currency",
            "who governs eskerra": "governor",
            "how cold does it get in Halverin in winter": "temperature",
            "[keyword] Mayor of Ardmouth": "mayor",
            "Which languages are spoken in Draveny?": "languages",
            "what fish live in mirrormere": "fish",
            "who was the first to climb Mount Corvane": "climber",
            "the province whose cities pay the highest taxes": "taxes",
            "how far is it from Tarrowick to Eskholm as the crow flies": "distance",
            "[keyword] the road with the most accidents": "accidents",
        },
        ENTITY: {
            "What is the population of Farrowdene?": "Farrowdene",
            "which provinces border wexmoor": "Wexmoor",
            "[keyword] height of Mount Ostrin": "Mount Ostrin",
            "where does the river Lanner flow into the sea": "Lanner",
        },
        TYPE: {
            "Which islands belong to Velmora?": "islands",
            "[keyword] airports close to tarrowick": "airports",
            "how many volcanoes are in Halverin": "volcanoes",
            "name the oldest castle of Caldermark": "castles",
        },
    }
    return fill(g, questions, missing)


def creatures() -> Graph:
    g = read_tables("creatures", GRAPHS / "creatures", {"creatures": "Name"}, "; ")
    every = g.all("creatures")
    flying, bosses = g.eq(every, "Can Fly", "yes"), g.eq(every, "Is Boss", "yes")
    dragons, golems, slimes, beasts, spirits, insects, birds, plants = (
        g.eq(every, "Family", family)
        for family in ("Dragon", "Golem", "Slime", "Beast", "Spirit", "Insect", "Bird", "Plant")
    )
    rare, epic, legendary = (g.eq(every, "Rarity", rarity) for rarity in ("Rare", "Epic", "Legendary"))
    questions: dict[str, dict[str, Answer]] = {
        "direct": {
            "What abilities does Gloomroot have?": g.of("Gloomroot", "Abilities"),
            "tell me what bogwasp evolves from": g.of("Bogwasp", "Evolves From"),
        },
        "path of two": {
            "where does the creature live that Wispmaw evolved from": g.of("Wispmaw", "Evolves From", "Habitat"),
            "[keyword] Rarity of everything that evolves from Ashwyrm": g.of("Ashwyrm", "~Evolves From", "Rarity"),
            "what evolves from something that itself evolves from ashroot": g.of(
                "Ashroot", "~Evolves From", "~Evolves From"
            ),
        },
        "path of three": {
            "Bogroot evolved from one that evolved from another: what is the damage type of that other one?": g.of(
                "Bogroot", "Evolves From", "Evolves From", "Damage Type"
            ),
            "[typo] which abilites did the creature have that vexmaw's predecessor evolved from": g.of(
                "Vexmaw", "Evolves From", "Evolves From", "Abilities"
            ),
        },
        "type condition": {
            "show me the tundra golems": g.eq(golems, "Habitat", "Tundra"),
            "Which spirits deal ice damage?": g.eq(spirits, "Damage Type", "Ice"),
            "[keyword short-form] legendary golems": legendary & golems,
        },
        "number condition": {
            "Anyone with more than 1500 health?": g.more(every, "Health", 1500),
            "birds whose speed is between 310 and 350": g.less(g.more(birds, "Speed", 309.5), "Speed", 350.5),
            "[keyword] creatures with a speed over 400": g.more(every, "Speed", 400),
        },
        "date condition": {
            "Which of the epic ones were added in 2025?": g.before(g.since(epic, "Added", "2025"), "Added", "2026"),
            "[keyword] dragons added before april 2021": g.before(dragons, "Added", "2021-04"),
        },
        "text": {
            "whats the lore on pyrebloom": g.of("Pyrebloom", "Lore"),
            "In whose lore are bells mentioned?": g.says(every, "Lore", "bells"),
        },
        "boolean": {
            "Which beasts are able to fly?": beasts & flying,
            "give me all bosses at home in the volcano": g.eq(bosses, "Habitat", "Volcano"),
        },
        "negation": {
            "[typo] birds that cant fly": birds - flying,
            "Which legendaries are no bosses?": legendary - bosses,
            "rare slimes that live neither in the cavern nor in the desert": (slimes & rare)
            - g.eq(every, "Habitat", "Cavern", "Desert")
            - g.lacks(every, "Habitat"),
        },
        "absence": {
            "Which birds don't have a single ability?": g.lacks(birds, "Abilities"),
            "dragons for which no habitat is given": g.lacks(dragons, "Habitat"),
            "[keyword] plants with the cost missing": g.lacks(plants, "Cost"),
        },
        "union": {
            "[keyword] Epics from the swamp or else the coast": g.eq(epic, "Habitat", "Swamp", "Coast"),
            "rare insects having either Web or Burrow": g.eq(insects & rare, "Abilities", "Web", "Burrow"),
        },
        "intersection": {
            "who has both web and split": g.eq(every, "Abilities", "Web") & g.eq(every, "Abilities", "Split"),
            "I'm looking for flying spirits that have Life Drain": g.eq(spirits & flying, "Abilities", "Life Drain"),
            "[keyword] legendary plants that can fly": legendary & plants & flying,
        },
        "subtract": {
            "All bosses apart from the dragons and the birds": bosses - dragons - birds,
            "desert beasts excluding the ones that deal poison damage": g.eq(beasts, "Habitat", "Desert")
            - g.eq(beasts, "Damage Type", "Poison"),
        },
        "rank": {
            "[keyword short-form] the fastest golem": g.top(golems, "Speed"),
            "Of all creatures that can fly, which one has the least health?": g.top(flying, "Health", low=True),
            "what is the priciest creature": g.top(every, "Cost"),
        },
        "rank inside a path": {
            "In what habitat does the slowest dragon live?": g.of(g.top(dragons, "Speed", low=True), "Habitat"),
            "what can the boss with the highest level do, i mean its abilities": g.of(
                g.top(bosses, "Level"), "Abilities"
            ),
        },
        "first k": {
            "[keyword] first five by speed, highest first": g.top(every, "Speed", 5),
            "[keyword] Top 3 bosses by health": g.top(bosses, "Health", 3),
            "the four least expensive legendaries": g.top(legendary, "Cost", 4, low=True),
        },
        "count": {
            "How many creatures have the Stun ability?": len(g.eq(every, "Abilities", "Stun")),
            "how many slimes can fly": len(slimes & flying),
        },
        "sum": {
            "armour of all the forest golems put together": sum(g.numbers(g.eq(golems, "Habitat", "Forest"), "Armour")),
            "What do all of the rare beasts cost in total?": sum(g.numbers(rare & beasts, "Cost")),
        },
        "average": {
            "What level are bosses on average?": mean(g.numbers(bosses, "Level")),
            "[keyword] avg speed of rare birds": mean(g.numbers(rare & birds, "Speed")),
        },
        "share": {
            "what percentage of all creatures can fly": percent(flying, every),
            "Out of the dragons, what percent are bosses?": percent(bosses, dragons),
        },
        "group": {
            "[keyword] average health per family": g.groups(every, "Family", "Health", mean=True),
            "How many bosses does each habitat have?": g.groups(bosses, "Habitat"),
        },
        "compare": {
            "does quartzdrake have more armour than umberdrake": g.numbers({"Quartzdrake"}, "Armour")
            > g.numbers({"Umberdrake"}, "Armour"),
            "How much more health does Copperwasp have than Miretalon?": g.numbers({"Copperwasp"}, "Health")[0]
            - g.numbers({"Miretalon"}, "Health")[0],
            "what's quicker: Kelpooze or Sablefang": g.top({"Kelpooze", "Sablefang"}, "Speed"),
            "Is Ironmaw more than twice as fast as Vexfang?": g.numbers({"Ironmaw"}, "Speed")[0]
            > 2 * g.numbers({"Vexfang"}, "Speed")[0],
        },
        "yes/no": {
            "is pyredrake a boss": "Pyredrake" in bosses,
            "Can Zephyrblob fly?": "Zephyrblob" in flying,
        },
        "where/when": {
            "where would i run into hollowroot": g.of("Hollowroot", "Habitat"),
            "When did they add Quartzdrake?": g.of("Quartzdrake", "Added"),
        },
    }
    missing = {
        RELATION: {
            "What does Ashtalon drop when it dies?": "drops",
            "what is sablewasp weak against": "weakness",
            "[keyword] catch rate of zephyrblob": "catch rate",
            "how heavy is Irondrake": "weight",
            "Who designed Umberwyrm?": "designer",
            "how many players have caught wispfang": "players who caught it",
            "[keyword] slimes that need more than 50 mana": "mana",
            "[keyword] The dragon with the longest wingspan": "wingspan",
            "how much damage does Copperwasp do per hit": "amount of damage",
            "In which expansion did Wispdrake first appear?": "expansion",
        },
        ENTITY: {
            "What level is Galedrake?": "Galedrake",
            "[keyword] abilities of thunderhulk": "Thunderhulk",
            "which creatures evolve from Mossfang": "Mossfang",
            "is Stormtalon faster than Mireplume": "Stormtalon",
            "who lives in the Moon Temple": "Moon Temple",
        },
        TYPE: {
            "Which potion cures poison?": "potions",
            "list all weapons that deal fire damage": "weapons",
            "[keyword] quests that take place in the swamp": "quests",
            "which trainer has the most dragons": "trainers",
        },
    }
    return fill(g, questions, missing)


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
        rows[table] = read_csv(GRAPHS / "firm" / f"{table}.csv")
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
    questions: dict[str, dict[str, Answer]] = {
        "direct": {
            "who does priya report to": g.of("Priya Vellore", "manager_id"),
            "Who's leading Lighthouse?": g.of("Lighthouse", "leadId"),
            "how many hours did yara put into bluebird": g.of("Yara Nkemelu on Bluebird", "hours"),
            "What was Mei Castellano's role on Lighthouse?": g.of("Mei Castellano on Lighthouse", "role_on_project"),
        },
        "path of two": {
            "in which office does Yara Nkemelu's department sit": g.of("Yara Nkemelu", "dept_id", "office"),
            "[keyword] Manager of whoever leads Open Door": g.of("Open Door", "leadId", "manager_id"),
        },
        "path of three": {
            "who heads the department of the person responsible for the bamboo steamer": g.of(
                "bamboo steamer", "responsible_id", "dept_id", "head_id"
            ),
            "Who is the boss of the boss of Casper Lund's boss?": g.of(
                "Casper Lund", "manager_id", "manager_id", "manager_id"
            ),
        },
        "type condition": {
            "[keyword] everyone in logistics": g.eq(staff, "dept_id", "Logistics"),
            "What do we get from Castell & Sons?": g.eq(product, "supplierName", "Castell & Sons"),
            "[keyword] employees in Legal": g.eq(staff, "dept_id", "Legal"),
        },
        "number condition": {
            "Who makes more than 100000 a year?": g.more(staff, "salary", 100000),
            "products that go for less than 20": g.less(product, "unit_price", 20),
            "who works on more than one project": {name for name, number in load.items() if number > 1},
            "Does anyone in Design get more than 100000, and if so who?": g.more(
                g.eq(staff, "dept_id", "Design"), "salary", 100000
            ),
            "is there anyone whose salary is below 20000, and who": g.less(staff, "salary", 20000),
        },
        "date condition": {
            "Which projects have a start date after June 2023?": g.since(project, "startDate", "2023-07"),
            "people who were taken on in 2019": g.before(g.since(staff, "hire_date", "2019"), "hire_date", "2020"),
            "[keyword] projects that ended in 2020": g.before(g.since(project, "endDate", "2020"), "endDate", "2021"),
        },
        "text": {
            "what is noted about the linen apron": g.of("linen apron", "note"),
            "Which project has drivers in its description?": g.says(project, "description", "drivers"),
        },
        "boolean": {
            "who in sales works remotely": g.eq(remote, "dept_id", "Sales"),
            "[keyword] Products that have been discontinued": dropped,
            "Which of the things Holzwerk Arnau supplies are discontinued?": g.eq(
                dropped, "supplierName", "Holzwerk Arnau"
            ),
        },
        "negation": {
            "which account managers do not work remotely": g.eq(staff, "job_title", "account manager") - remote,
            "[keyword] Projects that are neither active nor finished": g.all(project)
            - active
            - g.eq(project, "status", "finished"),
        },
        "absence": {
            "[keyword typo] employes without any project": g.lacks(staff, "~employee_id"),
            "which project still lacks a lead": g.lacks(project, "leadId"),
            "Who doesn't report to anybody?": g.lacks(staff, "manager_id"),
        },
        "union": {
            "who all works in finance or design": g.eq(staff, "dept_id", "Finance", "Design"),
            "Everything supplied by Marlow Textiles or by Hoshino Trading": g.eq(
                product, "supplierName", "Marlow Textiles", "Hoshino Trading"
            ),
        },
        "intersection": {
            "Who was on Lighthouse and on Bluebird too?": on("Lighthouse") & on("Bluebird"),
            "remote people that report to ottilie brandis": g.eq(remote, "manager_id", "Ottilie Brandis"),
            "[keyword] Finished projects of which Priya was the lead": g.eq(
                g.eq(project, "status", "finished"), "leadId", "Priya Vellore"
            ),
            "anyone on paper trail as well as on fresh coat": on("Paper Trail") & on("Fresh Coat"),
        },
        "subtract": {
            "Henrik Dalgaard's direct reports except for the tester": g.eq(staff, "manager_id", "Henrik Dalgaard")
            - g.eq(staff, "job_title", "tester"),
            "the people in engineering, not counting those who work remotely": g.eq(staff, "dept_id", "Engineering")
            - remote,
        },
        "rank": {
            "who has been here the longest": g.top(staff, "hire_date", low=True),
            "Of which product do we have the most units in stock?": g.top(product, "units_in_stock"),
            "which department spends the most on salaries": {max(pay, key=lambda name: pay[name])},
            "Who is on the largest number of projects?": {max(load, key=lambda name: load[name])},
        },
        "rank inside a path": {
            "To whom does the employee report who was hired most recently?": g.of(
                g.top(staff, "hire_date"), "manager_id"
            ),
            "[keyword] supplier of the dearest product": g.of(g.top(product, "unit_price"), "supplierName"),
            "which people work on the active project with the biggest budget": g.of(
                g.top(active, "budget"), "~projectId", "employee_id"
            ),
        },
        "first k": {
            "[keyword] the 3 best paid employees": g.top(staff, "salary", 3),
            "Which two projects were the first to start?": g.top(project, "startDate", 2, low=True),
            "[keyword] top four products by unit price": g.top(product, "unit_price", 4),
        },
        "count": {
            "how many people report to ottilie directly": len(g.eq(staff, "manager_id", "Ottilie Brandis")),
            "Of the finished projects, how many did Agata Wilk lead?": len(
                g.eq(g.eq(project, "status", "finished"), "leadId", "Agata Wilk")
            ),
            "how many warehouse clerks work remotely": len(g.eq(remote, "job_title", "warehouse clerk")),
        },
        "sum": {
            "[keyword] Total budget of the active projects": sum(g.numbers(active, "budget")),
            "how many hours went into bluebird altogether": sum(g.numbers(g.of("Bluebird", "~projectId"), "hours")),
        },
        "average": {
            "What does somebody in Sales earn on average?": mean(g.numbers(g.eq(staff, "dept_id", "Sales"), "salary")),
            "mean unit price of what hoshino trading delivers": mean(
                g.numbers(g.eq(product, "supplierName", "Hoshino Trading"), "unit_price")
            ),
        },
        "share": {
            "[typo] what percentge of our employees work remotely": percent(remote, g.all(staff)),
            "[keyword] Discontinued products as a percentage of all products": percent(dropped, g.all(product)),
        },
        "group": {
            "How many employees are there in each department?": g.groups(g.test(staff, "dept_id", bool), "dept_id"),
            "hours per project, summed up": g.groups(task, "projectId", "hours"),
        },
        "compare": {
            "who earns more, agata or joris": g.top({"Agata Wilk", "Joris Vantongeren"}, "salary"),
            "Did Yara Nkemelu join earlier than Lucia Ferrante?": g.top(
                {"Yara Nkemelu", "Lucia Ferrante"}, "hire_date", low=True
            )
            == {"Yara Nkemelu"},
            "how many more hours than Salma did Tobias spend on Lighthouse": g.numbers(
                {"Tobias Renck on Lighthouse"}, "hours"
            )[0]
            - g.numbers({"Salma Quist on Lighthouse"}, "hours")[0],
        },
        "yes/no": {
            "Is Priya the manager of Tobias?": "Priya Vellore" in g.of("Tobias Renck", "manager_id"),
            "does greta olander work on kestrel": "Greta Olander" in on("Kestrel"),
        },
        "where/when": {
            "when did Long Haul finish": g.of("Long Haul", "endDate"),
            "Where has Legal got its office?": g.of("Legal", "office"),
        },
    }
    missing = {
        RELATION: {
            "when is priya's birthday": "birthday",
            "Which extension do I dial for Anselm Pike?": "telephone extension",
            "how many days of leave does Salma Quist have left": "leave",
            "[keyword] customers of Open Door": "customers",
            "where does samir live": "place of residence",
            "how many copper pans did we sell last month": "units sold",
            "what grade did hugo stamm get in his last review": "review",
            "Who approved the budget of Fresh Coat?": "approval",
            "[keyword] products that weigh more than 3 kilos": "weight",
            "who stood in for leopold while he was ill": "substitute",
            "What is Veluna Glass's delivery time?": "delivery time",
        },
        ENTITY: {
            "how many hours did rosa lindner put into compass": "Rosa Lindner",
            "Who does Barnaby Finch report to?": "Barnaby Finch",
            "whats the budget of nightingale": "Nightingale",
            "[keyword] Everyone in Marketing": "Marketing",
            "[keyword] price of the marble mortar": "marble mortar",
        },
        TYPE: {
            "which meeting rooms does the Lindhaven office have": "meeting rooms",
            "List all unpaid invoices.": "invoices",
            "who drives which company car": "company cars",
        },
    }
    return fill(g, questions, missing)


def archive() -> Graph:
    ends = {"people": "profession", "books": "~wrote", "paintings": "~painted", "groups": "founded in year"}
    g = read_triples("archive", GRAPHS / "archive" / "archive.tsv", ends)
    people, book, painting, group = "people", "books", "paintings", "groups"
    painters, poets, composers, philosophers = (
        g.eq(people, "profession", word) for word in ("painter", "poet", "composer", "philosopher")
    )
    quill, circle = g.of("The Quill Society", "~member of"), g.of("The Lantern Circle", "~member of")
    signed, heron = g.eq(painting, "signed", "yes"), g.eq(book, "publisher", "Heron Press")
    vane, harrow = g.of("Beatrix Vane", "wrote"), g.of("Ludovic Harrow", "~student of")
    finnegrave = g.of("Aldous Finnegrave", "~student of")
    questions: dict[str, dict[str, Answer]] = {
        "direct": {
            "who wrote the glass orchard": g.of("The Glass Orchard", "~wrote"),
            "By whom was Red Thread translated?": g.of("Red Thread", "translated by"),
            "whom did Celestine Duroy marry": g.of("Celestine Duroy", "~spouse"),
        },
        "path of two": {
            "[typo] who translted the books that celestine duroy wrote": g.of(
                "Celestine Duroy", "wrote", "translated by"
            ),
            "[keyword] Birthplace of the author of Small Weather": g.of("Small Weather", "~wrote", "born in"),
            "in what city do i have to go to a gallery to see harvest moon": g.of(
                "Harvest Moon", "held at", "located in"
            ),
        },
        "path of three": {
            "Who was the teacher of the teacher of Noor Abellard's teacher?": g.of(
                "Noor Abellard", "student of", "student of", "student of"
            ),
            "where was the one born who was married to the painter of nets drying": g.of(
                "Nets Drying", "~painted", "spouse", "born in"
            ),
            "Which publishers brought out books by pupils of Aldous Finnegrave?": g.of(
                finnegrave, "wrote", "publisher"
            ),
        },
        "type condition": {
            "[keyword] painters born in Castrel": g.eq(painters, "born in", "Castrel"),
            "who was born in port lumiere": g.eq(people, "born in", "Port Lumière"),
            "[keyword] composers that died in halmouth": g.eq(composers, "died in", "Halmouth"),
            "Which books are set in Vessany?": g.eq(book, "set in", "Vessany"),
        },
        "number condition": {
            "Which books have more than 400 pages?": g.more(book, "number of pages", 400),
            "[keyword] books with fewer than 60 pages": g.less(book, "number of pages", 60),
        },
        "date condition": {
            "who was born after 1850": g.since(people, "date of birth", "1851"),
            "What books were published in the 1820s?": g.less(
                g.more(book, "published in year", 1819), "published in year", 1830
            ),
            "[keyword] paintings made between 1815 and 1825": g.less(
                g.more(painting, "year of painting", 1814), "year of painting", 1826
            ),
            "[keyword] poets born after 1880": g.since(poets, "date of birth", "1881"),
        },
        "text": {
            "How does The Glass Orchard begin?": g.of("The Glass Orchard", "first line"),
            "the book with a stove in its first line": g.says(book, "first line", "stove"),
        },
        "boolean": {
            "[keyword] signed paintings in the senlow museum": g.eq(signed, "held at", "Senlow Museum"),
            "Which of the paintings by Matthias Orlo is not signed?": g.eq(
                g.of("Matthias Orlo", "painted"), "signed", "no"
            ),
            "[keyword] unsigned pictures painted by Pia Lindqvist Oram": g.eq(
                g.of("Pia Lindqvist Oram", "painted"), "signed", "no"
            ),
        },
        "negation": {
            "members of the lantern circle who were not painters": circle - painters,
            "Which books by Beatrix Vane did Heron Press not publish?": vane - heron,
        },
        "absence": {
            "What books has nobody translated?": g.lacks(book, "translated by"),
            "which painting is held nowhere": g.lacks(painting, "held at"),
            "people whose date of death is not recorded": g.lacks(people, "date of death"),
        },
        "union": {
            "Who studied under Aldous Finnegrave or under Ludovic Harrow?": finnegrave | harrow,
            "everything held at castrel gallery or halmouth town hall": g.eq(
                painting, "held at", "Castrel Gallery", "Halmouth Town Hall"
            ),
        },
        "intersection": {
            "who was born in Graywick and also died there": g.eq(people, "born in", "Graywick")
            & g.eq(people, "died in", "Graywick"),
            "What have both Jonas Petrakis and Wilhelmina Strand translated?": g.of("Jonas Petrakis", "~translated by")
            & g.of("Wilhelmina Strand", "~translated by"),
            "which pupils of aldous finnegrave became members of the quill society": finnegrave & quill,
            "[keyword] philosophers in the Lantern Circle": philosophers & circle,
        },
        "subtract": {
            "beatrix vane's books minus the one dedicated to tomas iriarte bell": vane
            - g.eq(book, "dedicated to", "Tomas Iriarte Bell"),
            "All members of the Quill Society bar the poets": quill - poets,
        },
        "rank": {
            "What is the oldest painting?": g.top(painting, "year of painting", low=True),
            "which book is the longest": g.top(book, "number of pages"),
            "Which of the four societies and academies was founded last?": g.top(group, "founded in year"),
        },
        "rank inside a path": {
            "who painted the newest picture that the castrel gallery holds": g.of(
                g.top(g.eq(painting, "held at", "Castrel Gallery"), "year of painting"), "~painted"
            ),
            "To whom is the shortest book of Heron Press dedicated?": g.of(
                g.top(heron, "number of pages", low=True), "dedicated to"
            ),
        },
        "first k": {
            "the two books with the most pages": g.top(book, "number of pages", 2),
            "Which three people were born earliest?": g.top(people, "date of birth", 3, low=True),
        },
        "count": {
            "How many books are by Beatrix Vane?": len(vane),
            "[typo] how many pupils did ludovic harow have": len(harrow),
            "how many paintings by Pia Lindqvist Oram hang in the Senlow Museum": len(
                g.eq(g.of("Pia Lindqvist Oram", "painted"), "held at", "Senlow Museum")
            ),
        },
        "sum": {
            "How many pages do Celestine Duroy's books come to in total?": sum(
                g.numbers(g.of("Celestine Duroy", "wrote"), "number of pages")
            ),
            "pages of everything academy books published, added together": sum(
                g.numbers(g.eq(book, "publisher", "Academy Books"), "number of pages")
            ),
        },
        "average": {
            "How many pages does a Heron Press book have on average?": mean(g.numbers(heron, "number of pages")),
            "[keyword] average number of pages of the books set in graywick": mean(
                g.numbers(g.eq(book, "set in", "Graywick"), "number of pages")
            ),
        },
        "share": {
            "how many percent of the people are painters": percent(painters, g.all(people)),
            "What percentage of the books did Wilhelmina Strand translate?": percent(
                g.of("Wilhelmina Strand", "~translated by"), g.all(book)
            ),
        },
        "group": {
            "Books by publisher: how many each?": g.groups(book, "publisher"),
            "how many people were born in each town": g.groups(people, "born in"),
        },
        "compare": {
            "Who was born first, Jonas Petrakis or Ludovic Harrow?": g.top(
                {"Jonas Petrakis", "Ludovic Harrow"}, "date of birth", low=True
            ),
            "does swallows have more pages than small weather": g.numbers({"Swallows"}, "number of pages")
            > g.numbers({"Small Weather"}, "number of pages"),
            "how old was wilhelmina strand when she died": age(g, "Wilhelmina Strand"),
        },
        "yes/no": {
            "Was Isolde Farrant a pupil of Ambrose Kettering?": "Ambrose Kettering"
            in g.of("Isolde Farrant", "student of"),
            "is storm over senlow in the castrel gallery": "Castrel Gallery" in g.of("Storm over Senlow", "held at"),
        },
        "where/when": {
            "when did ottokar lind die": g.of("Ottokar Lind", "date of death"),
            "In which town did the Lantern Circle meet?": g.of("The Lantern Circle", "meets in"),
        },
    }
    missing = {
        RELATION: {
            "Where is Aldous Finnegrave buried?": "grave",
            "who illustrated red thread": "illustrator",
            "how much did the castrel gallery pay for harvest moon": "price",
            "[keyword] mother of Rosalind Okafor": "mother",
            "What prizes was Noor Abellard given?": "prizes",
            "how wide is The Flooded Mill": "width",
            "into which languages has the quiet machine been translated": "language",
            "Who conducted Overture in Grey when it was first performed?": "conductor",
            "how many copies of Swallows were printed": "print run",
            "[keyword] the editor of Small Weather": "editor",
            "where did Elowen Marchetti go to school": "school",
        },
        ENTITY: {
            "Who is the author of The Crooked Bridge?": "The Crooked Bridge",
            "when was philippa strome born": "Philippa Strome",
            "[keyword] paintings held at the Oxbow Museum": "Oxbow Museum",
            "which pupils did Leander Voss have": "Leander Voss",
            "whom did Cosimo Aldane marry": "Cosimo Aldane",
        },
        TYPE: {
            "Which sculptures does the Senlow Museum hold?": "sculptures",
            "[keyword] newspapers founded before 1800": "newspapers",
            "name the architects who were born in Castrel": "architects",
        },
    }
    return fill(g, questions, missing)


def age(graph: Graph, name: str) -> float:
    """Whole years from a person's birth to the death."""
    born, died = (min(graph.of(name, relation)) for relation in ("date of birth", "date of death"))
    return int(died[:4]) - int(born[:4]) - (died[5:] < born[5:])


if __name__ == "__main__":
    write(HERE, (realm(), creatures(), firm(), archive()))
