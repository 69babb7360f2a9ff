"""MLflow's server with accounts, behind a check of who asks: the app `cursus` of `mlflow server --app-name`.

It serves this checkout's reports, too, and MLflow's UI with other defaults: model training, the comparison of
executions first, no assistant.
"""

from __future__ import annotations

from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tasks.environment import project_root, state_folder
from tasks.servers.same_origin import SameOriginOnly
from tasks.servers.served_pages import add_pages

if TYPE_CHECKING:
    from flask import Flask, Response
    from starlette.types import ASGIApp, Receive, Scope, Send

APP = "cursus"
"""Its name among the entry points `mlflow.app` (pyproject.toml)."""
DEFAULTS = "/cursus-ui.js"
SCRIPT = Path(__file__).with_name("mlflow_ui.js")
ASSISTANT = "/ajax-api/3.0/mlflow/assistant"
"""MLflow's assistant, which runs programs on the server's machine."""


def command(root: Path, host: str, port: int) -> list[str]:
    """The arguments after `python` that serve the application at `host` and `port`; the artifacts are those of the
    checkout at `root`."""
    artifacts = state_folder(root) / "mlartifacts"
    artifacts.mkdir(parents=True, exist_ok=True)
    # one server process instead of four: 0.5 GB and 9 s instead of 1.3 GB and 25 s
    options = {
        "--app-name": APP,
        "--default-artifact-root": artifacts.as_uri(),
        "--artifacts-destination": artifacts.as_uri(),
        "--host": host,
        "--port": str(port),
        "--workers": "1",
    }
    return ["-m", "mlflow", "server", *(word for option in options.items() for word in option)]


class WithoutAssistant:
    """Middleware that answers requests to MLflow's assistant as if there was none."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"].startswith(ASSISTANT):
            from starlette.responses import PlainTextResponse

            return await PlainTextResponse("no assistant", status_code=HTTPStatus.NOT_FOUND)(scope, receive, send)
        return await self._app(scope, receive, send)


def create_application() -> ASGIApp:
    """MLflow's API and UI and the checkout's pages, which require an account, behind `SameOriginOnly`."""
    from mlflow.server import app, auth

    add_pages(app, project_root())
    set_defaults(app)
    # every user may read this file; other pages of ours are for the account alone
    auth.BEFORE_REQUEST_VALIDATORS[DEFAULTS, "GET"] = lambda: True
    untyped: Any = auth.create_app
    return SameOriginOnly(WithoutAssistant(untyped(app)))


def set_defaults(app: Flask) -> None:
    """Let the page of MLflow's UI run `mlflow_ui.js` before its own scripts."""
    from flask import send_file

    page = Path(str(app.static_folder)) / "index.html"

    def front_page() -> Response:
        from flask import Response

        text = page.read_text(encoding="utf-8").replace("<head>", f'<head><script src="{DEFAULTS[1:]}"></script>', 1)
        return Response(text, mimetype="text/html", headers={"Cache-Control": "no-cache"})

    app.view_functions["serve"] = front_page
    app.add_url_rule(DEFAULTS, "cursus-ui", lambda: send_file(SCRIPT, max_age=0), methods=["GET"])
