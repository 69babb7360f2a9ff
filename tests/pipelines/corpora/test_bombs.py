"""Files made to be read for hours, names that no table can hold: refused in one sentence, in seconds."""

from __future__ import annotations

import gzip
import json
import os
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from pipelines.corpora.reading.finding import find_local
from pipelines.corpora.reading.opening import MOST_TEXT, UNLIMITED
from pipelines.corpora.settings.sources import FileSource
from pipelines.corpora.shards.tally import Tally
from pipelines.corpora.steps.sources import texts
from pipelines.errors import DataError
from tests.pipelines.corpora.test_bad_input import read, refused, skipped

MEGABYTE = 2**20
CONTENTS = {
    "line ends": b"\n" * MEGABYTE,
    "texts of one letter": b"a\n\n" * (MEGABYTE // 3),
    "a line without end": b"a" * MEGABYTE,
    "rows": b'{"text": "a"}\n' * (MEGABYTE // 14),
}


def packed(content: bytes, extension: str) -> bytes:
    """Eight megabytes of `content`, packed."""
    if extension == "gz":
        return gzip.compress(content * 8, 9, mtime=0)
    return zstandard.ZstdCompressor().compress(content * 8)


@pytest.mark.parametrize("extension", ["gz", "zst"])
@pytest.mark.parametrize("content", CONTENTS.values(), ids=CONTENTS)
def test_a_packed_bomb_is_refused_in_seconds(content: bytes, extension: str, tmp_path: Path) -> None:
    kind = "jsonl" if content.startswith(b"{") else "txt"
    path = tmp_path / f"bomb.{kind}.{extension}"
    path.write_bytes(packed(content, extension))
    began = time.process_time()
    message = refused(path)
    assert "lines in a row are blank" in message or (
        "is a decompression bomb: " in message and "remove it, or unpack it if it is text" in message
    )
    found, counts = skipped(path)
    assert time.process_time() - began < 4
    assert (
        sum(map(len, found)) <= max(UNLIMITED, MOST_TEXT * path.stat().st_size) and sum(counts["dropped"].values()) == 1
    )


def test_unpacked_line_ends_are_refused_too_and_a_text_that_repeats_is_not(tmp_path: Path) -> None:
    (tmp_path / "ends.txt").write_bytes(b"\n" * 32 * MEGABYTE)
    assert "ends.txt:100001: more than 100,000 lines in a row are blank" in refused(tmp_path / "ends.txt")
    (tmp_path / "log.txt.gz").write_bytes(gzip.compress(b"".join(b"%d request served\n\n" % n for n in range(100_000))))
    assert len(read(tmp_path / "log.txt.gz")[0]) == 100_000


def test_a_table_of_one_text_a_million_times_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bomb.parquet"
    pq.write_table(pa.table({"text": pa.DictionaryArray.from_arrays(pa.array([0] * 10**6), pa.array(["text"]))}), path)
    assert "1,000,000 rows in" in refused(path) and path.stat().st_size < 100_000
    assert skipped(path)[1]["dropped"] == {"decompression bomb": 1}


@pytest.mark.parametrize(
    ("name", "says"),
    [(b"caf\xe9.txt", r"'caf\\xe9.txt' is not UTF-8; rename it"), (b"a\nb.txt", r"the control character '\n'; rename")],
)
def test_a_name_that_is_no_text_is_refused(name: bytes, says: str, tmp_path: Path) -> None:
    folder = os.fsencode(tmp_path / "in")
    os.makedirs(folder)
    try:
        with open(os.path.join(folder, name), "w") as file:
            file.write("text")
    except OSError:
        pytest.skip("this file system keeps names in UTF-8 only")
    for path in (tmp_path / "in", tmp_path / "in" / "*.txt", Path(os.fsdecode(os.path.join(folder, name)))):
        with pytest.raises(DataError) as told:
            find_local(path)
        assert says in str(told.value) and "\n" not in str(told.value)
        json.dumps(str(told.value)).encode()
    with pytest.raises(DataError):
        list(texts(FileSource(path="in"), tmp_path, Tally()))
