"""The model that a command uses where it names none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pipelines.errors import CursusError
from tasks.models.default import latest_model


def executed(
    root: Path, started: str, fingerprint: str = "", *, dataset: str = "docs", measurement: bool = False,
    smoke: bool = False,
) -> None:  # fmt: skip
    """Write the record of an execution that fine-tuned one model, whose fingerprint is `started` if none is given."""
    step = {"stage": "classify", "seed": 0, "kind": "finetune", "fingerprint": fingerprint or started, "parents": {}}
    record = {"dataset": dataset, "started": started, "measurement": measurement, "smoke": smoke, "steps": [step]}
    path = root / "reports" / started / "execution.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(record), encoding="utf-8")


def test_what_was_trained_to_be_compared_or_to_try_is_not_the_model(tmp_path: Path) -> None:
    executed(tmp_path, "2026-11-02", smoke=True)
    executed(tmp_path, "2026-11-03", measurement=True)
    with pytest.raises(CursusError, match="no run on the dataset 'docs' has made a model"):
        latest_model(tmp_path, "docs")
    executed(tmp_path, "2026-11-01")
    assert latest_model(tmp_path).fingerprint == "2026-11-01"
    assert latest_model(tmp_path, "docs").fingerprint == "2026-11-01"
