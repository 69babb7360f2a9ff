"""The record of an exported folder, and how the folder is opened.

export.json            all measurements, machine, versions, digests, source, and the runtimes that were left out
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
from pipelines.lineage.hardware import device_name, extensions
from pipelines.lineage.provenance import FileDigest, RelativePath
from pipelines.serving.runtimes import Compute, ServingRuntime

EXPORT = "export.json"
FORMAT = 1


class RuntimeLatency(BaseModel):
    """Latency of one runtime on batches of one shape."""

    model_config = ConfigDict(frozen=True)

    rows: int
    tokens: int
    """Tokens per row."""
    median_ms: float
    p10_ms: float
    p90_ms: float
    calls: int
    texts_a_second: float
    """Examples per second at the median."""
    speedup: float
    """Speed-up over torch in float32: the median of ratios, each of two consecutive calls."""


class ExportMeasurement(BaseModel):
    """Measurements of one runtime."""

    model_config = ConfigDict(frozen=True)

    cosine_least: float
    """Smallest cosine between an answer and that of float32, over the checked texts."""
    cosine_mean: float
    score: float | None
    """Score on the test table; None if there is none."""
    score_float32: float | None
    """Score of torch in float32 on the same examples."""
    bytes: int
    """Size of the whole folder if this runtime were chosen."""
    seconds_to_open: float
    """From files to the first answer, in a process with the libraries loaded; including compilation."""
    latency: tuple[RuntimeLatency, ...] = ()
    refused: str | None = None
    """Why it may not be chosen; None if it may."""


class Machine(BaseModel):
    """The machine of the measurements."""

    model_config = ConfigDict(frozen=True)

    processor: str
    instructions: tuple[str, ...]
    """The processor's extensions that some runtime uses."""
    threads: int
    versions: dict[str, str]


class Export(BaseModel):
    """The record of an export."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: int = FORMAT
    runtime: SerializeAsAny[ServingRuntime]
    """The chosen runtime."""
    rule: str
    """The rule of the choice, in words."""
    source: str
    """Fingerprint of the artifact, or digest of the weights of a folder that is not an artifact."""
    model: str
    """The model as it was named in the request."""
    output: str
    machine: Machine
    checked: dict[str, Any]
    """The texts of the comparison, and its limits."""
    measured: dict[str, ExportMeasurement]
    left_out: dict[str, str]
    """Runtime that was not measured → the reason."""
    files: dict[RelativePath, FileDigest]

    @classmethod
    def read(cls, folder: Path) -> Self:
        """The record in `folder`. Raises DataError if it is damaged, or of a later version of this project."""
        path = folder / EXPORT
        try:
            return cls.model_validate_json(path.read_bytes())
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"])
            raise DataError(
                f"{path}: damaged, or written by another version of cursus ({where}: {first['msg']}); export the model "
                "again"
            ) from None

    def verify(self, folder: Path) -> None:
        """Raise DataError for a file that is missing or modified."""
        for name, expected in self.files.items():
            path = folder / name
            if not path.is_file() or path.stat().st_size != expected.bytes or digest_file(path) != expected.sha256:
                raise DataError(f"{path}: missing, or not as it was exported; export the model again")


def open_export(folder: Path, threads: int) -> Compute:
    """The network of an exported folder, in the runtime chosen at export.

    Raises DataError if that runtime is not installed here, or a file was modified. On a processor without the
    extensions that made the runtime fast, a warning is logged; the answers are the same.
    """
    record = Export.read(folder)
    runtime = record.runtime
    if lacking := runtime.missing():
        raise DataError(
            f"{folder}: exported for {runtime.name}, which cannot run here: {lacking}. Or export the model on this "
            "machine"
        )
    record.verify(folder)
    if slow := slow_here(record):
        logging.getLogger(__name__).warning("%s: %s", folder, slow)
    return runtime.open(folder, threads)


def slow_here(record: Export, here: frozenset[str] | None = None) -> str | None:
    """Why the chosen runtime may be slow on a processor with the extensions `here` (default: this processor's); None if
    not."""
    useful = record.runtime.instructions
    if not set(useful) & set(record.machine.instructions) or set(useful) & (extensions() if here is None else here):
        return None
    had = ", ".join(name for name in useful if name in record.machine.instructions)
    return (
        f"exported for {record.runtime.name} on a processor with {had}; this one has none ({device_name('cpu')}), "
        "so answers are the same but slow: export the model on this machine"
    )
