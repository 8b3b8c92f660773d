"""Entity linkers behind HTTP: TAGME (Ferragina and Scaiella 2010), REL (van Hulst et al. 2020), BLINK (Wu et al. 2020).

They name pages of Wikipedia; an entity of the graph is meant by a page whose title is one of its names.  TAGME and REL
find mentions and entities; BLINK is given the mentions that the tagger chose, and ranks their entities.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from kgqa_core.config import LinkerEndpoint
from kgqa_core.errors import ConfigError, EndpointError
from kgqa_core.http_clients import trusted
from kgqa_core.linking.fold import fold
from kgqa_core.linking.mentions import LinkCandidate, Mention, MentionDictionary
from kgqa_core.llm.bounded_http import BoundedClient, NoReply, patiently, run_coroutine
from kgqa_core.llm.faults import is_web, redacted, secrets_of, shown


def key_of(endpoint: LinkerEndpoint) -> str:
    """The key of a linker, empty without one.  Raises ConfigError for one that is not set, and an odd address."""
    if not is_web(endpoint.url):
        raise ConfigError(f"linking.service.url '{shown(endpoint.url)}' is not an http(s) address")
    key = os.environ.get(endpoint.key_env, "") if endpoint.key_env is not None else ""
    if endpoint.key_env is not None and not key:
        raise ConfigError(f"linking.service.key_env: {endpoint.key_env} is not in the environment; set it")
    return key


class LinkerClient:
    """Asks a linker for the entities of texts.  Raises ConfigError as `key_of`."""

    def __init__(self, endpoint: LinkerEndpoint, mentions: MentionDictionary) -> None:
        self.endpoint, self.mentions, self._key = endpoint, mentions, key_of(endpoint)
        self._ask = lru_cache(maxsize=1 << 12)(self._reply)

    def link(self, turns: Sequence[str], own: Sequence[Mention], turn_weight: float) -> list[Mention]:
        """Mentions of turns, in order of turn and place, with their entities in the graph.

        own: the tagger's mentions, of which BLINK is given the chosen ones: its entity comes first, with the link
        probability as ρ, for its scores are no probabilities; one that it finds nothing for stays as it is.
        Raises EndpointError when the linker does not answer, or not as it should.
        """
        if self.endpoint.api == "blink":
            return self._ranked(turns, own)
        results = []
        for turn, text in enumerate(turns):
            for start, end, title, rho, probability in self._annotations(text) if text.strip() else ():
                if candidates := self._candidates(title, rho * turn_weight**turn):
                    results.append(Mention(start, end, text[start:end], turn, candidates, True, round(probability, 6)))
        return sorted(results, key=lambda mention: (mention.turn, mention.start, mention.end))

    def _candidates(self, title: str, rho: float) -> tuple[LinkCandidate, ...]:
        """Entities that have a page's title as their whole name, the most common first, each with its share of ρ."""
        known, name = self.mentions, title.replace("_", " ").strip()
        for spelt in (name, re.sub(r"\s*\([^()]*\)$", "", name)):
            if (number := known.find_whole(fold(spelt))) >= 0:
                pairs = known.candidates(number)[: known.whole_candidates(number)]
                pairs = [pair for pair in pairs if known.labels[pair[0]] == spelt] or pairs
                top = max(share for _, share in pairs) or 1.0
                return tuple(
                    LinkCandidate(i, known.keys[i], known.labels[i], round(share, 6), round(rho * share / top, 6))
                    for i, share in pairs
                )
        return ()

    def _annotations(self, text: str) -> Iterator[tuple[int, int, str, float, float]]:
        """What TAGME or REL finds in a text: start, end, title of a page, ρ and link probability, in [0, 1].

        Entries that do not fit the text are left out.
        """
        if self.endpoint.api == "tagme":
            form = {"text": text, "lang": self.endpoint.language} | ({"gcube-token": self._key} if self._key else {})
            rows = self._ask("data", "annotations", json.dumps(form))
        else:
            rows = self._ask("json", "", json.dumps({"text": text, "spans": []}))
        for row in rows:
            try:
                if isinstance(row, dict):
                    start, end, spot, title = int(row["start"]), int(row["end"]), row.get("spot"), row["title"]
                    scores = [row["rho"], row.get("link_probability", 1)]
                else:
                    start, length, spot, title, *scores = row
                    end = start + length
                rho, probability = (float(score) for score in scores[:2])
                place = _place(text, start, end, spot)
            except (KeyError, TypeError, ValueError, OverflowError):
                continue
            sure = math.isfinite(rho) and math.isfinite(probability) and min(rho, probability) >= 0
            if place is not None and sure and isinstance(title, str) and title != "NIL":
                yield *place, title, min(rho, 1.0), min(probability, 1.0)

    def _ranked(self, turns: Sequence[str], own: Sequence[Mention]) -> list[Mention]:
        asked = [mention for mention in own if mention.chosen]
        samples = [
            {
                "label": "unknown", "label_id": -1, "context_left": turns[one.turn][: one.start], "mention": one.text,
                "context_right": turns[one.turn][one.end :], "start_pos": one.start, "end_pos": one.end, "sent_idx": 0,
            }
            for one in asked
        ]  # fmt: skip
        rows = self._ask("json", "linked_entities", json.dumps(samples)) if samples else []
        titles = {row["idx"]: row.get("entity_title") for row in rows if isinstance(row, dict) and "idx" in row}
        ranked = {}
        for number, mention in enumerate(asked):
            if first := self._candidates(str(titles.get(number) or ""), mention.link_probability):
                ids, least = {each.entity for each in first}, first[-1].rho
                rest = [
                    replace(each, rho=min(each.rho, least)) for each in mention.candidates if each.entity not in ids
                ]
                ranked[id(mention)] = replace(mention, candidates=(*first, *rest), coherence=0.0)
        return [ranked.get(id(mention), mention) for mention in own]

    def _reply(self, kind: str, field: str, body: str) -> list[Any]:
        """The list in a reply, or in a field of it.  kind: how the body is sent, as `data` of a form or as `json`."""

        def read(reply: Any) -> list[Any]:
            if reply.status_code != 200:
                raise NoReply(f"status {reply.status_code}")
            try:
                held = json.loads(reply.content)
            except (ValueError, RecursionError):
                raise ValueError("a reply that is no JSON") from None
            rows = held.get(field) if field and isinstance(held, dict) else held
            if not isinstance(rows, list):
                raise NoReply(f"a reply without {field or 'a list'}")
            return rows

        url, retries = self.endpoint.url, self.endpoint.retries
        try:
            return patiently(lambda: run_coroutine(self._post(kind, json.loads(body))), read, retries)
        except NoReply as failure:
            raise EndpointError(
                f"the entity linker at {shown(url)} does not answer as {self.endpoint.api} does: "
                f"{redacted(str(failure), [self._key, *secrets_of(url)])}; check linking.service, or leave it out to "
                "link by the graph's own names"
            ) from None

    async def _post(self, kind: str, body: Any) -> Any:
        seconds = self.endpoint.timeout_seconds
        bearer = self._key and self.endpoint.api != "tagme"
        async with BoundedClient(
            reply_bytes=int(self.endpoint.max_reply_mb * 2**20), setting="linking.service.max_reply_mb",
            verify=trusted(), timeout=seconds,
            headers={"Authorization": f"Bearer {self._key}"} if bearer else {},
        ) as client, asyncio.timeout(seconds):  # fmt: skip
            return await client.post(self.endpoint.url, **{kind: body})


def _place(text: str, start: int, end: int, spot: object) -> tuple[int, int] | None:
    """Where a mention is in its text: as a linker says, or, for some count in UTF-16, the nearest that is written so.

    >>> _place("😀 obama", 3, 8, "Obama"), _place("obama", 0, 9, "Oslo"), _place("obama", 0, 5, None)
    ((2, 7), None, (0, 5))
    """
    inside = 0 <= start < end <= len(text)
    if not isinstance(spot, str) or not spot or (inside and text[start:end].casefold() == spot.casefold()):
        return (start, end) if inside else None
    found = [match.span() for match in re.finditer(re.escape(spot), text, re.IGNORECASE)]
    return min(found, key=lambda place: abs(place[0] - start), default=None)
