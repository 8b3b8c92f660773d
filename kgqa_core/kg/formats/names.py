"""Names, one a line: `key<TAB>name`, or `key<TAB>name<TAB>language`.

A file without a third column has the language that its name holds (`labels.en.tsv`), or none.  Its name also says
whether the names are aliases or descriptions (`aliases.tsv`); otherwise they are labels.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import polars as pl

from kgqa_core.config import KgOptions
from kgqa_core.kg.formats.api import FormatSpec
from kgqa_core.kg.formats.base import BLANKS, LITERAL, PLAIN, STATEMENTS, StatementBatch, divided, filled, odd_text
from kgqa_core.kg.formats.source import Block, Source
from kgqa_core.kg.vocabulary import ALIAS, DESCRIPTION, LABEL, STRING

LANGUAGES = frozenset(
    (
        "aa ab ae af ak am an ar as av ay az ba be bg bh bi bm bn bo br bs ca ce ch co cr cs cu cv cy da de dv dz ee "
        "el en eo es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu hy hz ia id ie ig ii ik io is "
        "it iu ja jv ka kg ki kj kk kl km kn ko kr ks ku kv kw ky la lb lg li ln lo lt lu lv mg mh mi mk ml mn mr ms "
        "mt my na nb nd ne ng nl nn no nr nv ny oc oj om or os pa pi pl ps pt qu rm rn ro ru rw sa sc sd se sg si sk "
        "sl sm sn so sq sr ss st su sv sw ta te tg th ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh yi "
        "yo za zh zu"
    ).split()
)
"""Codes of ISO 639-1."""

_TAG = r"^[A-Za-z]{2,8}(?:-[A-Za-z0-9]{1,8})*$"
_HEADER = {"label", "name", "alias", "description", "text", "title"}


class Names:
    """Reader of names."""

    name = "names"

    def sniff(self, lines: list[str], options: KgOptions) -> float:
        """Share of the lines with a key and a name, and at most a language behind them."""
        return sum(_is_name(line) for line in lines) / max(1, len(lines))

    def read(self, source: Source, options: KgOptions) -> Iterator[StatementBatch]:
        """A statement for each name."""
        predicate, language = role_in_file_name(source.path.name)
        for block in source.blocks():
            yield read_block(block, predicate, language)


def _is_name(line: str) -> bool:
    key, name, language = [*line.split("\t"), "", ""][:3]
    return bool(key and name) and line.count("\t") < 3 and (not language or re.fullmatch(_TAG, language) is not None)


def role_in_file_name(name: str) -> tuple[str, str]:
    """The predicate of a file's names, and their language or an empty string, as the file's name has them."""
    words = re.split(r"[._]", name.lower())
    predicate = ALIAS if {"alias", "aliases"} & set(words) else LABEL
    predicate = DESCRIPTION if {"description", "descriptions"} & set(words) else predicate
    language = next((word for word in words[1:] if word.split("-")[0] in LANGUAGES and re.fullmatch(_TAG, word)), "")
    return predicate, language


def read_block(block: Block, predicate: str, language: str) -> StatementBatch:
    """The names of some lines."""
    text = pl.col("text")
    parts = block.lines.with_columns(
        n=text.str.count_matches("\t", literal=True) + 1, f=text.str.splitn("\t", 3)
    ).unnest("f")
    parts = parts.with_columns(
        pl.col("field_0", "field_2").str.strip_chars(BLANKS), pl.col("field_1").str.strip_chars(" ")
    )
    key, name, tag = pl.col("field_0"), pl.col("field_1"), pl.col("field_2").fill_null("")
    header = (pl.col("line") == 1) & name.str.to_lowercase().is_in(sorted(_HEADER)) & (pl.col("n") <= 3)
    parts = parts.with_columns(
        ignored=(text.str.strip_chars() == "") | ((pl.col("n") == 1) & text.str.starts_with("#")) | header,
        reason=odd_text("line")
        .when((pl.col("n") < 2) | (pl.col("n") > 3))
        .then(pl.format("{} field(s) instead of key, name and perhaps language", "n"))
        .when((key == "") | (name == ""))
        .then(pl.lit("an empty field"))
        .when((tag != "") & ~tag.str.contains(_TAG))
        .then(pl.format("'{}' is no language", tag)),
    )
    good, rejects = divided(parts.filter(~pl.col("ignored")))
    language_tag = pl.when(tag != "").then(tag).otherwise(pl.lit(language))
    statements = good.select(
        subject=key,
        predicate=pl.lit(predicate),
        object=name,
        kind=pl.lit(LITERAL),
        datatype=pl.when(language_tag != "")
        .then(pl.lit("@") + language_tag.str.to_lowercase())
        .otherwise(pl.lit(STRING)),
    )
    return StatementBatch(
        filled(statements, STATEMENTS, PLAIN),
        pl.concat([block.rejects, rejects]),
        int(parts["ignored"].sum()),
        block.fraction,
    )


FORMAT = FormatSpec(
    Names, "key, tab, name and perhaps a language", words=("labels", "names", "aliases", "descriptions")
)
