"""What an exported folder says of itself, and how it is opened.

export.json            every figure that was measured, the machine, versions, digests, where it came from, what was left out
config.json …          configuration and tokenizer
the runtime's files    model.onnx, openvino.xml, model.safetensors, …
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, SerializeAsAny, ValidationError

from pipelines.errors import DataError
from pipelines.lineage.fingerprint import digest_file
from pipelines.lineage.hardware import described, extensions
from pipelines.lineage.provenance import FileDigest, Inside
from pipelines.serving.runtimes import Compute, ServingRuntime

EXPORT = "export.json"
FORMAT = 1


class RuntimeLatency(BaseModel):
    """One runtime on batches of one shape."""

    model_config = ConfigDict(frozen=True)

    rows: int
    tokens: int
    """Of each row."""
    median_ms: float
    p10_ms: float
    p90_ms: float
    calls: int
    texts_a_second: float
    """Examples a second at the median."""
    speedup: float
    """Over torch in float32: the median of ratios, each of two calls that followed one another."""


class ExportMeasurement(BaseModel):
    """What was found of one runtime."""

    model_config = ConfigDict(frozen=True)

    cosine_least: float
    """Of the checked texts, the answer that is least like that of float32."""
    cosine_mean: float
    score: float | None
    """On the test table; None where there is none."""
    score_float32: float | None
    """Of torch in float32 on the same examples."""
    bytes: int
    """Of the whole folder, were this one chosen."""
    seconds_to_open: float
    """From files to the first answer, in a process that has the libraries loaded; what must be compiled first is compiled."""
    latency: tuple[RuntimeLatency, ...] = ()
    refused: str | None = None
    """Why it may not be chosen."""


class Machine(BaseModel):
    """Where it was measured."""

    model_config = ConfigDict(frozen=True)

    processor: str
    instructions: tuple[str, ...]
    """Those of the processor's extensions that some runtime asks for."""
    threads: int
    versions: dict[str, str]


class Export(BaseModel):
    """The record of an export."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: int = FORMAT
    runtime: SerializeAsAny[ServingRuntime]
    """The one that was chosen."""
    rule: str
    source: str
    """The fingerprint of the artifact, or the digest of the weights of a folder that is none."""
    model: str
    """As it was asked for."""
    output: str
    machine: Machine
    checked: dict[str, Any]
    """On which texts, against which limits."""
    measured: dict[str, ExportMeasurement]
    left_out: dict[str, str]
    """Runtime that was not measured → why."""
    files: dict[Inside, FileDigest]

    @classmethod
    def read(cls, folder: Path) -> Self:
        """The record in `folder`. Raises DataError when it is damaged, or of a later version of this project."""
        path = folder / EXPORT
        try:
            return cls.model_validate_json(path.read_bytes())
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"])
            raise DataError(
                f"{path}: damaged, or written by another version of cursus ({where}: {first['msg']}); export the model again"
            ) from None

    def verify(self, folder: Path) -> None:
        """Raise DataError for a file that is missing or not as it was exported."""
        for name, wanted in self.files.items():
            path = folder / name
            if not path.is_file() or path.stat().st_size != wanted.bytes or digest_file(path) != wanted.sha256:
                raise DataError(f"{path}: missing, or not as it was exported; export the model again")


def open_export(folder: Path, threads: int) -> Compute:
    """The network of an exported folder, in the runtime that was chosen when it was exported.

    Raises DataError when that runtime is not installed here, or a file was changed. Where the processor lacks what made the
    runtime fast, that is said in a warning, and the answers are the same.
    """
    record = Export.read(folder)
    runtime = record.runtime
    if lacking := runtime.missing():
        raise DataError(
            f"{folder}: exported for {runtime.name}, which cannot run here: {lacking}. Or export the model on this machine"
        )
    record.verify(folder)
    if slow := slow_here(record):
        logging.getLogger(__name__).warning("%s: %s", folder, slow)
    return runtime.open(folder, threads)


def slow_here(record: Export, here: frozenset[str] | None = None) -> str | None:
    """Why the chosen runtime may be slow on a processor with the extensions `here` (by default this one's); None if not."""
    wanted = record.runtime.instructions
    if not set(wanted) & set(record.machine.instructions) or set(wanted) & (extensions() if here is None else here):
        return None
    had = ", ".join(name for name in wanted if name in record.machine.instructions)
    return (
        f"exported for {record.runtime.name} on a processor with {had}; this one has none of it ({described('cpu')}), so it "
        "answers alike but slowly: export the model on this machine"
    )
