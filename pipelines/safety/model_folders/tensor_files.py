"""Headers of safetensors files: read in bounded memory, and compared with their files.

The file format: 8 bytes with the length of the header, the header as JSON, the data. Tensors fill the data without
gaps.
"""

from __future__ import annotations

import json
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

from pipelines.safety.model_folders.json_files import MAX_CONTAINERS
from pipelines.safety.model_folders.rejection import UnsafeFolderError

MAX_HEADER_BYTES = 100_000_000
"""Maximum size of a header, defined by the format."""
MOST_AXES = 64
METADATA = "__metadata__"
BITS = {
    "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6, "BOOL": 8, "U8": 8, "I8": 8, "F8_E5M2": 8, "F8_E4M3": 8, "F8_E8M0": 8,
    "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8, "U16": 16, "I16": 16, "F16": 16, "BF16": 16, "U32": 32, "I32": 32, "F32": 32,
    "U64": 64, "I64": 64, "F64": 64, "C64": 64,
}  # fmt: skip
"""Data type → bits of an element."""
PACKED = {"BOOL", "U8", "I8", "F4", "F6_E2M3", "F6_E3M2"}
"""Data types in which compressed networks pack weights of fewer bits."""


class TensorEntry(NamedTuple):
    """A tensor, as the header of its file describes it."""

    dtype: str
    shape: tuple[int, ...]

    @property
    def capacity(self) -> int:
        """Maximum number of weights that the tensor can hold."""
        elements = prod(self.shape)
        return elements * BITS[self.dtype] if self.dtype in PACKED else elements


def safetensors_header(path: Path) -> dict[str, Any]:
    """Read the header of a safetensors file: dtype, shape and offsets of each tensor.

    ValueError for a truncated file, a header longer than the file or than the format allows, unknown data types,
    negative shapes, and tensors that do not fill the data exactly.
    """
    size = path.stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if length > min(MAX_HEADER_BYTES, size - 8):
            raise ValueError(f"its header claims {length:,} bytes, the file has {size:,}")
        content = file.read(length)
    if content.count(b"{") + content.count(b"[") > MAX_CONTAINERS:
        raise ValueError("its header has more tensors than any model")
    try:
        header = json.loads(content.decode("utf-8"), object_pairs_hook=_without_repetition)
    except RecursionError:
        raise ValueError("its header is nested without end") from None
    if not isinstance(header, dict):
        raise ValueError("its header is not a JSON object")
    end = 0
    for name, entry in sorted(_entries(header), key=lambda one: (one[1]["data_offsets"], one[0])):
        begin, next_begin = entry["data_offsets"]
        if begin != end or next_begin < begin:
            raise ValueError(f"{name}: data_offsets {[begin, next_begin]} leave a gap or overlap; expected {end:,}")
        bits = prod(entry["shape"]) * BITS[entry["dtype"]]
        if bits != 8 * (next_begin - begin):
            raise ValueError(
                f"{name}: its shape {entry['shape']} does not take the {next_begin - begin:,} bytes stated"
            )
        end = next_begin
    if 8 + length + end != size:
        raise ValueError(f"its tensors end at byte {8 + length + end:,}, the file has {size:,}")
    return header


def checked_tensors(path: Path) -> dict[str, TensorEntry]:
    """The tensors in `path`, by name. UnsafeFolderError for a file that is not a valid safetensors file."""
    try:
        header = safetensors_header(path)
    except (ValueError, OSError) as error:
        raise UnsafeFolderError(f"{path} is damaged or not a safetensors file ({error})") from None
    return {
        name: TensorEntry(entry["dtype"], tuple(entry["shape"])) for name, entry in header.items() if name != METADATA
    }


def _entries(header: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    entries = [(name, entry) for name, entry in header.items() if name != METADATA]
    for name, entry in entries:
        if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
            raise ValueError(f"{name}: expected dtype, shape and data_offsets")
        if not isinstance(entry["dtype"], str) or entry["dtype"] not in BITS:
            raise ValueError(f"{name}: unknown dtype {entry['dtype']!r}")
        if not _sizes(entry["shape"]):
            raise ValueError(f"{name}: shape {entry['shape']!r} is not a list of sizes; none may be negative")
        if not _sizes(entry["data_offsets"]) or len(entry["data_offsets"]) != 2:
            raise ValueError(f"{name}: data_offsets {entry['data_offsets']!r} are not a begin and an end")
    return entries


def _sizes(values: Any) -> bool:
    return (
        isinstance(values, list)
        and len(values) <= MOST_AXES
        and all(type(value) is int and 0 <= value < 2**63 for value in values)
    )


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("its header names a key twice")
    return result
