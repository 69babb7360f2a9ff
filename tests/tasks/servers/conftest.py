"""A copy of this project with servers of its own, on free ports: one start serves the tests of this folder that one
process runs, and ends with the last of them, since it changes the environment."""

from __future__ import annotations

import json
import os
import shutil
import socket
import time
import urllib.error
import urllib.request
from base64 import b64encode
from collections.abc import Callable, Iterator
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlparse
from uuid import uuid4

import psutil
import pytest

from tasks.environment import defaults
from tasks.servers.accounts import VARIABLE
from tasks.servers.processes import MARK
from tasks.servers.services import Services, down, up
from tests.copied_sources import BEING_WRITTEN
from tests.pipelines.corpora.small_dataset import write_small_dataset
from tests.seeded_checkouts import seed
from tests.tiny_regime import BRIEF

if TYPE_CHECKING:
    from playwright.sync_api import Page

REPOSITORY = Path(__file__).parents[3]
ACCOUNT = "tester:a-password-of-tests"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-3d-apis",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
BUSY_SECONDS = 30
"""How long a server may say that it is busy."""
PAGE_MILLISECONDS = 120_000
"""How long a page may take to show or do something: seconds, where it is not drawn beside other work without a graphics
card."""
NO_CHROMIUM = "no chromium on this machine (Debian: apt-get install chromium)"
NOT_SOURCE = {
    ".git",
    ".venv",
    ".cursus",
    "reports",
    "data/pins",
    "data/prepared",
    "data/docs",
    "data/store",
    ".dvc/cache",
    ".dvc/tmp",
}


def processes_of(root: Path) -> list[psutil.Process]:
    """Every process that carries the mark of the checkout at `root`."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(MARK, "").endswith(f"@{root}") and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except (psutil.Error, OSError):
            continue
    return found


def ask(url: str, question: dict[str, Any] | None = None) -> Any:
    """The JSON answer of a server on loopback: a GET, or a POST where there is a question.

    It is asked with the account of the copy, and with a token against cross-site requests where there is a question
    to Prefect. Prefect answers 503 where two of its transactions have met in SQLite ("database is locked"), has done
    nothing, and expects to be asked again, as its own client does.
    """
    headers = {"Content-Type": "application/json", **authorization()}
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    body = None if question is None else json.dumps(question).encode()
    if body is not None and "/mlflow/" not in url:
        client = uuid4().hex
        headers |= {"Prefect-Csrf-Client": client, "Prefect-Csrf-Token": csrf_token(url, client)}
    request = urllib.request.Request(url, data=body, headers=headers)
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            with opener.open(request, timeout=10) as response:
                return json.load(response)
        except urllib.error.HTTPError as refused:
            if refused.code != HTTPStatus.SERVICE_UNAVAILABLE or time.monotonic() > deadline:
                raise
        time.sleep(0.5)


def status(url: str, body: dict[str, Any] | None = None, **headers: str) -> tuple[int, dict[str, str]]:
    """What a server answers to a stranger, and the headers: a GET, or a POST where there is a body."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data=data, headers={"Content-Type": "application/json", **headers})
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=20) as answer:
            return int(answer.status), dict(answer.headers)
    except urllib.error.HTTPError as refused:
        return refused.code, dict(refused.headers)


def credentials() -> tuple[str, str]:
    """Name and password of the copy's account."""
    name, _, password = os.environ[VARIABLE].partition(":")
    return name, password


def authorization() -> dict[str, str]:
    return {"Authorization": f"Basic {b64encode(os.environ[VARIABLE].encode()).decode()}"}


def csrf_token(url: str, client: str) -> str:
    address = urlparse(url)
    return str(ask(f"{address.scheme}://{address.netloc}/api/csrf-token?client={client}")["token"])


@pytest.fixture(scope="package")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the sources of this checkout, without its state, whose only dataset is a small one, with a recipe more
    that takes half of the time of the regime."""
    root = tmp_path_factory.mktemp("checkout") / "project"

    def ignore(folder: str, names: list[str]) -> set[str]:
        inside = Path(folder).relative_to(REPOSITORY)
        left_out = {name for name in names if (inside / name).as_posix() in NOT_SOURCE or name.endswith("_cache")}
        return left_out | shutil.ignore_patterns(*BEING_WRITTEN)(folder, names)

    shutil.copytree(REPOSITORY, root, ignore=ignore)
    write_small_dataset(root)
    (root / "recipes" / "brief.yaml").write_text(BRIEF)
    seed(root, tmp_path_factory)
    return root


class Launch(NamedTuple):
    """One call of `up`: what it returned and said."""

    services: Services
    said: list[str]


Start = Callable[[], Launch]


@pytest.fixture(scope="package")
def taken_port() -> Iterator[int]:
    """A port on which another program listens."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


@pytest.fixture(scope="package")
def start(project: Path, taken_port: int) -> Iterator[Start]:
    """Calls `up` for the copy, wishing for a port that is taken; at the end stops everything and finds nothing left."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in defaults(project).items():
            patch.setenv(name, value)
        patch.delenv("PREFECT_API_URL", raising=False)
        patch.setenv("PYTHONPATH", str(project))
        # clients in the process of the tests use it, too
        patch.setenv(VARIABLE, ACCOUNT)
        patch.setenv("PREFECT_API_AUTH_STRING", ACCOUNT)

        def call() -> Launch:
            said: list[str] = []
            services = up(project, prefect_port=taken_port, mlflow_port=0, notify=said.append)
            return Launch(services, said)

        try:
            yield call
        finally:
            down(project, notify=lambda _: None)
            assert processes_of(project) == []


@pytest.fixture(scope="package")
def first(start: Start) -> Launch:
    """The first launch of the copy's servers."""
    return start()


@pytest.fixture
def servers(first: Launch, start: Start) -> Services:
    """The running servers of the copy, repaired where a test before this one has broken them."""
    return start().services


@pytest.fixture(scope="module")
def screenshots(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("screenshots")


@pytest.fixture
def strangers() -> list[str]:
    """Addresses outside this machine that a page has asked for."""
    return []


@pytest.fixture
def page(strangers: list[str]) -> Iterator[Page]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        name, password = credentials()
        page = browser.new_page(
            viewport={"width": 1400, "height": 1000}, http_credentials={"username": name, "password": password}
        )
        page.set_default_timeout(PAGE_MILLISECONDS)
        page.on("request", lambda request: strangers.append(request.url) if leaves(request.url) else None)
        yield page
        browser.close()


def sign_in(page: Page, services: Services) -> None:
    """What a user does first in Prefect's UI: give it the line of the account."""
    page.goto(services.prefect_url)
    page.locator("input[type=password]").fill(ACCOUNT)
    page.get_by_role("button", name="Login").click()
    page.get_by_text("Deployments", exact=True).first.wait_for()


def leaves(url: str) -> bool:
    address = urlparse(url)
    return address.scheme in {"http", "https", "ws", "wss"} and address.hostname != "127.0.0.1"
