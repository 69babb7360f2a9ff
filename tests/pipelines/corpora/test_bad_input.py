"""What people really have on their disks: every case ends in one clear error, or in a skip that is counted and
sampled."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from pipelines.corpora.reading import parts_of, read_texts
from pipelines.corpora.reading.options import ReadOptions
from pipelines.corpora.settings.sources import FileSource
from pipelines.corpora.shards.tally import Tally
from pipelines.corpora.steps.sources import texts
from pipelines.errors import DataError
from tests.small_corpus import documents

PNG = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + bytes(range(256)) * 40
NEWS = "中国有悠久的历史，也有灿烂的文化。北京是中国的首都，上海是中国最大的城市。"


def read(path: Path, **source: Any) -> tuple[list[str], Tally]:
    """The texts of a file as a source reads them, and what it left out."""
    tally = Tally()
    found = [text for text, _ in texts(FileSource(path=str(path), **source), path.parent, tally)]
    return found, tally


def refused(path: Path, **source: Any) -> str:
    """The one error that a file ends in."""
    with pytest.raises(DataError) as told:
        read(path, **source)
    assert "\n" not in str(told.value) and str(path) in str(told.value)
    return str(told.value)


def skipped(path: Path, **source: Any) -> tuple[list[str], dict[str, Any]]:
    """What is left of a file whose bad records may be skipped, and what is told of them."""
    found, tally = read(path, bad_records="skip", **source)
    return found, tally.counts()


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.txt", PNG, "not a text file but a PNG image"),
        ("a.jsonl", b"%PDF-1.7\n%\xe2\xe3", "not a text file but a PDF document; extract its text first"),
        ("a.csv", b"PK\x03\x04\x14\x00", "not a text file but a zip archive, or a docx or xlsx document"),
        ("a.txt", b"\xff\xfeh\x00i\x00", "not a text file but UTF-16; convert it: iconv -f UTF-16 -t UTF-8"),
        ("a.txt", b"text and then\x00\x01\x02", "not a text file but binary: it holds NUL bytes"),
        ("a.txt", gzip.compress(b"text", mtime=0), "compressed with gzip; rename it to end in .gz"),
        ("a.txt.gz", gzip.compress(PNG, mtime=0), "not a text file but a PNG image"),
        ("a.txt.gz", b"plain text", "the gzip file is damaged or truncated after 0 bytes of text: Not a gzipped file"),
        ("a.jsonl", b"", "the file is empty; fetch it again or remove it"),
        ("a.parquet", b"", "the file is empty; fetch it again or remove it"),
        ("a.jsonl.gz", b"", "the file is empty; fetch it again or remove it"),
    ],
)
def test_a_file_of_anything_else_is_known_by_its_beginning(
    tmp_path: Path, name: str, content: bytes, says: str
) -> None:
    (tmp_path / name).write_bytes(content)
    assert says in refused(tmp_path / name)
    rows, counts = skipped(tmp_path / name)
    assert not rows and sum(counts["dropped"].values()) == 1 and counts["samples"]


def test_a_large_file_of_junk_is_counted_once_though_it_has_parts(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(PNG * 10)
    found: list[Any] = []
    parts = parts_of("a.jsonl", tmp_path / "a.jsonl", ReadOptions(), 1000)
    assert len(parts) > 50
    for part in parts:
        assert not list(read_texts(part, ReadOptions(), found.append))
    assert [flaw.where for flaw in found] == ["a.jsonl"]


def test_a_line_of_another_encoding_is_named_with_what_it_looks_like(tmp_path: Path) -> None:
    lines = [json.dumps({"text": text}, ensure_ascii=False).encode() + b"\n" for text in ("ä", NEWS)]
    bad = json.dumps({"text": NEWS}, ensure_ascii=False).encode("gb18030") + b"\n"
    (tmp_path / "a.jsonl").write_bytes(lines[0] + bad + lines[1])
    told = refused(tmp_path / "a.jsonl")
    assert f"a.jsonl:2: byte {len(lines[0]) + 10} is not UTF-8" in told
    assert (
        "it looks like gb18030: if the whole file is, set 'encoding: gb18030'" in told and "'bad_records: skip'" in told
    )
    rows, counts = skipped(tmp_path / "a.jsonl")
    assert rows == ["ä", NEWS] and counts["dropped"] == {"not UTF-8": 1}
    (sample,) = counts["samples"]["not UTF-8"]
    assert sample["source"] == "a.jsonl:2" and r"\xd6" in sample["excerpt"]
    (tmp_path / "whole.jsonl").write_bytes(bad)
    assert read(tmp_path / "whole.jsonl", encoding="gb18030")[0] == [NEWS]


@pytest.mark.parametrize("encoding", ["utf-16", "rot13", "none"])
def test_an_encoding_that_cannot_be_read_line_by_line_is_refused(encoding: str) -> None:
    with pytest.raises(ValueError, match="convert the files: iconv|no encoding is called"):
        FileSource(path="a.txt", encoding=encoding)


def test_malformed_json_is_named_by_its_line_or_counted(tmp_path: Path) -> None:
    deep = "[" * 100_000
    lines = ['{"text": "fine"}', '{"text": "cut', "[1]", '{"body": "x"}', '{"text": 3}', '{"text": "\\ud83d"}', deep]
    (tmp_path / "a.jsonl").write_text("\n".join([*lines, '{"text": "fine too"}']))
    assert "a.jsonl:2: not a JSON object: " in refused(tmp_path / "a.jsonl")
    rows, counts = skipped(tmp_path / "a.jsonl")
    assert rows == ["fine", "fine too"]
    assert counts["dropped"] == {"malformed JSON": 4, "missing column": 1, "not text": 1}
    assert {sample["source"] for sample in counts["samples"]["malformed JSON"]} == {
        f"a.jsonl:{n}" for n in (2, 3, 6, 7)
    }


@pytest.mark.parametrize("name", ["a.jsonl", "a.csv", "a.tsv", "a.parquet"])
def test_a_missing_column_is_answered_with_those_present(tmp_path: Path, name: str) -> None:
    if name == "a.parquet":
        pq.write_table(pa.table({"text": ["x"]}), tmp_path / name)
    else:
        (tmp_path / name).write_text('{"text": "x"}\n' if name == "a.jsonl" else "text\nx\n")
    assert "there is no column 'sentence'; the columns are 'text'" in refused(tmp_path / name, text="sentence")
    rows, counts = skipped(tmp_path / name, text="sentence")
    assert not rows and counts["dropped"] == {"missing column": 1}


def test_an_overlong_line_is_named_with_its_size_or_counted(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "fine"}\n' + "x" * 5000 + '\n{"text": "fine too"}\n')
    told = refused(tmp_path / "a.jsonl", longest_document="2KiB")
    assert "a.jsonl:2: the line has 5,001 bytes, more than longest_document allows (2,048)" in told
    rows, counts = skipped(tmp_path / "a.jsonl", longest_document="2KiB")
    assert rows == ["fine", "fine too"] and counts["dropped"] == {"overlong line": 1}
    (tmp_path / "a.txt").write_text("short\n\n" + "a line\n" * 500 + "\nshort too\n")
    assert "a.txt:3: the document that begins here has 3,500 characters" in refused(
        tmp_path / "a.txt", longest_document=2048
    )
    rows, counts = skipped(tmp_path / "a.txt", longest_document=2048)
    assert [text.strip() for text in rows] == ["short", "short too"] and counts["dropped"] == {"overlong document": 1}
    pq.write_table(pa.table({"text": ["short", "x" * 5000, "short too"]}), tmp_path / "a.parquet")
    assert "a.parquet:2: the row has 5,0" in refused(tmp_path / "a.parquet", longest_document=2048)
    rows, counts = skipped(tmp_path / "a.parquet", longest_document=2048)
    assert rows == ["short", "short too"] and counts["dropped"] == {"overlong document": 1}


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.zst", "a.csv"])
def test_one_line_of_200_megabytes_takes_no_memory(tmp_path: Path, name: str) -> None:
    """Measured in a process of its own, which may not have more than 64 MiB above what it starts with."""
    block, path = b"x" * 2**20, tmp_path / name
    with zstandard.open(path, "wb") if path.suffix == ".zst" else path.open("wb") as file:
        file.write(b"text\n" if name == "a.csv" else b"")
        for _ in range(200):
            file.write(block)
    program = f"""
import resource
from pathlib import Path
import pyarrow
from pipelines.corpora.reading import read_texts
from pipelines.corpora.reading.options import ReadOptions
from pipelines.corpora.reading.parts import whole_file
from pipelines.errors import DataError
path = Path({str(path)!r})
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    list(read_texts(whole_file("a", path), ReadOptions(longest=2**20)))
except DataError as told:
    print(told)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    told, grown = done.stdout.splitlines()
    too_long = "the line has 209,715,200 bytes, more than longest_document allows (1,048,576)"
    assert ("is a decompression bomb" if path.suffix == ".zst" else too_long) in told
    assert int(grown) < 64


@pytest.mark.parametrize("packing", ["gz", "zst"])
def test_a_packed_file_that_is_cut_short_is_named(tmp_path: Path, packing: str) -> None:
    found = [text.replace("\n", " ") for text in documents("http")[:60]]
    lines = "".join(json.dumps({"text": text}) + "\n" for text in found)
    # in pieces, so that some can be unpacked
    pieces = [lines[begin : begin + 2000].encode() for begin in range(0, len(lines), 2000)]
    content = b"".join(gzip.compress(piece) if packing == "gz" else zstandard.compress(piece) for piece in pieces)
    path = tmp_path / f"a.jsonl.{packing}"
    path.write_bytes(content[: len(content) // 2])
    kind = "gzip" if packing == "gz" else "Zstandard"
    assert f"the {kind} file is damaged or truncated after " in refused(path)
    rows, counts = skipped(path)
    assert rows == found[: len(rows)] and counts["dropped"] == {"damaged file": 1}
    path.write_bytes(content[:100] + b"junk" + content[104:])
    assert f"the {kind} file is damaged" in refused(path) or packing == "zst"


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ({"text": [1, 2]}, "the column 'text' is of type int64, expected text"),
        ({"text": [b"\xff"]}, "the column 'text' is of type binary, expected text"),
        ({"text": [["a"]]}, "the column 'text' is of type list<"),
    ],
)
def test_a_parquet_column_of_another_type_is_refused(tmp_path: Path, columns: dict[str, Any], says: str) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table(columns), path)
    assert says in refused(path)
    assert skipped(path)[1]["dropped"] == {"not text": 1}


def test_text_is_read_however_parquet_keeps_it(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    kinds = [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())]
    for kind in kinds:
        pq.write_table(pa.table({"text": pa.array(["a", None, "b"]).cast(kind)}), path)
        assert read(path)[0] == ["a", "", "b"]


def test_a_parquet_file_that_is_cut_short_or_is_none_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"text": documents("http")[:50]}), path)
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    assert "not readable as Parquet: " in refused(path)
    assert skipped(path)[1]["dropped"] == {"damaged file": 1}
    path.write_bytes(content[:200] + b"\xff" * 50 + content[250:])
    assert "a.parquet:1: this row group cannot be read further" in refused(path)
    assert skipped(path)[1]["dropped"] == {"damaged rows": 1}


def test_a_quote_that_is_never_closed_is_named_where_it_opened(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    rows = [f"{number},text {number}\n" for number in range(1000)]
    path.write_text("number,text\n" + "".join(rows[:10]) + '10,"text 10\n' + "".join(rows[11:]))
    told = refused(path)
    assert "a.csv:12: a quote that opens in this row is never closed; close it, or double it" in told
    assert "a.csv:12: a quote that opens in this row is not closed within the length of a document" in refused(
        path, longest_document=2048
    )
    for longest in ("2KiB", "1MiB"):
        found, counts = skipped(path, longest_document=longest)
        assert found == [f"text {number}" for number in range(1000) if number != 10]
        assert counts["dropped"] == {"broken quotes": 1}
        assert counts["samples"]["broken quotes"] == [{"source": "a.csv:12", "excerpt": '10,"text 10\n'}]


def test_quotes_that_swallow_a_few_rows_are_noticed_there(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('text,label\n"one,1\n"two",2\n"three ""quoted""",3\nfour,4,extra\n"five\nlines",5\n')
    assert "a.csv:2: not readable as CSV: ',' expected after '\"'" in refused(path)
    found, counts = skipped(path)
    assert found == ["two", 'three "quoted"', "five\nlines"]
    assert counts["dropped"] == {"broken quotes": 1, "wrong number of fields": 1}
    path.write_bytes(b'text,label\n"one\n\xff\nmore",1\ntwo,2\n')
    assert skipped(path)[0] == ["two"], "a row is left out whole when a line of it cannot be read"


def test_a_document_of_which_a_line_is_bad_is_left_out_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"one\nmore\n\ntwo\n\xff\n\xfe\nmore\n\nthree\n")
    found, counts = skipped(path)
    assert found == ["one\nmore\n", "three\n"] and counts["dropped"] == {"not UTF-8": 1}
