"""Questions of any length, by their shape: what a fuzzer over lengths asks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

NAMES = ("France", "Germany", "Zoltan Quibbler", "Night A0", "Norland", "United States of America", "São Tomé")
"""Names of Atlas and of the graph of films."""


def _strange(random: Random, letters: int) -> str:
    return "".join(random.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(letters))


def _words(make: Callable[[Random], str]) -> Callable[[int], str]:
    """A text of a length, of words that are made one after the other."""

    def text(length: int) -> str:
        random, words, size = Random(length), list[str](), 0
        while size < length:
            words.append(make(random))
            size += len(words[-1]) + 1
        return " ".join(words)[:length]

    return text


SHAPES: dict[str, Callable[[int], str]] = {
    "one long word": lambda length: "What is " + _strange(Random(length), length - 8),
    "one letter": lambda length: "A" * length,
    "eight long words": _words(lambda random: _strange(random, 500)),
    "many short words": _words(lambda random: random.choice("what is the of and a country city name in".split())),
    "unknown words": _words(lambda random: _strange(random, 5)),
    "unknown names": _words(lambda random: _strange(random, 6).title()),
    "mentions": _words(lambda random: random.choice(NAMES) + random.choice((",", " and", "", "'s"))),
    "mentions with typing errors": _words(lambda random: random.choice(("Frence", "Germny", "Zoltn", "Quiblber"))),
    "types": _words(lambda random: random.choice(("countries", "cities", "films", "directors", "people", "islands"))),
    "numbers": _words(lambda random: str(random.randrange(10**6))),
    "numbers in words": _words(lambda random: random.choice(("more than", "five million", "1,000", "2 k", "1e9"))),
    "one number": lambda length: "more than " + "7" * (length - 10),
    "codes": _words(lambda random: random.choice((".fr", "+49", "FR", "a.b.c.d", "#1", "@x", "x/y:z-1"))),
    "CJK": _words(lambda random: "法国的首都是什么人口最多城市"[random.randrange(13) :]),
    "CJK without spaces": lambda length: ("法国的首都是什么人口最多的城市" * length)[:length],
    "combining": lambda length: ("e\u0301\u0308" * length)[:length],
    "one combining": lambda length: "What is e" + "\u0301" * (length - 9),
    "emoji": lambda length: "😀" * length,
    "emoji joined": lambda length: ("👩\u200d👩\u200d👧" * length)[:length],
    "right to left": lambda length: ("\u202eعاصمة " * length)[:length],
    "brackets": lambda length: "(" * (length // 2) + ")" * (length // 2),
    "angle brackets": lambda length: ("<http://x/a> " * length)[:length],
    "quotes": lambda length: ("'" * length),
    "apostrophes": _words(lambda random: random.choice(("France's", "o'o'o'o", "’s", "s'"))),
    "white space": lambda length: "Who" + " " * (length - 4) + "?",
    "lines": lambda length: ("a\r\n" * length)[:length],
    "dots": lambda length: ("a." * length)[:length],
    "hyphens": lambda length: ("a-" * length)[:length],
    "digits and commas": lambda length: ("1,234" * length)[:length],
    "digits and spaces": lambda length: ("1 " * length)[:length],
    "negations": _words(lambda random: random.choice(("not", "without", "except", "n't", "no", "neither"))),
    "topics": lambda length: "What is it?",
    "turns": lambda length: "And its capital?",
}  # fmt: skip
"""A text of a length, by shape."""


@dataclass(frozen=True)
class LongQuestion:
    """A question of a length in all."""

    text: str
    topics: tuple[str, ...] = ()
    dialogue: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, shape: str, length: int) -> LongQuestion:
        """That of a shape; of topics and turns there are more the longer it is, of a few hundred characters each."""
        text = SHAPES[shape](length)
        if shape == "topics":
            return cls(text, tuple("France" for _ in range(length // 80)))
        if shape == "turns":
            turn = SHAPES["mentions"](min(length, 4000))
            return cls(text, dialogue=tuple(("user", turn) for _ in range(max(1, length // 62))))
        return cls(text)
