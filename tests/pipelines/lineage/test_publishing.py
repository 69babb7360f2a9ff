"""Publishing is one rename of what is on the disk already: after a power cut there is all of an artifact or none."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pipelines.lineage.disk import write_text_atomically
from pipelines.lineage.provenance import RECORD
from pipelines.lineage.results import RESULT
from pipelines.lineage.store import Store
from tests.pipelines.lineage.test_store import NAME, fill, record


class Disk:
    """What was flushed and what was given a name, in order, each by its inode: a copy has another one."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.flushed = list[tuple[int, int]]()
        self.named = list[tuple[int, int, Path]]()
        fsync, replace = os.fsync, os.replace

        def noted_fsync(descriptor: int) -> None:
            fsync(descriptor)
            self.flushed.append((self._moment(), os.fstat(descriptor).st_ino))

        def noted_replace(source: Path, target: Path) -> None:
            inode = os.stat(source).st_ino
            replace(source, target)
            self.named.append((self._moment(), inode, Path(target)))

        patch.setattr(os, "fsync", noted_fsync)
        patch.setattr(os, "replace", noted_replace)

    def _moment(self) -> int:
        return len(self.flushed) + len(self.named)

    def moment_of_name(self, path: Path) -> int:
        """When `path` was given its name, in one rename."""
        (moment,) = [moment for moment, inode, target in self.named if target == path and inode == path.stat().st_ino]
        return moment

    def flushed_before(self, path: Path, moment: int) -> bool:
        return any(inode == path.stat().st_ino and when < moment for when, inode in self.flushed)

    def flushed_after(self, path: Path, moment: int) -> bool:
        return any(inode == path.stat().st_ino and when > moment for when, inode in self.flushed)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(monkeypatch)


def test_an_artifact_is_flushed_whole_and_then_renamed_into_its_place(tmp_path: Path, disk: Disk) -> None:
    store = Store(tmp_path / "store")
    work = store.workspace(NAME)
    fill(work)
    (work / RESULT).write_text("{}")
    inode = work.stat().st_ino
    folder = store.publish(record(NAME)).folder
    assert folder.stat().st_ino == inode, "what was published is the folder it was made in, and no copy of it"
    placed = disk.moment_of_name(folder)
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert sorted(path.relative_to(folder).as_posix() for path in files) == ["deep/0.bin", "deep/1.bin", RECORD]
    for path in files:
        assert disk.flushed_before(path, placed), f"{path.name} may be empty after a power cut"
    assert disk.flushed_before(folder, placed), "the names in the folder may be lost after a power cut"
    assert disk.flushed_after(store.root, placed), "the name of the folder may be lost after a power cut"


def test_a_record_vouches_for_nothing_that_is_not_on_the_disk(tmp_path: Path, disk: Disk) -> None:
    store = Store(tmp_path / "store")
    work = store.workspace(NAME)
    fill(work)
    folder = store.publish(record(NAME)).folder
    (written,) = [moment for moment, _, target in disk.named if target == work / RECORD]
    for path in (folder / "deep" / "0.bin", folder / "deep" / "1.bin", folder / RECORD):
        assert disk.flushed_before(path, written), f"{path.name} was not on the disk when the record was given its name"


def test_the_names_in_subfolders_are_on_the_disk_before_the_record(tmp_path: Path, disk: Disk) -> None:
    store = Store(tmp_path / "store")
    work = store.workspace(NAME)
    fill(work)
    (work / "deep" / "deeper").mkdir()
    (work / "deep" / "deeper" / "0.bin").write_bytes(b"0")
    folder = store.publish(record(NAME)).folder
    (written,) = [moment for moment, _, target in disk.named if target == work / RECORD]
    for path in (folder / "deep", folder / "deep" / "deeper"):
        times = sum(inode == path.stat().st_ino for _, inode in disk.flushed)
        assert times == 1, f"the names in {path.name} were flushed {times} times"
        assert disk.flushed_before(path, written), f"the names in {path.name} may be lost after a power cut"


@pytest.mark.parametrize("flushed", [True, False])
def test_a_file_gets_its_name_in_one_rename(tmp_path: Path, disk: Disk, flushed: bool) -> None:
    path = tmp_path / "record.json"
    write_text_atomically(path, "whole", flushed=flushed)
    assert disk.flushed_before(path, disk.moment_of_name(path)) is flushed
