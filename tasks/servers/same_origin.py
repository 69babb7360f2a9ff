"""A check of who asks, in front of Prefect's and MLflow's servers.

A page in the user's browser reaches loopback, too: directly (cross-site requests, websockets) or by a name that
resolves to 127.0.0.1 (DNS rebinding). Prefect itself answers any `Host` and any `Origin`; MLflow trusts every origin on
loopback, also a page of another user's program.
"""

from __future__ import annotations

import ipaddress
import os
import socket
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

ALLOWED_HOSTS = "CURSUS_ALLOWED_HOSTS"
"""Environment variable: names, separated by commas, by which browsers on other machines reach the servers."""
REFUSED_HOST = "refused: this server is not known by that name (CURSUS_ALLOWED_HOSTS lists further ones)"
REFUSED_ORIGIN = "refused: the request comes from a page of another origin"


class SameOriginOnly:
    """Middleware that refuses requests for a host name that is not this machine's, and from pages of other origins.

    An address is accepted as a host: only a name can be made to resolve elsewhere. Requests without an `Origin` are
    those of programs, and a page's own reads: they need the account.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app, self._names = app, own_names()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            return await self._app(scope, receive, send)
        refusal = self._refusal(scope)
        if refusal is None:
            return await self._app(scope, receive, send)
        if scope["type"] == "websocket":
            return await send({"type": "websocket.close", "code": 1008, "reason": refusal})
        from starlette.responses import PlainTextResponse

        return await PlainTextResponse(refusal, status_code=403)(scope, receive, send)

    def _refusal(self, scope: Scope) -> str | None:
        headers = {name: value.decode("latin-1") for name, value in scope["headers"] if name in (b"host", b"origin")}
        host = headers.get(b"host", "")
        if not is_allowed_host(host, self._names):
            return REFUSED_HOST
        origin = headers.get(b"origin")
        if origin is not None and urlsplit(origin).netloc.lower() != host.lower():
            return REFUSED_ORIGIN
        return None


def is_allowed_host(host: str, names: frozenset[str]) -> bool:
    """Whether a `Host` header is an address, or one of `names`; with or without a port."""
    try:
        name = urlsplit(f"//{host}").hostname
    except ValueError:
        return False
    if not name:
        return False
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return name.lower() in names
    return True


def own_names() -> frozenset[str]:
    """The names of this machine that a browser may use."""
    listed = os.environ.get(ALLOWED_HOSTS, "").split(",")
    names = {"localhost", socket.gethostname(), *(name.strip() for name in listed)}
    return frozenset(name.lower() for name in names if name)
