"""Every format, packed or not, whole or in parts, gives the same rows from the same places."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.corpora.reading import parts_of, read_bytes, read_texts
from pipelines.corpora.reading.finding import find_local
from pipelines.corpora.reading.flaws import Flaw, refuse
from pipelines.corpora.reading.options import ReadOptions
from pipelines.corpora.reading.parts import Part, group_parts, whole_file
from pipelines.errors import DataError

TEXTS = ["Größe ist, was zählt.", "second, with a comma\nand a line", '"quoted" 汉字']
PACKINGS = ["", ".gz", ".zst"]
FORMATS = [f"a{ending}{packing}" for ending in (".txt", ".jsonl", ".csv", ".tsv") for packing in PACKINGS] + [
    "a.parquet"
]


def packed(content: bytes, name: str) -> bytes:
    """Packed in two pieces, as files that were put together are."""
    halves = [content[: len(content) // 2], content[len(content) // 2 :]]
    if name.endswith(".gz"):
        return b"".join(gzip.compress(half) for half in halves)
    if name.endswith(".zst"):
        return b"".join(zstandard.compress(half) for half in halves)
    return content


def write(path: Path, texts: list[str]) -> Path:
    """The texts in the format of the name; tsv cannot hold line ends, and txt no blank lines."""
    kind = path.name.removesuffix(".gz").removesuffix(".zst").rpartition(".")[2]
    if kind == "parquet":
        pq.write_table(pa.table({"text": pa.array(texts, pa.string())}), path, row_group_size=2)
        return path
    out = io.StringIO(newline="")
    if kind == "csv":
        csv.writer(out).writerows([["number", "text"], *enumerate(texts)])
    elif kind == "tsv":
        out.write("number\ttext\n" + "".join(f"{number}\t{text}\n" for number, text in enumerate(texts)))
    elif kind == "txt":
        out.write("\ufeff" + "\n\n\n".join(texts) + "\n")
    else:
        out.write("".join(json.dumps({"text": text, "other": 1}) + "\n" for text in texts))
    path.write_bytes(packed(out.getvalue().encode(), path.name))
    return path


def read(path: Path, size: int = 2**40, **options: object) -> list[tuple[str, str]]:
    how = ReadOptions(**options)  # type: ignore[arg-type]
    return [row for part in parts_of(path.name, path, how, size) for row in read_texts(part, how)]


@contextmanager
def folder() -> Iterator[Path]:
    """For tests of many examples, which share the folder that pytest gives them."""
    with TemporaryDirectory() as name:
        yield Path(name)


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_gives_the_texts_and_where_they_stand(tmp_path: Path, name: str) -> None:
    texts = [text.replace("\n", " ") for text in TEXTS] if ".tsv" in name else TEXTS
    rows = read(write(tmp_path / name, texts))
    assert [text.strip() for text, _ in rows] == texts
    # the second text is two lines long, in the formats that have lines in a text
    places = {"txt": [1, 4, 8], "csv": [2, 3, 5], "tsv": [2, 3, 4]}.get(name.split(".")[1], [1, 2, 3])
    assert [source for _, source in rows] == [f"{name}:{place}" for place in places]


WORDS = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), min_size=1, max_size=30)
LINES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\0"), max_size=40)


@settings(max_examples=40, deadline=None)
@given(
    texts=st.lists(LINES, min_size=1, max_size=12),
    packing=st.sampled_from(PACKINGS),
    kind=st.sampled_from(["jsonl", "csv"]),
)
def test_any_text_is_read_back_as_it_was_written(texts: list[str], packing: str, kind: str) -> None:
    with folder() as home:
        rows = read(write(home / f"a.{kind}{packing}", texts))
    assert [text for text, _ in rows] == texts
    assert len({source for _, source in rows}) == len(texts)


@settings(max_examples=40, deadline=None)
@given(
    texts=st.lists(WORDS.filter(str.strip), min_size=1, max_size=12),
    name=st.sampled_from(["a.txt.zst", "a.tsv.gz", "a.parquet"]),
)
def test_any_text_of_one_line_is_read_back_from_the_other_formats(texts: list[str], name: str) -> None:
    with folder() as home:
        rows = read(write(home / name, texts))
    assert [text.strip() for text, _ in rows] == [text.strip() for text in texts]


@settings(max_examples=60, deadline=None)
@given(
    texts=st.lists(LINES, min_size=1, max_size=20),
    size=st.integers(1, 300),
    kind=st.sampled_from(["jsonl", "tsv", "txt"]),
)
def test_the_parts_of_a_file_give_what_the_file_gives_for_any_cut(texts: list[str], size: int, kind: str) -> None:
    if kind != "jsonl":
        texts = [" ".join(text.split()) or "x" for text in texts]
    with folder() as home:
        path = write(home / f"a.{kind}", texts)
        lines = kind == "txt"
        rows, content = read(path, size, lines=lines), path.read_bytes()
        assert [text for text, _ in rows] == [text for text, _ in read(path, lines=lines)]
    if len(content) > size:
        starts = [int(source.rpartition("@")[2]) for _, source in rows]
        assert starts == sorted(set(starts)) and all(
            start == 0 or content[start - 1 : start] == b"\n" for start in starts
        )


@settings(max_examples=20, deadline=None)
@given(count=st.integers(1, 40), size=st.integers(1, 2000))
def test_row_groups_are_the_parts_of_parquet(count: int, size: int) -> None:
    with folder() as home:
        path = write(home / "a.parquet", [f"text {number}" for number in range(count)])
        assert read(path, size) == [(f"text {number}", f"a.parquet:{number + 1}") for number in range(count)]


@given(weights=st.lists(st.integers(0, 50), max_size=30), most=st.integers(1, 5))
def test_groups_hold_every_part_once_and_no_more_than_they_may(weights: list[int], most: int) -> None:
    parts = [Part(f"{number}", Path(f"{number}.txt"), weight, 0) for number, weight in enumerate(weights)]
    groups = list(group_parts(parts, 60, most))
    assert [part for group in groups for part in group] == parts
    assert all(len(group) <= most and sum(part.weight for part in group) <= 60 for group in groups)


def test_bytes_of_any_encoding_are_read_when_it_is_said(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes("".join(json.dumps({"text": text}, ensure_ascii=False) + "\n" for text in TEXTS).encode("gb18030"))
    assert [text for text, _ in read(path, encoding="gb18030")] == TEXTS


@pytest.mark.parametrize("name", ["a.csv", "a.tsv"])
def test_a_file_without_a_row_of_names_gets_them_from_its_source(tmp_path: Path, name: str) -> None:
    between = "," if name == "a.csv" else "\t"
    (tmp_path / name).write_text(f"one{between}1\ntwo{between}2\n")
    assert read(tmp_path / name, header=("text", "label")) == [("one", f"{name}:1"), ("two", f"{name}:2")]


@pytest.mark.parametrize("packing", PACKINGS)
def test_a_file_that_is_one_value_is_read_whole_or_refused(tmp_path: Path, packing: str) -> None:
    path = tmp_path / f"a.json{packing}"
    value = json.dumps(TEXTS * 50).encode()
    path.write_bytes(packed(value, path.name))
    assert read_bytes(whole_file(path.name, path), refuse) == value
    if packing:
        path.write_bytes(path.read_bytes()[:-9])
        with pytest.raises(DataError, match="damaged or truncated"):
            read_bytes(whole_file(path.name, path), refuse)


def test_a_folder_a_glob_and_a_file_name_the_same_file(tmp_path: Path) -> None:
    (tmp_path / "in" / "deep").mkdir(parents=True)
    file = write(tmp_path / "in" / "deep" / "a.jsonl", TEXTS)
    (tmp_path / "in" / "README.md").write_text("no text of the corpus")
    (tmp_path / "in" / ".hidden.jsonl").write_text("neither")
    assert find_local(tmp_path / "in") == {"deep/a.jsonl": file}
    assert find_local(tmp_path / "in/**/*.jsonl") == {"deep/a.jsonl": file}
    assert find_local(tmp_path / "*/**/*.jsonl") == {"in/deep/a.jsonl": file}
    assert find_local(tmp_path / "in/d*/[a-c].jsonl") == {"deep/a.jsonl": file}
    assert find_local(file) == {"a.jsonl": file}


@settings(max_examples=40, deadline=None)
@given(
    names=st.sets(st.lists(st.sampled_from(["a", "b", "ab"]), min_size=1, max_size=3).map("/".join), max_size=8),
    pattern=st.lists(st.sampled_from(["**", "*", "a", "a*", "?"]), min_size=1, max_size=4),
)
def test_globs_find_what_the_standard_library_finds(names: set[str], pattern: list[str]) -> None:
    import glob

    with folder() as home:
        for name in names:
            (home / name).parent.mkdir(parents=True, exist_ok=True)
            (home / f"{name}.txt").write_text("x")
        asked = "/".join([*pattern[:-1], pattern[-1] + (".txt" if pattern[-1] != "**" else "")])
        expected = {file for file in glob.glob(f"{home}/{asked}", recursive=True) if Path(file).is_file()}
        try:
            found = {str(file) for file in find_local(home / asked).values()}
        except DataError:
            found = set()
        if "**" in asked or "*" in asked or "?" in asked:
            assert found == expected


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("none.txt", "no such file or folder"),
        ("*.csv", "no file with one of the extensions"),
        ("a.docx", "unknown file extension"),
        ("packed", "b.jsonl.bz2: .bz2 is not supported; compress the file with gzip or zstd"),
        ("p.parquet.gz", "unknown file extension; known: .*: parquet compresses its columns itself"),
    ],
)
def test_a_path_that_means_nothing_is_refused(tmp_path: Path, path: str, says: str) -> None:
    (tmp_path / "a.docx").write_bytes(b"PK")
    (tmp_path / "p.parquet.gz").write_bytes(b"PAR1")
    (tmp_path / "packed").mkdir()
    (tmp_path / "packed" / "b.jsonl.bz2").write_bytes(b"BZh9")
    with pytest.raises(DataError, match=says):
        find_local(tmp_path / path)


@settings(max_examples=150, deadline=None)
@given(junk=st.binary(max_size=400), name=st.sampled_from(FORMATS), size=st.integers(1, 100))
def test_no_bytes_end_in_anything_but_rows_or_one_error(junk: bytes, name: str, size: int) -> None:
    with folder() as home:
        (home / name).write_bytes(junk)
        try:
            rows = read(home / name, size)
        except DataError as told:
            assert str(home / name) in str(told)
        else:
            assert all(isinstance(text, str) for text, _ in rows)


@settings(max_examples=150, deadline=None)
@given(
    name=st.sampled_from(FORMATS),
    place=st.integers(0, 10_000),
    junk=st.binary(min_size=1, max_size=8),
    cut=st.booleans(),
)
def test_a_damaged_file_is_read_refused_or_counted(name: str, place: int, junk: bytes, cut: bool) -> None:
    with folder() as home:
        path = write(home / name, ["one text", "another text", "a third text"])
        content = path.read_bytes()
        place %= len(content)
        path.write_bytes(content[:place] + (b"" if cut else junk + content[place + len(junk) :]))
        flaws: list[Flaw] = []
        how = ReadOptions()
        skipped = list(read_texts(whole_file(name, path), how, flaws.append))
        try:
            assert list(read_texts(whole_file(name, path), how)) == skipped and not flaws
        except DataError as told:
            assert flaws and flaws[0].message.partition("\n")[0][:40] in str(told)
