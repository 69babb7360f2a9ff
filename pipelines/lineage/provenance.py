"""The record in every artifact, from which the artifact can be rebuilt and its ancestry traced."""

from __future__ import annotations

import json
import re
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, ConfigDict

from pipelines.errors import StoreError
from pipelines.lineage.fingerprint import fingerprint
from pipelines.task_families.labelled_tables import NAMED

RECORD = "provenance.json"
_FINGERPRINT = re.compile(r"[0-9a-f]{64}")


def is_fingerprint(name: str) -> bool:
    """Whether `name` is 64 hex digits: only such names become part of a path."""
    return _FINGERPRINT.fullmatch(name) is not None


def _hexadecimal(name: str) -> str:
    if not is_fingerprint(name):
        raise ValueError(f"{name!r} is no fingerprint (64 hex digits)")
    return name


def _inside(name: str) -> str:
    """Validate that `name` is a relative path that stays in its folder."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or not path.parts or "\0" in name:
        raise ValueError(f"{name!r} leads out of the artifact")
    return name


Fingerprint = Annotated[str, AfterValidator(_hexadecimal)]
RelativePath = Annotated[str, AfterValidator(_inside)]


class FileDigest(BaseModel):
    """One file of an artifact."""

    sha256: str
    bytes: int


class DataSource(BaseModel):
    """One table that a step read."""

    digest: str
    """md5 of the content, as DVC records it."""
    path: str
    """Relative to the project's root: `data/prepared/<dataset>/general`, `data/prepared/<dataset>/named/parallel`."""

    @property
    def folder(self) -> PurePosixPath:
        """Folder of the dataset that the table belongs to, relative to the project's root."""
        inner = PurePosixPath(self.path).parent
        return inner.parent if inner.name == NAMED and len(inner.parts) > 3 else inner

    @property
    def dataset(self) -> str:
        """Name of that dataset."""
        return self.folder.name


class Environment(BaseModel):
    """Conditions under which a step was computed: recorded with the result, never part of its identity."""

    python: str
    platform: str
    packages: dict[str, str]
    commit: str | None
    started: str
    """ISO 8601, UTC."""
    seconds: float
    resumed_from_step: int | None = None
    compiled: bool | None = None
    """Whether compiled kernels of an accelerator were used; None in older records, and before a step is computed."""
    device: str | None = None
    """The processor with the extensions that affect rounding, or the GPU; None in older records."""
    runtime: dict[str, Any] = {}
    """The job's `Runtime`: threads, ranks, how the network was sharded among them."""
    smoke: bool = False
    """Whether it was computed by a smoke run: tiny sizes and budgets, which only prove that everything runs."""


class Provenance(BaseModel):
    """Everything recorded of one artifact. The hash of `identity` is `fingerprint`; the rest is for information."""

    model_config = ConfigDict(extra="forbid")

    fingerprint: Fingerprint
    recipe: str
    stage: str
    kind: str
    seed: int
    identity: dict[str, Any]
    parents: dict[str, Fingerprint]
    """Role (`start`, `teacher`, `subject:classify@0`) to fingerprint, in the order in which the recipe names them."""
    data: dict[str, DataSource]
    checkpoint: dict[str, Any] | None = None
    """The third-party checkpoint that it started from, as named in the recipe; the digest of its content is in
    `identity`."""
    files: dict[RelativePath, FileDigest]
    result: dict[str, Any]
    environment: Environment
    seal: str = ""
    """sha256 of all fields above, set when it is published: otherwise a flipped bit in a number would go unnoticed."""

    @classmethod
    def read(cls, folder: Path) -> Self:
        """The record of the artifact in `folder`. Raises StoreError when it is missing or damaged."""
        path = folder / RECORD
        again = f"delete the folder {folder} and run again to rebuild it"
        try:
            record = cls.model_validate_json(path.read_bytes())
        except FileNotFoundError:
            raise StoreError(f"{folder}: not an artifact of this store, {RECORD} is missing; {again}") from None
        except ValueError as error:
            raise StoreError(f"{path}: damaged record ({str(error).splitlines()[0]}); {again}") from error
        if record.seal and record.seal != record.sealed().seal:
            raise StoreError(f"{path}: damaged record (it is not what was published); {again}")
        return record

    @property
    def judges(self) -> bool:
        """Whether the step evaluates models of other steps and produces none itself."""
        return any(role.startswith("subject:") for role in self.parents)

    def sealed(self) -> Self:
        """The same record, with its seal."""
        return self.model_copy(update={"seal": fingerprint(self.model_dump(mode="json", exclude={"seal"}))})

    def to_json(self) -> str:
        # unsorted: an evaluation shows its subjects in the order of `parents`
        return json.dumps(self.model_dump(mode="json"), indent=1, ensure_ascii=False) + "\n"
