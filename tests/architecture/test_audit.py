"""The audit of the lock, by the real pip-audit, against a database of vulnerabilities on loopback."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from tests.architecture.audit import main

FLAW = {
    "id": "GHSA-test-1",
    "aliases": ["CVE-2026-1"],
    "summary": "a flaw",
    "modified": "2026-01-01T00:00:00Z",
    "published": "2026-01-01T00:00:00Z",
    "affected": [{
        "package": {"name": "flawed", "ecosystem": "PyPI"},
        "ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "2.0"}]}],
    }],
}  # fmt: skip


class Database(BaseHTTPRequestHandler):
    """Answers in OSV's form; it knows of one flaw."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        body = json.dumps({"vulns": [FLAW]} if asked["package"]["name"] == "flawed" else {}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def database() -> Iterator[list[str]]:
    """pip-audit's options for it."""
    server = HTTPServer(("127.0.0.1", 0), Database)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield ["--vulnerability-service", "osv", "--osv-url", f"http://127.0.0.1:{server.server_port}/v1/query"]
    server.shutdown()
    server.server_close()
    thread.join()


def lock(folder: Path, *lines: str) -> Path:
    path = folder / "requirements.lock"
    path.write_text("# exact versions\n" + "\n".join(lines) + "\n")
    return path


def test_a_known_flaw_fails_and_an_accepted_one_does_not(
    database: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    both = lock(tmp_path, "clean==1.0", "flawed==1.0")
    assert main(both, database, {}) == 1
    assert "flawed 1.0: CVE-2026-1, fixed in 2.0" in capsys.readouterr().out
    assert main(both, database, {"CVE-2026-1": "not used", "CVE-2020-1": "gone"}) == 0
    told = capsys.readouterr().out
    assert "0 open, 2 accepted, 2 packages" in told and "CVE-2020-1 is no longer known" in told


def test_where_nobody_answers_nothing_fails_and_it_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    silent = ["--vulnerability-service", "osv", "--osv-url", "http://127.0.0.1:9/v1/query"]
    assert main(lock(tmp_path, "clean==1.0"), silent, {}) == 0
    told = capsys.readouterr()
    assert "WARNING: known vulnerabilities of 1 locked packages were NOT CHECKED" in told.err and not told.out
