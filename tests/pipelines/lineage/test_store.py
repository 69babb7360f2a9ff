"""The store: whole artifacts or none, whatever ends the process; one execution at a time; edits are noticed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipelines.errors import StoreError
from pipelines.lineage.provenance import RECORD, Environment, Provenance
from pipelines.lineage.results import RESULT, SCRATCH
from pipelines.lineage.store import Store, require_space

NAME = "ab" * 32
OTHER = "ab" + "cd" * 31
PUBLISH = """
import sys
from pathlib import Path
from pipelines.lineage.store import Store
from tests.pipelines.lineage.test_store import NAME, fill, record
store = Store(Path(sys.argv[1]))
fill(store.workspace(NAME), files=40, size=200_000)
print("begin", flush=True)
store.publish(record(NAME))
print("done", flush=True)
"""
HOLD = """
import sys, time
from pathlib import Path
from pipelines.lineage.store import Store
store = Store(Path(sys.argv[1]))
with store.shared(print):
    claim = store.claim("ab" * 32)
    print("held", flush=True)
    time.sleep(60)
"""


def record(name: str) -> Provenance:
    return Provenance(
        fingerprint=name, recipe="regime", stage="general", kind="pretrain", seed=0, identity={}, parents={}, data={},
        files={}, result={},
        environment=Environment(python="3", platform="", packages={}, commit=None, started="2026-01-01", seconds=1),
    )  # fmt: skip


def fill(work: Path, files: int = 2, size: int = 1000) -> None:
    for number in range(files):
        (work / "deep").mkdir(exist_ok=True)
        (work / "deep" / f"{number}.bin").write_bytes(bytes([number]) * size)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def publish(store: Store, name: str = NAME) -> Path:
    fill(store.workspace(name))
    return store.publish(record(name)).folder


def test_what_is_published_is_found_whole_and_without_scratch(store: Store) -> None:
    assert store.get(NAME) is None
    (store.workspace(NAME) / SCRATCH / "last.ckpt").write_bytes(b"x")
    folder = publish(store)
    found = store.get(NAME)
    assert found is not None and found.folder == folder and found.fingerprint == NAME
    assert sorted(found.provenance.files) == ["deep/0.bin", "deep/1.bin"]
    assert not (folder / SCRATCH).exists() and not (store.root / ".work" / NAME).exists()
    assert [provenance.fingerprint for provenance in store.all()] == [NAME]


def test_an_edited_or_lost_file_is_noticed(store: Store) -> None:
    folder = publish(store)
    file = folder / "deep" / "1.bin"
    content = file.read_bytes()
    file.write_bytes(b"y" + content[1:])  # the same size
    with pytest.raises(StoreError, match=r"deep/1.bin: differs from what was published; delete the folder"):
        store.get(NAME)
    file.write_bytes(content)
    assert store.get(NAME) is not None
    file.unlink()
    with pytest.raises(StoreError, match="differs"):
        store.get(NAME)


def test_a_damaged_record_is_told(store: Store) -> None:
    folder = publish(store)
    (folder / RECORD).write_text("{")
    with pytest.raises(StoreError, match="damaged record"):
        store.get(NAME)


@pytest.mark.parametrize("delay", [0.0, 0.01, 0.03, 0.08])
def test_a_kill_while_publishing_leaves_a_workspace_or_a_whole_artifact(store: Store, delay: float) -> None:
    with subprocess.Popen([sys.executable, "-c", PUBLISH, str(store.root)], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None and child.stdout.readline() == "begin\n"
        time.sleep(delay)
        child.send_signal(signal.SIGKILL)
    found = store.get(NAME)
    work = store.root / ".work" / NAME
    assert work.exists() == (found is None)
    if found is None:
        # nothing of the training was lost, and publishing again succeeds
        assert len([*(work / "deep").iterdir()]) == 40
        found = store.publish(record(NAME))
    assert len(found.provenance.files) == 40 and store.get(NAME) is not None


def test_executions_share_the_store_and_a_killed_one_leaves_no_lock(store: Store) -> None:
    with subprocess.Popen([sys.executable, "-c", HOLD, str(store.root)], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None and child.stdout.readline() == "held\n"
        said: list[str] = []
        with store.shared(said.append):
            assert store.claim(NAME) is None, "the other computes it"
            other = store.claim(OTHER)
            assert other is not None
            other.release(delete=True)
        assert said == []
        threading.Timer(0.5, child.kill).start()
        with store.exclusive(said.append):
            assert child.poll() is not None or child.wait(10), "it waited for the other to end"
    assert said == [f"{store.root}: a run is using this store; waiting for it to end"]
    claim = store.claim(NAME)
    assert claim is not None
    claim.release()


def test_a_run_waits_while_artifacts_are_removed(store: Store) -> None:
    said: list[str] = []
    entered = threading.Event()

    def run() -> None:
        with store.shared(said.append):
            entered.set()

    waiting = threading.Thread(target=run)
    with store.exclusive(said.append):
        waiting.start()
        assert not entered.wait(0.5)
        assert said == [f"{store.root}: artifacts are being removed from this store; waiting for that to end"]
    waiting.join(30)
    assert entered.is_set()


def test_an_artifact_is_found_by_its_first_digits(store: Store) -> None:
    publish(store, NAME)
    assert store.find("ab").fingerprint == NAME and store.find(NAME).fingerprint == NAME
    publish(store, OTHER)
    assert store.find("abcd").fingerprint == OTHER
    with pytest.raises(StoreError, match="2 artifacts start with 'ab'; give more digits"):
        store.find("ab")
    with pytest.raises(StoreError, match="no artifact starts with 'ff'"):
        store.find("ff")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A real file system of one mebibyte."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)]
    if shutil.which("mount") is None or os.geteuid() != 0 or subprocess.run(command, capture_output=True).returncode:
        pytest.skip("a small file system can be mounted by root only, and not in every container")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_is_told_and_leaves_no_artifact(small_disk: Path) -> None:
    store = Store(small_disk / "store")
    work = store.workspace(NAME)
    (work / "model.safetensors").write_bytes(b"w" * 500_000)
    with (small_disk / "filler").open("wb", buffering=0) as filler:
        try:
            while True:
                filler.write(b"f" * 4096)
        except OSError:
            pass
    with pytest.raises(StoreError, match="no space left on the disk; free some, then run again"):
        store.publish(record(NAME))
    assert store.get(NAME) is None and (work / "model.safetensors").stat().st_size == 500_000
    with pytest.raises(StoreError, match="0 MiB free, about 512 MiB needed"):
        require_space(store.root, 512 * 2**20)
    (small_disk / "filler").unlink()
    assert store.publish(record(NAME)).fingerprint == NAME


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "store").write_text("a file, not a folder")
    with pytest.raises(StoreError, match="cannot be written"):
        Store(tmp_path / "store").workspace(NAME)
    with pytest.raises(StoreError, match="cannot be written"), Store(tmp_path / "store").exclusive(print):
        pass


def test_what_a_kill_left_between_its_record_and_its_place_is_found_by_who_claims_it(store: Store) -> None:
    folder = publish(store)
    work = store.workspace(NAME)
    (work / SCRATCH).rmdir()
    for path in folder.iterdir():
        path.rename(work / path.name)
    folder.rmdir()
    claim = store.claim(NAME)
    assert claim is not None
    claim.release()
    found = store.get(NAME)
    assert found is not None and sorted(found.provenance.files) == ["deep/0.bin", "deep/1.bin"]


def test_what_is_damaged_there_is_computed_again(store: Store) -> None:
    folder = publish(store)
    work = store.workspace(NAME)
    for path in folder.iterdir():
        path.rename(work / path.name)
    folder.rmdir()
    (work / "deep" / "0.bin").write_bytes(b"x")
    claim = store.claim(NAME)
    assert claim is not None
    claim.release()
    assert store.get(NAME) is None and not (work / RECORD).exists()


def test_a_result_stays_until_all_of_its_record_is_written(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    work = store.workspace(NAME)
    fill(work)
    (work / RESULT).write_text("{}")

    class Killed(BaseException):
        pass

    def killed(path: Path, *rest: object) -> None:
        raise Killed

    monkeypatch.setattr("pipelines.lineage.store.os.replace", killed)
    with pytest.raises(Killed):
        store.publish(record(NAME))
    monkeypatch.undo()
    assert (work / RESULT).exists() and not (work / RECORD).exists()
    assert not (store.publish(record(NAME)).folder / RESULT).exists()


@pytest.mark.parametrize(("old", "new"), [('"seed": 0', '"seed": 1'), ('"recipe": "regime"', '"recipe": "cert"')])
def test_a_flipped_bit_in_a_record_is_noticed(store: Store, old: str, new: str) -> None:
    path = publish(store) / RECORD
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(StoreError, match="delete the folder .* and run again"):
        store.get(NAME)


def test_a_lost_record_is_told_and_not_passed_for_nothing(store: Store) -> None:
    (publish(store) / RECORD).unlink()
    with pytest.raises(StoreError, match="provenance.json is missing; delete the folder .* and run again"):
        store.get(NAME)
