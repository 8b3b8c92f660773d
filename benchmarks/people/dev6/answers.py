"""Computes the gold answers of dev6 from its graph files, and writes a file of questions for each graph.

    python -m benchmarks.people.dev6.answers

It reads the files by gold.py.  A question may begin with its style in brackets.
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
    one,
    percent,
    read_csv,
    read_keyed,
    read_rdf,
    read_tables,
    write,
)

HERE = Path(__file__).resolve().parent
GRAPHS = HERE / "graphs"
FACT = "missing fact"


def bestiary() -> Graph:
    g = read_tables("bestiary", GRAPHS / "bestiary", {"creatures": "name", "biomes": "name"}, "; ")
    every = g.all("creatures")
    dragons, undead, beasts, demons, plants, fey, insects, constructs, oozes, sea, humanoids = (
        g.eq(every, "kind", kind)
        for kind in "Dragon Undead Beast Demon Plant Fey Insect Construct Ooze".split() + ["Sea Creature", "Humanoid"]
    )
    flying, nocturnal, tame = (g.eq(every, column, "yes") for column in ("can_fly", "nocturnal", "tameable"))
    questions: dict[str, dict[str, Answer]] = {
        "direct": {
            "how many hp has the mammoth got": g.of("Mammoth", "hit_points"),
            "what does a steam wraith drop": g.of("Steam Wraith", "drops"),
            "[keyword] ac brass sentinel": g.of("Brass Sentinel", "armor_class"),
            "What is the banshee queen weak against?": g.of("Banshee Queen", "weakness"),
            "what alignment are orc shamans": g.of("Orc Shaman", "alignment"),
            "[typo] wich creatures drop a cursed ring": g.of("cursed ring", "~drops"),
            "i need pixie dust, what creatures do i have to kill for it": g.of("pixie dust", "~drops"),
            "how much xp do you get for killing a magma hulk": g.of("Magma Hulk", "xp"),
        },
        "path of two": {
            "what's the climate like where tomb archers live": g.of("Tomb Archer", "biome", "climate"),
            "which region does the brass sentinel turn up in": g.of("Brass Sentinel", "biome", "region"),
            "what towns are near the places where you meet an orc shaman": g.of("Orc Shaman", "biome", "nearest_town"),
        },
        "path of three": {
            "what can be looted from the monsters living in Sahir": g.of("Sahir", "~region", "~biome", "drops"),
            "[typo] who dicovered the creatures living near fort cinder": g.of(
                "Fort Cinder", "~nearest_town", "~biome", "discovered_by"
            ),
        },
        "type condition": {
            "list every ooze in the book": oozes,
            "[keyword] legendary creatures": g.eq(every, "rarity", "legendary"),
        },
        "number condition": {
            "monsters with an armor class above 20": g.more(every, "armor_class", 20),
            "are there creatures that weigh over 20000 kg, which": g.more(every, "weight_kg", 20000),
            "beasts lighter than 10 kg": g.less(beasts, "weight_kg", 10),
            "anything lvl 29 or higher": g.more(every, "level", 28),
        },
        "date condition": {
            "what had been discovered before the year 820": g.less(every, "discovered_in", 820),
            "Which fey were first described after 950?": g.more(fey, "discovered_in", 950),
        },
        "text": {
            "creatures with frost in their name": {name for name in every if "frost" in name.lower()},
        },
        "boolean": {
            "which dragons can be tamed": dragons & tame,
            "plants that are active at night": plants & nocturnal,
        },
        "negation": {
            "sea creatures that don't live in the abyssal trench": sea - g.eq(sea, "biome", "Abyssal Trench"),
            "are there demons that have no weakness to holy, which ones": demons - g.eq(demons, "weakness", "holy"),
        },
        "absence": {
            "dragons nobody is known to have discovered": g.lacks(dragons, "discovered_by"),
            "which humanoids drop nothing": g.lacks(humanoids, "drops"),
            "biomes with no town nearby": g.lacks("biomes", "nearest_town"),
            "where does nothing live at all? i mean which biome": g.lacks("biomes", "~biome"),
        },
        "union": {
            "constructs or insects that fly": (constructs | insects) & flying,
        },
        "intersection": {
            "large nocturnal things in gloomfen": g.eq(nocturnal, "size", "Large") & g.of("Gloomfen", "~biome"),
            "which undead can fly?": undead & flying,
            "what drops both a moon pearl and fish oil": g.of("moon pearl", "~drops") & g.of("fish oil", "~drops"),
            "legendary demons": g.eq(demons, "rarity", "legendary"),
            "[keyword] gargantuan plants": g.eq(plants, "size", "Gargantuan"),
            "huge insects": g.eq(insects, "size", "Huge"),
        },
        "subtract": {
            "all dragons except the ones in the frozen reach": dragons - g.of("Frozen Reach", "~biome"),
        },
        "rank": {
            "whats the heaviest monster of them all": g.top(every, "weight_kg"),
            "undead with the least hit points": g.top(undead, "hit_points", low=True),
            "Which humanoid gives the most experience?": g.top(humanoids, "xp"),
            "most dangerous biome": g.top("biomes", "danger_rating"),
        },
        "rank inside a path": {
            "what does the undead with the most hit points drop": g.of(g.top(undead, "hit_points"), "drops"),
            "who found the heaviest sea creature": g.of(g.top(sea, "weight_kg"), "discovered_by"),
            "which creatures live in the hottest biome": g.of(g.top("biomes", "average_temperature"), "~biome"),
        },
        "first k": {
            "top 5 by hit points": g.top(every, "hit_points", 5),
            "the three lightest beasts": g.top(beasts, "weight_kg", 3, low=True),
        },
        "count": {
            "how many creatures live in the golden steppe": len(g.of("Golden Steppe", "~biome")),
            "number of oozes that can fly": len(oozes & flying),
        },
        "sum": {
            "how much xp would i get for killing every dragon once": sum(g.numbers(dragons, "xp")),
        },
        "average": {
            "avg level of the demons": mean(g.numbers(demons, "level")),
        },
        "share": {
            "what percentage of all creatures is nocturnal": percent(nocturnal, every),
        },
        "group": {
            "how many creatures are there of each kind": g.groups(every, "kind"),
            "mean hit points by size": g.groups(every, "size", "hit_points", mean=True),
        },
        "compare": {
            "who has the better attack, hill giant or ice giant": g.top(["Hill Giant", "Ice Giant"], "attack"),
            "[typo] how much more xp does a kraken spawn give then a siren": one(g.of("Kraken Spawn", "xp"))
            - one(g.of("Siren", "xp")),
        },
        "yes/no": {
            "can a gale dancer fly": "yes" in g.of("Gale Dancer", "can_fly"),
            "does old vermithrax live in the gloomfen": "Gloomfen" in g.of("Old Vermithrax", "biome"),
            "is the glass knight weak to acid?": "acid" in g.of("Glass Knight", "weakness"),
        },
        "where/when": {
            "when was the first pit overseer seen": g.of("Pit Overseer", "discovered_in"),
            "where do i find mandrakes": g.of("Mandrake", "biome"),
        },
    }
    missing = {
        RELATION: {
            "which spells can the marsh witch cast": "spells",
            "how many eggs does a giant heron lay": "eggs",
            "how much gold can i sell a moon pearl for": "price of a drop",
            "who built the clay golem": "maker",
            "[keyword] lifespan mammoth": "lifespan",
            "what language do kobold miners speak": "language",
            "how many of them are in a pack of bristle wolves": "group size",
        },
        ENTITY: {
            "what does a basilisk drop": "basilisk",
            "Where do owlbears live?": "owlbear",
        },
        TYPE: {
            "which quests can i do": "quests",
        },
        FACT: {
            "how heavy is the hollow knight": "weight of Hollow Knight",
            "in which year was the frostwyrm discovered": "year of discovery of Frostwyrm",
        },
    }
    return fill(g, questions, missing)


def geography() -> Graph:
    g = read_rdf("geography", GRAPHS / "geography" / "usa.ttl")
    states, cities, rivers, lakes, mountains = (g.all(kind) for kind in "State City River Lake Mountain".split())
    volcanoes, interstates = g.all("Volcano"), g.all("Highway")
    capitals = g.of(states, "capital")

    def within(things: set[str], *places: str) -> set[str]:
        return g.eq(things, "locatedIn", *places)

    def through(*places: str) -> set[str]:
        return g.eq(rivers, "flowsThrough", *places)

    largest, smallest = g.top(states, "areaKm2"), g.top(states, "areaKm2", low=True)
    fullest = g.top(states, "population")
    questions: dict[str, dict[str, Answer]] = {
        "direct": {
            "how many people live in wyoming": g.of("Wyoming", "population"),
            "whats the capital of vermont": g.of("Vermont", "capital"),
            "highest point of maine?": g.of("Maine", "highestPoint"),
            "which states border idaho": g.of("Idaho", "borders"),
            "[short-form] what states does the I-40 go through": g.of("Interstate 40", "runsThrough"),
            "can you tell me how long the rio grande is": g.of("Rio Grande", "lengthKm"),
            "What rivers empty into the Ohio River?": g.of("Ohio River", "~flowsInto"),
            "area of nevada?": g.of("Nevada", "areaKm2"),
        },
        "path of two": {
            "how high is the highest point of wyoming": g.of("Wyoming", "highestPoint", "elevationM"),
            "how many people live in the capital of alaska": g.of("Alaska", "capital", "population"),
            "what cities are in states that border oregon": within(cities, *g.of("Oregon", "borders")),
            "what rivers run through states that border maryland": g.of("Maryland", "borders", "~flowsThrough"),
            "[typo] what are the captials of the states that border iowa": g.of("Iowa", "borders", "capital"),
        },
        "path of three": {
            "how far above sea level is the capital of the state mount marcy is in": g.of(
                "Mount Marcy", "locatedIn", "capital", "elevationM"
            ),
            "what are the capitals of the states next to the one where boundary peak is": g.of(
                "Boundary Peak", "locatedIn", "borders", "capital"
            ),
            "which states does the river pass that tulsa's river flows into": g.of(
                "Tulsa", "onRiver", "flowsInto", "flowsThrough"
            ),
        },
        "type condition": {
            "[keyword] volcanoes in washington": within(volcanoes, "Washington"),
            "what cities are there in new mexico": within(cities, "New Mexico"),
        },
        "number condition": {
            "states with fewer than a million people": g.less(states, "population", 1e6),
            "which rivers are longer than 5000 km": g.more(rivers, "lengthKm", 5000),
            "rivers longer than 2500 km": g.more(rivers, "lengthKm", 2500),
            "which cities lie more than 1500 meters up": g.more(cities, "elevationM", 1500),
        },
        "date condition": {
            "which states joined the union after 1900": g.since(states, "admitted", "1901"),
            "any states admitted between 1920 and 1950, which": g.before(
                g.since(states, "admitted", "1920"), "admitted", "1951"
            ),
            "states admitted in 1889": g.says(states, "admitted", "1889"),
        },
        "text": {
            "Which state is called the Sunshine State?": g.of("Sunshine State", "~nickname"),
            "rivers with red in the name": {name for name in rivers if "red" in name.lower().split()},
        },
        "negation": {
            "mountains in california that are not volcanoes": within(mountains, "California") - volcanoes,
            "which cascade range peaks aren't volcanos": g.of("Cascade Range", "~partOf") - volcanoes,
        },
        "absence": {
            "states that have no neighbors": g.lacks(states, "borders"),
            "cities in pennsylvania that aren't on any river": g.lacks(within(cities, "Pennsylvania"), "onRiver"),
        },
        "union": {
            "rivers that flow through maine or vermont": through("Maine", "Vermont"),
            "lakes in ohio or new york": within(lakes, "Ohio", "New York"),
        },
        "intersection": {
            "states that border both kentucky and missouri": g.of("Kentucky", "borders") & g.of("Missouri", "borders"),
            "what cities on the mississippi river are state capitals": g.of("Mississippi River", "~onRiver") & capitals,
            "rivers that run through both texas and colorado": through("Texas") & through("Colorado"),
        },
        "subtract": {
            "states the ohio river flows through except those that border virginia": g.of("Ohio River", "flowsThrough")
            - g.of("Virginia", "borders"),
        },
        "rank": {
            "what is the longest river that runs through texas": g.top(through("Texas"), "lengthKm"),
            "most populous city in ohio": g.top(within(cities, "Ohio"), "population"),
            "deepest lake in the us": g.top(lakes, "maxDepthM"),
            "second largest state by area": g.top(states, "areaKm2", 2) - largest,
            "Which state was the last to be admitted?": g.top(states, "admitted"),
        },
        "rank inside a path": {
            "which states border the state with the largest population": g.of(fullest, "borders"),
            "what is the capital of the smallest state": g.of(smallest, "capital"),
            "what rivers are there in the largest state": g.of(largest, "~flowsThrough"),
        },
        "first k": {
            "five biggest cities by population": g.top(cities, "population", 5),
            "3 highest mountains in colorado": g.top(within(mountains, "Colorado"), "elevationM", 3),
        },
        "count": {
            "how many states border tennessee": len(g.of("Tennessee", "borders")),
            "how many volcanoes are there in texas": len(within(volcanoes, "Texas")),
            "how many lakes are there in kansas": len(within(lakes, "Kansas")),
            "[typo] how many rivers flow trough nebraska": len(through("Nebraska")),
        },
        "sum": {
            "combined population of all states bordering nevada": sum(
                g.numbers(g.of("Nevada", "borders"), "population")
            ),
        },
        "average": {
            "average length of the interstates": mean(g.numbers(interstates, "lengthKm")),
        },
        "share": {
            "what percent of the mountains are volcanoes": percent(volcanoes, mountains),
        },
        "group": {
            "number of mountains in each mountain range": g.groups(mountains, "partOf"),
        },
        "compare": {
            "which is deeper lake tahoe or crater lake": g.top(["Lake Tahoe", "Crater Lake"], "maxDepthM"),
            "how many km longer is interstate 90 than interstate 80": one(g.of("Interstate 90", "lengthKm"))
            - one(g.of("Interstate 80", "lengthKm")),
        },
        "yes/no": {
            "do colorado and arizona share a border": "Arizona" in g.of("Colorado", "borders"),
            "does interstate 95 go through vermont": "Vermont" in g.of("Interstate 95", "runsThrough"),
            "does the yellowstone river flow through montana": "Montana" in g.of("Yellowstone River", "flowsThrough"),
        },
        "where/when": {
            "when did hawaii become a state": g.of("Hawaii", "admitted"),
            "where is mount katahdin": g.of("Mount Katahdin", "locatedIn"),
            "where does the pecos end": g.of("Pecos River", "flowsInto"),
        },
    }
    missing = {
        RELATION: {
            "who is the governor of ohio": "governor",
            "how much does it rain in seattle": "rainfall",
            "what time zone is indiana in": "time zone",
            "[keyword] mayor of detroit": "mayor",
            "who first climbed denali": "first ascent",
            "average income in new jersey": "income",
            "crime rate of memphis": "crime rate",
            "What languages are spoken in Louisiana?": "language",
        },
        ENTITY: {
            "what is the capital of puerto rico": "Puerto Rico",
            "how high is mount everest": "Mount Everest",
        },
        TYPE: {
            "list the national parks in utah": "national parks",
            "what airports are in chicago": "airports",
        },
        FACT: {
            "what is alabama's nickname": "nickname of Alabama",
            "How high is the highest point of Florida?": "highest point of Florida",
        },
    }
    return fill(g, questions, missing)


def read_shop() -> Graph:
    """Relations are called by the columns; an order is called by its number."""
    naming = {"employee": "full_name", "customer": "customer_name", "supplier": "company_name"}
    naming |= {"product": "product_name", "order": ""}
    tables = {table: (read_csv(GRAPHS / "shop" / f"{table}s.csv"), own) for table, own in naming.items()}
    links = {f"{table}_id": table for table in ("employee", "customer", "supplier", "product")}
    return read_keyed("shop", tables, links | {"manager_id": "employee", "account_manager_id": "employee"})


def shop() -> Graph:
    g = read_shop()
    staff, customers, products, orders = (g.all(table) for table in ("employee", "customer", "product", "order"))
    sales, workshop, warehouse = (g.of(name, "~department") for name in ("Sales", "Workshop", "Warehouse"))
    open_orders = g.eq(orders, "status", "open")
    business = g.eq(customers, "type", "business")

    def ordered(customer: str) -> set[str]:
        return g.eq(orders, "customer_id", customer)

    def bought(product: str) -> set[str]:
        return g.eq(orders, "product_id", product)

    questions: dict[str, dict[str, Answer]] = {
        "direct": {
            "who's yuki tanabe's boss": g.of("Yuki Tanabe", "manager_id"),
            "whos the account manager for hotel seeblick": g.of("Hotel Seeblick", "account_manager_id"),
            "[keyword] email emil castagna": g.of("Emil Castagna", "email"),
            "Remind me, who supplies the dynamo set?": g.of("Dynamo set", "supplier_id"),
            "who do i talk to at nordlys lights": g.of("Nordlys Lights", "contact"),
            "how many days does taiyo frames need to deliver": g.of("Taiyo Frames", "lead_time_days"),
            "what is agnes whitlow's job": g.of("Agnes Whitlow", "job_title"),
            "[short-form] qty on SO-1039": g.of("order SO-1039", "quantity"),
        },
        "path of two": {
            "what country do our leather saddles come from": g.of("Leather saddle", "supplier_id", "country"),
            "what has bike barn ordered from us so far": g.of(ordered("Bike Barn"), "product_id"),
            "who has bought a repair stand": g.of(bought("Repair stand"), "customer_id"),
            "who is the boss of the one who handled order SO-1006": g.of("order SO-1006", "employee_id", "manager_id"),
        },
        "path of three": {
            "which suppliers are behind the things cycles dupont ordered": g.of(
                ordered("Cycles Dupont"), "product_id", "supplier_id"
            ),
            "in which countries do the buyers of the gravel tyre sit": g.of(
                bought("Gravel tyre"), "customer_id", "country"
            ),
        },
        "type condition": {
            "[keyword] mechanics": g.eq(staff, "job_title", "mechanic"),
            "which of our customers are in spain": g.eq(customers, "country", "Spain"),
            "our charity customers": g.eq(customers, "type", "charity"),
            "hi, which orders are still open pls": open_orders,
        },
        "number condition": {
            "staff earning over 70k": g.more(staff, "salary", 70000),
            "orders worth more than 5000": g.more(orders, "total", 5000),
            "products with a unit price over 5000": g.more(products, "unit_price", 5000),
            "which products weigh more than 20 kilos": g.more(products, "weight_kg", 20),
            "customers with a credit limit of at least 20000": g.more(customers, "credit_limit", 19999),
        },
        "date condition": {
            "who was hired after 2021": g.since(staff, "hire_date", "2022"),
            "[typo] custommers we have had since before 2012": g.before(customers, "customer_since", "2012"),
            "orders shipped in august 2025": g.says(orders, "shipped_date", "2025-08"),
            "orders shipped in october 2024": g.says(orders, "shipped_date", "2024-10"),
        },
        "text": {
            "customers with bike in the name": {name for name in customers if "bike" in name.lower()},
        },
        "boolean": {
            "discontinued products": g.eq(products, "discontinued", "yes"),
            "who doesn't work full time": g.eq(staff, "full_time", "no"),
        },
        "negation": {
            "business customers that are not german": business - g.eq(business, "country", "Germany"),
        },
        "absence": {
            "employees without an email address": g.lacks(staff, "email"),
            "what products have never been ordered": g.lacks(products, "~product_id"),
            "open orders that have no one handling them": g.lacks(open_orders, "employee_id"),
            "customers who never placed an order": g.lacks(customers, "~customer_id"),
        },
        "union": {
            "everybody in finance or purchasing": g.eq(staff, "department", "Finance", "Purchasing"),
        },
        "intersection": {
            "black products that are in the bicycle category": g.eq(products, "colour", "black")
            & g.eq(products, "category", "bicycle"),
            "who at dock road works part time": g.eq(g.of("Dock Road", "~office"), "full_time", "no"),
            "cancelled orders of green commute": g.eq(ordered("Green Commute"), "status", "cancelled"),
            "mechanics at harbour street": g.eq(g.of("Harbour Street", "~office"), "job_title", "mechanic"),
        },
        "subtract": {
            "everyone in sales but not tobias renner": sales - {"Tobias Renner"},
        },
        "rank": {
            "most expensive product we sell": g.top(products, "unit_price"),
            "who has been with us the longest": g.top(staff, "hire_date", low=True),
            "worst paid person in the warehouse": g.top(warehouse, "salary", low=True),
        },
        "rank inside a path": {
            "who supplies our heaviest product": g.of(g.top(products, "weight_kg"), "supplier_id"),
            "which customer placed the order with the highest total": g.of(g.top(orders, "total"), "customer_id"),
            "who is the manager of the newest employee": g.of(g.top(staff, "hire_date"), "manager_id"),
        },
        "first k": {
            "3 best paid people": g.top(staff, "salary", 3),
            "the five cheapest products by unit price": g.top(products, "unit_price", 5, low=True),
        },
        "count": {
            "how many orders has alpine rental placed": len(ordered("Alpine Rental")),
            "how many people report to harriet sloane": len(g.of("Harriet Sloane", "~manager_id")),
            "number of orders from isola tours": len(ordered("Isola Tours")),
        },
        "sum": {
            "total value of all orders by cityrad": sum(g.numbers(ordered("Cityrad"), "total")),
            "how many saddles have we got in stock altogether": sum(
                g.numbers(g.eq(products, "category", "saddle"), "units_in_stock")
            ),
        },
        "average": {
            "avg salary in the workshop": mean(g.numbers(workshop, "salary")),
        },
        "share": {
            "what percentage of orders was paid by card": percent(g.eq(orders, "payment", "card"), orders),
        },
        "group": {
            "[keyword] headcount per department": g.groups(staff, "department"),
            "order value per customer": g.groups(orders, "customer_id", "total"),
        },
        "compare": {
            "who earns more, petra lindgren or lars petrie": g.top(["Petra Lindgren", "Lars Petrie"], "salary"),
            "price difference between winter tyre and gravel tyre": one(g.of("Winter tyre", "unit_price"))
            - one(g.of("Gravel tyre", "unit_price")),
        },
        "yes/no": {
            "was SO-1030 cancelled": "cancelled" in g.of("order SO-1030", "status"),
            "does noor rahimi work full time": "yes" in g.of("Noor Rahimi", "full_time"),
            "does bettina crowe report to tobias renner": "Tobias Renner" in g.of("Bettina Crowe", "manager_id"),
            "is fabio rossi the contact at rossi componenti?": "Fabio Rossi" in g.of("Rossi Componenti", "contact"),
        },
        "where/when": {
            "when did rosalind achterberg start here": g.of("Rosalind Achterberg", "hire_date"),
            "what city is pedalwerk in": g.of("Pedalwerk", "city"),
            "[typo] when was order SO-1012 shiped": g.of("order SO-1012", "shipped_date"),
        },
    }
    missing = {
        RELATION: {
            "vat number of radhaus nord": "VAT number",
            "[keyword] iban rossi componenti": "bank account",
            "how old is dragan ilic": "birth date",
            "how long is the warranty on the harrier road bike": "warranty",
            "how many days off has cosima bell got left": "days off",
            "what discount does green commute get": "discount",
            "[typo] which courrier delivered order SO-1014": "carrier",
            "what's the phone number of saddlecraft": "phone number",
        },
        ENTITY: {
            "who looks after Nordic Cycles": "Nordic Cycles",
            "how many carbon forks are in stock": "carbon fork",
            "what does Gregor Lindqvist earn": "Gregor Lindqvist",
        },
        TYPE: {
            "list all our competitors": "competitors",
            "which vans do we own": "vans",
        },
        FACT: {
            "which office does julian mbeki sit in": "office of Julian Mbeki",
            "When did SO-1025 ship?": "shipping date of order SO-1025",
        },
    }
    return fill(g, questions, missing)


if __name__ == "__main__":
    write(HERE, (bestiary(), geography(), shop()))
