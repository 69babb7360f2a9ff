"""Receivers of notifications on loopback: a webhook, and a mail server that accepts everything."""

from __future__ import annotations

import json
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any


@contextmanager
def webhook() -> Iterator[tuple[int, list[dict[str, Any]]]]:
    """The port of a webhook, and the JSON objects that it has received."""
    received: list[dict[str, Any]] = []

    class Hook(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            received.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            del format, args

    with HTTPServer(("127.0.0.1", 0), Hook) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1], received
        server.shutdown()


@contextmanager
def mail_server() -> Iterator[tuple[int, list[str]]]:
    """The port of a mail server, and the messages that it has received, with their headers."""
    received: list[str] = []

    class Dialogue(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self.answer("220 loopback")
            while line := self.rfile.readline().decode().strip():
                verb = line.split()[0].upper()
                if verb == "DATA":
                    self.answer("354 end with a dot")
                    lines = []
                    while (part := self.rfile.readline().decode().rstrip("\r\n")) != ".":
                        lines.append(part)
                    received.append("\n".join(lines))
                self.answer("221 bye" if verb == "QUIT" else "250 ok")
                if verb == "QUIT":
                    return

        def answer(self, line: str) -> None:
            self.wfile.write(f"{line}\r\n".encode())

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True

    with Server(("127.0.0.1", 0), Dialogue) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1], received
        server.shutdown()
