"""Lists of Prefect's UI that open on a click.

The UI of Prefect 3.8.8 handles a click on the field of a list twice, once at its button and once at the element around
it: the list opens and closes again. Only the arrow at its right end, and the keyboard, open it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tasks.servers.amended_answers import amend

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

SCRIPT = b"""<script>
document.addEventListener("click", (event) => {
  const button = event.isTrusted && event.target.closest(".p-select-button__control");
  if (!button || event.target.closest(".p-tag")) return;
  event.stopPropagation();
  const { clientX, clientY } = event;
  button.parentElement.dispatchEvent(new MouseEvent("click", { bubbles: true, clientX, clientY }));
}, true);
</script>
"""
"""Passes a click on the button of a list to the element around it alone; the tags in it are buttons of their own."""
END = b"</head>"


class OpenLists:
    """Middleware that adds `SCRIPT` to the pages of the UI."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        page = scope["type"] == "http" and any(
            name == b"accept" and b"text/html" in value for name, value in scope["headers"]
        )
        if not page or scope["method"] != "GET" or scope["path"].startswith("/api"):
            return await self._app(scope, receive, send)
        return await amend(self._app, scope, receive, send, lambda page: page.replace(END, SCRIPT + END, 1))
