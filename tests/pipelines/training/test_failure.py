"""The recorded error of a job, as the process that started it reads it."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines.errors import RecipeError
from pipelines.training.ranks.failure import read_failure, record_failure, reserve_space


@pytest.mark.parametrize("message", ["the rate is negative", "stage general: the rate is negative"])
def test_a_recorded_error_names_its_stage_once(message: str, tmp_path: Path) -> None:
    reserve_space(tmp_path)
    record_failure(tmp_path, RecipeError(message))
    told = read_failure(tmp_path, "general")
    assert isinstance(told, RecipeError) and str(told) == "stage general: the rate is negative"
