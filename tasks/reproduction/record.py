"""What `cursus reproduce` found, written beside what it made while it makes it.

data/store/.reproduced/<model>-1/                    a store of its own; kept where something differs
data/store/.reproduced/<model>-1/reproduction.json   what has been compared so far
data/store/.reproduced/records/<model>.json          the latest that came to an end, also where its store is gone
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Literal, Self

from pydantic import BaseModel, ValidationError, computed_field

from pipelines.errors import StoreError
from pipelines.lineage.disk import write_whole
from pipelines.lineage.store import Store

RESULT = "reproduction.json"
FOLDER = ".reproduced"
RECORDS = "records"


class Compared(BaseModel):
    """One stage, as recorded and as made again."""

    stage: str
    recipe: str
    fingerprint: str
    """Of the recorded one."""
    outcome: Literal["identical", "differs", "not made"] = "not made"
    files: dict[str, str] = {}
    """The files that differ: the first digits of their sha256, then and here."""
    reasons: list[str] = []
    """What is recorded and differs, the likeliest first."""
    seconds: float | None = None
    """What making it again took."""


class Reproduction(BaseModel):
    """A lineage made again."""

    model: str
    fingerprint: str
    folder: Path
    """The store that it was made again in."""
    warnings: list[str] = []
    """What was known to differ before anything was computed."""
    stages: list[Compared]

    @computed_field  # type: ignore[prop-decorator]  # pydantic's own way to write it
    @property
    def identical(self) -> bool:
        """Whether every stage is, byte for byte."""
        return all(stage.outcome == "identical" for stage in self.stages)

    @property
    def first(self) -> Compared | None:
        """The first stage that differs, parents before children."""
        return next((stage for stage in self.stages if stage.outcome == "differs"), None)

    @property
    def sentence(self) -> str:
        """The verdict in one sentence."""
        first = self.first
        if first is None:
            made = sum(stage.outcome == "identical" for stage in self.stages)
            done = "byte for byte identical" if self.identical else "identical so far"
            return f"{self.model}: {made} of {len(self.stages)} stages made again, {done}."
        files = f" ({', '.join(first.files)})" if first.files else ""
        return f"{self.model}: {first.stage} is the first stage that differs{files}: {'; '.join(first.reasons)}."

    def put(self, compared: Compared) -> None:
        """Take the comparison of a stage in."""
        for position, known in enumerate(self.stages):
            if known.fingerprint == compared.fingerprint:
                self.stages[position] = compared

    def write(self) -> None:
        """What has been compared so far, beside what was made."""
        write_whole(self.folder / RESULT, self.model_dump_json(indent=1))

    def keep(self, store: Store) -> None:
        """What came of it, beside the store that has the model: whoever promotes it asks."""
        folder = store.root / FOLDER / RECORDS
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(folder / f"{self.fingerprint}.json", self.model_dump_json(indent=1))

    @classmethod
    def read(cls, folder: Path) -> Self | None:
        """What was written in `folder`; None where nothing was, or is not whole."""
        try:
            return cls.model_validate_json((folder / RESULT).read_bytes())
        except (OSError, ValidationError):
            return None


def proof(store: Store, model: str) -> Reproduction | None:
    """What the latest attempt to make `model` again found; None where none came to an end."""
    try:
        return Reproduction.model_validate_json((store.root / FOLDER / RECORDS / f"{model}.json").read_bytes())
    except (OSError, ValidationError):
        return None


def place(store: Store, model: str, into: Path | None) -> Path:
    """The empty folder to make `model` again in, or the one where that was interrupted.

    One inside the store where `into` is None. StoreError for a folder that holds anything else.
    """
    if into is not None:
        if not _free(into, model):
            raise StoreError(
                f"{into}: is not empty; name an empty folder, or one where reproducing this model was stopped"
            )
        return into.resolve()
    named = (f"{model[:12]}-{number}" for number in itertools.count(1))
    return next(folder for name in named if _free(folder := store.root.resolve() / FOLDER / name, model))


def _free(folder: Path, model: str) -> bool:
    if not folder.is_dir() or {path.name for path in folder.iterdir()} <= {".lock"}:
        return not folder.exists() or folder.is_dir()
    before = Reproduction.read(folder)
    return before is not None and before.fingerprint == model and before.first is None and not before.identical
