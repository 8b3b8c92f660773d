"""`/docs`: every request of the server with a call to copy, without scripts, made from the OpenAPI description."""

import json
from collections.abc import Mapping
from html import escape
from typing import Any

HEAD = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>kgqa: requests</title><link rel="stylesheet" href="/assets/page.css"></head>
<body><main id="main"><h1>Requests</h1>"""


def api_page(schema: Mapping[str, Any], address: str) -> bytes:
    """A section a request, to the server at `address`; what is sent and received has its schemas in `/openapi.json`."""
    login = ' -H "Authorization: Bearer $KGQA_SERVE_TOKEN"' if {} not in schema["security"] else ""
    parts = [HEAD, f'<p>{escape(schema["info"]["description"])} <a href="/openapi.json">openapi.json</a></p>']
    for path, operations in schema["paths"].items():
        for method, operation in operations.items():
            given = operation.get("parameters", ())
            names = [one["name"] for one in given]
            asked = (one["name"] for one in given if one["in"] == "query" and one["required"])
            query = "&".join(f"{one}={'FILE' if one == 'file' else 'NAME'}" for one in asked)
            call = f"curl{login} '{address}{path.replace('{name}', 'NAME')}{'?' * bool(query)}{query}'"
            body = operation.get("requestBody")
            if body and "application/octet-stream" in body["content"]:
                call += " --data-binary @FILE"
            elif body:
                name = body["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
                model = schema["components"]["schemas"][name]
                names, example = list(model["properties"]), json.dumps(model["examples"][0], ensure_ascii=False)
                call += f" -H 'Content-Type: application/json' \\\n  -d '{example}'"
            replies = " ".join(sorted(operation["responses"]))
            parts.append(
                f'<section class="card"><h2><code>{method.upper()} {escape(path)}</code></h2>'
                f"<p>{escape(operation['summary'])}</p><pre>{escape(call)}</pre>"
                f'<p class="soft">takes {", ".join(names) or "nothing"}; replies {replies}</p>'
                "</section>"
            )
    return "\n".join([*parts, "</main></body></html>"]).encode()
