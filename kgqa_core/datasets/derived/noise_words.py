"""Word lists of `noise`, from general knowledge of English."""

from __future__ import annotations

IMPERATIVES = (
    "list", "name", "give me", "show me", "tell me", "find", "find me", "list all of", "show", "get me", "get",
)  # fmt: skip

BEFORE = (
    "hi,", "hello,", "hey,", "please,", "please tell me:", "can you tell me", "could you tell me", "do you know",
    "i want to know", "i would like to know", "i'd like to know", "tell me,", "tell me", "quick question:", "so,",
    "ok,", "excuse me,", "just wondering,", "i was wondering", "question:", "one more:", "sorry,", "well,", "and",
    "anyone know", "i need to know", "help me out:", "good morning,", "now,", "let me know", "hey there,", "hmm,",
)  # fmt: skip

AFTER = (
    ", please", " please", "?? thanks", ", thanks", " thanks", "? thank you", ", do you know?", ", can you tell me?",
    ", i wonder", " exactly?", " again?", ", any idea?", " - quick", " pls", " thx", "? i forgot", ", by the way?",
)  # fmt: skip

FUNCTION_WORDS = frozenset(
    "what who whom whose which where when why how is are was were be been being do does did has have had the a an of "
    "in on at to from by for with that and there it its their his her this these those me you i we they can could "
    "would should will give list name show tell find please all any as into many much's".split()
)

NUMERALS = {
    "second": "2nd", "third": "3rd", "fourth": "4th", "fifth": "5th", "sixth": "6th", "seventh": "7th",
    "eighth": "8th", "ninth": "9th", "tenth": "10th", "2nd": "second", "3rd": "third", "4th": "fourth",
    "5th": "fifth", "two": "2", "three": "3", "four": "4", "five": "5", "six": "6", "seven": "7", "eight": "8",
    "nine": "9", "ten": "10", "2": "two", "3": "three", "4": "four", "5": "five",
}  # fmt: skip

ABBREVIATIONS = {
    "population": "pop", "government": "govt", "number": "nr", "and": "&", "please": "pls", "you": "u", "are": "r",
    "university": "uni", "department": "dept", "company": "co", "organization": "org", "television": "tv",
    "versus": "vs", "maximum": "max", "minimum": "min", "kilometres": "km", "kilometers": "km", "metres": "m",
    "square": "sq", "language": "lang", "million": "m", "because": "cuz", "thanks": "thx", "with": "w/",
    "without": "w/o", "information": "info", "date of birth": "dob", "people": "ppl", "mountain": "mt",
}  # fmt: skip

NEAR_KEYS = {
    "q": "wa", "w": "qes", "e": "wrd", "r": "etf", "t": "ryg", "y": "tuh", "u": "yij", "i": "uok", "o": "ipl",
    "p": "ol", "a": "qsz", "s": "awdx", "d": "sefc", "f": "drgv", "g": "fthb", "h": "gyjn", "j": "hukm", "k": "jil",
    "l": "kop", "z": "asx", "x": "zsdc", "c": "xdfv", "v": "cfgb", "b": "vghn", "n": "bhjm", "m": "njk",
}  # fmt: skip
"""Letter → the letters next to it on a keyboard."""
