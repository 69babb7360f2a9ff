"""States of files: every change of content gives another one, whatever the times that are set."""

from __future__ import annotations

import os
import time
from pathlib import Path

from pipelines.lineage.file_states import changed_before, digest_of, latest_trusted_time, state_of, states_of, tree


def test_any_write_gives_another_state_though_size_and_time_are_as_they_were(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("one")
    before, status = state_of(str(file)), file.stat()
    assert state_of(str(file)) == before
    time.sleep(0.05)
    file.write_text("two")
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert file.stat().st_size == status.st_size and file.stat().st_mtime_ns == status.st_mtime_ns
    assert state_of(str(file)) != before
    (tmp_path / "other").write_text("two")
    os.replace(tmp_path / "other", file)
    assert state_of(str(file)) != before


def test_a_folder_is_its_names_without_what_python_compiles(tmp_path: Path) -> None:
    (tmp_path / "module.py").touch()
    before = state_of(str(tmp_path))
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "module.py").write_text("1")
    assert state_of(str(tmp_path)) == before
    (tmp_path / "new.py").touch()
    assert state_of(str(tmp_path)) != before


def test_what_is_missing_has_a_state_too(tmp_path: Path) -> None:
    file = tmp_path / "file"
    paths = [str(file), str(file / "below")]
    missing = digest_of(states_of(paths))
    assert state_of(str(file)) == ()
    file.touch()
    assert state_of(str(file / "below")) == ()
    assert digest_of(states_of(paths)) != missing
    file.unlink()
    assert digest_of(states_of(paths)) == missing


def test_a_tree_is_listed_whole_through_links_and_once_around_a_circle(tmp_path: Path) -> None:
    (tmp_path / "a" / "__pycache__").mkdir(parents=True)
    (tmp_path / "a" / "__pycache__" / "module.pyc").touch()
    (tmp_path / "a" / "skipped").mkdir()
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "file").touch()
    (tmp_path / "a" / "link").symlink_to(tmp_path / "linked")
    (tmp_path / "linked" / "circle").symlink_to(tmp_path / "a")
    names = [Path(path).relative_to(tmp_path).as_posix() for path in tree(str(tmp_path / "a"), frozenset({"skipped"}))]
    assert names == ["a", "a/link", "a/link/circle", "a/link/file"]
    assert [*tree(str(tmp_path / "missing"))] == [str(tmp_path / "missing")]


def test_only_what_is_older_than_the_precision_of_times_is_trusted(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    assert not changed_before(str(file), latest_trusted_time(tmp_path))
    assert changed_before(str(tmp_path / "missing"), 0)
    deadline = time.monotonic() + 10
    while not changed_before(str(file), latest_trusted_time(tmp_path)):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    os.utime(file, (0, 0))
    assert not changed_before(str(file), latest_trusted_time(tmp_path)), "its time is set back, and that is a change"
    assert [*tmp_path.iterdir()] == [file], "nothing is left"
