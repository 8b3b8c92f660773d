"""Computes the gold answers of dev4 from its graph files, and writes a file of questions for each graph.

    python -m benchmarks.people.dev4.answers

It reads the files with json and by gold.py.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

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
    plain,
    read_csv,
    read_keyed,
    read_rdf,
    read_triples,
    write,
)

HERE = Path(__file__).resolve().parent
GRAPHS = HERE / "graphs"


def read_gameshop() -> Graph:
    """Relations are called by the document's keys; a rating, which has no name, is read as values of its game."""
    graph = Graph("gameshop")
    document = json.loads((GRAPHS / "gameshop" / "gameshop.json").read_text(encoding="utf-8"))["@graph"]

    def objects(node: Any) -> Iterator[dict[str, Any]]:
        if isinstance(node, dict):
            yield node
        for inner in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
            yield from objects(inner)

    named = [node for node in objects(document) if "name" in node]
    names = {node["id"]: node["name"] for node in named}
    for node in named:
        graph.things[node["type"]].append(node["name"])
        for key in node.keys() - {"id", "type", "name"}:
            for value in node[key] if isinstance(node[key], list) else [node[key]]:
                parts = value if isinstance(value, dict) else {key: value}
                for part, text in {key: names[parts["id"]]}.items() if "id" in parts else parts.items():
                    graph.add(node["name"], part, plain(text) if isinstance(text, float) else text)
    return graph


def gameshop() -> Graph:
    g = read_gameshop()
    game, studio, customer, order, review = "Game", "Studio", "Customer", "Order", "Review"
    horror, puzzle, shooter, simulation, strategy = (
        g.eq(game, "genres", genre) for genre in ("horror", "puzzle", "shooter", "simulation", "strategy")
    )
    pc, nomad, online = (
        g.eq(game, "platforms", "PC"),
        g.eq(game, "platforms", "Nomad"),
        g.eq(game, "onlinePlay", "true"),
    )
    marit, delivered = g.of("Marit Sorsa", "~customer"), g.eq(order, "status", "delivered")
    questions: dict[str, dict[str, Answer]] = {
        "direct": {
            "who made moth court": g.of("Moth Court", "studio"),
            "Which genres is Gallowmere Dawn filed under?": g.of("Gallowmere Dawn", "genres"),
            "what can i play snail mail on": g.of("Snail Mail", "platforms"),
            "[keyword] publisher of whistledown": g.of("Whistledown", "publisher"),
        },
        "path of two": {
            "in what town does the studio behind beekeeper's year sit": g.of("Beekeeper's Year", "studio", "city"),
            "games marit sorsa has bought": g.of(marit, "items"),
            "which country does the publisher of penalty kings come from": g.of(
                "Penalty Kings", "publisher", "country"
            ),
        },
        "path of three": {
            "what kinds of games has callum boyd ordered": g.of("Callum Boyd", "~customer", "items", "genres"),
            "Name the studios that Bram Wouters bought games from.": g.of(
                "Bram Wouters", "~customer", "items", "studio"
            ),
            "towns where buyers of the long ferry live": g.of("The Long Ferry", "~items", "customer", "city"),
        },
        "type condition": {
            "show me all puzzle games": puzzle,
            "[keyword] horror titles": horror,
        },
        "number condition": {
            "games under 12 euros": g.less(game, "price", 12),
            "[typo] wich games take up more than 60 gigabytes": g.more(game, "sizeGb", 60),
            "games that cost between 20 and 25": g.less(g.more(game, "price", 19.999), "price", 25.001),
            "games for more than 10 people": g.more(game, "maxPlayers", 10),
            "orders worth over 200": g.more(order, "total", 200),
            "any games for 18 and over below 20 euros?": g.less(g.eq(game, "ageRating", "18"), "price", 20),
        },
        "date condition": {
            "what games came out in 2022": g.before(g.since(game, "releaseDate", "2022"), "releaseDate", "2023"),
            "[keyword] games older than 2014": g.before(game, "releaseDate", "2014"),
            "List the orders placed in April 2024.": g.says(order, "orderedOn", "2024-04"),
            "who joined as a customer in 2023 or later": g.since(customer, "memberSince", "2023"),
            "[typo] any games relased after 2023": g.since(game, "releaseDate", "2024"),
        },
        "text": {
            "in which games does a dragon appear according to the description": g.says(game, "description", "dragon"),
            "what is the long ferry about": g.of("The Long Ferry", "description"),
            "who complains about the controls in a review": g.of(g.says(review, "text", "controls"), "author"),
        },
        "boolean": {
            "games you can play over the internet": online,
            "which customers get our newsletter": g.eq(customer, "newsletter", "true"),
            "gift wrapped orders that came back": g.eq(g.eq(order, "giftWrapped", "true"), "status", "returned"),
        },
        "negation": {
            "Which games are not available on PC?": g.all(game) - pc,
            "strategy games that do not run on the pc": strategy - pc,
        },
        "absence": {
            "games without a publisher": g.lacks(game, "publisher"),
            "which titles haven't been rated yet": g.lacks(game, "score"),
            "customers who never ordered anything": g.lacks(customer, "~customer"),
        },
        "union": {
            "[keyword] racing or sports games": g.eq(game, "genres", "racing", "sports"),
            "customers in malmby or trebon": g.eq(customer, "city", "Malmby", "Trebon"),
            "everything made by Owlpost or Little Anvil": g.eq(game, "studio", "Owlpost", "Little Anvil"),
        },
        "intersection": {
            "[keyword] puzzle games for nomad": puzzle & nomad,
            "is there something that is both a shooter and horror, and what": shooter & horror,
            "[typo] simulaton games with a score above 8": g.more(simulation, "score", 8),
            "horror games with an age rating of 3": g.eq(horror, "ageRating", "3"),
        },
        "subtract": {
            "all strategy games except the ones by nine pines": strategy - g.eq(game, "studio", "Nine Pines"),
            "Who has written reviews but never placed an order?": g.of(g.all(review), "author")
            - g.of(g.all(order), "customer"),
        },
        "rank": {
            "whats your most expensive game": g.top(game, "price"),
            "which studio has the fewest people": g.top(studio, "employees", low=True),
            "second best rated game": g.top(game, "score", 2) - g.top(game, "score"),
            "[keyword] oldest studio": g.top(studio, "foundedIn", low=True),
        },
        "rank inside a path": {
            "who made the cheapest horror game": g.of(g.top(horror, "price", low=True), "studio"),
            "which platforms does the biggest download run on": g.of(g.top(game, "sizeGb"), "platforms"),
            "in what cities do the customers with the most points live": g.of(g.top(customer, "loyaltyPoints"), "city"),
        },
        "first k": {
            "[keyword] top 5 games by score": g.top(game, "score", 5),
            "the 3 newest games for the vireo": g.top(g.eq(game, "platforms", "Vireo"), "releaseDate", 3),
            "our four most long-standing customers": g.top(customer, "memberSince", 4, low=True),
        },
        "count": {
            "how many games do you sell": len(g.all(game)),
            "[keyword] number of orders still open": len(g.eq(order, "status", "open")),
            "how many reviews did zofia lisek write": len(g.of("Zofia Lisek", "~author")),
            "how many games by owlpost are there for the vireo": len(
                g.eq(g.eq(game, "studio", "Owlpost"), "platforms", "Vireo")
            ),
        },
        "sum": {
            "how much have all orders of marit sorsa come to": sum(g.numbers(marit, "total")),
            "add up the totals of the delivered orders": sum(g.numbers(delivered, "total")),
        },
        "average": {
            "what does a puzzle game cost on average": mean(g.numbers(puzzle, "price")),
            "how many stars does strike formation 3 get on average": mean(
                g.numbers(g.of("Strike Formation 3", "~game"), "stars")
            ),
            "[keyword] mean order value": mean(g.numbers(g.all(order), "total")),
        },
        "share": {
            "what percentage of the games can be played online": percent(online, g.all(game)),
            "[keyword] share of orders paid by card": percent(g.eq(order, "paidBy", "card"), g.all(order)),
        },
        "group": {
            "number of games per studio": g.groups(game, "studio"),
            "[keyword] average price by genre": g.groups(game, "genres", "price", mean=True),
            "How many orders are there in each status?": g.groups(order, "status"),
        },
        "compare": {
            "what costs more, embercrown or fathom": g.top({"Embercrown", "Fathom"}, "price"),
            "how much dearer is clockwork garden ii than clockwork garden": round(
                one(g.of("Clockwork Garden II", "price")) - one(g.of("Clockwork Garden", "price")), 2
            ),
            "who got more votes: snail mail or kart kittens": g.top({"Snail Mail", "Kart Kittens"}, "votes"),
        },
        "yes/no": {
            "did anouk desmet order strike formation 3": "Strike Formation 3"
            in g.of("Anouk Desmet", "~customer", "items"),
            "[typo] does ironmoth belong to corvid interactve": "Corvid Interactive" in g.of("Ironmoth", "owner"),
            "is there a visual novel for the vireo": bool(
                g.eq(g.eq(game, "platforms", "Vireo"), "genres", "visual novel")
            ),
            "can i play fathom online": "Fathom" in online,
        },
        "where/when": {
            "when did dustriders come out": g.of("Dustriders", "releaseDate"),
            "where does odile garnier live": g.of("Odile Garnier", "city"),
            "[typo] since wen is hanna broz a customer": g.of("Hanna Broz", "memberSince"),
        },
    }
    missing = {
        RELATION: {
            "what graphics card do i need for embercrown": "system requirements",
            "who composed the music of static choir": "composer",
            "[keyword] phone number of hanna broz": "phone number",
            "when will order 5012 arrive": "delivery date",
            "how old is callum boyd": "birth date",
            "how long does it take to finish whistledown": "playing time",
            "in which languages can I play Letters to Nobody?": "language",
            "who founded paperlantern": "founder",
            "does gallowmere dawn have danish subtitles": "subtitles",
            "how did Ines Moravec hear about the shop?": "origin of a customer",
            "shipping costs of order 5020": "shipping costs",
        },
        ENTITY: {
            "how much is dungeon postman": "Dungeon Postman",
            "when was Salt Ritual released": "Salt Ritual",
            "[keyword] orders of viktor amsel": "Viktor Amsel",
            "games by bluebottle studio": "Bluebottle Studio",
            "is Mushroom Express in stock": "Mushroom Express",
        },
        TYPE: {
            "which magazines do you carry": "magazines",
            "list all gift cards": "gift cards",
            "cheapest headset": "headsets",
        },
    }
    return fill(g, questions, missing)


def read_hospital() -> Graph:
    """Visits and treatments have no names but their ids."""
    naming = {"wards": "ward_name", "doctors": "doctor_name", "patients": "full_name", "visits": "visit_id"}
    naming["treatments"] = "treatment_id"
    tables = {table: (read_csv(GRAPHS / "hospital" / f"{table}.csv"), own) for table, own in naming.items()}
    links = {f"{table[:-1]}_id": table for table in tables} | {"supervisor_id": "doctors"}
    return read_keyed("hospital", tables, links)


def hospital() -> Graph:
    g = read_hospital()
    ward, doctor, patient, visit, treatment = "wards", "doctors", "patients", "visits", "treatments"
    surgeons, neurologists = g.eq(doctor, "speciality", "surgeon"), g.eq(doctor, "speciality", "neurologist")
    smokers, call, urgent = (
        g.eq(patient, "smoker", "yes"),
        g.eq(doctor, "on_call", "yes"),
        g.eq(visit, "emergency", "yes"),
    )
    allergic = g.all(patient) - g.lacks(patient, "allergy")
    nwosu, sulik, toller, kowalczyk = (
        f"Dr. {name}" for name in ("Amara Nwosu", "Marek Sulik", "Bianca Toller", "Lena Kowalczyk")
    )
    questions: dict[str, dict[str, Answer]] = {
        "direct": {
            "what does dr. marek sulik specialise in": g.of(sulik, "speciality"),
            "[keyword] head nurse paediatrics": g.of("Paediatrics", "head_nurse"),
            "whose boss is dr nwosu": g.of(nwosu, "~supervisor_id"),
        },
        "path of two": {
            "which doctors have seen cecily marsh": g.of("Cecily Marsh", "~patient_id", "doctor_id"),
            "what floor does dr. simon petrescu work on": g.of("Dr. Simon Petrescu", "ward_id", "floor"),
            "why was rosa delgado in hospital": g.of("Rosa Delgado", "~patient_id", "reason"),
            "patients seen by simon petrescu": g.of("Dr. Simon Petrescu", "~doctor_id", "patient_id"),
            "[keyword] patients of bianca toller": g.of(toller, "~doctor_id", "patient_id"),
        },
        "path of three": {
            "which procedures did cecily marsh undergo": g.of("Cecily Marsh", "~patient_id", "~visit_id", "procedure"),
            "Whose visits were with doctors from Neurology?": g.of("Neurology", "~ward_id", "~doctor_id", "patient_id"),
            "on which wards was pascal rey": g.of("Pascal Rey", "~patient_id", "doctor_id", "ward_id"),
        },
        "type condition": {
            "list all surgeons": surgeons,
            "[keyword] patients from fernhill": g.eq(patient, "town", "Fernhill"),
            "who has blood type 0-": g.eq(patient, "blood_group", "0-"),
        },
        "number condition": {
            "wards with more than 20 beds": g.more(ward, "beds", 20),
            "doctors earning less than 90000": g.less(doctor, "salary_eur", 90000),
            "Which doctors have a salary between 95000 and 105000?": g.less(
                g.more(doctor, "salary_eur", 94999), "salary_eur", 105001
            ),
            "what procedures have taken longer than 150 minutes": g.of(g.more(treatment, "minutes", 150), "procedure"),
            "[keyword] wards over 50 beds": g.more(ward, "beds", 50),
        },
        "date condition": {
            "doctors who started in 2019 or later": g.since(doctor, "hired_on", "2019"),
            "[typo] pateints born before 1950": g.before(patient, "date_of_birth", "1950"),
            "who was admitted in december 2023": g.of(g.says(visit, "admitted", "2023-12"), "patient_id"),
            "which doctors joined us before 2000": g.before(doctor, "hired_on", "2000"),
        },
        "text": {
            "patients who came in with something broken": g.of(g.says(visit, "reason", "broken"), "patient_id"),
            "what must nils ekdahl not be given because of an allergy": g.of("Nils Ekdahl", "allergy"),
            "who is hamid rostami insured with": g.of("Hamid Rostami", "insurance"),
        },
        "boolean": {
            "[keyword] doctors on call": call,
            "which patients smoke": smokers,
            "on which wards may visitors stay the night": g.eq(ward, "visitors_overnight", "yes"),
            "who still owes us for a visit": g.of(g.eq(visit, "bill_paid", "no"), "patient_id"),
        },
        "negation": {
            "patients not living in oakley": g.all(patient) - g.eq(patient, "town", "Oakley"),
            "allergic patients who do not smoke": allergic - smokers,
            "obstetricians who don't work in maternity": g.eq(doctor, "speciality", "obstetrician")
            - g.eq(doctor, "ward_id", "Maternity"),
        },
        "absence": {
            "who has no insurance": g.lacks(patient, "insurance"),
            "Which doctors report to nobody?": g.lacks(doctor, "supervisor_id"),
            "registered patients who have never had a visit": g.lacks(patient, "~patient_id"),
            "[keyword] ward without head nurse": g.lacks(ward, "head_nurse"),
        },
        "union": {
            "[typo] show me the cardiologists and the nuerologists": g.eq(doctor, "speciality", "cardiologist")
            | neurologists,
            "patients from brinton or castle row": g.eq(patient, "town", "Brinton", "Castle Row"),
            "who reacts to latex or iodine": g.eq(patient, "allergy", "latex", "iodine"),
        },
        "intersection": {
            "smokers insured with medisure": g.eq(smokers, "insurance", "MediSure"),
            "doctors on call who earn over 130000": g.more(call, "salary_eur", 130000),
            "[typo] alergic to peanuts and from castle row": g.eq(
                g.eq(patient, "allergy", "peanuts"), "town", "Castle Row"
            ),
        },
        "subtract": {
            "patients of dr sulik except those dr toller also saw": g.of(sulik, "~doctor_id", "patient_id")
            - g.of(toller, "~doctor_id", "patient_id"),
            "wards on the first floor besides maternity": g.eq(ward, "floor", "1") - {"Maternity"},
        },
        "rank": {
            "[keyword] oldest patient": g.top(patient, "date_of_birth", low=True),
            "who's our best paid doctor": g.top(doctor, "salary_eur"),
            "which doctor has been here the longest": g.top(doctor, "hired_on", low=True),
            "second largest ward by beds": g.top(ward, "beds", 2) - g.top(ward, "beds"),
            "[typo] whats the priciest proceedure": g.of(g.top(treatment, "cost_eur"), "procedure"),
        },
        "rank inside a path": {
            "ward of the doctor with the lowest pay": g.of(g.top(doctor, "salary_eur", low=True), "ward_id"),
            "what town is the youngest patient from": g.of(g.top(patient, "date_of_birth"), "town"),
            "who got the highest bill": g.of(g.top(visit, "bill_eur"), "patient_id"),
        },
        "first k": {
            "3 top earning doctors": g.top(doctor, "salary_eur", 3),
            "name the five oldest patients": g.top(patient, "date_of_birth", 5, low=True),
            "the last two doctors to be hired": g.top(doctor, "hired_on", 2),
        },
        "count": {
            "how many patients smoke": len(smokers),
            "number of visits in 2024": len(g.since(visit, "admitted", "2024")),
            "[typo] how many emergancies did we have": len(urgent),
            "how often has olive batten been here": len(g.of("Olive Batten", "~patient_id")),
            "how many obstetricians make more than 150000": len(
                g.more(g.eq(doctor, "speciality", "obstetrician"), "salary_eur", 150000)
            ),
        },
        "sum": {
            "how many beds do we have in total": sum(g.numbers(g.all(ward), "beds")),
            "what did all visits of cecily marsh cost together": sum(
                g.numbers(g.of("Cecily Marsh", "~patient_id"), "bill_eur")
            ),
            "[keyword] total salaries surgeons": sum(g.numbers(surgeons, "salary_eur")),
        },
        "average": {
            "[keyword] average doctor salary": mean(g.numbers(g.all(doctor), "salary_eur")),
            "What's the mean bill of an emergency visit?": mean(g.numbers(urgent, "bill_eur")),
            "how many minutes does a hip replacement take on average": mean(
                g.numbers(g.eq(treatment, "procedure", "hip replacement"), "minutes")
            ),
        },
        "share": {
            "what percentage of patients are smokers": percent(smokers, g.all(patient)),
        },
        "group": {
            "[keyword] doctors per ward": g.groups(doctor, "ward_id"),
            "average salary for each speciality": g.groups(doctor, "speciality", "salary_eur", mean=True),
            "how many patients from each town": g.groups(patient, "town"),
        },
        "compare": {
            "who earns more, ingrid solheim or bianca toller": g.top({"Dr. Ingrid Solheim", toller}, "salary_eur"),
            "how many more beds has orthopaedics than cardiology": one(g.of("Orthopaedics", "beds"))
            - one(g.of("Cardiology", "beds")),
            "how many days did yusuf karam stay": days(
                g, min(g.of("Yusuf Karam", "~patient_id")), "admitted", "discharged"
            ),
        },
        "yes/no": {
            "is wendy ashgrove on call": "Dr. Wendy Ashgrove" in call,
            "Can visitors stay overnight in Maternity?": "yes" in g.of("Maternity", "visitors_overnight"),
            "do any neurologists earn less than 90000": bool(g.less(neurologists, "salary_eur", 90000)),
            "is rosa delgado allergic to penicillin": "penicillin" in g.of("Rosa Delgado", "allergy"),
        },
        "where/when": {
            "tessa vaughan was born when": g.of("Tessa Vaughan", "date_of_birth"),
            "when did dr. hugo lamarque start here": g.of("Dr. Hugo Lamarque", "hired_on"),
            "when was Jasper Kline sent home": g.of("Jasper Kline", "~patient_id", "discharged"),
        },
    }
    missing = {
        RELATION: {
            "[keyword] phone number dr haddad": "phone number",
            "how much does irena novotna weigh": "weight",
            "which medication is leopold finch taking": "medication",
            "what room is agnes thornbury in": "room",
            "how many days off does clara vinter have left": "days off",
            "who is umberto neri's next of kin": "next of kin",
            "where did priscilla mbeki study medicine": "university",
            "what's the visiting time in Cardiology?": "visiting hours",
            "is katya oresh married": "marital status",
            "who is gwen prosser's employer": "employer",
            "[keyword] blood pressure of walter pike": "blood pressure",
        },
        ENTITY: {
            "what was harriet plum treated for": "Harriet Plum",
            "salary of dr. ulrich benz": "Dr. Ulrich Benz",
            "[keyword] beds in oncology": "Oncology",
            "when was malcolm trent admitted": "Malcolm Trent",
            "Who is the head nurse of Radiology?": "Radiology",
        },
        TYPE: {
            "how many ambulances have we got": "ambulances",
            "which operating theatres are on the second floor": "operating theatres",
            "[keyword] list of medicines": "medicines",
        },
    }
    return fill(g, questions, missing)


def read_institute() -> Graph:
    graph = read_rdf("institute", GRAPHS / "institute" / "institute.nt")
    graph.things["people"] = [name for kind in ("Professor", "Postdoc", "PhDStudent") for name in graph.things[kind]]
    return graph


def institute() -> Graph:
    g = read_institute()
    paper, journal, grant, group, student, people = "Paper", "Journal", "Grant", "ResearchGroup", "PhDStudent", "people"
    free, green = g.eq(journal, "openAccess", "true"), g.eq(grant, "fundedBy", "Green Trust")
    thea, pelle, lund = (g.of(name, "~hasAuthor") for name in ("Thea Lindholm", "Pelle Nyqvist", "Astrid Lund"))
    earth, new = g.of("Earth Sciences", "~partOf", "~memberOf"), g.eq(paper, "publicationYear", "2023")
    questions: dict[str, dict[str, Answer]] = {
        "direct": {
            "[keyword] authors of gas before the blast": g.of("Gas Before the Blast", "hasAuthor"),
            "who runs the volcano group": g.of("Volcano Group", "headedBy"),
            "which papers does Ice from Above refer to?": g.of("Ice from Above", "cites"),
        },
        "path of two": {
            "who works in the lab that got the melt grant": g.of("Melt Grant", "awardedTo", "~memberOf"),
            "what department does kenji sato belong to": g.of("Kenji Sato", "memberOf", "partOf"),
            "where has miriam hollis published": g.of("Miriam Hollis", "~hasAuthor", "publishedIn"),
            "everybody in life sciences": g.of("Life Sciences", "~partOf", "~memberOf"),
            "[typo] authers who refer to seeing edges twice": g.of("Seeing Edges Twice", "~cites", "hasAuthor"),
        },
        "path of three": {
            "in which building is pelle nyqvist's department": g.of(
                "Pelle Nyqvist", "memberOf", "partOf", "locatedInBuilding"
            ),
            "what do kenji sato's students write about": g.of("Kenji Sato", "~supervisedBy", "~hasAuthor", "hasTopic"),
        },
        "type condition": {
            "[keyword] list of journals": g.all(journal),
            "grants from the nordic fund": g.eq(grant, "fundedBy", "Nordic Fund"),
            "Which PhD students are in the Volcano Group?": g.eq(student, "memberOf", "Volcano Group"),
            "papers about wild bees": g.eq(paper, "hasTopic", "Wild Bees"),
        },
        "number condition": {
            "papers cited more than 100 times": g.more(paper, "timesCited", 100),
            "[typo] grants over half a milion": g.more(grant, "amountInEuro", 500000),
            "journals with an impact factor between 2 and 4": g.less(
                g.more(journal, "impactFactor", 2), "impactFactor", 4
            ),
            "papers longer than 40 pages": g.more(paper, "pageCount", 40),
            "[keyword] articles under 10 pages": g.less(paper, "pageCount", 10),
        },
        "date condition": {
            "what was published in 2022": g.eq(paper, "publicationYear", "2022"),
            "which people were born in the 1990s": g.before(g.since(people, "birthDate", "1990"), "birthDate", "2000"),
            "research groups set up before 2000": g.before(group, "establishedIn", "2000"),
            "grants that run out after 2023": g.since(grant, "endDate", "2024"),
            "any papers from before 2000?": g.before(paper, "publicationYear", "2000"),
        },
        "text": {
            "papers with the word ice in the title": {
                name for name in g.all(paper) if re.search(r"\bice\b", name.lower())
            },
            "what country is luca ferro from": g.of("Luca Ferro", "nationality"),
            "whose office is in canal": g.says(people, "officeRoom", "canal"),
        },
        "boolean": {
            "[keyword] open access journals": free,
            "which journals are not free to read": g.eq(journal, "openAccess", "false"),
            "papers that came out in an open access journal": g.of(free, "~publishedIn"),
        },
        "negation": {
            "grants that aren't from green trust": g.all(grant) - green,
            "translation papers not written by kenji sato": g.eq(paper, "hasTopic", "Translation")
            - g.of("Kenji Sato", "~hasAuthor"),
            "Which postdocs are not in earth sciences?": g.all("Postdoc") - earth,
        },
        "absence": {
            "papers that no other paper cites": g.lacks(paper, "~cites"),
            "grants with no end date": g.lacks(grant, "endDate"),
            "phd students who have not published anything": g.lacks(student, "~hasAuthor"),
            "research groups that have not got any grant": g.lacks(group, "~awardedTo"),
            "who has no office": g.lacks(people, "officeRoom"),
        },
        "union": {
            "papers by astrid lund or ada okoye": lund | g.of("Ada Okoye", "~hasAuthor"),
            "[typo] poeple from sweden or norway": g.eq(people, "nationality", "Sweden", "Norway"),
            "all topics anywhere below biology": g.of("Biology", "~subtopicOf")
            | g.of("Biology", "~subtopicOf", "~subtopicOf"),
        },
        "intersection": {
            "what did thea lindholm and pelle nyqvist write together": thea & pelle,
            "[keyword] 2023 papers in polar letters": g.eq(new, "publishedIn", "Polar Letters"),
            "papers citing both slow ice, fast water and listening to volcanoes": g.of("Slow Ice, Fast Water", "~cites")
            & g.of("Listening to Volcanoes", "~cites"),
            "postdocs from canada": g.eq("Postdoc", "nationality", "Canada"),
        },
        "subtract": {
            "authors of how high by 2100 apart from miriam hollis": g.of("How High by 2100", "hasAuthor")
            - {"Miriam Hollis"},
            "people in earth sciences without the professors": earth - g.all("Professor"),
        },
        "rank": {
            "[keyword] most cited paper": g.top(paper, "timesCited"),
            "what is our longest paper": g.top(paper, "pageCount"),
            "second biggest grant": g.top(grant, "amountInEuro", 2) - g.top(grant, "amountInEuro"),
            "who's the youngest phd student": g.top(student, "birthDate"),
        },
        "rank inside a path": {
            "who wrote the most cited paper": g.of(g.top(paper, "timesCited"), "hasAuthor"),
            "[typo] who pays for the lagrest grant": g.of(g.top(grant, "amountInEuro"), "fundedBy"),
            "supervisor of the oldest phd student": g.of(g.top(student, "birthDate", low=True), "supervisedBy"),
        },
        "first k": {
            "top three papers by citations": g.top(paper, "timesCited", 3),
            "Give me the two newest research groups.": g.top(group, "establishedIn", 2),
            "[keyword] 5 oldest people": g.top(people, "birthDate", 5, low=True),
        },
        "count": {
            "how many papers has judit varga written": len(g.of("Judit Varga", "~hasAuthor")),
            "number of phd students": len(g.all(student)),
            "how many papers did colm breen publish in 2023": len(new & g.of("Colm Breen", "~hasAuthor")),
            "[typo] how many pappers are about segmentation": len(g.eq(paper, "hasTopic", "Segmentation")),
        },
        "sum": {
            "how much grant money is there in total": sum(g.numbers(g.all(grant), "amountInEuro")),
            "citations of all luca ferro papers combined": sum(
                g.numbers(g.of("Luca Ferro", "~hasAuthor"), "timesCited")
            ),
        },
        "average": {
            "how many pages does a paper have on average": mean(g.numbers(g.all(paper), "pageCount")),
            "average impact factor of the open access journals": mean(g.numbers(free, "impactFactor")),
            "[keyword] mean citations vision summit papers": mean(
                g.numbers(g.of("Vision Summit", "~publishedIn"), "timesCited")
            ),
        },
        "share": {
            "what percentage of the journals is open access": percent(free, g.all(journal)),
            "share of papers that are from 2023": percent(new, g.all(paper)),
        },
        "group": {
            "[keyword] papers per year": g.groups(paper, "publicationYear"),
            "how many people are there in each group": g.groups(people, "memberOf"),
            "grant money by funder": g.groups(grant, "fundedBy", "amountInEuro"),
        },
        "compare": {
            "which has more citations, blooms in cold water or dialects are data": g.top(
                {"Blooms in Cold Water", "Dialects Are Data"}, "timesCited"
            ),
            "how much more money is the melt grant than fjord genomes": one(g.of("Melt Grant", "amountInEuro"))
            - one(g.of("Fjord Genomes", "amountInEuro")),
            "how many days did drone eyes last": days(g, "Drone Eyes", "startDate", "endDate"),
        },
        "yes/no": {
            "is annals of geohazards open access": "Annals Of Geohazards" in free,
            "is the glacier lab part of life sciences": "Life Sciences" in g.of("Glacier Lab", "partOf"),
            "does any paper cite letters from the ice camp": bool(g.of("Letters from the Ice Camp", "~cites")),
            "Is Omar Haddadi a student of Sato's?": "Kenji Sato" in g.of("Omar Haddadi", "supervisedBy"),
        },
        "where/when": {
            "[keyword] astrid lund date of birth": g.of("Astrid Lund", "birthDate"),
            "where did the vision summit take place": g.of("Vision Summit", "heldIn"),
            "since when has there been a marine microbes lab": g.of("Marine Microbes Lab", "establishedIn"),
        },
    }
    missing = {
        RELATION: {
            "[keyword] email of sana qureshi": "email",
            "how much does ada okoye earn": "salary",
            "what's the doi of dialects are data": "DOI",
            "who reviewed slopes that remember": "reviewer",
            "at which university did colm breen study": "university",
            "acceptance rate of the vision summit": "acceptance rate",
            "who is the editor of ocean microbe": "editor",
            "how many square metres is the glacier lab": "area",
            "what hobbies does jun park have": "hobbies",
            "how often was seeing edges twice downloaded": "downloads",
            "which programming language does thea lindholm use": "programming language",
        },
        ENTITY: {
            "papers by bogdan illes": "Bogdan Illes",
            "who is the head of the Soil Group?": "Soil Group",
            "how often was dust on the wind line cited": "Dust on the Wind Line",
            "[keyword] publications in quantum weekly": "Quantum Weekly",
            "how big is the comet grant": "Comet Grant",
        },
        TYPE: {
            "which patents do we hold": "patents",
            "list the data sets from 2022": "data sets",
            "what courses are taught in computing": "courses",
        },
    }
    return fill(g, questions, missing)


def dynasty() -> Graph:
    ends = {"people": "birth_year", "battles": "fought_at", "ships": "launched_in_year", "buildings": "built_in_year"}
    ends |= {"places": "located_in", "monarchs": "crowned_in_year"}
    g = read_triples("dynasty", GRAPHS / "dynasty" / "dynasty.tsv", ends, symmetric="married_to")
    people, battle, ship, building, monarch = "people", "battles", "ships", "buildings", "monarchs"
    kings, generals, poets, painters, physicians = (
        g.eq(people, "occupation", word) for word in ("king", "general", "poet", "painter", "physician")
    )
    gunnar, ford = g.of("Gunnar Halfhand", "~won_by"), g.of("Grey Ford", "~fought_at")
    ragna, torvald = g.of("Ragna Orlesk", "~child_of"), g.of("Torvald Orlesk", "~child_of")
    questions: dict[str, dict[str, Answer]] = {
        "direct": {
            "who were the kids of torvald orlesk": torvald,
            "[keyword] wife of torvald the younger": g.of("Torvald the Younger", "married_to"),
            "what was sigrun orlesk's job": g.of("Sigrun Orlesk", "occupation"),
            "[typo] who murderd casimir orlesk": g.of("Casimir Orlesk", "killed_by"),
            "who was taught by maud orlesk": g.of("Maud Orlesk", "~tutored_by"),
        },
        "path of two": {
            "Name the grandchildren of Torvald Orlesk.": g.of(torvald, "~child_of"),
            "who were dagmar orlesk's grandparents": g.of("Dagmar Orlesk", "child_of", "child_of"),
            "which region is the star tower in": g.of("Star Tower", "located_in", "located_in"),
            "jobs of the children of ysolde the younger": g.of("Ysolde the Younger", "~child_of", "occupation"),
            "who were ketil the pilots parents-in-law": g.of("Ketil the Pilot", "married_to", "child_of"),
        },
        "path of three": {
            "great-grandchildren of hedric orlesk": g.of("Hedric Orlesk", "~child_of", "~child_of", "~child_of"),
            "birthplaces of duke emmerik's grandchildren": g.of("Duke Emmerik", "~child_of", "~child_of", "born_in"),
        },
        "type condition": {
            "[keyword] all navigators": g.eq(people, "occupation", "navigator"),
            "which battles were fought at grey ford": ford,
            "who lies buried in lowmoor abbey": g.of("Lowmoor Abbey", "~buried_in"),
        },
        "number condition": {
            "battles with more than 1000 dead": g.more(battle, "fallen", 1000),
            "in which battles did between 300 and 500 people fall": g.less(
                g.more(battle, "fallen", 299), "fallen", 501
            ),
            "battles that cost fewer than 100 lives": g.less(battle, "fallen", 100),
        },
        "date condition": {
            "[keyword] born before 1410": g.before(people, "birth_year", "1410"),
            "who died in the 1480s": g.before(g.since(people, "death_year", "1480"), "death_year", "1490"),
            "what has been built since 1480": g.since(building, "built_in_year", "1480"),
            "who was crowned after 1500": g.since(monarch, "crowned_in_year", "1501"),
            "ships launched after 1550": g.since(ship, "launched_in_year", "1551"),
            "Which battles took place in the year 1453?": g.says(battle, "took_place_on", "1453"),
        },
        "text": {
            "who was known as the crow": g.of("the Crow", "~nickname"),
            "what did people call dagmar orlesk": g.of("Dagmar Orlesk", "nickname"),
            "people with younger in their name": {name for name in g.all(people) if "younger" in name.lower()},
        },
        "boolean": {
            "[typo] which bulidings are still standing": g.eq(building, "still_standing", "yes"),
            "who gave up the throne": g.eq(monarch, "abdicated", "yes"),
            "[keyword] buildings no longer standing": g.eq(building, "still_standing", "no"),
        },
        "negation": {
            "battles that gunnar halfhand didn't win": g.all(battle) - gunnar,
            "painters who were not born in kern": painters - g.eq(people, "born_in", "Kern"),
            "judges not from vessel keep": g.eq(people, "occupation", "judge") - g.eq(people, "born_in", "Vessel Keep"),
        },
        "absence": {
            "battles without a winner": g.lacks(battle, "won_by"),
            "generals who never married": g.lacks(generals, "married_to"),
            "for whom is no year of death recorded": g.lacks(people, "death_year"),
            "kings with no children": g.lacks(kings, "~child_of"),
        },
        "union": {
            "[keyword] painters and poets": painters | poets,
            "who was born in tveit or kern": g.eq(people, "born_in", "Tveit", "Kern"),
            "children of osmund orlesk or of dagmar orlesk": g.of({"Osmund Orlesk", "Dagmar Orlesk"}, "~child_of"),
        },
        "intersection": {
            "who was both born and died in ravnhold": g.eq(people, "born_in", "Ravnhold")
            & g.eq(people, "died_in", "Ravnhold"),
            "generals who were killed by somebody": generals - g.lacks(people, "killed_by"),
            "fought in the first battle of grey ford and in the battle of amber bay": g.of(
                "First Battle of Grey Ford", "~fought_in"
            )
            & g.of("Battle of Amber Bay", "~fought_in"),
            "physicians from skarn": g.eq(physicians, "born_in", "Skarn"),
            "poets buried in ravnhold cathedral": g.eq(poets, "buried_in", "Ravnhold Cathedral"),
        },
        "subtract": {
            "brothers and sisters of hedric orlesk": torvald - {"Hedric Orlesk"},
            "ragna orlesk's children except torvald the younger": ragna - {"Torvald the Younger"},
        },
        "rank": {
            "[keyword] bloodiest battle": g.top(battle, "fallen"),
            "who was the first to be crowned": g.top(monarch, "crowned_in_year", low=True),
            "second ship to be launched": g.top(ship, "launched_in_year", 2, low=True)
            - g.top(ship, "launched_in_year", low=True),
        },
        "rank inside a path": {
            "[typo] who won the dedliest battle": g.of(g.top(battle, "fallen"), "won_by"),
            "who had the newest building put up": g.of(g.top(building, "built_in_year"), "built_by"),
            "parents of the last crowned ruler": g.of(g.top(monarch, "crowned_in_year"), "child_of"),
        },
        "first k": {
            "three battles with the most dead": g.top(battle, "fallen", 3),
            "the first 3 rulers to be crowned": g.top(monarch, "crowned_in_year", 3, low=True),
            "[keyword] 2 oldest buildings": g.top(building, "built_in_year", 2, low=True),
        },
        "count": {
            "how many children did ragna orlesk have": len(ragna),
            "[typo] how many peolpe were born in port ambre": len(g.of("Port Ambre", "~born_in")),
            "number of battles won by ragna orlesk": len(g.of("Ragna Orlesk", "~won_by")),
        },
        "sum": {
            "how many fell at grey ford altogether": sum(g.numbers(ford, "fallen")),
            "total dead in the battles gunnar halfhand won": sum(g.numbers(gunnar, "fallen")),
        },
        "average": {
            "[keyword] average number of fallen per battle": mean(g.numbers(g.all(battle), "fallen")),
            "mean dead of the battles hedric orlesk won": mean(g.numbers(g.of("Hedric Orlesk", "~won_by"), "fallen")),
        },
        "share": {
            "what percentage of the battles did hedric orlesk win": percent(
                g.eq(battle, "won_by", "Hedric Orlesk"), g.all(battle)
            ),
            "share of buildings that still stand": percent(g.eq(building, "still_standing", "yes"), g.all(building)),
        },
        "group": {
            "[keyword] battles per place": g.groups(battle, "fought_at"),
            "how many people had each occupation": g.groups(people, "occupation"),
            "dead by winner of the battle": g.groups(battle, "won_by", "fallen"),
        },
        "compare": {
            "how old did hedric orlesk get": one(g.of("Hedric Orlesk", "death_year"))
            - one(g.of("Hedric Orlesk", "birth_year")),
            "what cost more lives, the battle of amber bay or the siege of vessel keep": g.top(
                {"Battle of Amber Bay", "Siege of Vessel Keep"}, "fallen"
            ),
            "how many years passed between the building of castle skarn and of kern bridge": one(
                g.of("Kern Bridge", "built_in_year")
            )
            - one(g.of("Castle Skarn", "built_in_year")),
        },
        "yes/no": {
            "did bertil orlesk die at grey ford": "Grey Ford" in g.of("Bertil Orlesk", "died_in"),
            "is kern on the amber coast": "Amber Coast" in g.of("Kern", "located_in"),
            "Was Halvard of Vessel a general?": "Halvard of Vessel" in generals,
            "was the grey gull built by leif orlesk": "Leif Orlesk" in g.of("Grey Gull", "built_by"),
        },
        "where/when": {
            "where was sunniva of kern born": g.of("Sunniva of Kern", "born_in"),
            "[typo] when did the seige of vessel keep happen": g.of("Siege of Vessel Keep", "took_place_on"),
            "where did jens ketilsson lose his life": g.of("Jens Ketilsson", "died_in"),
            "when was kern bridge finished": g.of("Kern Bridge", "built_in_year"),
        },
    }
    missing = {
        RELATION: {
            "what colour were the eyes of ragna orlesk": "eye colour",
            "how tall was hedric orlesk": "height",
            "[keyword] coat of arms of torvald orlesk": "coat of arms",
            "how much did the star tower cost": "cost",
            "what was halvard of vessel's horse called": "horse",
            "how many soldiers did Duke Emmerik command": "number of soldiers",
            "what did eskil orlesk die of": "cause of death",
            "which languages could ysolde marrane speak": "language",
            "how many cannons had the grey gull": "cannons",
            "who painted the portrait of isolde of kern": "portrait",
            "how rich was rolf anker": "wealth",
        },
        ENTITY: {
            "who was ingeborg stahl married to": "Ingeborg Stahl",
            "[keyword] children of knut the bold": "Knut the Bold",
            "when was the battle of hollow hill": "Battle of Hollow Hill",
            "Where is Fort Drummel?": "Fort Drummel",
            "who tutored sigfrid the lame": "Sigfrid the Lame",
        },
        TYPE: {
            "which treaties were signed in ravnhold": "treaties",
            "[keyword] songs about the battle of the reeds": "songs",
            "name the dragons that were slain": "dragons",
        },
    }
    return fill(g, questions, missing)


if __name__ == "__main__":
    write(HERE, (gameshop(), hospital(), institute(), dynasty()))
