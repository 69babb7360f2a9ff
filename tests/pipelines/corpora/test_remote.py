"""Files of servers: s3 as moto speaks it and http as the standard library does, both on loopback, with all that fails
there."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import fsspec
import pytest
import zstandard
from moto.server import ThreadedMotoServer

from pipelines.corpora.reading import fetching
from pipelines.corpora.reading.fetching import fetch_files
from pipelines.corpora.reading.remote import RemoteFile
from pipelines.corpora.reading.source_files import REMOTE, find, find_files
from pipelines.corpora.settings.sources import FileSource
from pipelines.corpora.shards.tally import Tally
from pipelines.corpora.steps.pinned_files import pinned_files
from pipelines.corpora.steps.sources import texts
from pipelines.errors import DataError
from tests.small_corpus import documents

DOCUMENTS = documents("email")[:40]
LINES = [json.dumps({"text": text}) + "\n" for text in DOCUMENTS]


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """A server that speaks S3, and a bucket; what reaches it, as params.yaml would say."""
    names = {
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_CONFIG_FILE": str(tmp_path_factory.mktemp("aws") / "none"),
    }
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in names.items():
            patch.setenv(name, value)
        storage = {"endpoint_url": f"http://{host}:{port}"}
        bucket = fsspec.filesystem("s3", skip_instance_cache=True, **storage)
        bucket.mkdir("texts")
        for number in range(3):
            content = zstandard.compress("".join(LINES[number * 10 : number * 10 + 10]).encode())
            bucket.pipe_file(f"texts/corpus/part-{number}.jsonl.zst", content)
        bucket.pipe_file("texts/corpus/README.md", b"no text of the corpus")
        yield storage
    server.stop()


class Handler(SimpleHTTPRequestHandler):
    """The standard library's server; it can also give stretches of files, and break off."""

    stretches = False
    breaks: int | None = None
    """Bytes after which the next answers end, though they promised more."""
    left = 0
    """How many answers still end so."""
    asked: ClassVar[list[str]] = []
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        """Tests print nothing."""

    def do_GET(self) -> None:
        kind = type(self)
        path = Path(self.translate_path(self.path))
        if not path.is_file():
            return super().do_GET()
        begin, content = 0, path.read_bytes()
        span = self.headers.get("Range")
        kind.asked.append(f"{path.name} {span or ''}".strip())
        partial = span is not None and kind.stretches
        if partial:
            begin = int(str(span).removeprefix("bytes=").rstrip("-"))
        self.send_response(206 if partial else 200)
        self.send_header("Content-Length", str(len(content) - begin))
        self.send_header("Last-Modified", self.date_time_string(path.stat().st_mtime))
        if partial:
            self.send_header("Content-Range", f"bytes {begin}-{len(content) - 1}/{len(content)}")
        self.end_headers()
        if kind.breaks is not None and kind.left > 0:
            kind.left -= 1
            self.wfile.write(content[begin : begin + kind.breaks])
            self.wfile.flush()
            self.close_connection = True
            self.connection.shutdown(2)
        else:
            self.wfile.write(content[begin:])
        return None


@contextmanager
def web(folder: Path) -> Iterator[tuple[str, type[Handler]]]:
    """The files of a folder over http, and how the server behaves."""
    kind = type("Asked", (Handler,), {"asked": []})
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(kind, directory=str(folder))) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", kind
        finally:
            server.shutdown()


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[str, type[Handler], Path]]:
    """A folder of two packed files behind an http server."""
    folder = tmp_path / "served"
    (folder / "corpus").mkdir(parents=True)
    for number in range(2):
        content = gzip.compress("".join(LINES[number * 10 : number * 10 + 10]).encode(), mtime=0)
        (folder / "corpus" / f"part-{number}.jsonl.gz").write_bytes(content)
    (folder / "large.jsonl").write_text("".join(LINES) * 300)
    with web(folder) as (address, kind):
        yield address, kind, folder


def read(root: Path, **source: Any) -> list[tuple[str, str]]:
    return list(texts(FileSource(**source), root, Tally()))


@pytest.mark.parametrize("path", ["s3://texts/corpus/*.jsonl.zst", "s3://texts/corpus", "s3://texts/corpus/"])
def test_a_prefix_and_a_glob_of_s3_are_read_and_named(tmp_path: Path, s3: dict[str, Any], path: str) -> None:
    rows = read(tmp_path, path=path, storage=s3)
    assert [text for text, _ in rows] == DOCUMENTS[:30]
    assert rows[10][1] == "part-1.jsonl.zst:1"


def test_s3_pins_by_etag_and_reads_again_without_the_server(tmp_path: Path, s3: dict[str, Any]) -> None:
    path = "s3://texts/corpus/part-0.jsonl.zst"
    before = find(path, tmp_path, storage=s3)
    (file,) = before.values()
    assert isinstance(file, RemoteFile) and file.tag.startswith("etag ")
    assert pinned_files(before, tmp_path) == pinned_files(find(path, tmp_path, storage=s3), tmp_path)
    (here,) = fetch_files([file], s3, tmp_path)
    assert fetch_files([file], {"endpoint_url": "http://127.0.0.1:9"}, tmp_path) == [here]
    bucket = fsspec.filesystem("s3", skip_instance_cache=True, **s3)
    try:
        bucket.pipe_file("texts/corpus/part-0.jsonl.zst", zstandard.compress(LINES[35].encode()))
        after = find(path, tmp_path, storage=s3)
        assert pinned_files(before, tmp_path)["sha256"] != pinned_files(after, tmp_path)["sha256"]
        assert [text for text, _ in read(tmp_path, path=path, storage=s3)] == [DOCUMENTS[35]]
        with pytest.raises(DataError, match="part-0.jsonl.zst: the file changed on the server while it was fetched"):
            fetch_files([RemoteFile(file.address, file.bytes, "etag before")], s3, tmp_path)
    finally:
        bucket.pipe_file("texts/corpus/part-0.jsonl.zst", zstandard.compress("".join(LINES[:10]).encode()))


def test_a_file_of_many_pieces_comes_whole(tmp_path: Path, s3: dict[str, Any]) -> None:
    """S3 takes large files in pieces, and their ETag is no digest of the content then."""
    content = ("".join(LINES) * 800).encode()
    assert len(content) > 12 * 2**20
    bucket = fsspec.filesystem("s3", skip_instance_cache=True, **s3)
    with bucket.open("texts/large/all.jsonl", "wb", block_size=5 * 2**20) as file:
        for begin in range(0, len(content), 2**20):
            file.write(content[begin : begin + 2**20])
    found = find("s3://texts/large/all.jsonl", tmp_path, storage=s3)
    (large,) = found.values()
    assert isinstance(large, RemoteFile) and large.tag.endswith(("-2", "-3")) and large.bytes == len(content)
    (here,) = fetch_files([large], s3, tmp_path)
    assert here.read_bytes() == content


def test_a_missing_bucket_and_missing_credentials_are_told(
    tmp_path: Path, s3: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(DataError, match="s3://none/a.jsonl: there is no such file; check the address in params.yaml"):
        find("s3://none/a.jsonl", tmp_path, storage=s3)
    with pytest.raises(DataError, match=r"s3://texts/\*.csv: no file with one of the extensions"):
        find("s3://texts/*.csv", tmp_path, storage=s3)
    with pytest.raises(DataError, match="unknown setting 'endpoint'. Did you mean 'endpoint_url'"):
        find("s3://texts/a.jsonl", tmp_path, storage={"endpoint": "x"})
    fsspec.get_filesystem_class("s3").clear_instance_cache()
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    with pytest.raises(DataError, match="s3://texts/corpus: the server cannot be queried: NoCredentialsError"):
        find("s3://texts/corpus", tmp_path, storage=s3)


@pytest.mark.parametrize("path", ["corpus/part-*.jsonl.gz", "corpus/"])
def test_lists_of_a_web_server_are_read_and_named(
    tmp_path: Path, served: tuple[str, type[Handler], Path], path: str
) -> None:
    address, _, _ = served
    rows = read(tmp_path, path=f"{address}/{path}")
    assert [text for text, _ in rows] == DOCUMENTS[:20]
    assert rows[10][1] == "part-1.jsonl.gz:1"


def test_one_file_of_the_web_is_fetched_once_and_again_when_it_changes(
    tmp_path: Path, served: tuple[str, type[Handler], Path]
) -> None:
    address, kind, folder = served
    path = f"{address}/corpus/part-0.jsonl.gz"
    assert read(tmp_path, path=path) == read(tmp_path, path=path) and len(kind.asked) == 1
    file = folder / "corpus" / "part-0.jsonl.gz"
    file.write_bytes(gzip.compress(LINES[30].encode(), mtime=0))
    os.utime(file, (0, 86_400))
    assert [text for text, _ in read(tmp_path, path=path)] == [DOCUMENTS[30]]
    assert len(list((tmp_path / REMOTE).iterdir())) == 2


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is tried again is tried again at once."""
    monkeypatch.setattr(fetching, "PAUSE", 0)


def test_a_fetch_goes_on_from_where_it_broke_off(tmp_path: Path, served: tuple[str, type[Handler], Path]) -> None:
    address, kind, folder = served
    kind.stretches, kind.breaks, kind.left = True, 2 * 2**20, 2
    (here,) = find_files(f"{address}/large.jsonl", tmp_path).values()
    assert here.read_bytes() == (folder / "large.jsonl").read_bytes()
    first, *others = kind.asked
    begins = [int(asked.removeprefix("large.jsonl bytes=").rstrip("-")) for asked in others]
    assert first == "large.jsonl" and len(begins) == 2 and 0 < begins[0] < begins[1]


def test_a_fetch_starts_again_where_the_server_gives_no_stretches(
    tmp_path: Path, served: tuple[str, type[Handler], Path]
) -> None:
    address, kind, folder = served
    kind.breaks, kind.left = 2 * 2**20, 1
    (here,) = find_files(f"{address}/large.jsonl", tmp_path).values()
    assert here.read_bytes() == (folder / "large.jsonl").read_bytes()


def test_a_server_that_dies_in_mid_file_is_told_with_the_byte(
    tmp_path: Path, served: tuple[str, type[Handler], Path]
) -> None:
    address, kind, folder = served
    kind.stretches, kind.breaks, kind.left = True, 2**20, 4
    size = (folder / "large.jsonl").stat().st_size
    with pytest.raises(
        DataError,
        match=rf"/large.jsonl: the download was interrupted at byte [\d,]+ of {size:,}, 4 times .*; run again",
    ):
        find_files(f"{address}/large.jsonl", tmp_path)
    assert len(kind.asked) == 4
    (here,) = find_files(f"{address}/large.jsonl", tmp_path).values()
    assert here.read_bytes() == (folder / "large.jsonl").read_bytes()
    assert not kind.asked[-1].endswith("bytes=0-") and " bytes=" in kind.asked[-1], "the next run goes on"


def test_addresses_that_lead_nowhere_are_told(tmp_path: Path, served: tuple[str, type[Handler], Path]) -> None:
    address, _, _ = served
    with pytest.raises(DataError, match="none.jsonl: there is no such file; check the address"):
        find(f"{address}/none.jsonl", tmp_path)
    with pytest.raises(DataError, match="the server cannot be queried: ClientConnectorError"):
        find("http://127.0.0.1:9/a.jsonl", tmp_path)
    with pytest.raises(DataError, match="unknown protocol htps://. Did you mean 'https'"):
        find("htps://host/a.jsonl", tmp_path)


def test_files_of_this_machine_and_of_memory_have_addresses_too(tmp_path: Path) -> None:
    (tmp_path / "a b.jsonl").write_text(LINES[0])
    assert read(tmp_path, path=f"file://{tmp_path}/a%20b.jsonl") == [(DOCUMENTS[0], "a b.jsonl:1")]
    memory = fsspec.filesystem("memory")
    memory.pipe_file("/texts/deep/a.jsonl", LINES[1].encode())
    try:
        assert read(tmp_path, path="memory://texts") == [(DOCUMENTS[1], "deep/a.jsonl:1")]
    finally:
        memory.rm("/texts", recursive=True)


def test_what_is_deleted_here_is_fetched_again(tmp_path: Path, served: tuple[str, type[Handler], Path]) -> None:
    address, kind, _ = served
    before = read(tmp_path, path=f"{address}/corpus/part-0.jsonl.gz")
    shutil.rmtree(tmp_path / REMOTE)
    assert read(tmp_path, path=f"{address}/corpus/part-0.jsonl.gz") == before and len(kind.asked) == 2
