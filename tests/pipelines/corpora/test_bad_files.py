"""Folders, links, rights and changes: what can be wrong with files whatever is in them, and what the steps make of it
all."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.corpora.reading import read_texts
from pipelines.corpora.reading.finding import find_local, too_many_files
from pipelines.corpora.reading.options import ReadOptions
from pipelines.corpora.reading.parts import whole_file
from pipelines.corpora.settings.sources import FileSource
from pipelines.corpora.shards.tally import Tally
from pipelines.corpora.steps.collect import collect
from pipelines.corpora.steps.pin import pin
from pipelines.corpora.steps.pinned_files import DIGESTS_SEEN, digests, pinned_files
from pipelines.corpora.steps.sources import texts, units_of
from pipelines.corpora.steps.step import prepared
from pipelines.errors import DataError
from tests.small_corpus import documents

PARAMS = """\
datasets:
  small:
    general: texts
    domain: domain.jsonl
    task: {train: train.jsonl, test: test.jsonl}
"""


def read(path: Path, **source: Any) -> list[str]:
    """The texts of a file as a source reads them."""
    return [text for text, _ in texts(FileSource(path=str(path), **source), path.parent, Tally())]


def test_too_many_files_are_refused_before_all_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(300):
        (tmp_path / f"{number}.txt").write_text("text")
    looked: list[str] = []
    isfile = os.path.isfile
    monkeypatch.setattr(os.path, "isfile", lambda path: looked.append(path) or isfile(path))
    for path in (tmp_path, tmp_path / "*.txt"):
        looked.clear()
        with pytest.raises(
            DataError, match="there are more than 100 files; put many texts in one file, as jsonl or parquet"
        ):
            find_local(path, most=100)
        assert len(looked) == 101


def test_the_advice_to_pack_files_works(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for number in range(3):
        (tmp_path / "in" / f"{number}.txt").write_text(f"text {number}\nmore")
    command = too_many_files("in", 1).partition("python -c ")[2].removesuffix(")").replace("FOLDER", "in")
    subprocess.run(f"{sys.executable} -c {command}", shell=True, check=True, cwd=tmp_path)
    assert sorted(read(tmp_path / "all.jsonl")) == [f"text {number}\nmore" for number in range(3)]


def test_many_files_have_a_small_pin_and_are_hashed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "in").mkdir()
    for number in range(500):
        (tmp_path / "in" / f"{number}.txt").write_text(f"text {number}")
    found = find_local(tmp_path / "in")
    before = pinned_files(found, tmp_path)
    assert before["files"] == 500 and len(json.dumps(before)) < 200
    (tmp_path / "in" / "7.txt").write_text("another text")
    assert pinned_files(found, tmp_path)["sha256"] != before["sha256"]
    monkeypatch.setattr("pipelines.corpora.steps.pinned_files.digest_file", lambda _: pytest.fail("was hashed before"))
    assert len(list(digests(list(found.values()), tmp_path))) == 500
    monkeypatch.undo()
    after = pinned_files(found, tmp_path)
    (tmp_path / DIGESTS_SEEN).write_bytes(b"damaged" * 1000)
    assert pinned_files(found, tmp_path) == after


def test_a_link_to_itself_and_a_link_to_nothing_are_refused(tmp_path: Path) -> None:
    (tmp_path / "in" / "deep").mkdir(parents=True)
    (tmp_path / "in" / "a.txt").write_text("text")
    (tmp_path / "in" / "deep" / "up").symlink_to(tmp_path / "in")
    for path in (tmp_path / "in", tmp_path / "in/**/*.txt"):
        with pytest.raises(DataError, match="deep/up: this link leads back to a folder that contains it"):
            find_local(path)
    assert find_local(tmp_path / "in/*.txt"), "a glob that does not go there"
    (tmp_path / "in" / "deep" / "up").unlink()
    (tmp_path / "in" / "b.txt").symlink_to(tmp_path / "in" / "b.txt")
    with pytest.raises(DataError, match="b.txt: this link points to no file"):
        find_local(tmp_path / "in")


def test_a_folder_behind_a_link_is_read(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "a.txt").write_text("text")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "linked").symlink_to(tmp_path / "elsewhere")
    assert list(find_local(tmp_path / "in")) == ["linked/a.txt"]


@contextmanager
def as_nobody() -> Iterator[None]:
    """Root may read everything: what others may not is tested as another user."""
    if os.geteuid():
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_a_file_that_may_not_be_read_is_named_and_never_skipped(tmp_path: Path) -> None:
    if not os.geteuid():
        for folder in (tmp_path, *list(tmp_path.parents)[:3]):  # a worker of xdist has a folder of its own
            folder.chmod(0o755)
    path = tmp_path / "a.txt"
    path.write_text("text")
    path.chmod(0)
    for name in ("a.txt", "a.parquet"):
        path = path.rename(tmp_path / name)
        for bad in ("refuse", "skip"):
            with as_nobody(), pytest.raises(DataError, match=rf"{name}: cannot be read: Permission denied"):
                read(path, bad_records=bad)
    (tmp_path / "state").mkdir()
    (tmp_path / "state").chmod(0o777)
    with as_nobody(), pytest.raises(DataError, match="cannot be read: Permission denied"):
        list(digests([path], tmp_path / "state"))
    (tmp_path / "in").mkdir(mode=0)
    with as_nobody(), pytest.raises(DataError, match="in: the folder cannot be read: Permission denied"):
        find_local(tmp_path / "in")


@pytest.mark.parametrize("name", ["a.jsonl", "a.parquet"])
def test_a_file_that_changes_while_it_is_read_is_an_error(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    if name == "a.parquet":
        pq.write_table(pa.table({"text": ["text"] * 20}), path)
    else:
        path.write_text('{"text": "text"}\n' * 20)
    before = whole_file(name, path)
    found = read_texts(before, ReadOptions())
    next(found)
    with path.open("ab") as file:
        file.write(b'{"text": "more"}\n')
    with pytest.raises(DataError, match="the file changed while it was read"):
        list(found)
    with pytest.raises(DataError, match="the file changed while it was read"):
        list(read_texts(before, ReadOptions()))


def test_small_files_share_a_unit_of_work_and_a_large_one_has_many(tmp_path: Path) -> None:
    for number in range(20):
        (tmp_path / f"{number:02}.txt").write_text(f"text {number}")
    with (tmp_path / "large.jsonl").open("wb") as file:
        file.write(b'{"text": "first"}\n')
        file.truncate(200 * 2**20)
    small, _ = units_of([FileSource(path="*.txt")], tmp_path)
    large, size = units_of([FileSource(path="large.jsonl")], tmp_path)
    assert (len(small), len(large), size) == (1, 4, 200 * 2**20)


def test_the_steps_count_what_they_skip_and_read_only_what_is_pinned(tmp_path: Path) -> None:
    params, bad = tmp_path / "params.yaml", tmp_path / "texts" / "bad.jsonl"
    params.write_text(PARAMS)
    bad.parent.mkdir()
    for name in ("texts/good", "domain", "train", "test"):
        rows = [{"text": text, "label": len(text) % 2} for text in documents("http")[:20]]
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    bad.write_bytes(b'{"text": "cut\n' * 7 + b'{"text": "caf\xe9"}\n')
    pin("small", tmp_path)
    with pytest.raises(DataError, match=r"bad.jsonl:1: not a JSON object: .*'bad_records: skip' in the source"):
        collect("small", tmp_path)
    text = params.read_text()
    params.write_text(text.replace("general: texts", "general: {path: texts, bad_records: skip}"))
    pin("small", tmp_path)
    collect("small", tmp_path)
    (counts,) = json.loads((prepared("small", tmp_path) / "collected" / "counts.json").read_text())
    general = counts["tables"]["general"]
    assert general["dropped"] == {"malformed JSON": 7, "not UTF-8": 1} and general["documents"] == 20
    assert general["samples"]["not UTF-8"] == [{"source": "bad.jsonl:8", "excerpt": '{"text": "caf\\xe9"}\n'}]
    bad.write_text('{"text": "mended"}\n')
    with pytest.raises(
        DataError, match="texts: changed since data/pins/small.json was written; run 'cursus data small'"
    ):
        collect("small", tmp_path)
