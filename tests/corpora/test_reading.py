"""Every format gives the same rows; every damaged file is named with its place."""

from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.corpora.reading import find_files, read_texts
from pipelines.errors import DataError

TEXTS = ["Größe ist, was zählt.", "second, with a comma\nand a line", '"quoted" 汉字']


def write(path: Path) -> Path:
    if path.suffix == ".parquet":
        pq.write_table(pa.table({"text": TEXTS}), path)
    elif path.suffix == ".csv":
        with path.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([["text"], *([text] for text in TEXTS)])
    elif path.name.endswith(".txt"):
        path.write_text("\ufeff" + "\n\n\n".join(TEXTS) + "\n", encoding="utf-8")
    else:
        content = "".join(json.dumps({"text": text, "other": 1}) + "\n" for text in TEXTS).encode()
        path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


@pytest.mark.parametrize("name", ["a.txt", "a.jsonl", "a.jsonl.gz", "a.csv", "a.parquet"])
def test_every_format_gives_the_texts_and_where_they_stand(tmp_path: Path, name: str) -> None:
    rows = list(read_texts(name, write(tmp_path / name), "text"))
    assert [text.strip() for text, _ in rows] == TEXTS
    assert all(source.startswith(f"{name}:") for _, source in rows)


def test_a_folder_a_glob_and_a_file_name_the_same_file(tmp_path: Path) -> None:
    (tmp_path / "in" / "deep").mkdir(parents=True)
    file = write(tmp_path / "in" / "deep" / "a.jsonl")
    (tmp_path / "in" / "README.md").write_text("no text of the corpus")
    assert find_files("in", tmp_path) == {"deep/a.jsonl": file}
    assert find_files("in/**/*.jsonl", tmp_path) == {"deep/a.jsonl": file}
    assert find_files(str(file), tmp_path) == {"a.jsonl": file}


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("none.txt", "no such file or folder"),
        ("*.csv", "no file with one of the endings"),
        ("a.docx", "unknown ending"),
    ],
)
def test_a_path_that_means_nothing_is_refused(tmp_path: Path, path: str, says: str) -> None:
    (tmp_path / "a.docx").write_bytes(b"PK")
    with pytest.raises(DataError, match=says):
        find_files(path, tmp_path)


def test_a_byte_that_is_not_utf_8_is_named_by_its_offset(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes("ä\n".encode() + b"caf\xe9\n")
    with pytest.raises(DataError, match=r"a\.txt: byte 6 \(line 2\) is not UTF-8"):
        list(read_texts("a.txt", tmp_path / "a.txt", "text"))


def test_a_malformed_line_is_named_by_file_and_line(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "fine"}\n{"text": "cut\n')
    with pytest.raises(DataError, match=r"a\.jsonl:2: not a JSON object"):
        list(read_texts("a.jsonl", tmp_path / "a.jsonl", "text"))


@pytest.mark.parametrize("name", ["a.jsonl", "a.csv", "a.parquet"])
def test_a_missing_column_is_answered_with_those_present(tmp_path: Path, name: str) -> None:
    with pytest.raises(DataError, match="there is no column 'sentence'; the columns are 'text'"):
        list(read_texts(name, write(tmp_path / name), "sentence"))


def test_a_gzip_file_that_is_cut_short_is_named(tmp_path: Path) -> None:
    whole = gzip.compress("".join(f'{{"text": "number {n} {hash(n)}"}}\n' for n in range(5000)).encode())
    (tmp_path / "a.jsonl.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match=r"a\.jsonl\.gz: the gzip file is damaged or cut short after \d+ bytes"):
        list(read_texts("a.jsonl.gz", tmp_path / "a.jsonl.gz", "text"))
