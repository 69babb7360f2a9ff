"""Tables of shards: the same bytes for any number of processes, nothing lost when the work is killed, nothing dropped
unseen."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.corpora.engines.work import reporting, run_units
from pipelines.corpora.shards import folders as shards
from pipelines.corpora.shards.folders import MANIFEST, manifest, map_shards, table_files, write_table
from pipelines.corpora.shards.tables import TEXTS, Row, read_rows, write_rows
from pipelines.corpora.shards.tally import SAMPLES, Tally
from pipelines.corpora.shards.writing import read_json
from pipelines.errors import DataError
from tests.pipelines.corpora.rows_of_tables import table_rows
from tests.pipelines.corpora.small_dataset import documents

REPOSITORY = Path(__file__).parents[3]


def rows(count: int) -> Iterator[Row]:
    texts = documents("email") + documents("asyncio")
    return ((texts[number % len(texts)], f"docs:{number}", "docs") for number in range(count))


@dataclass(frozen=True)
class WithoutShort:
    """A change of a table, as the steps write them."""

    least: int

    def __call__(self, found: Iterator[Row], tally: Tally) -> Iterable[Row]:
        for text, *others in found:
            if len(text) < self.least:
                tally.drop("short", text, others[0])
            else:
                yield (text.upper(), *others)


@pytest.fixture
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shards, "SHARD_BYTES", 20_000)
    monkeypatch.setattr(shards, "ALONE_BELOW", 0)


def digest(table: Path) -> dict[str, str]:
    return {path.name: sha256(path.read_bytes()).hexdigest() for path in sorted(table.iterdir())}


@pytest.mark.usefixtures("small_shards")
def test_any_number_of_processes_writes_the_same_bytes(tmp_path: Path) -> None:
    found = write_table(tmp_path / "in", TEXTS, rows(400), Tally())
    assert len(found["shards"]) > 3 and found["documents"] == 400
    for processes in (1, 3):
        map_shards(
            tmp_path / "in",
            tmp_path / f"out{processes}",
            TEXTS,
            WithoutShort(200),
            tmp_path / f"u{processes}",
            processes,
        )
    assert digest(tmp_path / "out1") == digest(tmp_path / "out3")
    whole = manifest(tmp_path / "out1")
    expected = [(text.upper(), *others) for text, *others in rows(400) if len(text) >= 200]
    assert list(table_rows(tmp_path / "out1")) == expected
    assert pq.read_table(tmp_path / "out1").num_rows == whole["documents"] == 400 - whole["dropped"]["short"]
    assert len(whole["samples"]["short"]) == SAMPLES and all(
        len(one["excerpt"]) < 200 for one in whole["samples"]["short"]
    )
    for shard in whole["shards"]:
        assert sha256((tmp_path / "out1" / shard["file"]).read_bytes()).hexdigest() == shard["sha256"]


def test_an_empty_table_still_has_its_columns(tmp_path: Path) -> None:
    write_table(tmp_path / "in", TEXTS, [], Tally())
    map_shards(tmp_path / "in", tmp_path / "out", TEXTS, WithoutShort(1), tmp_path / "u", 1)
    assert pq.read_table(tmp_path / "out").schema.equals(TEXTS) and list(table_rows(tmp_path / "out")) == []
    (tmp_path / "out" / MANIFEST).unlink()
    with pytest.raises(DataError, match="so this is not a complete table; run the step that writes it again"):
        table_files(tmp_path / "out")


@given(st.lists(st.tuples(st.sampled_from("ab"), st.text(max_size=20)), max_size=60), st.integers(0, 60))
def test_samples_do_not_depend_on_how_the_work_was_cut(drops: list[tuple[str, str]], cut: int) -> None:
    whole, parts = Tally(), [Tally(), Tally()]
    for number, (reason, text) in enumerate(drops):
        for tally in (whole, parts[number >= cut]):
            tally.drop(reason, text, f"place {number}")
    together = Tally()
    for part in reversed(parts):
        together.add(part.counts())
    assert together.counts() == whole.counts()


@dataclass(frozen=True)
class Slow:
    """A unit that says when it was computed, and takes a while."""

    name: str
    seconds: float

    def __call__(self, folder: Path) -> None:
        (folder / "began").write_text(str(time.time_ns()))
        time.sleep(self.seconds)
        (folder / "whole").write_text(self.name)


UNITS = [Slow(f"{number:02d}", 0.15) for number in range(12)]


def test_what_is_finished_when_the_work_is_killed_is_not_computed_again(tmp_path: Path) -> None:
    home = tmp_path / "home"
    script = f"from tests.pipelines.corpora.test_shards import *\nrun_units(UNITS, Path({str(home)!r}), 2)"
    process = subprocess.Popen([sys.executable, "-c", script], cwd=REPOSITORY, start_new_session=True)
    deadline = time.monotonic() + 60
    while not (home.is_dir() and any(folder.name[0] != "." for folder in home.iterdir())):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    while _alive(process.pid):  # the pool's processes end with their parent
        assert time.monotonic() < deadline
        time.sleep(0.05)
    finished = {folder.name: (folder / "began").read_text() for folder in home.iterdir() if folder.name[0] != "."}
    assert 0 < len(finished) < len(UNITS)
    folders = run_units(UNITS, home, 1)
    assert [(folder / "whole").read_text() for folder in folders] == [unit.name for unit in UNITS]
    assert {name: (home / name / "began").read_text() for name in finished} == finished
    assert not [folder for folder in home.iterdir() if folder.name[0] == "."]


def _alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


@dataclass(frozen=True)
class Failing:
    """A unit that fails as a user's data makes one fail, or is killed as one without memory is."""

    name: str
    killed: bool = False

    def __call__(self, folder: Path) -> None:
        (folder / "half").write_text("written")
        if self.killed:
            os.kill(os.getpid(), signal.SIGKILL)
        raise DataError(f"{self.name}: the file is damaged")


def test_a_mistake_ends_the_work_and_leaves_nothing_half_written(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="^b: the file is damaged$"):
        run_units([Slow("a", 0), Failing("b"), Failing("c")], tmp_path / "one", 2)
    assert {path.name for path in (tmp_path / "one").iterdir()} == {"a"}
    with pytest.raises(
        DataError, match=r"was killed, most likely because it ran out of memory: lower runtime\.processes"
    ):
        run_units([Slow("a", 0), Failing("b", killed=True)], tmp_path / "two", 2)
    assert [read_json(path) for path in (tmp_path / "two").glob("b/*")] == []


def test_a_group_of_rows_is_bounded_by_bytes_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipelines.corpora.shards.tables.BYTES_IN_A_GROUP", 10_000)
    write_table(tmp_path / "in", TEXTS, rows(200), Tally())
    (file,) = table_files(tmp_path / "in")
    groups = pq.ParquetFile(file).metadata
    sizes = [groups.row_group(number).num_rows for number in range(groups.num_row_groups)]
    assert len(sizes) > 5 and sum(sizes) == 200


def test_strings_of_few_values_are_kept_once(tmp_path: Path) -> None:
    schema = pa.schema([("text", pa.string()), ("label", pa.string()), ("origin", pa.string())])
    found = [(f"text {number}", (None, "a", "b")[number % 3], f"file:{number}") for number in range(2000)]
    write_rows(tmp_path / "a.parquet", schema, found)
    again = list(read_rows(tmp_path / "a.parquet"))
    assert again == found and len({id(row[1]) for row in again}) == 3
    write_rows(tmp_path / "empty.parquet", schema, [])
    assert list(read_rows(tmp_path / "empty.parquet")) == []


def test_finished_units_are_counted(tmp_path: Path) -> None:
    lines: list[str] = []
    units = [Slow(f"{number}", 0) for number in range(3)]
    with reporting(lines.append):
        run_units(units, tmp_path / "one", 1)
        run_units(units, tmp_path / "two", 2)
        run_units(units, tmp_path / "two", 2)
        run_units(units[:1], tmp_path / "three", 1)
    run_units(units, tmp_path / "four", 1)
    assert lines == 2 * ["1 of 3 parts", "2 of 3 parts", "3 of 3 parts"]
