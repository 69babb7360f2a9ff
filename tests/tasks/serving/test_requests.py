"""What `cursus predict` sends to a running server: parts that it accepts and answers in time; and where one listens."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from pipelines.errors import CursusError
from tasks.servers.accounts import Account
from tasks.serving.protection import LARGEST_REQUEST
from tasks.serving.running import EXAMPLES, RunningServer
from tasks.serving.server import ServerOptions, _listening

ACCOUNT = Account.parse("ada:a-password-of-some-length", "a test")


@contextmanager
def answering(status: int = 200, text: str | None = None) -> Iterator[tuple[RunningServer, list[bytes]]]:
    """A server that predicts the length of each text, or answers `text`; and the payloads that it has received."""
    received: list[bytes] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            received.append(self.rfile.read(int(self.headers["Content-Length"])))
            predictions = [{"answer": len(one)} for one in json.loads(received[-1])["inputs"]]
            content = (json.dumps({"predictions": predictions}) if text is None else text).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *arguments: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield RunningServer("a model", f"http://127.0.0.1:{server.server_port}", ACCOUNT), received
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_block_of_long_texts_is_sent_in_requests_that_the_server_accepts() -> None:
    # Chinese characters are six bytes each in JSON: all of them together are larger than a request may be
    rows = [{"text": "字" * (90_000 + number)} for number in range(40)]
    with answering() as (server, received):
        assert [one["answer"] for one in server.predict(rows)] == [len(row["text"]) for row in rows]
    assert len(received) > 1 and max(map(len, received)) < LARGEST_REQUEST < sum(map(len, received))


def test_no_request_is_as_long_as_a_file() -> None:
    with answering() as (server, received):
        assert len(server.predict([{"text": "a"}] * (2 * EXAMPLES + 1))) == 2 * EXAMPLES + 1
    assert [len(json.loads(one)["inputs"]) for one in received] == [EXAMPLES, EXAMPLES, 1]


def test_an_answer_that_is_no_json_is_shown() -> None:
    refusal = "refused: this server is not known by that name"
    with answering(403, refusal) as (server, _), pytest.raises(CursusError, match=f"answered 403: {refusal}"):
        server.predict([{"text": "a"}])


@pytest.mark.parametrize(
    ("host", "sentence"),
    [("", "is empty"), (" ", "is empty"), ("ä" * 70, "cannot listen on")],
    ids=["empty", "blank", "too long"],
)
def test_a_host_that_is_none_is_one_sentence(host: str, sentence: str) -> None:
    with pytest.raises(CursusError, match=sentence):
        _listening(ServerOptions(host=host, port=0))
