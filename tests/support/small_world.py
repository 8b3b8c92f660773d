"""A small world: cities, their countries and currencies, with questions that one and two hops answer."""

from __future__ import annotations

from pathlib import Path

from kgqa_core.datasets.files.question import write_questions
from kgqa_core.dkg.csr import Dkg
from kgqa_core.types import Question

COUNTRIES = 24
RELATIONS = ("capital", "currency", "neighbour")
WORDINGS = {
    ("capital",): ("what is the capital of {}", "which city is {}'s capital", "name the capital city of {}"),
    ("currency",): ("which money is used in {}", "what is the currency of {}", "how do people pay in {}"),
    ("<inv>-capital", "currency"): (
        "which money is used where {} is the capital",
        "what currency has the country governed from {}",
    ),
}


class World:
    """Entities 0..n-1 are countries, then their capitals, then 6 currencies; neighbours form a ring."""

    def __init__(self, folder: Path) -> None:
        n = COUNTRIES
        triples = [(i, 0, n + i) for i in range(n)] + [(i, 1, 2 * n + i % 6) for i in range(n)]
        triples += [(i, 2, (i + 1) % n) for i in range(n)]
        heads, relations, tails = zip(*triples, strict=True)
        self.dkg = Dkg.from_triples(heads, relations, tails, 2 * n + 6, RELATIONS)
        self.dkg_folder = store_dkg(self.dkg, folder / "dkg")
        self.questions = [question for country in range(n) for question in self._about(country)]
        self.questions_folder = folder / "questions"
        self.questions_folder.mkdir()
        write_questions(self.questions_folder, self.questions)

    def _about(self, country: int) -> list[Question]:
        n = COUNTRIES
        split = "train" if country < 14 else "dev" if country < 18 else "test"
        found = []
        for path, wordings in WORDINGS.items():
            topic = n + country if path[0].startswith("<inv>") else country
            answer = n + country if path == ("capital",) else 2 * n + country % 6
            name = f"Town {country}" if topic >= n else f"Land {country}"
            for number, wording in enumerate(wordings):
                found.append(
                    Question(
                        id=f"q{country:02}-{'.'.join(path)}-{number}",
                        text=wording.format(name),
                        split=split,
                        topic_keys=(name,),
                        topic_entities=(topic,),
                        answer_keys=(str(answer),),
                        answers=(answer,),
                        answer_names=((str(answer),),),
                        relation_paths=(path,),
                        hops=len(path),
                    )
                )
        return found


def store_dkg(dkg: Dkg, folder: Path) -> Path:
    """Writes a DKG as the export stage does."""
    folder.mkdir(parents=True)
    dkg.save(folder)
    return folder
