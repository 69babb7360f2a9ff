"""Records of `cursus reproduce`, written while it runs.

data/store/.reproduced/<model>-1/                    the store of one reproduction; kept when something differs
data/store/.reproduced/<model>-1/reproduction.json   the comparison so far
data/store/.reproduced/records/<model>.json          the latest completed comparison, also when its store was deleted
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Literal, Self

from pydantic import BaseModel, ValidationError, computed_field

from pipelines.errors import StoreError
from pipelines.lineage.disk import write_text_atomically
from pipelines.lineage.store import Store

RESULT = "reproduction.json"
FOLDER = ".reproduced"
RECORDS = "records"


class StageComparison(BaseModel):
    """Comparison of one stage's recorded artifact with the reproduced one."""

    stage: str
    recipe: str
    fingerprint: str
    """Fingerprint of the recorded artifact."""
    outcome: Literal["identical", "differs", "not made"] = "not made"
    files: dict[str, str] = {}
    """Files that differ, with the first digits of their recorded and reproduced sha256."""
    reasons: list[str] = []
    """Recorded conditions that differ, the likeliest cause first."""
    seconds: float | None = None
    """Duration of the reproduction."""


class Reproduction(BaseModel):
    """A reproduced lineage."""

    model: str
    fingerprint: str
    folder: Path
    """The store that holds the reproduced artifacts."""
    warnings: list[str] = []
    """Differences in data, code, libraries and device, known before anything was computed."""
    stages: list[StageComparison]

    @computed_field  # type: ignore[prop-decorator]  # pydantic's documented form
    @property
    def identical(self) -> bool:
        """Whether every stage is byte for byte identical."""
        return all(stage.outcome == "identical" for stage in self.stages)

    @property
    def first(self) -> StageComparison | None:
        """The first stage that differs, parents before children."""
        return next((stage for stage in self.stages if stage.outcome == "differs"), None)

    @property
    def sentence(self) -> str:
        """The verdict in one sentence."""
        first = self.first
        if first is None:
            made = sum(stage.outcome == "identical" for stage in self.stages)
            done = "byte for byte identical" if self.identical else "identical so far"
            return f"{self.model}: {made} of {len(self.stages)} stages reproduced, {done}."
        files = f" ({', '.join(first.files)})" if first.files else ""
        return f"{self.model}: {first.stage} is the first stage that differs{files}: {'; '.join(first.reasons)}."

    def put(self, compared: StageComparison) -> None:
        """Store the comparison of a stage."""
        for position, known in enumerate(self.stages):
            if known.fingerprint == compared.fingerprint:
                self.stages[position] = compared

    def write(self) -> None:
        """Write the comparison so far to the folder of the reproduction."""
        write_text_atomically(self.folder / RESULT, self.model_dump_json(indent=1))

    def keep(self, store: Store) -> None:
        """Write the completed comparison to the store of the model, where promotion reads it."""
        folder = store.root / FOLDER / RECORDS
        folder.mkdir(parents=True, exist_ok=True)
        write_text_atomically(folder / f"{self.fingerprint}.json", self.model_dump_json(indent=1))

    @classmethod
    def read(cls, folder: Path) -> Self | None:
        """Read the comparison in `folder`; None when it is missing or incomplete."""
        try:
            return cls.model_validate_json((folder / RESULT).read_bytes())
        except (OSError, ValidationError):
            return None


def proof(store: Store, model: str) -> Reproduction | None:
    """The latest completed reproduction of `model`; None when there is none."""
    try:
        return Reproduction.model_validate_json((store.root / FOLDER / RECORDS / f"{model}.json").read_bytes())
    except (OSError, ValidationError):
        return None


def reproduction_folder(store: Store, model: str, into: Path | None) -> Path:
    """The folder to reproduce `model` in: `into`, or one inside the store; empty, or that of an interrupted
    reproduction.

    Raises StoreError for a folder that holds anything else.
    """
    if into is not None:
        if not _free(into, model):
            raise StoreError(
                f"{into}: is not empty; name an empty folder, or that of an interrupted reproduction of this model"
            )
        return into.resolve()
    named = (f"{model[:12]}-{number}" for number in itertools.count(1))
    return next(folder for name in named if _free(folder := store.root.resolve() / FOLDER / name, model))


def _free(folder: Path, model: str) -> bool:
    if not folder.is_dir() or {path.name for path in folder.iterdir()} <= {".lock"}:
        return not folder.exists() or folder.is_dir()
    before = Reproduction.read(folder)
    return before is not None and before.fingerprint == model and before.first is None and not before.identical
