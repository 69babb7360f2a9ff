"""MLflow's server with accounts, behind a check of who asks: the app `cursus` of `mlflow server --app-name`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tasks.servers.same_origin import SameOriginOnly

if TYPE_CHECKING:
    from starlette.types import ASGIApp

APP = "cursus"
"""Its name among the entry points `mlflow.app` (pyproject.toml)."""


def create_application() -> ASGIApp:
    """MLflow's API and UI, which require an account, behind `SameOriginOnly`."""
    from mlflow.server import auth

    untyped: Any = auth.create_app
    return SameOriginOnly(untyped())
