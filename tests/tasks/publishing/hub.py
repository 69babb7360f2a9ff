"""A stand-in for the Hugging Face Hub on this machine, for its real client: keeps what is uploaded and every request.

It has the five endpoints by which `huggingface_hub` 2 makes a repository and uploads a folder; large files go to an
address of their own, as they do there.
"""

from __future__ import annotations

import json
import threading
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple


class Request(NamedTuple):
    """What the client sent."""

    path: str
    authorization: str | None
    body: Any
    """The JSON value, the list of them, or the bytes of a large file."""


@dataclass
class Hub:
    """One repository, for whoever has the token."""

    repository: str
    token: str
    large: tuple[str, ...] = ()
    """Suffixes of the files that the hub wants outside of the commit."""
    url: str = ""
    requests: list[Request] = field(default_factory=list)
    stored: dict[str, bytes] = field(default_factory=dict)
    """Digest → content of the large files."""
    files: dict[str, bytes] = field(default_factory=dict)
    """Path → content, as committed."""

    def answer(self, path: str, body: Any) -> dict[str, Any] | None:
        """The answer to a request that has the token; None where there is no such endpoint."""
        if path == "/api/repos/create":
            return {"url": f"{self.url}/{self.repository}"}
        if path == "/api/validate-yaml":
            return {"errors": [], "warnings": []}
        if path == f"/api/models/{self.repository}/preupload/main":
            return {"files": [{"path": one["path"], **self._mode(one["path"])} for one in body["files"]]}
        if path == f"/{self.repository}.git/info/lfs/objects/batch":
            return {"transfer": "basic", "objects": [self._upload(one) for one in body["objects"]]}
        if path == f"/api/models/{self.repository}/commit/main":
            self._commit(body)
            return {"commitUrl": f"{self.url}/{self.repository}/commit/1", "commitOid": "1" * 40}
        return None

    def _mode(self, path: str) -> dict[str, Any]:
        return {"uploadMode": "lfs" if path.endswith(self.large) else "regular", "shouldIgnore": False}

    def _upload(self, wanted: dict[str, Any]) -> dict[str, Any]:
        address = f"{self.url}/storage/{wanted['oid']}"
        return {"oid": wanted["oid"], "size": wanted["size"], "actions": {"upload": {"href": address}}}

    def _commit(self, lines: list[dict[str, Any]]) -> None:
        for line in lines:
            value = line["value"]
            if line["key"] == "file":
                self.files[value["path"]] = b64decode(value["content"])
            elif line["key"] == "lfsFile":
                self.files[value["path"]] = self.stored[value["oid"]]


@contextmanager
def serving(hub: Hub) -> Iterator[Hub]:
    """`hub` with an address, at which it answers until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            text = self._content()
            body = [json.loads(line) for line in text.splitlines()] if "/commit/" in self.path else json.loads(text)
            hub.requests.append(Request(self.path, self.headers["Authorization"], body))
            if self.headers["Authorization"] != f"Bearer {hub.token}":
                self._answer(401, {"error": "Invalid username or password."})
                return
            answer = hub.answer(self.path, body)
            self._answer(404 if answer is None else 200, answer or {"error": "no such endpoint"})

        def do_GET(self) -> None:
            hub.requests.append(Request(self.path, self.headers["Authorization"], None))
            self._answer(401, {"error": "Invalid username or password."})

        def do_PUT(self) -> None:
            content = self._content()
            hub.requests.append(Request(self.path, self.headers["Authorization"], content))
            hub.stored[sha256(content).hexdigest()] = content
            self._answer(200, {})

        def _content(self) -> bytes:
            if "Content-Length" in self.headers:
                return self.rfile.read(int(self.headers["Content-Length"]))
            parts = []
            while size := int(self.rfile.readline(), 16):  # in chunks
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(parts)

        def _answer(self, status: int, value: dict[str, Any]) -> None:
            content = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None:
            del format, args

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        hub.url = f"http://127.0.0.1:{server.server_address[1]}"
        try:
            yield hub
        finally:
            server.shutdown()
