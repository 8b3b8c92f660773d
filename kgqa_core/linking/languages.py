"""In which language a question is asked, by its script and by words of grammar."""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import cache

from kgqa_core.linking.words import BY_LANGUAGE, usualness

ENGLISH = "English"
_ASKING = {
    "German": """
gibt gab wieviel wieviele viele viel wen wem wessen woher wohin weshalb wieso deren dessen diese dieser dieses diesem
diesen jeder jede jedes alle allen aller beide beiden beim ins ans seine seiner seinem seinen seines ihrem ihren ihrer
ihres einige mehr weniger meisten wenigsten zwischen gegen ohne bis während seit heißt hieß heißen liegt liegen kann
können konnte soll muss darf mir uns euch mich sich damals jemals zuletzt zuerst ersten erste erster nenne zeige zeig
sag nenn bitte gewesen worden etwa denn sowie sowohl kommt kam lebt starb geboren gehört größte höchste jüngste
man spricht sprechen gesprochen
""",
    "French": """
quelles lequel laquelle lesquels lesquelles combien cette ceux celle celui s n c j m t qu y aux plus moins tous toutes
tout toute fait font faire peut deux premier première fut furent été dont se ses mes tes nos vos pendant depuis jusqu
vers après avant aussi lors est-ce donne donnez liste nomme montre né née nés mort morte appelle trouve a-t-il
""",
    "Spanish": """
cuántas cuánta cuál cuáles cual cuales cuantos cuantas cuando donde quiénes qué más menos hay tiene tienen tuvo entre
este esta estos estas ese esa hasta desde sobre todos todas todo fue está están han había también muy me te nos cuyo
cuya cuyos cuyas primer primera primero durante según dime nombra lista cómo nació murió hizo llama encuentra
""",
    "Italian": """
quanti quante quanta qual quale quali cos chi dove com quand c l d dell all dall nell sull sul sulla sui sulle dai dagli
dalle al allo alla ai agli alle nei negli nella nelle nello degli dello più meno ha hanno aveva stato stata stati state
questo questa questi queste quello quella tutti tutte anche ci si sua suo suoi loro fra durante dopo prima primo elenca
dimmi nato nata morto chiama trova qual'è viene fatto
""",
    "Portuguese": """
quantos quantas quanto quanta qual quais quem onde quando que há pela pelo pelas pelos à ao aos às num numa dele dela
deles delas este esta esse essa isso mais menos também já você vocês está estão tinha foi teve seus suas até desde sobre
entre todos todas todo muito primeiro primeira durante segundo após antes depois cujo cuja diga liste nasceu morreu fez
chama fica
""",
    "Dutch": """
hoeveel welk wiens deze dit zijn haar hun hem zij jij wij jullie ben bent kan kunnen moet zal zullen ook nog meer minder
meest tussen tegen zonder tijdens sinds tot na naar bij er ooit alle geef noem toon heet ligt eerste geboren gestorven
komt gaat
""",
    "Swedish": """
vilket hur många mycket finns från eller inte hon han de dem deras hans hennes sig sin sitt sina är har hade kan skall
ska också mer mest mellan utan under efter före vid om när där heter ligger född första
""",
    "Danish": """
hvem hvad hvor hvilken hvilket hvilke hvornår hvordan hvorfor er og af på til den det en et der som har med fra ikke
mange meget også deres hans hendes sin født største heter hedder
""",
    "Polish": """
kto co gdzie kiedy jak jaki jaka jakie który która które ile czy jest są był była było w we z ze na do od po dla i lub
nie się to ten ta te tego tej jego jej ich przez przed oraz największy urodził ilu której którego
""",
    "Romanian": """
cine ce unde când cum care câți câte cât este sunt a al ale au fost la din pe cu de în și sau nu se lui lor mai cel cea
cei cele pentru prin despre după cărui cărei născut
""",
    "Turkish": """
kim kimdir nedir ne nerede nerededir hangi kaç nasıl neden ve veya bir bu şu o mi mı mu mü için ile en olan olarak kimin
nereli zaman hangisi hangisidir kadar tane
""",
}
"""Words that tell a language besides its words of grammar, for they ask or are in questions of it alone."""
_FIRST = frozenset(
    """
wer wann wo warum wie welche welcher welches welchem welchen wieviel wieviele wen wem wessen woher nenne zeige quel
quelle quels quelles combien où comment pourquoi quién quiénes cuál cuáles cuándo dónde cuánto cuántos cuántas qué
quale quali qual quanti quante perché quem quais quantos quantas onde quando welke hoeveel waar kto gdzie kiedy hangi
hvem hvad vem cine
    """.split()
)
"""Words that begin a question of another language than English, and no English one."""
_ENGLISH_FIRST = frozenset("who whose whom what which where when how why".split())
_BEGINS = 2
"""Words for which one counts that begins a question."""
_USUAL = frozenset(("German", "French", "Spanish", "Italian"))
"""Languages that are assumed of several with as many words."""
_LETTERS = {
    "German": "ßäöü", "French": "çœêèàùûîâëï", "Spanish": "ñ", "Italian": "ìò", "Portuguese": "ãõ", "Swedish": "å",
    "Danish": "øæ", "Polish": "łąęśżźćń", "Romanian": "țșăţş", "Turkish": "ığş",
}  # fmt: skip
"""Letters of a word in lower case that speak for a language."""
_SCRIPTS = (
    ("Japanese", "\u3040-\u30ff\u31f0-\u31ff"), ("Korean", "\u1100-\u11ff\uac00-\ud7af"),
    ("Chinese", "\u2e80-\u2fdf\u3400-\u9fff\uf900-\ufaff\U00020000-\U000323af"), ("Persian", "پچژگ"),
    ("Arabic", "\u0600-\u06ff\u0750-\u077f"), ("Ukrainian", "іїєґ"), ("Russian", "\u0400-\u04ff"),
    ("Greek", "\u0370-\u03ff\u1f00-\u1fff"), ("Hebrew", "\u0590-\u05ff"), ("Hindi", "\u0900-\u097f"),
    ("Bengali", "\u0980-\u09ff"), ("Tamil", "\u0b80-\u0bff"), ("Telugu", "\u0c00-\u0c7f"), ("Thai", "\u0e00-\u0e7f"),
    ("Armenian", "\u0530-\u058f"), ("Georgian", "\u10a0-\u10ff"),
)  # fmt: skip
"""Languages by what only their script has, the more special first."""
_OTHER_SCRIPT = re.compile(f"[{''.join(letters for _, letters in _SCRIPTS)}]")
_LATIN = re.compile(r"[a-zà-öø-ÿ\u0100-\u024f]", re.IGNORECASE)
_WORD = re.compile(r"[^\W\d_]+")


def language_of(text: str) -> str | None:
    """The language that a question is asked in, by its name in English; None where nothing tells it.

    Another script tells where it has most letters, and else the most words of grammar, of which names have none: a
    capital within a sentence begins a name.

    >>> language_of("In welcher Abteilung ist Heike Sand?"), language_of("Who wrote Les Misérables?")
    ('German', 'English')
    >>> language_of("挪威的首都是哪里？"), language_of("Oslo")
    ('Chinese', None)
    """
    words = [one[0] for one in _WORD.finditer(text)]
    shouted = text.isupper()
    words = [word.lower() for n, word in enumerate(words) if n == 0 or shouted or word[0].islower()]
    tables, english = _tables(), BY_LANGUAGE[ENGLISH]
    other, asked = len(_OTHER_SCRIPT.findall(text)), any(word in english for word in words)
    if other and (other > len(_LATIN.findall(text)) or not asked):
        return script_language(text)
    first, counts = words[:1], {name: sum(word in own for word in words) for name, own in tables.items()}
    for name, letters in _LETTERS.items():
        counts[name] += any(letter in word for word in words for letter in letters)
        counts[name] += _BEGINS * any(word in _FIRST and word in tables[name] for word in first)
    name = max(counts, key=lambda one: (counts[one], one in _USUAL))
    found, own = counts[name], tables[name]
    usual = sum(word in english or (word not in own and len(word) > 2 and usualness(word) > 0) for word in words)
    usual += _BEGINS * any(word in _ENGLISH_FIRST for word in first)
    if text.startswith(("¿", "¡")):
        return "Spanish"
    if found > max(usual, 1):
        return name
    return ENGLISH if asked else None


def are_in(words: Collection[str], language: str) -> bool:
    """Whether the words of a graph's labels may be in a language: some have its script, or fewer than half are English.

    words: in lower case.
    """
    if any(name == language for name, _ in _SCRIPTS):
        return any(script_language(word) == language for word in words)
    return 2 * sum(usualness(word) > 0 for word in words) < len(words)


def script_language(text: str) -> str | None:
    """A language of the script that a text has beside Latin; None for Latin alone.

    >>> script_language("名前は"), script_language("Αθήνα"), script_language("Oslo")
    ('Japanese', 'Greek', None)
    """
    return next((name for name, letters in _patterns() if letters.search(text)), None)


@cache
def _patterns() -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple((name, re.compile(f"[{letters}]")) for name, letters in _SCRIPTS)


@cache
def _tables() -> dict[str, frozenset[str]]:
    """Words that tell a language, in lower case, by language; English and those of other scripts left out."""
    names = {*BY_LANGUAGE, *_ASKING} - {ENGLISH, *(name for name, _ in _SCRIPTS)}
    return {
        name: BY_LANGUAGE.get(name, frozenset()) | frozenset(_ASKING.get(name, "").split()) for name in sorted(names)
    }
