"""Refusals of Prefect's server with the name that was probably meant.

Prefect checks the parameters of a run against the schema of its deployment before there is a run. Its refusal lists
all the names that are allowed; the UI shows it as it is.
"""

from __future__ import annotations

import ast
import json
import re
from typing import TYPE_CHECKING, Any

from pipelines.components import did_you_mean
from tasks.servers.amended_answers import amend

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

CHECKED = ("/create_flow_run", "/schedules", "/ui/schemas/validate")
"""Ends of the paths whose answers may refuse parameters."""
RENEWED = "After a change of params.yaml or recipes/, `cursus deploy` renews the choices."
_NOT_ONE_OF = re.compile(r"(?P<value>'[^']*') is not one of (?P<known>\[.*\])", re.DOTALL)


def suggested(text: str) -> str:
    """`text` with `Did you mean …?` where it says that a name is none of those that are allowed."""
    match = _NOT_ONE_OF.search(text)
    if match is None:
        return text
    try:
        value, known = ast.literal_eval(match["value"]), ast.literal_eval(match["known"])
    except (ValueError, SyntaxError):
        return text
    names = [name for name in known if isinstance(name, str)]
    refusal = f"{value!r} is not one of the choices.{did_you_mean(value, names)} {RENEWED}"
    return f"{text[: match.start()]}{refusal}{text[match.end() :]}"


class Suggestions:
    """Middleware that completes the answers at the paths of `CHECKED`."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] == "GET" or not scope["path"].endswith(CHECKED):
            return await self._app(scope, receive, send)
        return await amend(self._app, scope, receive, send, _completed)


def _completed(payload: bytes) -> bytes:
    if b"is not one of" not in payload:
        return payload
    try:
        return json.dumps(_each_text(json.loads(payload))).encode()
    except ValueError:
        return payload


def _each_text(value: Any) -> Any:
    if isinstance(value, str):
        return suggested(value)
    if isinstance(value, list):
        return [text for entry in value for text in _shown(_each_text(entry))]
    if isinstance(value, dict):
        return {key: _each_text(entry) for key, entry in value.items()}
    return value


def _shown(entry: Any) -> list[Any]:
    """An entry of a list of errors, as the UI shows it: of a list to choose from, only errors of the whole field."""
    return list(entry["errors"]) if isinstance(entry, dict) and "index" in entry else [entry]
