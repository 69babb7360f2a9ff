"""The library: compiled once, found again, and done without where it cannot be had."""

from __future__ import annotations

import errno
import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from pipelines.errors import CursusError
from pipelines.parts.accelerators.cpu_kernels import library
from pipelines.parts.accelerators.cpu_kernels.dropout import PHILOX
from pipelines.parts.accelerators.cpu_kernels.library import close_library, loaded_library, open_library


def test_what_was_compiled_is_found_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    close_library()
    assert open_library(tmp_path)
    (made,) = tmp_path.iterdir()
    before = made.stat().st_mtime_ns
    close_library()
    assert open_library(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [made.name]
    assert made.stat().st_mtime_ns == before


def test_another_source_is_another_library(compiled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    close_library()
    shutil.copytree(compiled, tmp_path, dirs_exist_ok=True)
    assert open_library(tmp_path) and len(list(tmp_path.glob("*.so"))) == 1
    changed = shutil.copytree(
        library.SOURCES, tmp_path / "sources", ignore=shutil.ignore_patterns("*.py", "__pycache__")
    )
    header = changed / "scalars.h"
    header.write_text(header.read_text(encoding="utf-8") + "\n/* later */\n", encoding="utf-8")
    monkeypatch.setattr(library, "SOURCES", changed)
    close_library()
    assert open_library(tmp_path)
    assert len(list(tmp_path.glob("*.so"))) == 2


def test_without_a_compiler_nothing_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    close_library()
    monkeypatch.setenv("PATH", str(tmp_path))
    with caplog.at_level(logging.INFO):
        assert not open_library(tmp_path)
    assert loaded_library() is None
    assert "no C compiler" in caplog.text


def test_a_compiler_that_fails_is_told_once_and_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    close_library()
    (tmp_path / "kernels.c").write_text("no such language", encoding="utf-8")
    monkeypatch.setattr(library, "SOURCES", tmp_path)
    assert not open_library(tmp_path / "kept")
    assert "torch's own kernels compute instead" in caplog.text
    assert os.listdir(tmp_path / "kept") == []


def test_a_compiler_that_does_not_end_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a loaded machine would compute other numbers than an idle one."""
    close_library()
    monkeypatch.setattr(library, "COMPILE_SECONDS", 0.001)
    with pytest.raises(CursusError, match="has not compiled the CPU kernels in .* minutes; run again"):
        open_library(tmp_path)
    assert loaded_library() is None


def test_a_disk_without_space_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the run that continues, with space, would compute other numbers than the one that was interrupted."""
    close_library()

    def full(source: Path, target: Path) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(target))

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space left"):
        open_library(tmp_path)


def no_bytes(whole: bytes) -> bytes:
    return b""


def third(whole: bytes) -> bytes:
    """The process that loads it ends with SIGBUS: headers promise more than the file has."""
    return whole[: len(whole) // 3]


def flipped(whole: bytes) -> bytes:
    """It loads, and computes something else."""
    middle = len(whole) // 2
    return whole[:middle] + bytes([whole[middle] ^ 4]) + whole[middle + 1 :]


@pytest.mark.parametrize("damage", [no_bytes, third, flipped])
def test_a_damaged_library_is_compiled_anew(compiled: Path, tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    """In a process of its own: what a process has once loaded from a path it does not load again."""
    close_library()
    shutil.copytree(compiled, tmp_path, dirs_exist_ok=True)
    assert open_library(tmp_path)
    (made,) = tmp_path.iterdir()
    whole = made.read_bytes()
    made.unlink()
    made.write_bytes(damage(whole))
    script = (
        "import sys, logging; from pathlib import Path; logging.basicConfig(level='INFO');"
        "from pipelines.parts.accelerators.cpu_kernels.library import open_library; "
        "sys.exit(int(open_library(Path(sys.argv[1]))))"
    )
    said = subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True)
    assert said.returncode == int(True), said.stderr
    assert f"{made} is damaged: the CPU kernels are compiled anew" in said.stderr
    (again,) = tmp_path.iterdir()
    assert again.read_bytes() == whole and again.name == made.name, "compilers give the same bytes again"


def test_a_library_that_cannot_be_loaded_is_done_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    close_library()
    no_library = tmp_path / "kernels.so"
    no_library.write_bytes(b"compiled for another system")
    monkeypatch.setattr(library, "_undamaged", lambda *_: no_library)
    assert not open_library(tmp_path)
    assert "cannot be compiled or loaded" in caplog.text


@pytest.mark.parametrize(
    ("first", "seed", "words"),
    [
        (0, 0, (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        # counter and key of the first two words, of which 2⁶⁴ - 1 is the last
        (2**64 - 1, 2**64 - 1, None),
    ],
)
def test_random_numbers_are_those_of_the_paper(first: int, seed: int, words: tuple[int, ...] | None) -> None:
    """Salmon et al. 2011: the known answers of Random123, and of an implementation in whole numbers."""
    said = np.zeros((4, 16), dtype=np.uint32)
    PHILOX(first, seed, said.ctypes.data)
    if words is not None:
        assert tuple(int(word) for word in said[:, 0]) == words
    for lane in range(16):
        assert tuple(int(word) for word in said[:, lane]) == philox((first + lane) % 2**64, seed)


def philox(block: int, seed: int) -> tuple[int, ...]:
    """Philox 4x32-10 as the paper writes it (§3.3, table 1)."""
    mask = 2**32 - 1
    counter, key = [block & mask, block >> 32, 0, 0], [seed & mask, seed >> 32]
    for _ in range(10):
        one, two = 0xD2511F53 * counter[0], 0xCD9E8D57 * counter[2]
        counter = [(two >> 32) ^ counter[1] ^ key[0], two & mask, (one >> 32) ^ counter[3] ^ key[1], one & mask]
        key = [(key[0] + 0x9E3779B9) & mask, (key[1] + 0xBB67AE85) & mask]
    return tuple(counter)
