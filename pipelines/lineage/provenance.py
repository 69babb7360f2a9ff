"""The record beside every artifact, from which the artifact can be rebuilt and its ancestry told."""

from __future__ import annotations

import json
import re
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, ConfigDict

from pipelines.errors import StoreError
from pipelines.lineage.fingerprint import fingerprint

RECORD = "provenance.json"
_FINGERPRINT = re.compile(r"[0-9a-f]{64}")


def is_fingerprint(name: str) -> bool:
    """Whether `name` is 64 hex digits: only such a name is ever made part of a path."""
    return _FINGERPRINT.fullmatch(name) is not None


def _hexadecimal(name: str) -> str:
    if not is_fingerprint(name):
        raise ValueError(f"{name!r} is no fingerprint (64 hex digits)")
    return name


def _inside(name: str) -> str:
    """A relative path that stays in its folder."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or not path.parts or "\0" in name:
        raise ValueError(f"{name!r} leads out of the artifact")
    return name


Fingerprint = Annotated[str, AfterValidator(_hexadecimal)]
Inside = Annotated[str, AfterValidator(_inside)]


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
    compiled: bool | None = None
    """Whether kernels compiled for the machine took part; None in older records, and before a step is computed."""
    device: str | None = None
    """The processor with the extensions that decide how it rounds, or the GPU; None in a record that does not say."""
    runtime: dict[str, Any] = {}
    """The job's `Runtime`: threads, ranks, how the network was divided among them."""


class Provenance(BaseModel):
    """Everything known about one artifact. `identity` hashed is `fingerprint`; the rest is its story."""

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
    """How the recipe named the checkpoint of others that it started from; what was in it is in `identity`."""
    files: dict[Inside, FileDigest]
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

    @property
    def judges(self) -> bool:
        """Whether it looks at the models of other steps and is none itself."""
        return any(role.startswith("subject:") for role in self.parents)

    def sealed(self) -> Self:
        """The same record, with its seal."""
        return self.model_copy(update={"seal": fingerprint(self.model_dump(mode="json", exclude={"seal"}))})

    def to_json(self) -> str:
        # unsorted: an evaluation shows its subjects in the order of `parents`
        return json.dumps(self.model_dump(mode="json"), indent=1, ensure_ascii=False) + "\n"
