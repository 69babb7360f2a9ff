"""The record beside every artifact, from which the artifact can be rebuilt and its ancestry told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Self

from pydantic import BaseModel, ConfigDict

from pipelines.errors import StoreError
from pipelines.lineage.fingerprint import fingerprint

RECORD = "provenance.json"


class FileDigest(BaseModel):
    """One file of an artifact."""

    sha256: str
    bytes: int


class DataSource(BaseModel):
    """One table that a step read."""

    digest: str
    """md5 of the content, as DVC records it."""
    path: str
    """Relative to the project's root."""


class Environment(BaseModel):
    """What ran, where and when: recorded beside the result, never inside its identity."""

    python: str
    platform: str
    packages: dict[str, str]
    commit: str | None
    started: str
    """ISO 8601, UTC."""
    seconds: float
    resumed_from_step: int | None = None


class Provenance(BaseModel):
    """Everything known about one artifact. `identity` hashed is `fingerprint`; the rest is its story."""

    model_config = ConfigDict(extra="forbid")

    fingerprint: str
    recipe: str
    stage: str
    kind: str
    seed: int
    identity: dict[str, Any]
    parents: dict[str, str]
    """Role (`start`, `teacher`, `subject:classify@0`) to fingerprint."""
    data: dict[str, DataSource]
    files: dict[str, FileDigest]
    result: dict[str, Any]
    environment: Environment
    seal: str = ""
    """sha256 of all of the above, given when it is published: a flipped bit in a number would pass for another result."""

    @classmethod
    def read(cls, folder: Path) -> Self:
        """The record of the artifact in `folder`. Raises StoreError when it is missing or not as it was written."""
        path = folder / RECORD
        again = f"delete the folder {folder} and run again to rebuild it"
        try:
            found = cls.model_validate_json(path.read_bytes())
        except FileNotFoundError:
            raise StoreError(f"{folder}: not an artifact of this store, {RECORD} is missing; {again}") from None
        except ValueError as error:
            raise StoreError(f"{path}: damaged record ({str(error).splitlines()[0]}); {again}") from error
        if found.seal and found.seal != found.sealed().seal:
            raise StoreError(f"{path}: damaged record (it is not what was published); {again}")
        return found

    def sealed(self) -> Self:
        """The same record, with its seal."""
        return self.model_copy(update={"seal": fingerprint(self.model_dump(mode="json", exclude={"seal"}))})

    def to_json(self) -> str:
        return json.dumps(self.model_dump(mode="json"), indent=1, ensure_ascii=False, sort_keys=True) + "\n"
