"""DVC is started for a dataset unless it has found exactly this state of its files up to date."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from pipelines.errors import DataError
from tasks.datasets.checked_data import RWLOCK, DataCheck
from tasks.datasets.dvc_process import OCCUPIED
from tasks.datasets.prepared import prepare, up_to_date

TABLE = Path("data", "prepared", "small", "test.parquet")


@pytest.fixture
def checked(checkout: Path) -> Path:
    """The checkout, whose data DVC has found up to date a while after they had changed."""
    time.sleep(0.1)
    prepare("small", checkout)
    assert DataCheck("small", checkout).is_known()
    return checkout


def starts_dvc(checkout: Path) -> bool:
    """Whether preparing the dataset starts DVC, whose log is then written anew."""
    log = checkout / ".cursus" / "logs" / "data-small.log"
    log.write_text("as it was")
    prepare("small", checkout)
    return log.read_text() != "as it was"


def test_a_state_that_dvc_has_checked_is_not_checked_again(checked: Path) -> None:
    assert not starts_dvc(checked)
    assert up_to_date("small", checked)


def test_a_table_that_is_written_anew_is_checked_whatever_its_time(checked: Path) -> None:
    table = checked / TABLE
    status, content = table.stat(), table.read_bytes()
    table.unlink()
    table.write_bytes(content)
    os.utime(table, ns=(status.st_atime_ns, status.st_mtime_ns))
    time.sleep(0.1)
    assert starts_dvc(checked)
    assert not starts_dvc(checked), "it was recorded"


@pytest.mark.parametrize("path", ["params.yaml", "dvc.yaml", "dvc.lock", "data/pins/small.json"])
def test_what_dvc_compares_is_part_of_the_state(checked: Path, path: str) -> None:
    (checked / path).touch()
    assert not DataCheck("small", checked).is_known()


def test_a_lost_table_is_made_again(checked: Path) -> None:
    (checked / TABLE).unlink()
    prepare("small", checked)
    assert (checked / TABLE).is_file()


def test_what_has_just_changed_is_not_trusted(checked: Path) -> None:
    (checked / TABLE).touch()
    check = DataCheck("small", checked)
    check.remember()
    assert not DataCheck("small", checked).is_known()


def test_what_changes_during_the_check_is_not_recorded(checked: Path) -> None:
    (checked / "params.yaml").touch()
    time.sleep(0.1)
    check = DataCheck("small", checked)
    (checked / TABLE).touch()
    check.remember()
    assert not DataCheck("small", checked).is_known()


@pytest.mark.parametrize("content", ["", "dvc", "\0"])
def test_a_record_that_is_none_is_ignored(checked: Path, content: str) -> None:
    (checked / ".cursus" / "checked_data" / "small").write_text(content)
    assert starts_dvc(checked)


def test_a_path_that_dvc_uses_is_left_to_dvc(checked: Path) -> None:
    owner = {"pid": os.getpid(), "cmd": "dvc push"}
    (checked / RWLOCK).write_text(json.dumps({"write": {str(checked / TABLE): owner}, "read": {}}))
    assert not DataCheck("small", checked).is_known()
    lines: list[str] = []
    prepare("small", checked, lines.append)
    assert OCCUPIED not in lines, "this process is no DVC"


def test_a_source_that_is_missing_is_reported(checked: Path) -> None:
    source = checked / "texts" / "domain.csv"
    source.rename(checked / "elsewhere")
    try:
        with pytest.raises(DataError, match=r"domain\.csv"):
            prepare("small", checked)
    finally:
        (checked / "elsewhere").rename(source)
