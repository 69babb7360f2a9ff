"""The last accepted version of a dataset, and the acceptance of a changed one.

`accepted.json` holds the profiles of the last accepted version and of the one before it. It is no output of DVC, so
that it survives a rejected version.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from pipelines.corpora.shards.writing import read_json, write_json

ACCEPTED = "accepted.json"
VERDICT = "verdict.json"
VARIABLE = "CURSUS_ACCEPT"
"""Environment variable with the dataset whose drift is intended: `cursus data NAME --accept` sets it for DVC."""


def accepts_drift(dataset: str) -> bool:
    """Whether the next version of a dataset is accepted whatever its drift."""
    return os.environ.get(VARIABLE) == dataset


def reference_profile(path: Path, profile: dict[str, Any]) -> dict[str, Any] | None:
    """The profile that a version is compared with: the last accepted one, or the one before if that equals this
    version.

    Validating a version again therefore gives the same results.
    """
    if not path.is_file():
        return None
    known = read_json(path)
    reference: dict[str, Any] | None = known["before"] if known["accepted"] == profile else known["accepted"]
    return reference


def accept(path: Path, profile: dict[str, Any], reference: dict[str, Any] | None) -> None:
    """Record a version that passed. An intended drift has no `reference`, and is no drift when it is validated
    again."""
    write_json(path, {"accepted": profile, "before": reference})
