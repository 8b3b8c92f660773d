"""Computes the gold answers of dev5 from its graph files, and writes a file of questions for each graph.

    python -m benchmarks.people.dev5.answers

It reads the files with json, polars and rdflib.  A question may begin with its style in brackets.
"""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl

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


def read_airline() -> Graph:
    """Besides its nodes and links, *since* of a rating by the names of its employee and its model."""
    document = json.loads((GRAPHS / "airline" / "airline.json").read_text(encoding="utf-8"))
    return read_nodes("airline", document["nodes"], document["links"])


def airline() -> Graph:
    g = read_airline()
    airport, plane, model, person, flight = "Airport", "Aircraft", "AircraftModel", "Employee", "Flight"
    incident = "Incident"
    oudekerk, solvik, ellery = "Oudekerk Central", "Solvik Airport", "Port Ellery Airport"
    captains = g.eq(person, "role", "captain")
    from_oudekerk, leased = g.of(oudekerk, "~departs_from"), g.eq(plane, "leased", "true")
    puffins = g.of("Northwing Puffin", "~model")
    questions: dict[str, dict[str, Answer]] = {
        "direct": {
            "who flies nv 310": g.of("NV 310", "commanded_by"),
            "what plane do they put on nv 101": g.of("NV 101", "operated_with"),
            "sigrun haaland's boss?": g.of("Sigrun Haaland", "reports_to"),
            "Which languages does Giulio Ferrante speak?": g.of("Giulio Ferrante", "languages"),
            "what do you get to eat on NV 221": g.of("NV 221", "catering"),
            "[keyword] registration gannet": g.of("Gannet", "registration"),
            "who is down as captain of nv 211": g.of("NV 211", "commanded_by"),
            "what types is nell trevarrow allowed to fly": g.of("Nell Trevarrow", "rated_for"),
            "how long is the hop to st brannoc on nv 401": g.of("NV 401", "duration_min"),
            "[typo] what does a tiket on NV 330 cost": g.of("NV 330", "price_eur"),
            "everyone who answers to wouter van dalen": g.of("Wouter van Dalen", "~reports_to"),
        },
        "path of two": {
            "how many seats are on the corncrake": g.of("Corncrake", "model", "seats"),
            "which country do i land in with nv 220": g.of("NV 220", "arrives_at", "country"),
            "flights to anywhere in Albany Isles": g.of("Albany Isles", "~country", "~arrives_at"),
            "the boss of whoever captains nv 410": g.of("NV 410", "commanded_by", "reports_to"),
            "what tongues does the skipper of nv 311 know": g.of("NV 311", "commanded_by", "languages"),
            "which planes does Maren Lysgaard actually end up flying on her flights?": g.of(
                "Maren Lysgaard", "~commanded_by", "operated_with"
            ),
        },
        "path of three": {
            "which maker's aircraft does femke roos's boss fly on his flights": g.of(
                "Femke Roos", "reports_to", "~commanded_by", "operated_with", "model", "made_by"
            ),
            "who manufactured the aircraft that does nv 205": g.of("NV 205", "operated_with", "model", "made_by"),
            "in what cities does samir haddou touch down": g.of("Samir Haddou", "~commanded_by", "arrives_at", "city"),
            "range in km of the plane used for NV 501": g.of("NV 501", "operated_with", "model", "range_km"),
        },
        "type condition": {
            "[keyword] first officers": g.eq(person, "role", "first officer"),
            "show me all puffins in the fleet": puffins,
            "serious incidents": g.eq(incident, "severity", "serious"),
        },
        "number condition": {
            "flights under 60 euro": g.less(flight, "price_eur", 60),
            "airports more than 500 metres above the sea": g.more(airport, "elevation_m", 500),
            "which of our planes have clocked over 25000 hours": g.more(plane, "flight_hours", 25000),
            "what flights take between 2 and 3 hours": g.less(g.more(flight, "duration_min", 119), "duration_min", 181),
            "anything with five or more runways?": g.more(airport, "runways", 4),
        },
        "date condition": {
            "who was hired before 2000": g.before(person, "hired", "2000"),
            "crew born in the nineties": g.before(g.since(person, "born", "1990"), "born", "2000"),
            "Which aircraft were delivered in 2022 or later?": g.since(plane, "delivered", "2022"),
            "planes we got in 2017": g.says(plane, "delivered", "2017"),
        },
        "text": {
            "what happened in incident 2023-01": g.of("Incident 2023-01", "description"),
            "which plane had smoke in the galley": g.of(g.says(incident, "description", "smoke"), "involved"),
            "any incident where a bird was hit": g.says(incident, "description", "bird"),
        },
        "boolean": {
            "[keyword] leased planes": leased,
            "flights that do not run every day": g.eq(flight, "daily", "false"),
        },
        "negation": {
            "employees who don't speak english": g.all(person) - g.eq(person, "languages", "English"),
        },
        "absence": {
            "[typo] flights with no captian yet": g.lacks(flight, "commanded_by"),
            "who has no home base": g.lacks(person, "based_at"),
            "planes that never had an incident": g.lacks(plane, "~involved"),
            "[typo] aircraft wich aren't used on any flight": g.lacks(plane, "~operated_with"),
        },
        "union": {
            "[typo] who speeks arabic or german": g.eq(person, "languages", "Arabic", "German"),
            "flights leaving kirkhaven airport or oasis field": g.eq(
                flight, "departs_from", "Kirkhaven Airport", "Oasis Field"
            ),
        },
        "intersection": {
            "captains with german": g.eq(captains, "languages", "German"),
            "is there anything direct from solvik airport to oudekerk central, which flight": g.eq(
                g.of(solvik, "~departs_from"), "arrives_at", oudekerk
            ),
            "leased planes stationed at oudekerk central": g.eq(leased, "stationed_at", oudekerk),
            "jets from Waterland makers": g.eq(
                g.eq(model, "propulsion", "jet"), "made_by", *g.of("Waterland", "~country")
            ),
        },
        "subtract": {
            "staff at solvik airport minus the captains": g.of(solvik, "~based_at") - captains,
            "departures from oudekerk central except the ones samir haddou commands": from_oudekerk
            - g.of("Samir Haddou", "~commanded_by"),
        },
        "rank": {
            "oldest airport": g.top(airport, "opened", low=True),
            "second busiest airport by passengers": g.top(airport, "passengers_millions", 2)
            - g.top(airport, "passengers_millions"),
            "What's our priciest flight?": g.top(flight, "price_eur"),
            "who has been with the airline longest": g.top(person, "hired", low=True),
            "youngest captain": g.top(captains, "born"),
        },
        "rank inside a path": {
            "who has to fly the longest flight": g.of(g.top(flight, "duration_min"), "commanded_by"),
            "what country is the highest airport in": g.of(g.top(airport, "elevation_m"), "country"),
            "where is the newest aircraft stationed": g.of(g.top(plane, "delivered"), "stationed_at"),
        },
        "first k": {
            "top 3 planes by flight hours": g.top(plane, "flight_hours", 3),
            "the two lowest lying airports": g.top(airport, "elevation_m", 2, low=True),
        },
        "count": {
            "[typo] how many flights leave port ellery aiport": len(g.of(ellery, "~departs_from")),
            "number of people reporting to sigrun haaland": len(g.of("Sigrun Haaland", "~reports_to")),
            "how many rondine r9s have we got": len(g.of("Rondine R9", "~model")),
            "how many flights are there from Drevnik Airport to Solvik Airport": len(
                g.eq(g.of("Drevnik Airport", "~departs_from"), "arrives_at", solvik)
            ),
        },
        "sum": {
            "hours flown by the whole fleet added up": sum(g.numbers(g.all(plane), "flight_hours")),
        },
        "average": {
            "average ticket price": mean(g.numbers(g.all(flight), "price_eur")),
        },
        "share": {
            "what percentage of the aircraft is leased": percent(leased, g.all(plane)),
        },
        "group": {
            "flights per captain": g.groups(g.all(flight), "commanded_by"),
            "how many staff at each base": g.groups(person, "based_at"),
            "mean price for each kind of catering": g.groups(flight, "catering", "price_eur", mean=True),
        },
        "compare": {
            "what lies higher, oasis field or monte grazia airport": g.top(
                ["Oasis Field", "Monte Grazia Airport"], "elevation_m"
            ),
            "how many more seats has the rondine r9 than the halberd 220": one(g.of("Rondine R9", "seats"))
            - one(g.of("Halberd 220", "seats")),
        },
        "yes/no": {
            "does femke roos know german": "German" in g.of("Femke Roos", "languages"),
            "can wouter van dalen fly a rondine r9": "Rondine R9" in g.of("Wouter van Dalen", "rated_for"),
            "Is the Ibis leased?": "true" in g.of("Ibis", "leased"),
            "was the dovetail ever in an incident": bool(g.of("Dovetail", "~involved")),
        },
        "where/when": {
            "when did chiara bassani start": g.of("Chiara Bassani", "hired"),
            "what time do you take off with nv 115": g.of("NV 115", "departure_time"),
            "where does the heron live": g.of("Heron", "stationed_at"),
            "home airport of the ibis": g.of("Ibis", "stationed_at"),
            "since when has samir haddou been rated for the rondine r9": g.of("Samir Haddou|Rondine R9", "since"),
            "where did the lightning hit": g.of(g.says(incident, "description", "lightning"), "happened_at"),
        },
    }
    missing = {
        RELATION: {
            "who investigated incident 2022-06": "investigators",
            "[typo] wich alliance does Castel Bruno International belong to": "alliance",
            "who sits next to the emergency exit on nv 206": "seat",
            "what does sigrun haaland earn": "salary",
            "which gate does nv 101 go from": "gate",
            "how much luggage can i take on nv 205": "luggage allowance",
            "[keyword] email petra novakova": "e-mail address",
            "what colour is the heron painted": "colour",
            "fuel burn per hour of the halberd 220": "fuel consumption",
            "is wouter van dalen married": "spouse",
            "where did liv aasen go to school": "school",
            "who insures the gannet": "insurer",
            "how many passengers were aboard nv 310 last month": "passengers of a flight",
        },
        ENTITY: {
            "can lena brandvold fly the halberd 220": "Lena Brandvold",
            "Who captains the flight to Reykholt?": "Reykholt",
            "when does nv 777 take off": "NV 777",
            "who is based at marlow airport": "Marlow Airport",
            "[keyword] flight hours pelican": "Pelican",
        },
        TYPE: {
            "which lounges can i use": "lounges",
            "list the hotels near oudekerk central": "hotels",
        },
    }
    return fill(g, questions, missing)


def read_housing() -> Graph:
    """Relations are called by the columns; a repair, which has no name, by its sheet and key."""
    book = GRAPHS / "housing" / "housing.xlsx"
    naming = {"buildings": "name", "flats": "name", "tenants": "name", "contractors": "company_name", "repairs": ""}
    tables = {name: (pl.read_excel(book, sheet_name=name).to_dicts(), own) for name, own in naming.items()}
    links = {
        "building_id": "buildings",
        "flat_id": "flats",
        "contractor_id": "contractors",
        "heating_contractor_id": "contractors",
    }
    return read_keyed("housing", tables, links)


def housing() -> Graph:
    g = read_housing()
    building, flat, tenant, firm, repair = "buildings", "flats", "tenants", "contractors", "repairs"
    balcony, pets = g.eq(flat, "balcony", "true"), g.eq(flat, "pets_allowed", "true")
    cash = g.eq(tenant, "payment_method", "cash")
    still_open = g.eq(repair, "status", "open")
    quay, orchard, linden = (
        g.of(name, "~building_id") & g.all(flat) for name in ("Quay Court", "Orchard View", "Linden House")
    )
    questions: dict[str, dict[str, Answer]] = {
        "direct": {
            "who do i call when the heating is dead in linden house": g.of("Linden House", "heating_contractor_id"),
            "what rent is quay 4": g.of("Quay 4", "monthly_rent"),
            "who looks after orchard view": g.of("Orchard View", "caretaker"),
            "what does Tamsin Grey do for a living?": g.of("Tamsin Grey", "occupation"),
            "how does kalinda rao pay": g.of("Kalinda Rao", "payment_method"),
            "number for keymaster lenz": g.of("Keymaster Lenz", "phone"),
            "who lives or has lived in chapel 3": g.of("Chapel 3", "~flat_id") & g.all(tenant),
            "how big is station 2": g.of("Station 2", "size_m2"),
            "caretaker of chapel yard": g.of("Chapel Yard", "caretaker"),
            "whom do i speak to at voltaris": g.of("Voltaris", "contact_person"),
        },
        "path of two": {
            "what's the number to ring when the boiler breaks at the tannery": g.of(
                "The Tannery", "heating_contractor_id", "phone"
            ),
            "which house does hamish doyle live in": g.of("Hamish Doyle", "flat_id", "building_id"),
            "what monthly rent does elsie moorcroft pay": g.of("Elsie Moorcroft", "flat_id", "monthly_rent"),
            "what had to be repaired in tannery 2": g.of(g.of("Tannery 2", "~flat_id") & g.all(repair), "problem"),
            "Who has rented in Quay Court?": g.of(quay, "~flat_id") & g.all(tenant),
            "flats brandt heating has been to": g.of("Brandt Heating", "~contractor_id", "flat_id"),
            "what has gone wrong in linden 1": g.of(g.of("Linden 1", "~flat_id") & g.all(repair), "problem"),
        },
        "path of three": {
            "in which part of town does per hedlund live": g.of("Per Hedlund", "flat_id", "building_id", "district"),
            "who is the caretaker in the building where zelda krantz lives": g.of(
                "Zelda Krantz", "flat_id", "building_id", "caretaker"
            ),
            "[typo] wich firms came to repair things in orchard view": g.of(
                g.of(orchard, "~flat_id") & g.all(repair), "contractor_id"
            ),
            "which contractor handles the heating for vera kolb": g.of(
                "Vera Kolb", "flat_id", "building_id", "heating_contractor_id"
            ),
        },
        "type condition": {
            "[keyword] plumbers": g.eq(firm, "trade", "plumbing"),
            "all the houses with gas": g.eq(building, "heating_type", "gas"),
            "tenants who are students": g.eq(tenant, "occupation", "student"),
        },
        "number condition": {
            "[typo] flats for les than 500 a month": g.less(flat, "monthly_rent", 500),
            "anything bigger than 80 square metres": g.more(flat, "size_m2", 80),
            "four room flats": g.eq(flat, "rooms", "4"),
            "which flats on the 5th floor or above": g.more(flat, "floor", 4),
            "buildings that cost us over two million": g.more(building, "purchase_price", 2e6),
        },
        "date condition": {
            "who moved in before 2008": g.before(tenant, "moved_in", "2008"),
            "buildings whose insurance runs out before 2026": g.before(building, "insured_until", "2026"),
            "tenants who came in 2022": g.says(tenant, "moved_in", "2022"),
            "[keyword] flats renovated after 2019": g.more(flat, "last_renovated", 2019),
            "Which flats had something reported in December 2023?": g.of(
                g.says(repair, "reported", "2023-12"), "flat_id"
            ),
        },
        "text": {
            "in which flats was there mould": g.of(g.says(repair, "problem", "mould"), "flat_id"),
            "who fixes locks that jam": g.of(g.says(repair, "problem", "lock jams"), "contractor_id"),
        },
        "boolean": {
            "places with a balcony": balcony,
            "which buildings have a lift": g.eq(building, "has_lift", "true"),
            "who can come out at night in an emergency": g.eq(firm, "emergency_24h", "true"),
        },
        "negation": {
            "houses that are not heated with gas": g.all(building) - g.eq(building, "heating_type", "gas"),
            "flats where pets aren't allowed at orchard view": g.eq(orchard, "pets_allowed", "false"),
        },
        "absence": {
            "flats nobody ever rented": g.lacks(flat, "~flat_id")
            | {name for name in g.all(flat) if not g.of(name, "~flat_id") & g.all(tenant)},
            "[typo] buildings whithout a caretaker": g.lacks(building, "caretaker"),
            "tenants we have no mobile number for": g.lacks(tenant, "mobile"),
            "contractors who never did a repair": g.lacks(firm, "~contractor_id"),
            "houses with no insurance date": g.lacks(building, "insured_until"),
        },
        "union": {
            "nurses and teachers among the tenants": g.eq(tenant, "occupation", "nurse", "teacher"),
            "buildings in the old town or on the hillside": g.eq(building, "district", "Old Town", "Hillside"),
        },
        "intersection": {
            "flats with a balcony where i can keep a dog": balcony & pets,
            "who pays cash and is retired": g.eq(cash, "occupation", "retired"),
            "2 room flats under 480 in quay court": g.less(g.eq(quay, "rooms", "2"), "monthly_rent", 480),
            "plumbers reachable around the clock": g.eq(g.eq(firm, "trade", "plumbing"), "emergency_24h", "true"),
        },
        "subtract": {
            "tenants of quay court who haven't left": (g.of(quay, "~flat_id") & g.all(tenant))
            & g.lacks(tenant, "moved_out"),
            "flats in linden house other than the ones allowing pets": linden - pets,
        },
        "rank": {
            "oldest building we own": g.top(building, "year_built", low=True),
            "What is the smallest flat?": g.top(flat, "size_m2", low=True),
            "[typo] second most expensiv building": g.top(building, "purchase_price", 2)
            - g.top(building, "purchase_price"),
            "cheapest flat in orchard view": g.top(orchard, "monthly_rent", low=True),
            "[keyword] highest deposit tenant": g.top(tenant, "deposit"),
        },
        "rank inside a path": {
            "who lives in the biggest flat": g.of(g.top(flat, "size_m2"), "~flat_id") & g.all(tenant),
            "which flat had the most costly repair": g.of(g.top(repair, "cost"), "flat_id"),
            "the district of our newest building": g.of(g.top(building, "year_built"), "district"),
        },
        "first k": {
            "three dearest flats": g.top(flat, "monthly_rent", 3),
            "top 2 contractors by hourly rate": g.top(firm, "hourly_rate", 2),
        },
        "count": {
            "how many flats in quay court": len(quay),
            "how many repairs are still open": len(still_open),
            "number of tenants who left": len(g.all(tenant) - g.lacks(tenant, "moved_out")),
            "how many jobs did clearflow drains get": len(g.of("Clearflow Drains", "~contractor_id")),
            "how many flats in chapel yard have a balcony": len(balcony & g.of("Chapel Yard", "~building_id")),
        },
        "sum": {
            "what would linden house bring in rent a month with every flat let": sum(g.numbers(linden, "monthly_rent")),
            "total spent on voltaris so far": sum(g.numbers(g.of("Voltaris", "~contractor_id"), "cost")),
        },
        "average": {
            "[typo] avarage size of our flats in m2": mean(g.numbers(g.all(flat), "size_m2")),
            "what does a repair cost on average": mean(g.numbers(g.all(repair), "cost")),
        },
        "share": {
            "what share of flats allow pets": percent(pets, g.all(flat)),
        },
        "group": {
            "flats per building": g.groups(flat, "building_id"),
            "repair costs by contractor": g.groups(repair, "contractor_id", "cost"),
        },
        "compare": {
            "how many days did agnes thorley stay in her flat": days(g, "Agnes Thorley", "moved_in", "moved_out"),
            "is the rent of orchard 3 or of tannery 3 higher": g.top(["Orchard 3", "Tannery 3"], "monthly_rent"),
            "how much older is chapel yard than quay court": one(g.of("Quay Court", "year_built"))
            - one(g.of("Chapel Yard", "year_built")),
            "Which of Lift & Co and Fresh Coat charges less?": g.top(
                ["Lift & Co", "Fresh Coat"], "hourly_rate", low=True
            ),
        },
        "yes/no": {
            "does linden 5 have a balcony": "true" in g.of("Linden 5", "balcony"),
            "may i keep a cat in quay 7": "true" in g.of("Quay 7", "pets_allowed"),
            "has jarek wolny moved out": bool(g.of("Jarek Wolny", "moved_out")),
            "is there a lift in station terrace": "true" in g.of("Station Terrace", "has_lift"),
        },
        "where/when": {
            "[typo] when did odile marchnd move in": g.of("Odile Marchand", "moved_in"),
            "where is the tannery": g.of("The Tannery", "street"),
            "until when is quay court insured": g.of("Quay Court", "insured_until"),
            "when did boris vale leave": g.of("Boris Vale", "moved_out"),
            "what year was chapel 1 last done up": g.of("Chapel 1", "last_renovated"),
        },
    }
    missing = {
        RELATION: {
            "what's the water consumption of linden house": "water consumption",
            "how many keys does ulrich bonn have": "keys",
            "what's per hedlund's email": "e-mail address",
            "how old is dmitri halas": "birth date",
            "which energy class is orchard view": "energy class",
            "does imogen starr own a dog": "pets of a tenant",
            "who is the owner before us of quay court": "former owner",
            "[keyword] iban boris vale": "bank account",
            "how many parking spaces has station terrace": "parking spaces",
            "what colour are the walls in linden 2": "colour",
            "who is the emergency contact of queenie abbot": "emergency contact",
            "Which floor covering does Quay 1 have?": "floor covering",
            "is brandt heating VAT registered": "tax number",
        },
        ENTITY: {
            "what does gasworks ltd charge per hour": "Gasworks Ltd",
            "how many flats are in the brewery": "The Brewery",
            "who lives in quay 12": "Quay 12",
            "[keyword] rent maple court": "Maple Court",
            "when did Gordon Plum move in": "Gordon Plum",
        },
        TYPE: {
            "when is the next viewing appointment": "viewing appointments",
            "list all garages": "garages",
            "which laundry rooms do we have": "laundry rooms",
        },
    }
    return fill(g, questions, missing)


def garden() -> Graph:
    g = read_rdf("garden", GRAPHS / "garden" / "garden.ttl")
    plant, herb, flower, vegetable, legume = "Plant", "Herb", "Flower", "Vegetable", "Legume"
    bed, planting, pest, person = "Bed", "Planting", "Pest", "Gardener"
    perennial, thirsty = g.eq(plant, "perennial", "true"), g.eq(plant, "waterNeed", "high")
    sunny = g.eq(bed, "sun", "full sun")
    tomatoes = g.of("tomato", "~plantingOf")
    questions: dict[str, dict[str, Answer]] = {
        "direct": {
            "which beds is the south wall next to": g.of("South Wall", "nextTo"),
            "what goes well with tomatoes": g.of("tomato", "companionOf"),
            "what should i not put next to chives": g.of("chives", "badNeighbourOf"),
            "what eats kale": g.of("kale", "attackedBy"),
            "[keyword] latin name borage": g.of("borage", "latinName"),
            "who takes care of the glasshouse": g.of("Glasshouse", "tendedBy"),
            "how much room does a courgette need in cm": g.of("courgette", "spacingCm"),
            "which insects does lavender bring in": g.of("lavender", "attracts"),
            "what will keep whitefly off": g.of("whitefly", "~repels"),
            "Which diseases does the tomato get?": g.of("tomato", "suffersFrom"),
            "[typo] what does the vine wevil go for": g.of("vine weevil", "attacks"),
            "who tends the shady nook": g.of("Shady Nook", "tendedBy"),
            "what is rufus marsh's mum called": g.of("Rufus Marsh", "~motherOf"),
        },
        "path of two": {
            "what eats the pests of plums": g.of("plum", "attackedBy", "eatenBy"),
            "which beds have carrots been in": g.of("carrot", "~plantingOf", "inBed"),
            "what has dora pike planted": g.of("Dora Pike", "~plantedBy", "plantingOf"),
            "what's growing at the pond side": g.of("Pond Side", "~inBed", "plantingOf"),
            "Who sowed the runner beans?": g.of("runner bean", "~plantingOf", "plantedBy"),
            "which plants drive away something that attacks carrots": g.of("carrot", "attackedBy", "~repels"),
            "where do we buy cucumber seed": g.of("cucumber", "~plantingOf", "seedsFrom"),
            "[typo] supplyer of the pea seeds": g.of("pea", "~plantingOf", "seedsFrom"),
            "what insects do the companions of tomatoes draw in": g.of("tomato", "companionOf", "attracts"),
        },
        "path of three": {
            "what kind of soil do the kale plants stand in": g.of("kale", "~plantingOf", "inBed", "soil"),
            "whose beds have had mint in them": g.of("mint", "~plantingOf", "inBed", "tendedBy"),
            "which suppliers has Priya Nair's bed seen": g.of("Priya Nair", "tends", "~inBed", "seedsFrom"),
        },
        "type condition": {
            "[keyword] root vegetables": g.all("RootVegetable"),
            "list our vegetables": g.all(vegetable),
            "which herbs are in the book": g.all(herb),
        },
        "number condition": {
            "plants taller than 1.5 m": g.more(plant, "heightCm", 150),
            "what can i harvest in under 50 days": g.less(plant, "daysToHarvest", 50),
            "[keyword] beds over 10 m2": g.more(bed, "areaM2", 10),
            "seed packets for two euros or less": g.less(plant, "seedPrice", 2.0001),
            "herbs of more than 2 metres": g.more(herb, "heightCm", 200),
        },
        "date condition": {
            "what was sown in may 2025": g.of(g.says(planting, "sownOn", "2025-05"), "plantingOf"),
            "[typo] gardners who joined after 2019": g.since(person, "joined", "2020"),
            "which plants went into the ground before 2020": g.of(g.before(planting, "sownOn", "2020"), "plantingOf"),
            "what did we plant in January 2025": g.of(g.says(planting, "sownOn", "2025-01"), "plantingOf"),
        },
        "text": {
            "plants whose notes say something about frost": g.says(plant, "comment", "frost"),
            "what's the tip for sweetcorn": g.of("sweetcorn", "comment"),
            "which of the plants is poisonous": g.says(plant, "comment", "poisonous"),
            "any notes on the carrot fly": g.of("carrot fly", "comment"),
        },
        "boolean": {
            "flowers you can eat": g.eq(flower, "edible", "true"),
            "perennials": perennial,
        },
        "negation": {
            "which flowers are not edible": g.all(flower) - g.eq(flower, "edible", "true"),
            "beds that don't get full sun": g.all(bed) - sunny,
            "legumes that need anything but a lot of water": g.all(legume) - thirsty,
        },
        "absence": {
            "plants with no known pest": g.lacks(plant, "attackedBy"),
            "bed without a gardener": g.lacks(bed, "tendedBy"),
            "what have we never planted": g.lacks(plant, "~plantingOf"),
            "pests that nothing repels": g.lacks(pest, "~repels"),
            "vegetables without a latin name": g.lacks(vegetable, "latinName"),
        },
        "union": {
            "plants that get powdery mildew or mosaic virus": g.eq(
                plant, "suffersFrom", "powdery mildew", "mosaic virus"
            ),
            "all herbs and flowers": g.all(herb) | g.all(flower),
        },
        "intersection": {
            "perennial herbs": perennial & g.all(herb),
            "sunny beds with sandy soil": g.eq(sunny, "soil", "sandy"),
            "vegetables slugs go for": g.eq(vegetable, "attackedBy", "slug"),
            "which plant attracts both bumblebees and honeybees": g.of("bumblebee", "~attracts")
            & g.of("honeybee", "~attracts"),
            "flowers that suffer from blight": g.eq(flower, "suffersFrom", "blight"),
        },
        "subtract": {
            "what grows in long strip apart from carrots": g.of("Long Strip", "~inBed", "plantingOf") - {"carrot"},
            "herbs other than the perennial ones": g.all(herb) - perennial,
        },
        "rank": {
            "[typo] tallest vegtable": g.top(vegetable, "heightCm"),
            "What grows fastest?": g.top(plant, "daysToHarvest", low=True),
            "second largest bed": g.top(bed, "areaM2", 2) - g.top(bed, "areaM2"),
            "dearest seeds of all the herbs": g.top(herb, "seedPrice"),
            "newest gardener": g.top(person, "joined"),
        },
        "rank inside a path": {
            "who looks after the smallest bed": g.of(g.top(bed, "areaM2", low=True), "tendedBy"),
            "what plant gave the biggest yield in one planting": g.of(g.top(planting, "yieldKg"), "plantingOf"),
            "what attacks the tallest legume": g.of(g.top(legume, "heightCm"), "attackedBy"),
        },
        "first k": {
            "three tallest plants": g.top(plant, "heightCm", 3),
            "top two beds by area": g.top(bed, "areaM2", 2),
        },
        "count": {
            "how many herbs do we have": len(g.all(herb)),
            "how many things does the slug attack": len(g.of("slug", "attacks")),
            "number of plantings by walter oakes": len(g.of("Walter Oakes", "~plantedBy")),
            "how many plants did rufus marsh put in": len(g.of("Rufus Marsh", "~plantedBy")),
        },
        "sum": {
            "how many kilos of tomatoes did we get altogether": sum(g.numbers(tomatoes, "yieldKg")),
            "total area of the beds hetty marsh tends": sum(g.numbers(g.of("Hetty Marsh", "tends"), "areaM2")),
        },
        "average": {
            "average height of the flowers": mean(g.numbers(g.all(flower), "heightCm")),
        },
        "share": {
            "what percent of plants is perennial": percent(perennial, g.all(plant)),
        },
        "group": {
            "plantings per bed": g.groups(planting, "inBed"),
            "kilos harvested by gardener": g.groups(planting, "plantedBy", "yieldKg"),
        },
        "compare": {
            "does parsnip or broad bean take longer until harvest": g.top(["parsnip", "broad bean"], "daysToHarvest"),
            "how much taller is a runner bean than a pea": one(g.of("runner bean", "heightCm"))
            - one(g.of("pea", "heightCm")),
        },
        "yes/no": {
            "should carrots be kept away from dill": "dill" in g.of("carrot", "badNeighbourOf"),
            "is foxglove edible": "true" in g.of("foxglove", "edible"),
            "do ladybirds eat aphids": "ladybird" in g.of("aphid", "eatenBy"),
            "Is mint a herb?": "mint" in g.all(herb),
        },
        "where/when": {
            "when did sven ahlgren join": g.of("Sven Ahlgren", "joined"),
            "when were the apples planted": g.of("apple", "~plantingOf", "sownOn"),
            "when did we first pick plums": g.of("plum", "~plantingOf", "harvestedOn"),
            "[typo] were is the basil growing": g.of("basil", "~plantingOf", "inBed"),
        },
    }
    missing = {
        RELATION: {
            "which vitamins are in kale": "vitamins",
            "phone number of dora pike": "phone number",
            "how deep do i sow broad beans": "sowing depth",
            "what temperature do cucumber seeds need to germinate": "germination temperature",
            "which fertiliser for raspberries": "fertiliser",
            "how many calories has spinach": "calories",
            "what colour are lavender flowers": "colour of a flower",
            "[keyword] address old mill nursery": "address",
            "how old is hetty marsh": "birth date",
            "how long can you store plums": "storage life",
            "who discovered the mosaic virus": "discoverer",
            "What time of year does the foxglove bloom?": "flowering time",
            "how much did the glasshouse cost to build": "cost",
        },
        ENTITY: {
            "What did Moira Finch plant?": "Moira Finch",
            "when was the quince tree planted": "quince",
            "what goes with aubergine": "aubergine",
            "who tends the rose border": "Rose Border",
            "[keyword] companions of garlic": "garlic",
        },
        TYPE: {
            "which tools have we got": "tools",
            "list all the greenhouses' thermometers": "thermometers",
        },
    }
    return fill(g, questions, missing)


if __name__ == "__main__":
    write(HERE, (airline(), housing(), garden()))
