"""Whether an endpoint is there, checked without a completion, so that nothing is paid for."""

from __future__ import annotations

import asyncio
import logging

from kgqa_core.config import LlmOptions
from kgqa_core.errors import nearest
from kgqa_core.llm.factory import parse_spec, split_endpoint
from kgqa_core.llm.faults import explain, printable
from kgqa_core.llm.openai_api import OpenAIModel

log = logging.getLogger("kgqa.llm")

REFUSED = (401, 403)


def check_endpoint(spec: str, llm: LlmOptions) -> None:
    """Ask the server of `openai:…` for its models.  Raises EndpointError when nobody is there or the key is refused.

    A server that cannot list its models passes; one that lists others is named in the log, for some list not all.
    """
    _, rest = parse_spec(spec, llm)
    name, endpoint = split_endpoint(rest, llm)
    model = OpenAIModel(name, llm, endpoint)
    from kgqa_core.llm.bounded_http import run_coroutine

    known = run_coroutine(_models(model))
    if known and model.model not in known:
        log.warning(
            "%s lists %d models and '%s' is not among them%s",
            model.address, len(known), model.model, nearest(model.model, known),
        )  # fmt: skip


async def _models(model: OpenAIModel) -> list[str]:
    import httpx2
    import openai

    from kgqa_core.llm.bounded_http import ReplyRefused

    options = model.request_options()
    async with model.client() as client:
        try:
            async with asyncio.timeout(model.llm.timeout_seconds):
                page = await client.models.list(extra_headers=options.get("headers", {}))
                return sorted(printable(str(each.id)) for each in page.data)
        except openai.APIStatusError as fault:
            if fault.status_code in REFUSED:
                raise model.down(explain(fault, model.secrets).message) from None
        except (openai.APIConnectionError, TimeoutError) as fault:
            raise model.down(explain(fault, model.secrets).message) from None
        except ReplyRefused as fault:
            if fault.free:  # a redirect, which a completion would meet too
                raise model.down(explain(fault, model.secrets).message) from None
            log.debug("%s does not list its models: %s", model.address, fault)
        except (
            openai.APIError, httpx2.HTTPError, AttributeError, TypeError, ValueError, RecursionError
        ) as fault:  # fmt: skip
            log.debug("%s does not list its models: %s", model.address, type(fault).__name__)
    return []
