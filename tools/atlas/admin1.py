"""Which GeoNames admin1 code is which ISO 3166-2 subdivision, for the countries where we can vouch for it.

GeoNames writes ISO codes for few countries; for most it writes FIPS or national codes, which can look like ISO codes
and mean another place (JP.01 is Aichi, JP-01 is Hokkaido).  So cities are linked to subdivisions only in the countries
listed here, and the build stops when one of the anchor cities does not land where it must.
"""

from __future__ import annotations

ISO_COUNTRIES = ("US", "CH", "BE", "GB", "ME")
"""Countries whose admin1 codes are the ISO codes."""


def _table(text: str) -> dict[str, str]:
    return dict(pair.split("=") for pair in text.split())


ADMIN1: dict[str, dict[str, str]] = {
    "AT": _table("01=1 02=2 03=3 04=4 05=5 06=6 07=7 08=8 09=9"),
    "AU": _table("01=ACT 02=NSW 03=NT 04=QLD 05=SA 06=TAS 07=VIC 08=WA"),
    "BR": _table(
        "01=AC 02=AL 03=AP 04=AM 05=BA 06=CE 07=DF 08=ES 11=MS 13=MA 14=MT 15=MG 16=PA 17=PB 18=PR 20=PI 21=RJ 22=RN "
        "23=RS 24=RO 25=RR 26=SC 27=SP 28=SE 29=GO 30=PE 31=TO"
    ),
    "CA": _table("01=AB 02=BC 03=MB 04=NB 05=NL 07=NS 08=ON 09=PE 10=QC 11=SK 12=YT 13=NT 14=NU"),
    "CN": _table(
        "01=AH 02=ZJ 03=JX 04=JS 05=JL 06=QH 07=FJ 08=HL 09=HA 10=HE 11=HN 12=HB 13=XJ 14=XZ 15=GS 16=GX 18=GZ 19=LN "
        "20=NM 21=NX 22=BJ 23=SH 24=SX 25=SD 26=SN 28=TJ 29=YN 30=GD 31=HI 32=SC 33=CQ"
    ),
    "DE": _table("01=BW 02=BY 03=HB 04=HH 05=HE 06=NI 07=NW 08=RP 09=SL 10=SH 11=BB 12=MV 13=SN 14=ST 15=TH 16=BE"),
    "ES": _table(
        "07=IB 27=RI 29=MD 31=MC 32=NC 34=AS 39=CB 51=AN 52=AR 53=CN 54=CM 55=CL 56=CT 57=EX 58=GA 59=PV 60=VC"
    ),
    "FR": _table("11=IDF 24=CVL 27=BFC 28=NOR 32=HDF 44=GES 52=PDL 53=BRE 75=NAQ 76=OCC 84=ARA 93=PAC"),
    "IN": _table(
        "01=AN 02=AP 03=AS 05=CH 07=DL 09=GJ 10=HR 11=HP 12=JK 13=KL 16=MH 17=MN 18=ML 19=KA 20=NL 21=OD 22=PY "
        "23=PB 24=RJ 25=TN 26=TR 28=WB 29=SK 30=AR 31=MZ 33=GA 34=BR 35=MP 36=UP 37=CG 38=JH 39=UK 40=TS"
    ),
    "IT": _table(
        "01=65 02=77 03=78 04=72 05=45 06=36 07=62 08=42 09=25 10=57 11=67 12=21 13=75 14=88 15=82 16=52 17=32 18=55 "
        "19=23 20=34"
    ),
    "JP": _table(
        "01=23 02=05 03=02 04=12 05=38 06=18 07=40 08=07 09=21 10=10 11=34 12=01 13=28 14=08 15=17 16=03 17=37 18=46 "
        "19=14 20=39 21=43 22=26 23=24 24=04 25=45 26=20 27=42 28=29 29=15 30=44 31=33 32=27 33=41 34=11 35=25 36=32 "
        "37=22 38=09 39=36 40=13 41=31 42=16 43=30 44=06 45=35 46=19 47=47"
    ),
    "MX": _table(
        "01=AGU 02=BCN 03=BCS 04=CAM 05=CHP 06=CHH 07=COA 08=COL 09=CMX 10=DUR 11=GUA 12=GRO 13=HID 14=JAL 15=MEX "
        "16=MIC 17=MOR 18=NAY 19=NLE 20=OAX 21=PUE 22=QUE 23=ROO 24=SLP 25=SIN 26=SON 27=TAB 28=TAM 29=TLA 30=VER "
        "31=YUC 32=ZAC"
    ),
    "NL": _table("01=DR 02=FR 03=GE 04=GR 05=LI 06=NB 07=NH 09=UT 10=ZE 11=ZH 15=OV 16=FL"),
    "PL": _table("72=02 73=04 74=10 75=06 76=08 77=12 78=14 79=16 80=18 81=20 82=22 83=24 84=26 85=28 86=30 87=32"),
    "ZA": _table("02=KZN 03=FS 05=EC 06=GP 07=MP 08=NC 09=LP 10=NW 11=WC"),
}
"""admin1 code to the part of the ISO 3166-2 code after the hyphen."""

ANCHORS: tuple[tuple[str, str, str], ...] = (
    ("US", "Houston", "TX"), ("US", "Anchorage", "AK"), ("US", "Orlando", "FL"), ("US", "Boise", "ID"),
    ("CH", "Zürich", "ZH"), ("CH", "Lugano", "TI"), ("CH", "Lausanne", "VD"),
    ("BE", "Antwerp", "VLG"), ("BE", "Liège", "WAL"), ("GB", "Glasgow", "SCT"), ("GB", "Cardiff", "WLS"),
    ("GB", "Belfast", "NIR"), ("GB", "Manchester", "ENG"), ("ME", "Podgorica", "16"),
    ("AT", "Graz", "6"), ("AT", "Innsbruck", "7"), ("AT", "Linz", "4"), ("AT", "Klagenfurt am Wörthersee", "2"),
    ("AT", "Bregenz", "8"), ("AT", "Vienna", "9"),
    ("AU", "Sydney", "NSW"), ("AU", "Melbourne", "VIC"), ("AU", "Brisbane", "QLD"), ("AU", "Perth", "WA"),
    ("AU", "Adelaide", "SA"), ("AU", "Hobart", "TAS"), ("AU", "Darwin", "NT"), ("AU", "Canberra", "ACT"),
    ("BR", "Salvador", "BA"), ("BR", "Curitiba", "PR"), ("BR", "Recife", "PE"), ("BR", "Fortaleza", "CE"),
    ("BR", "Porto Alegre", "RS"), ("BR", "Manaus", "AM"), ("BR", "Belo Horizonte", "MG"), ("BR", "Goiânia", "GO"),
    ("BR", "Natal", "RN"), ("BR", "Florianópolis", "SC"), ("BR", "Cuiabá", "MT"), ("BR", "Aracaju", "SE"),
    ("CA", "Calgary", "AB"), ("CA", "Winnipeg", "MB"), ("CA", "Halifax", "NS"), ("CA", "Saskatoon", "SK"),
    ("CA", "Vancouver", "BC"), ("CA", "Toronto", "ON"), ("CA", "Montréal", "QC"), ("CA", "Moncton", "NB"),
    ("CN", "Nanjing", "JS"), ("CN", "Hangzhou", "ZJ"), ("CN", "Guangzhou", "GD"), ("CN", "Chengdu", "SC"),
    ("CN", "Wuhan", "HB"), ("CN", "Changsha", "HN"), ("CN", "Harbin", "HL"), ("CN", "Kunming", "YN"),
    ("CN", "Zhengzhou", "HA"), ("CN", "Shijiazhuang", "HE"), ("CN", "Taiyuan", "SX"), ("CN", "Jinan", "SD"),
    ("CN", "Lanzhou", "GS"), ("CN", "Xining", "QH"), ("CN", "Lhasa", "XZ"), ("CN", "Hefei", "AH"),
    ("DE", "Munich", "BY"), ("DE", "Stuttgart", "BW"), ("DE", "Hannover", "NI"), ("DE", "Köln", "NW"),
    ("DE", "Dresden", "SN"), ("DE", "Erfurt", "TH"), ("DE", "Kiel", "SH"), ("DE", "Mainz", "RP"),
    ("DE", "Potsdam", "BB"), ("DE", "Schwerin", "MV"), ("DE", "Magdeburg", "ST"), ("DE", "Wiesbaden", "HE"),
    ("DE", "Saarbrücken", "SL"), ("DE", "Berlin", "BE"), ("DE", "Hamburg", "HH"), ("DE", "Bremen", "HB"),
    ("ES", "Sevilla", "AN"), ("ES", "Zaragoza", "AR"), ("ES", "Barcelona", "CT"), ("ES", "Bilbao", "PV"),
    ("ES", "Valladolid", "CL"), ("ES", "Toledo", "CM"), ("ES", "A Coruña", "GA"), ("ES", "Santander", "CB"),
    ("ES", "Oviedo", "AS"), ("ES", "Murcia", "MC"), ("ES", "Logroño", "RI"), ("ES", "Badajoz", "EX"),
    ("FR", "Lyon", "ARA"), ("FR", "Marseille", "PAC"), ("FR", "Toulouse", "OCC"), ("FR", "Bordeaux", "NAQ"),
    ("FR", "Nantes", "PDL"), ("FR", "Rennes", "BRE"), ("FR", "Lille", "HDF"), ("FR", "Strasbourg", "GES"),
    ("FR", "Dijon", "BFC"), ("FR", "Tours", "CVL"), ("FR", "Le Havre", "NOR"), ("FR", "Versailles", "IDF"),
    ("IN", "Mumbai", "MH"), ("IN", "Bengaluru", "KA"), ("IN", "Chennai", "TN"), ("IN", "Kolkata", "WB"),
    ("IN", "Jaipur", "RJ"), ("IN", "Lucknow", "UP"), ("IN", "Patna", "BR"), ("IN", "Bhopal", "MP"),
    ("IN", "Hyderabad", "TS"), ("IN", "Visakhapatnam", "AP"), ("IN", "Ranchi", "JH"), ("IN", "Raipur", "CG"),
    ("IN", "Dehradun", "UK"), ("IN", "Imphal", "MN"), ("IN", "Shillong", "ML"), ("IN", "Ahmedabad", "GJ"),
    ("IT", "Milan", "25"), ("IT", "Turin", "21"), ("IT", "Naples", "72"), ("IT", "Palermo", "82"),
    ("IT", "Genoa", "42"), ("IT", "Bologna", "45"), ("IT", "Bari", "75"), ("IT", "Florence", "52"),
    ("IT", "Venice", "34"), ("IT", "Trieste", "36"), ("IT", "Perugia", "55"), ("IT", "Cagliari", "88"),
    ("JP", "Nagoya", "23"), ("JP", "Sapporo", "01"), ("JP", "Kobe", "28"), ("JP", "Yokohama", "14"),
    ("JP", "Sendai", "04"), ("JP", "Matsuyama", "38"), ("JP", "Mito", "08"), ("JP", "Naha", "47"),
    ("JP", "Kanazawa", "17"), ("JP", "Takamatsu", "37"), ("JP", "Utsunomiya", "09"), ("JP", "Matsue", "32"),
    ("MX", "Guadalajara", "JAL"), ("MX", "Monterrey", "NLE"), ("MX", "Tijuana", "BCN"), ("MX", "Cancún", "ROO"),
    ("MX", "Mérida", "YUC"), ("MX", "Acapulco de Juárez", "GRO"), ("MX", "Culiacán", "SIN"),
    ("MX", "Hermosillo", "SON"),
    ("NL", "Amsterdam", "NH"), ("NL", "Rotterdam", "ZH"), ("NL", "Eindhoven", "NB"), ("NL", "Maastricht", "LI"),
    ("NL", "Arnhem", "GE"), ("NL", "Leeuwarden", "FR"), ("NL", "Assen", "DR"), ("NL", "Zwolle", "OV"),
    ("PL", "Wrocław", "02"), ("PL", "Kraków", "12"), ("PL", "Poznań", "30"), ("PL", "Gdańsk", "22"),
    ("PL", "Szczecin", "32"), ("PL", "Katowice", "24"), ("PL", "Lublin", "06"), ("PL", "Białystok", "20"),
    ("ZA", "Durban", "KZN"), ("ZA", "Cape Town", "WC"), ("ZA", "Johannesburg", "GP"), ("ZA", "Bloemfontein", "FS"),
    ("ZA", "Kimberley", "NC"), ("ZA", "Polokwane", "LP"), ("ZA", "East London", "EC"),
)  # fmt: skip
"""(country, city, subdivision): the largest city of that name must be linked so, else the build stops."""


def iso_code(country: str, admin1: str) -> str | None:
    """ISO 3166-2 code of a GeoNames admin1 code, `US-TX` for `("US", "TX")`; None where we cannot vouch for it."""
    if not admin1:
        return None
    if country in ISO_COUNTRIES:
        return f"{country}-{admin1}"
    part = ADMIN1.get(country, {}).get(admin1)
    return f"{country}-{part}" if part else None
