"""English words for places and kinds of things that are no names of them: general knowledge of the language, as data.

Each line of a table is `word, word … = name | name …`; the names are tried in order.  A module, not a file beside it,
so that the code digest of the stages that link sees a change.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from kgqa_core.linking.fold import fold

_DEMONYMS = """
afghan = afghanistan
african american, afro american = african americans
american, yankee = united states of america | united states | usa
argentine, argentinian, argentinean = argentina
azeri, azerbaijani = azerbaijan
bahamian = the bahamas | bahamas
bangladeshi = bangladesh
barbadian, bajan = barbados
basque = basque country
batswana, motswana, botswanan = botswana
bavarian = bavaria
beninese = benin
bolognese = bologna
breton = brittany
british, briton, brit = united kingdom | great britain | united kingdom of great britain and northern ireland
burkinabe = burkina faso
burmese = myanmar | burma
burundian = burundi
cambodian = cambodia
cameroonian = cameroon
cape verdean = cape verde | cabo verde
catalan, catalonian = catalonia
chinese = china | people s republic of china
comorian = comoros
congolese = democratic republic of the congo | republic of the congo | congo
cornish = cornwall
corsican = corsica
costa rican = costa rica
croat, croatian = croatia
cypriot = cyprus
czech = czech republic | czechia
dane, danish = denmark
djiboutian = djibouti
dominican = dominican republic | dominica
dutch, dutchman, hollander = netherlands | the netherlands | kingdom of the netherlands
dutchmen = netherlands | the netherlands | kingdom of the netherlands
ecuadorian, ecuadorean = ecuador
emirati = united arab emirates
english, englishman, englishmen = england
equatorial guinean, equatoguinean = equatorial guinea
filipino, filipina, philippine = philippines | the philippines
finn, finnish = finland
fleming, flemish = flanders
florentine = florence
french, frenchman, frenchmen, frenchwoman = france
gabonese = gabon
galician = galicia
genevan = geneva
german = germany
ghanaian, ghanian = ghana
gibraltarian = gibraltar
glaswegian = glasgow
greek, grecian, hellenic = greece
guinean = guinea
guyanese = guyana
haitian = haiti
hawaiian = hawaii
hungarian, magyar = hungary
icelander, icelandic = iceland
iranian, persian = iran
irish, irishman, irishmen = ireland | republic of ireland
israeli = israel
ivorian = ivory coast | cote d ivoire
jordanian = jordan
kazakh, kazakhstani = kazakhstan
kittitian = saint kitts and nevis
kosovan, kosovar = kosovo
kurd, kurdish = kurdistan
kuwaiti = kuwait
kyrgyz = kyrgyzstan
lao, laotian = laos
latvian = latvia
lebanese = lebanon
liverpudlian = liverpool
luxembourgish, luxembourger = luxembourg
macedonian = north macedonia | macedonia | republic of macedonia
malagasy, madagascan = madagascar
malaysian = malaysia
maldivian = maldives | the maldives
malian = mali
maltese = malta
mancunian = manchester
manx = isle of man
marshallese = marshall islands
milanese = milan
monegasque, monacan = monaco
moroccan = morocco
mosotho, basotho = lesotho
muscovite = moscow
myanma = myanmar
nauruan = nauru
neapolitan = naples
nepalese, nepali = nepal
nigerien = niger
ni vanuatu = vanuatu
normand = normandy
norwegian = norway
new yorker = new york city | new york
omani = oman
pakistani = pakistan
palestinian = palestine | state of palestine
panamanian = panama
papua new guinean, papuan = papua new guinea
parisian = paris
polish = poland
portuguese = portugal
prussian = prussia
puerto rican = puerto rico
qatari = qatar
quebecois, quebecer = quebec
roman = rome
rwandan = rwanda
salvadoran, salvadorean, salvadorian = el salvador
sammarinese = san marino
saudi, saudi arabian = saudi arabia
saxon = saxony
scot, scottish, scots, scotsman, scotsmen = scotland
senegalese = senegal
serb, serbian = serbia
seychellois = seychelles
sicilian = sicily
slovak, slovakian = slovakia
slovene, slovenian = slovenia
somali = somalia
south korean, korean = south korea | republic of korea
north korean = north korea
soviet = soviet union | union of soviet socialist republics
spaniard, spanish = spain
sri lankan = sri lanka
sudanese = sudan
surinamese = suriname
swazi = eswatini | swaziland
swede, swedish = sweden
swiss = switzerland
tajik = tajikistan
thai = thailand
tibetan = tibet
togolese = togo
tongan = tonga
trinidadian, tobagonian = trinidad and tobago
turk, turkish = turkey | turkiye
turkmen = turkmenistan
tuscan = tuscany
uzbek = uzbekistan
venetian = venice
viennese = vienna
vincentian = saint vincent and the grenadines
welsh, welshman, welshmen = wales
yemeni, yemenite = yemen
yugoslav, yugoslavian = yugoslavia
zimbabwean = zimbabwe
albanian = albania
algerian = algeria
andorran = andorra
angolan = angola
armenian = armenia
aruban = aruba
australian, aussie = australia
austrian = austria
bahraini = bahrain
belarusian, belorussian = belarus
belgian = belgium
belizean = belize
bermudian = bermuda
bhutanese = bhutan
bolivian = bolivia
bosnian = bosnia and herzegovina
brazilian = brazil
bruneian = brunei
bulgarian = bulgaria
canadian = canada
chadian = chad
chilean = chile
colombian = colombia
cuban = cuba
egyptian = egypt
eritrean = eritrea
estonian = estonia
ethiopian = ethiopia
faroese = faroe islands
fijian = fiji
gambian = gambia | the gambia
georgian = georgia
greenlandic, greenlander = greenland
grenadian = grenada
guatemalan = guatemala
honduran = honduras
indian = india
indonesian = indonesia
iraqi = iraq
italian = italy
jamaican = jamaica
japanese = japan
kenyan = kenya
liberian = liberia
libyan = libya
lithuanian = lithuania
malawian = malawi
mauritanian = mauritania
mauritian = mauritius
mexican = mexico
micronesian = micronesia | federated states of micronesia
moldovan = moldova
mongolian = mongolia
montenegrin = montenegro
mozambican = mozambique
namibian = namibia
new zealander, kiwi = new zealand
nicaraguan = nicaragua
nigerian = nigeria
palauan = palau
paraguayan = paraguay
peruvian = peru
romanian = romania
russian = russia
samoan = samoa
singaporean = singapore
solomon islander = solomon islands
south african = south africa
south sudanese = south sudan
syrian = syria
taiwanese = taiwan
tanzanian = tanzania
timorese = timor leste | east timor
tunisian = tunisia
tuvaluan = tuvalu
ugandan = uganda
ukrainian = ukraine
uruguayan = uruguay
vanuatuan = vanuatu
venezuelan = venezuela
vietnamese = vietnam
zambian = zambia
european = europe
asian, asiatic = asia
african = africa
latin american = latin america
north american = north america
south american = south america
central american = central america
middle eastern = middle east
scandinavian = scandinavia
nordic = nordic countries | scandinavia
west indian = caribbean
antarctic = antarctica
australasian = australasia | oceania
oceanian, oceanic = oceania | australia and oceania
balkan = balkans
baltic = baltic states
iberian = iberian peninsula
andean = andes
alpine = alps
"""
_ABBREVIATIONS = """
us, usa, the states, united states, america, united states of america = united states of america | united states | usa
uk, gb, britain, great britain, united kingdom = united kingdom | great britain
uae, the emirates, emirates = united arab emirates
ussr, soviet union = soviet union | union of soviet socialist republics
prc, mainland china = people s republic of china | china
roc = taiwan | republic of china
dprk = north korea | democratic people s republic of korea
rok = south korea | republic of korea
drc, dr congo, congo kinshasa = democratic republic of the congo
congo brazzaville = republic of the congo
ddr, gdr, east germany = german democratic republic | east germany
frg, brd, west germany = west germany | germany
png = papua new guinea
nz, aotearoa = new zealand
rsa = south africa
ksa = saudi arabia
eu = european union
un, united nations = united nations
eurozone, euro zone, euro area, euro, euros = euro
nyc, the big apple, big apple = new york city
la = los angeles
sf, frisco = san francisco
dc, washington dc = washington d c | washington dc | washington
philly = philadelphia
vegas = las vegas
st petersburg = saint petersburg
holland = netherlands | the netherlands
burma = myanmar
persia = iran
siam = thailand
ceylon = sri lanka
swaziland = eswatini
eswatini = swaziland
luxemburg = luxembourg
roumania, rumania = romania
argentine republic, the argentine = argentina
the ukraine = ukraine
the sudan = sudan
the philippines = philippines
the gambia = gambia
oscar, oscars, the oscars = academy awards | academy award
grammy, grammys, the grammys = grammy award | grammy awards
emmy, emmys, the emmys = emmy award | primetime emmy award | emmy awards
jfk = john f kennedy
fdr = franklin d roosevelt | franklin delano roosevelt
mlk = martin luther king jr | martin luther king
ww1, wwi, the great war, first world war = world war i
ww2, wwii, second world war = world war ii
world war i, world war 1 = world war i
world war ii, world war 2 = world war ii
abc = american broadcasting company
cbs = columbia broadcasting system
nbc = national broadcasting company
bbc = british broadcasting corporation
hbo = home box office
mgm = metro goldwyn mayer
nba = national basketball association
nfl = national football league
nhl = national hockey league
mlb = major league baseball
lotr = the lord of the rings
cape verde = cabo verde
cabo verde = cape verde
ivory coast = cote d ivoire
cote d ivoire = ivory coast
east timor = timor leste
timor leste = east timor
czechia = czech republic
czech republic = czechia
macedonia = north macedonia | republic of macedonia
north macedonia = republic of macedonia | macedonia
turkiye = turkey
turkey = turkiye
upper volta = burkina faso
vatican, holy see, vatican city = vatican city | holy see | vatican
palestine = state of palestine
bosnia = bosnia and herzegovina
trinidad, tobago = trinidad and tobago
bahamas = the bahamas
gambia = the gambia
china = people s republic of china
bombay = mumbai
calcutta = kolkata
madras = chennai
peking = beijing
saigon = ho chi minh city
kiev = kyiv
kyiv = kiev
constantinople = istanbul
"""
_TYPES = """
concept, term
movie, film, motion picture, flick, picture
country, nation, sovereign state, state
city, town, municipality
person, human, people, individual, somebody
company, firm, business, enterprise, corporation, organization, organisation
song, track, single, tune
album, record
band, group, musical group, music group
book, novel, literary work, written work
author, writer
singer, vocalist
musician, musical artist, recording artist
tv show, tv series, television show, television series, series, sitcom
game, video game, computer game
language, tongue
currency, money
river, stream, waterway
lake, body of water
mountain, peak, mount
island, isle
continent, landmass
university, college, school
football club, soccer club, soccer team, football team
job, profession, occupation
war, conflict, military conflict
religion, faith
illness, disease, sickness
kind, type, genre
airport, airfield
region, area
province, subdivision, administrative division, administrative region
capital, capital city
time zone, timezone
car, automobile
plane, aircraft, airplane, aeroplane
ship, vessel, boat
employee, worker, staff member, staff, coworker, colleague, team member
customer, client, buyer, purchaser, shopper
supplier, vendor, provider, wholesaler
product, item, article, goods, merchandise
order, purchase
invoice, bill
project, initiative
department, division, unit
office, branch
warehouse, depot, storehouse
shop, store, retailer
ticket, issue, bug, incident
server, machine, host
application, app, software, program, system, service
document, file
user, member, account
account, bank account
transfer, transaction, payment
vehicle, car, lorry, truck
train station, railway station, station, stop
road, street, highway
flat, apartment
house, home, building, property
room, chamber
tenant, renter, lodger
doctor, physician, medic, doc
drug, medicine, medication, remedy
animal, creature, beast
dish, meal, recipe, food
course, class, subject, module
teacher, lecturer, instructor, professor, tutor
student, pupil, learner
paper, article, publication
thesis, dissertation
artwork, work of art, work, painting, sculpture
painting, picture, canvas
artist, painter
museum, gallery
exhibition, exhibit, show
concert, gig
match, game, fixture
team, club, squad, side
player, athlete, sportsperson
coach, trainer
tournament, competition, championship, contest, cup
stadium, arena, ground, venue
monster, enemy, creature, foe
quest, mission
child, kid
relative, family member
law, act, statute
lawyer, attorney, solicitor
award, prize, honour
meeting, appointment
trip, journey, voyage, tour
restaurant, eatery
pupil, kid, schoolchild, child
exam, examination, test
club, society, association
nurse, carer, caregiver
treatment, therapy
surgery, operation
hotel, inn, guesthouse, hostel
booking, reservation
airline, carrier
pilot, aviator
passenger, traveller
line, route
driver, chauffeur, motorist
bicycle, bike
port, harbour, harbor
dock, quay, pier, berth
parcel, package, shipment, consignment
discount, rebate
contract, agreement
loan, credit
shareholder, stockholder
owner, proprietor
landlord, lessor
lease, tenancy
contractor, tradesman, firm
tool, instrument, implement
device, gadget, appliance
error, fault
journal, periodical, magazine
conference, congress, symposium
lab, laboratory
researcher, scientist
experiment, trial
sample, specimen
keeper, zookeeper, caretaker
enclosure, pen, cage, paddock
flower, blossom
bed, plot, patch
pest, vermin
farm, ranch
field, meadow
vineyard, winery
ingredient, foodstuff
cook, chef
sponsor, patron
donor, benefactor
sculpture, statue
spell, charm
kingdom, realm
castle, fortress, stronghold
treaty, pact
temple, shrine
village, hamlet
district, borough, neighbourhood, neighborhood
forest, wood, woodland
coast, shore
power station, power plant
factory, mill
election, poll
court, tribunal
judge, magistrate
crime, offence, offense
police officer, policeman, cop
prison, jail
photograph, photo, picture, image
video, clip
referee, umpire, ref
season, campaign
league, division
task, job, chore
skill, competence
certificate, qualification
candidate, applicant
vacancy, job opening
manager, supervisor
intern, trainee, apprentice
subsidiary, daughter company
competitor, rival
manufacturer, maker, company
landmark, sight, attraction
"""
_IRREGULAR = """
men man, women woman, people person, persons person, children child, feet foot, mice mouse, geese goose, teeth tooth,
oxen ox, dice die, lives life, wives wife, knives knife, wolves wolf, leaves leaf, shelves shelf, halves half,
thieves thief, loaves loaf, series series, species species, aircraft aircraft, criteria criterion,
phenomena phenomenon, fungi fungus, cacti cactus, nuclei nucleus, theses thesis, analyses analysis, crises crisis,
movies movie, cookies cookie, ties tie, pies pie, zombies zombie, genies genie, buses bus, viruses virus,
campuses campus, churches church, heroes hero, potatoes potato, volcanoes volcano, archipelagos archipelago
"""

_ENDINGS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("ian", ("", "ia", "a", "y", "ium", "on", "as", "us", "e", "o")),
    ("ean", ("", "e", "ea", "a", "o")),
    ("an", ("", "a", "e", "o", "as", "os", "ia", "y")),
    ("n", ("",)),
    ("ese", ("", "a", "al", "o", "on", "y", "i")),
    ("ish", ("", "land", "and", "ey", "en", "ain", "ia")),
    ("er", ("", "e")),
    ("ite", ("", "e", "a")),
    ("ine", ("", "e", "a")),
    ("i", ("", "ia", "e", "a")),
)
"""Endings of adjectives and inhabitants, and what a name may have in their place."""
_LINKS = {"ian": "v", "an": "n", "ese": "nl"}
"""Consonants that such endings may have before them: `Peruvian`, `Congolese`."""
STEM = 4
"""Letters of a place's name that its adjective has at least."""


@lru_cache(maxsize=1)
def demonyms() -> dict[str, tuple[str, ...]]:
    """Folded irregular adjectives and inhabitants → names of the place."""
    return dict(_pairs(_DEMONYMS))


@lru_cache(maxsize=1)
def abbreviations() -> dict[str, tuple[str, ...]]:
    """Folded short or other forms → names, in general use."""
    return {word: tuple(name for name in names if name != word) for word, names in _pairs(_ABBREVIATIONS)}


@lru_cache(maxsize=1)
def type_words() -> dict[str, tuple[str, ...]]:
    """Folded singular word for a kind of things → other words for much the same kind."""
    results: dict[str, tuple[str, ...]] = {}
    for line in _TYPES.strip().splitlines():
        group = [word.strip() for word in line.split(",")]
        for word in group:
            results[word] = results.get(word, ()) + tuple(other for other in group if other != word)
    return results


@lru_cache(maxsize=1 << 14)
def place_names(words: str) -> tuple[tuple[str, bool], ...]:
    """(folded name, whether the table of irregular ones has it) of the places that an adjective may belong to.

    words: folded; the last may be a plural.  The names come in the order in which to try them, each once.

    >>> place_names("swiss"), [name for name, _ in place_names("nigerian")][:4]
    ((('switzerland', True),), ['nigeria', 'niger', 'nigera', 'nigere'])
    """
    results: dict[str, bool] = {}
    for form in (words, words[:-1]) if words.endswith("s") else (words,):
        for name in demonyms().get(form, ()):
            results.setdefault(name, True)
    if results:
        return tuple(results.items())
    changed: dict[str, int] = {}
    for form in (words, words[:-1]) if words.endswith("s") and not words.endswith("ss") else (words,):
        for ending, places in _ENDINGS:
            stem = form.removesuffix(ending)
            if stem == form or len(stem) < STEM:
                continue
            linked = len(stem) > STEM and stem[-1] in _LINKS.get(ending, "")
            for root in (stem, stem[:-1]) if linked else (stem,):
                for place in places:
                    letters = len(form) - len(root) + len(place)
                    changed[root + place] = min(letters, changed.get(root + place, letters))
    return tuple((name, False) for name, _ in sorted(changed.items(), key=lambda item: (item[1], item[0])))


@lru_cache(maxsize=1 << 14)
def singulars(words: str) -> tuple[str, ...]:
    """Singular forms that folded words may be the plural of, the likeliest first; the words themselves come first.

    >>> singulars("capital cities"), singulars("glass")
    (('capital cities', 'capital city'), ('glass',))
    """
    head, _, word = words.rpartition(" ")
    results = [words]

    def add(form: str) -> None:
        whole = f"{head} {form}".strip()
        if form and whole not in results:
            results.append(whole)

    if word in _irregular():
        add(_irregular()[word])
    elif len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        if word.endswith("ies"):
            add(word[:-3] + "y")
        elif word.endswith(("ches", "shes", "sses", "xes", "zes", "oes")):
            add(word[:-2])
            add(word[:-1])
        elif word.endswith("ves"):
            add(word[:-1])
            add(word[:-3] + "f")
            add(word[:-3] + "fe")
        else:
            add(word[:-1])
    elif word.endswith("men") and len(word) > 4:
        add(word[:-3] + "man")
    if " of " in words:  # the head of `cities of the world` comes first
        first, _, rest = words.partition(" ")
        for form in singulars(first)[1:]:
            if f"{form} {rest}" not in results:
                results.append(f"{form} {rest}")
    return tuple(results)


@lru_cache(maxsize=1)
def _irregular() -> dict[str, str]:
    pairs = (pair.split() for pair in _IRREGULAR.replace("\n", " ").split(","))
    return {plural: singular for plural, singular in pairs}


def _pairs(table: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    for line in table.strip().splitlines():
        words, _, names = line.partition(" = ")
        result = tuple(fold(name) for name in names.split("|"))
        for word in words.split(","):
            yield fold(word), result
