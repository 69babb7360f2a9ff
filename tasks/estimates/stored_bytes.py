"""Bytes that a planned model will take on disk, before it is computed: from the file of the model that it is made of,
or from its dimensions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

from pipelines.models.untrusted import safetensors_header
from pipelines.networks.folder import CONFIGURATION, SAFETENSORS, read_json
from pipelines.networks.stored_size import StoredSize
from pipelines.parts.architectures import Architecture
from pipelines.parts.compressions import Compression
from pipelines.recipe.plan import Step
from tasks.estimates.backbone_size import forward_operations
from tasks.estimates.work import KnownStep, backbone_of, vocabulary_of

FLOAT_BYTES = 4
CHARACTERS_OF_AN_ENTRY = 26
"""Bytes in the files of a tokenizer for each token of its vocabulary."""


@runtime_checkable
class SizedByEarlier(Protocol):
    """A compression whose bytes depend on the compressions before it."""

    def size_after_earlier(self, size: StoredSize, earlier: Sequence[Compression]) -> StoredSize:
        """About how many bytes, at most, a network has that had `size` and the compressions `earlier` before."""


def saved_size(folder: Path) -> StoredSize:
    """What the weights in `folder` are, by the names of its tensors."""
    architecture = Architecture.of(read_json(folder / "config.json"))
    stacks = architecture.stacks if architecture is not None else {}
    size = StoredSize()
    for name, entry in safetensors_header(folder / SAFETENSORS).items():
        if name == "__metadata__":
            continue
        start, end = entry["data_offsets"]
        stack = next((path for path in stacks if f"{path}." in name), None)
        if stack is not None:
            inside = name.partition(f"{stack}.")[2].partition(".")[2]
            inner = any(inside.startswith(f"{one}.") for one in stacks[stack].feed_forward or ())
            part = "feed_forward" if inner else "attention"
        else:
            part = "embeddings" if "embedding" in name else "rest"
        size = size._replace(**{part: getattr(size, part) + end - start})
    return size


def expected_bytes(step: Step, steps: Mapping[str, Step], folders: Mapping[str, Path]) -> float:
    """About how many bytes serving the result of `step` needs; `steps` are those of its plan by fingerprint, and
    `folders` those of the ones that are finished."""
    lineage = [step]
    while (start := steps.get(lineage[-1].parents.get("start", ""))) is not None:
        lineage.append(start)
    root = next((at for at, one in enumerate(lineage) if one.fingerprint in folders), len(lineage) - 1)
    if (folder := folders.get(lineage[root].fingerprint)) is not None and (folder / SAFETENSORS).is_file():
        size = saved_size(folder)
        other = float(sum((folder / name).stat().st_size for name in CONFIGURATION if (folder / name).is_file()))
        planned, known = lineage[:root], lineage[root:]
    else:
        size, other = _of_dimensions(lineage[root])
        planned, known = lineage[: root + 1], lineage[root + 1 :]
    earlier = [compression for one in reversed(known) for compression in one.stage.compression]
    for compression in (compression for one in reversed(planned) for compression in one.stage.compression):
        if isinstance(compression, SizedByEarlier):
            size = compression.size_after_earlier(size, earlier)
        else:
            size = compression.size_after(size)
        earlier.append(compression)
    return size.total + other


def _of_dimensions(step: Step) -> tuple[StoredSize, float]:
    """Size of a network that is made from nothing, and the bytes of its vocabulary."""
    known = KnownStep.planned(step)
    backbone, vocabulary = backbone_of(known, {}), vocabulary_of(known, {})
    layers = FLOAT_BYTES * forward_operations(backbone, 0) / 2
    rows = FLOAT_BYTES * vocabulary * float(backbone.dims.get("embedding_size") or backbone.width)
    size = StoredSize(embeddings=rows, attention=layers / 3, feed_forward=2 * layers / 3)
    return size, math.ceil(vocabulary) * CHARACTERS_OF_AN_ENTRY
