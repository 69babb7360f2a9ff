"""Who may use the server of a model: the account of the project, from pages of this server or from programs."""

from __future__ import annotations

import base64
import binascii
import secrets
from typing import TYPE_CHECKING

from tasks.servers.accounts import Account
from tasks.servers.same_origin import SameOriginOnly

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

OPEN = ("/health",)
"""Paths that need no account: whether the server runs, and nothing else."""
LARGEST_REQUEST = 16 * 2**20
"""Bytes of a request."""


def protected(app: ASGIApp, account: Account) -> ASGIApp:
    """`app` behind checks of host and origin, of the account, and of the size of requests."""
    return SameOriginOnly(AccountOnly(BoundedRequests(app), account))


class AccountOnly:
    """Middleware that requires the account, as HTTP Basic, everywhere but at `OPEN`."""

    def __init__(self, app: ASGIApp, account: Account) -> None:
        self._app, self._line = app, account.line.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan" or scope.get("path") in OPEN or self._is_known(scope):
            return await self._app(scope, receive, send)
        if scope["type"] == "websocket":
            return await send({"type": "websocket.close", "code": 1008, "reason": "account required"})
        from starlette.responses import JSONResponse

        refusal = JSONResponse(
            {"detail": "account required: HTTP Basic with the line of .cursus/account"},
            status_code=401,
            headers={"WWW-Authenticate": 'Basic realm="cursus", charset="UTF-8"'},
        )
        return await refusal(scope, receive, send)

    def _is_known(self, scope: Scope) -> bool:
        header = dict(scope.get("headers", [])).get(b"authorization", b"")
        kind, _, encoded = header.partition(b" ")
        if kind.lower() != b"basic":
            return False
        try:
            given = base64.b64decode(encoded, validate=True)
        except binascii.Error:
            return False
        return secrets.compare_digest(given, self._line)


class BoundedRequests:
    """Middleware that refuses requests of more than `LARGEST_REQUEST` bytes, whatever they announce."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        from starlette.responses import JSONResponse

        too_large = JSONResponse(
            {"detail": f"a request has at most {LARGEST_REQUEST:,} bytes; send the examples in several"}, 413
        )
        announced = dict(scope["headers"]).get(b"content-length", b"0")
        if not announced.isdigit() or int(announced) > LARGEST_REQUEST:
            return await too_large(scope, receive, send)
        messages: list[Message] = []
        size = 0
        while True:
            message = await receive()
            messages.append(message)
            size += len(message.get("body", b""))
            if size > LARGEST_REQUEST:
                return await too_large(scope, receive, send)
            if message["type"] != "http.request" or not message.get("more_body"):
                break
        pending = iter(messages)

        async def replayed() -> Message:
            return next(pending, None) or await receive()

        return await self._app(scope, replayed, send)
