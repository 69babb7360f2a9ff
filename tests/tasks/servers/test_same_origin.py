"""Which hosts and origins Prefect's server answers here."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING

import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route, WebSocketRoute
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from tasks.servers.same_origin import SameOriginOnly, is_allowed_host, own_names

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.websockets import WebSocket

HOST = "127.0.0.1:4200"


async def answer(request: Request) -> PlainTextResponse:
    return PlainTextResponse("done")


async def greet(socket: WebSocket) -> None:
    await socket.accept()
    await socket.send_text("done")
    await socket.close()


@pytest.fixture
def client() -> TestClient:
    routes = [Route("/", answer, methods=["GET", "POST", "DELETE"]), WebSocketRoute("/socket", greet)]
    return TestClient(SameOriginOnly(Starlette(routes=routes)))


@pytest.mark.parametrize(
    ("host", "allowed"),
    [
        ("127.0.0.1", True),
        (HOST, True),
        ("[::1]:4200", True),
        ("10.1.2.3:4200", True),
        ("localhost:4200", True),
        ("LocalHost", True),
        ("evil.example", False),
        ("127.0.0.1.evil.example:4200", False),
        ("localhost.evil.example", False),
        ("evil.example@localhost:4200", True),  # the part before @ is no host
        ("localhost@evil.example", False),
        ("[::1", False),
        ("", False),
    ],
)
def test_an_address_or_an_own_name_is_a_host(host: str, allowed: bool) -> None:
    assert is_allowed_host(host, frozenset({"localhost"})) is allowed


def test_further_names_are_listed_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CURSUS_ALLOWED_HOSTS", "Prefect.example.org, other.example.org")
    assert {"localhost", "prefect.example.org", "other.example.org"} <= own_names()


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
@pytest.mark.parametrize(
    ("host", "origin", "status"),
    [
        (HOST, None, 200),
        (HOST, f"http://{HOST}", 200),
        ("localhost:4200", "http://localhost:4200", 200),
        (HOST, "https://evil.example", 403),
        (HOST, "http://127.0.0.1:8080", 403),
        (HOST, "null", 403),
        # a name that has been made to resolve to this machine: the page would count as of the same origin
        ("evil.example:4200", "http://evil.example:4200", 403),
        ("evil.example:4200", None, 403),
    ],
)
def test_pages_of_other_origins_and_names_are_refused(
    client: TestClient, method: str, host: str, origin: str | None, status: int
) -> None:
    headers = {"Host": host} | ({"Origin": origin} if origin is not None else {})
    response = client.request(method, "/", headers=headers)
    assert response.status_code == status
    assert (response.text == "done") is (response.status_code == HTTPStatus.OK)


def test_a_page_of_another_origin_opens_no_socket(client: TestClient) -> None:
    with client.websocket_connect("/socket", headers={"Host": HOST, "Origin": f"http://{HOST}"}) as socket:
        assert socket.receive_text() == "done"
    with (
        pytest.raises(WebSocketDisconnect) as refused,
        client.websocket_connect("/socket", headers={"Host": HOST, "Origin": "https://evil.example"}),
    ):
        pass
    assert "another origin" in refused.value.reason
