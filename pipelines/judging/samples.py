"""Samples of models as an evaluate stage keeps them: what figures are scores of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

SAMPLES = "samples.safetensors"
"""File of an evaluate stage: `<sample>/<stage>@<seed>` → its rows."""
TIMINGS = "timings.safetensors"
"""The samples among them that a clock measured, which differ between runs."""
CONSTANT, LEARNED = "constant:", "learned:"
"""Beginning of the names under which baselines without a network have rows: one answer to everything, and a model."""
Samples: TypeAlias = "Mapping[tuple[str, str], list[NDArray[np.float64]]]"
"""(Sample, stage) → its rows under each seed, seeds ascending."""


def key_of(sample: str, stage: str, seed: int) -> str:
    """Name of a model's sample in its file."""
    return f"{sample}/{stage}@{seed}"


def write_samples(samples: Mapping[str, NDArray[np.float64]], path: Path) -> None:
    """Write samples by `key_of`; no file where there are none."""
    import numpy as np
    from safetensors.numpy import save_file

    from pipelines.lineage.disk import atomic_write

    if samples:
        with atomic_write(path) as temporary:
            save_file({key: np.ascontiguousarray(rows) for key, rows in samples.items()}, temporary)


def read_samples(folder: Path) -> Samples:
    """The samples in `folder`, the artifact of an evaluate stage."""
    from safetensors.numpy import load_file

    arrays: dict[str, Any] = {}
    for name in (SAMPLES, TIMINGS):
        if (folder / name).is_file():
            arrays |= load_file(folder / name)
    return grouped(arrays)


def grouped(arrays: Mapping[str, NDArray[np.float64]]) -> Samples:
    """Samples by `key_of` → by sample and stage, seeds ascending."""
    result: dict[tuple[str, str], list[NDArray[np.float64]]] = {}
    for sample, stage, seed in sorted(map(_parsed, arrays)):
        result.setdefault((sample, stage), []).append(arrays[key_of(sample, stage, seed)])
    return result


def _parsed(key: str) -> tuple[str, str, int]:
    sample, _, model = key.partition("/")
    stage, _, seed = model.rpartition("@")
    return sample, stage, int(seed)
