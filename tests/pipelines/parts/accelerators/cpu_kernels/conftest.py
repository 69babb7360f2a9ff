"""The kernels, compiled once for all of these tests, in use only while one of them runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pipelines.parts.accelerators.cpu_kernels import operations  # noqa: F401  # registers itself when imported
from pipelines.parts.accelerators.cpu_kernels.library import close_library, open_library
from tests.shared_folders import compiled_folder


@pytest.fixture(scope="session")
def compiled() -> Path:
    """Where the kernels have been compiled to."""
    return compiled_folder()


@pytest.fixture(autouse=True)
def _kernels(compiled: Path) -> Iterator[None]:
    close_library()
    assert open_library(compiled), "the tests need a C compiler"
    yield
    close_library()
