"""Word lists of the alignment: what begins a sentence, what refers back, titles, nationalities."""

from __future__ import annotations

STARTERS = frozenset(
    "he she it they his her its their him them i we you who whom whose which what where when while why how "
    "this that these those the a an one two three some many several most all both each every any no not none other "
    "others another such in on at as for with from by to of about after before since during until among between "
    "through throughout within without under over into around across along upon despite besides like unlike and but "
    "or nor so yet if though although because however additionally also moreover furthermore finally meanwhile "
    "similarly likewise therefore thus then there here now today currently previously formerly later earlier "
    "originally overall together apart alongside including based born located situated known named called "
    "directed written starring released produced founded established played".split()
)
"""Words that begin a sentence without being names, folded."""

TITLES = frozenset(
    "mr mrs ms miss dr prof professor sir dame lord lady king queen prince princess president chancellor "
    "prime minister vice governor senator mayor general captain colonel saint st jr sr ii iii iv vi vii viii "
    "director directors actor actress actors writer writers author film films movie movies tv dvd ceo".split()
)
"""Words that may stand before or behind a name in capitals without being one."""

CALENDAR = frozenset(
    "january february march april may june july august september october november december monday tuesday "
    "wednesday thursday friday saturday sunday ad bc bce ce am pm".split()
)
"""Parts of dates; the dates themselves are compared by value."""

CONNECTORS = frozenset("of the de la le du des del della di da do dos van von der den el al bin for in on at".split())
"""Small words inside names."""

PRONOUNS = frozenset(
    "he she it they his her its their hers theirs him them himself herself itself themselves this these those both "
    "all former latter respectively also each another other others who which same there".split()
)
"""English words by which a sentence refers back to the one before it."""

CHINESE_PRONOUNS = ("他", "她", "它", "其", "该", "此", "这", "那", "并", "也", "还", "同时", "另外", "此外")
"""Chinese words by which a sentence refers back."""

NEVER_FINAL = frozenset(
    "mr mrs ms messrs dr prof gen sen rep gov capt cpt lt col sgt maj rev hon st mt ft vs eg ie cf vol fig approx "
    "mme mlle".split()
)
"""Abbreviations whose full stop never ends a sentence."""

PERHAPS_FINAL = frozenset(
    "jr sr inc ltd co corp bros etc dept est univ assn jan feb mar apr jun jul aug sep sept oct nov dec esq phd llc "
    "plc gmbh ave blvd rd".split()
)
"""Abbreviations whose full stop ends a sentence only where the next word clearly begins one."""

NATIONS = {
    "american": ("america", "united states", "usa", "us"),
    "argentine": ("argentina",),
    "british": ("britain", "united kingdom", "england", "uk", "great britain"),
    "chinese": ("china",),
    "cypriot": ("cyprus",),
    "czech": ("czechia", "czechoslovakia"),
    "dane": ("denmark",),
    "danish": ("denmark",),
    "dutch": ("netherland", "holland"),
    "emirati": ("united arab emirates",),
    "english": ("england",),
    "filipino": ("philippine",),
    "finn": ("finland",),
    "french": ("france",),
    "german": ("germany",),
    "greek": ("greece",),
    "icelandic": ("iceland",),
    "iraqi": ("iraq",),
    "irish": ("ireland",),
    "italian": ("italy",),
    "norwegian": ("norway",),
    "peruvian": ("peru",),
    "pole": ("poland",),
    "polish": ("poland",),
    "portuguese": ("portugal",),
    "scottish": ("scotland",),
    "soviet": ("soviet union", "ussr"),
    "spaniard": ("spain",),
    "spanish": ("spain",),
    "swede": ("sweden",),
    "swedish": ("sweden",),
    "swiss": ("switzerland",),
    "thai": ("thailand",),
    "turkish": ("turkey",),
    "welsh": ("wale", "wales"),
}
"""People and languages whose word shares too little with that of their country, folded and without plural."""

DEMONYM_ENDINGS = frozenset(
    ["", "n", "an", "ian", "ean", "ese", "ish", "i", "ic", "er", "ite", "is", "s", "nian", "vian", "an's", "al", "ni"]
)
"""What a nationality adds to the stem of its country."""
