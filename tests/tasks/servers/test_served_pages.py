"""Which files MLflow's server shows of a checkout: pages of three folders, and nothing outside of them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest
from flask import Flask, Response, request

from tasks.display.page_addresses import page_address, page_path
from tasks.servers.served_pages import add_pages

if TYPE_CHECKING:
    from flask.testing import FlaskClient

ESCAPES = (
    "../secret.txt", "..%2fsecret.txt", "..%2Fsecret.txt", "%2e%2e/secret.txt", "%2e%2e%2fsecret.txt",
    "e1/../../secret.txt", "e1/..%2f..%2fsecret.txt", "e1/report.html/../../../secret.txt", "%252e%252e%252fsecret.txt",
    "....//secret.txt", "..\\secret.txt", "..%5csecret.txt", "%00/secret.txt", "e1%00.html", "/../secret.txt",
    "/etc/passwd", "//etc/passwd", "%2fetc%2fpasswd", "file:///etc/passwd", "~root/secret.txt",
    "link.txt", "folder/secret.txt", "e1", "e1/", ".", "..",
)  # fmt: skip
"""Names below a folder that is served; `link.txt` and `folder` are links that lead out of it."""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    root = tmp_path / "checkout"
    for name in ("reports/e1/report.html", "reports/index.html", "data/docs/small/index.html"):
        page = root / name
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(f"<p>{name}</p>", encoding="utf-8")
    (root / "data" / "prepared" / "small").mkdir(parents=True)
    for name in ("card.html", "train.parquet"):
        (root / "data" / "prepared" / "small" / name).write_text("a card", encoding="utf-8")
    for folder in ("reports", "data/docs", "data/prepared"):
        (root / folder / "link.txt").symlink_to(root / "secret.txt")
        (root / folder / "folder").symlink_to(root)
    (root / "secret.txt").write_text("the secret", encoding="utf-8")
    (root / "reports" / ".." / "reports-of-others").mkdir()
    return root


@pytest.fixture
def client(checkout: Path) -> FlaskClient:
    app = Flask(__name__)

    @app.before_request
    def authenticate() -> Response | None:
        return None if request.headers.get("Authorization") else Response("no", status=HTTPStatus.UNAUTHORIZED)

    add_pages(app, checkout)
    return app.test_client()


KNOWN = {"Authorization": "Basic x"}


class Received(NamedTuple):
    """A response, whose file is closed."""

    status: int
    text: str
    headers: Mapping[str, str]


def received(client: FlaskClient, address: str, *, known: bool = True, method: str = "GET") -> Received:
    with client.open(address, method=method, headers=KNOWN if known else {}) as response:
        return Received(response.status_code, response.text, dict(response.headers))


@pytest.mark.parametrize("folder", ["reports", "data-docs", "cards"])
@pytest.mark.parametrize("name", ESCAPES)
def test_nothing_outside_the_folders_is_shown(client: FlaskClient, folder: str, name: str) -> None:
    response = received(client, f"/{folder}/{name}")
    assert response.status in (HTTPStatus.NOT_FOUND, HTTPStatus.PERMANENT_REDIRECT), response.text
    assert "the secret" not in response.text and "root:" not in response.text


def test_pages_are_shown_to_the_account_in_a_sandbox(client: FlaskClient, checkout: Path) -> None:
    pages = {
        "reports/e1/report.html": checkout / "reports" / "e1" / "report.html",
        "data-docs/small/index.html": checkout / "data" / "docs" / "small" / "index.html",
        "cards/small/card.html": checkout / "data" / "prepared" / "small" / "card.html",
    }
    for address, page in pages.items():
        assert page_path(checkout, page) == address
        assert page_address(checkout, page) == f"http://127.0.0.1:5000/{address}"
        response = received(client, f"/{address}")
        assert (response.status, response.text) == (HTTPStatus.OK, page.read_text())
        assert response.headers["Content-Type"] == "text/html; charset=utf-8"
        assert response.headers["X-Content-Type-Options"] == "nosniff"
        policy = response.headers["Content-Security-Policy"]
        assert policy.startswith("sandbox ") and "allow-same-origin" not in policy
        assert ("allow-scripts" in policy) is address.startswith("data-docs")
        assert received(client, f"/{address}", known=False).status == HTTPStatus.UNAUTHORIZED
        assert received(client, f"/{address}", method="POST").status == HTTPStatus.METHOD_NOT_ALLOWED
    assert "reports/index.html" in received(client, "/reports/").text
    assert received(client, "/cards/small/train.parquet").status == HTTPStatus.NOT_FOUND, "a table"


def test_an_address_is_that_of_the_running_server(checkout: Path) -> None:
    state = checkout / ".cursus"
    state.mkdir()
    (state / "services.json").write_text('{"mlflow_url": "http://127.0.0.1:5061"}')
    page = checkout / "reports" / "a b" / "report.html"
    assert page_address(checkout, page) == "http://127.0.0.1:5061/reports/a%20b/report.html"
    with pytest.raises(ValueError, match="in no folder that is served"):
        page_path(checkout, checkout / "secret.txt")
    os.unlink(state / "services.json")
    assert page_address(checkout, page).startswith("http://127.0.0.1:5000/")
