"""MLflow's server with accounts, behind a check of who asks: the app `cursus` of `mlflow server --app-name`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tasks.environment import state_folder
from tasks.servers.same_origin import SameOriginOnly

if TYPE_CHECKING:
    from starlette.types import ASGIApp

APP = "cursus"
"""Its name among the entry points `mlflow.app` (pyproject.toml)."""


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


def create_application() -> ASGIApp:
    """MLflow's API and UI, which require an account, behind `SameOriginOnly`."""
    from mlflow.server import auth

    untyped: Any = auth.create_app
    return SameOriginOnly(untyped())
