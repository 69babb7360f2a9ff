"""A file is whole or as it was: after an error, after a kill, and where several write it at once."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pipelines.lineage.disk import atomic_write, unique_temporary_path, write_text_atomically

KILLED = """
import os, signal, sys
from pathlib import Path
from pipelines.lineage.disk import atomic_write

with atomic_write(Path(sys.argv[1])) as place, place.open("w") as file:
    file.write("half of")
    file.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_an_error_leaves_what_was_there_and_nothing_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    write_text_atomically(path, "the first", flushed=True)
    with pytest.raises(ZeroDivisionError), atomic_write(path) as place:
        place.write_text("half of")
        raise ZeroDivisionError
    assert path.read_text() == "the first"
    assert list(tmp_path.iterdir()) == [path]


def test_what_a_killed_writer_left_goes_with_the_next(tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    write_text_atomically(path, "the first")
    subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False)
    assert path.read_text() == "the first"
    assert len(list(tmp_path.iterdir())) == 2, "half of a file is beside it"
    write_text_atomically(path, "the second")
    assert path.read_text() == "the second"
    assert list(tmp_path.iterdir()) == [path]


def test_several_writers_at_once_leave_one_of_what_they_wrote(tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    texts = [str(number) * 100_000 for number in range(8)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda text: write_text_atomically(path, text, unique_temporary_path(path)), texts))
    assert path.read_text() in texts
    assert list(tmp_path.iterdir()) == [path]
