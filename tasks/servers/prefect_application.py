"""Prefect's server behind a check of who asks: the application that `uvicorn --factory` serves here."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from pipelines.lineage.locks import Lock
from pipelines.safety.garbage_collection import collection_paused
from tasks.servers.lists import OpenLists
from tasks.servers.same_origin import SameOriginOnly
from tasks.servers.suggestions import Suggestions

if TYPE_CHECKING:
    from starlette.types import ASGIApp

FACTORY = f"{__name__}:create_application"
PROJECT = Path(__file__).parents[2]


def command(host: str, port: int, *options: str) -> list[str]:
    """The arguments after `python` that serve the application at `host` and `port`."""
    serve = ["-m", "uvicorn", "--app-dir", str(PROJECT), "--factory", FACTORY]
    return [*serve, "--host", host, "--port", str(port), "--lifespan", "on", *options]


def protection(auth: str, url: str) -> dict[str, str]:
    """Variables with which the server at `url` requires the account `auth` (`name:password`) and a token against
    cross-site requests, and grants no other origin anything."""
    return {
        "PREFECT_SERVER_API_AUTH_STRING": auth,
        "PREFECT_SERVER_CSRF_PROTECTION_ENABLED": "true",
        "PREFECT_SERVER_CORS_ALLOWED_ORIGINS": url,
    }


@contextmanager
def starting(home: Path) -> Iterator[None]:
    """Hold the lock under which a server with Prefect's folder `home` starts, and wait for one that another process
    starts: each creates or migrates the same database."""
    lock = Lock.take(home / "starting.lock", wait=True)
    assert lock is not None
    try:
        yield
    finally:
        lock.release()


def create_application() -> ASGIApp:
    """Prefect's API and UI, as its settings in the environment say, behind `SameOriginOnly`, with `Suggestions`,
    `OpenLists`, automations that notify the checkout's own addresses alone, and requests that write in turns."""
    with collection_paused():
        from prefect.server.api.server import create_app

        from tasks.servers.notification import restrict_actions
        from tasks.servers.sqlite_transactions import write_in_turns

    restrict_actions()
    write_in_turns()
    return SameOriginOnly(Suggestions(OpenLists(create_app(final=True))))
