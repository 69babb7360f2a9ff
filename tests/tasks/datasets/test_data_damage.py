"""A bit that flips in a prepared table, and in DVC's cache with it, while the file keeps its time."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pipelines.corpora.shards.digests import dvc_digest
from tasks.datasets.damage import damaged, discard
from tasks.datasets.prepared import Prepared, open_prepared, prepare


def flip(path: Path) -> None:
    """As a failing disk does: nothing but one bit differs, in everything that is linked to these bytes."""
    before = path.stat()
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.chmod(0o644)
    path.write_bytes(content)
    path.chmod(before.st_mode)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.fixture
def small(checkout: Path) -> Prepared:
    return open_prepared("small", checkout)


@pytest.mark.parametrize(("table", "output"), [("general", "general"), ("train", "train.parquet")])
def test_a_table_that_a_disk_has_changed_is_made_again(
    table: str, output: str, small: Prepared, checkout: Path
) -> None:
    assert damaged(small) == []
    path = small.tables[table]
    flip(path if path.is_file() else next(path.glob("*.parquet")))
    assert prepare("small", checkout) == small, "DVC does not see it: if it does now, tasks/datasets/damage.py can go"
    assert damaged(small) == [output]
    discard(small, output, checkout)
    again = prepare("small", checkout)
    assert again.digests == small.digests and dvc_digest(again.tables[table]) == small.digests[table]
