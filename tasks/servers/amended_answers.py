"""Answers of a server that are changed on their way to the client."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send


async def amend(app: ASGIApp, scope: Scope, receive: Receive, send: Send, change: Callable[[bytes], bytes]) -> None:
    """Have `app` answer a request, and send its answer as `change` returns it. An empty answer stays empty."""
    started: list[Message] = []
    payload = bytearray()

    async def complete(message: Message) -> None:
        if message["type"] == "http.response.start":
            started.append(message)
        if message["type"] != "http.response.body":
            return
        payload.extend(message.get("body", b""))
        if not message.get("more_body"):
            content = change(bytes(payload)) if payload else b""
            (start,) = started
            headers = [(name, value) for name, value in start["headers"] if name.lower() != b"content-length"]
            length = [(b"content-length", str(len(content)).encode())] if content else []
            await send({**start, "headers": [*headers, *length]})
            await send({"type": "http.response.body", "body": content})

    # an answer that is compressed could not be read
    plain = [(name, value) for name, value in scope["headers"] if name != b"accept-encoding"]
    await app({**scope, "headers": plain}, receive, complete)
