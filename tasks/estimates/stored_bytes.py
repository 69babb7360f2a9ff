"""Bytes that a planned model will take on disk, before it is computed: from the file of the model that it is made of,
or from its dimensions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

from pipelines.models.untrusted import safetensors_header
from pipelines.networks.folder import CONFIGURATION, SAFETENSORS, read_json
from pipelines.networks.stored_size import StoredSize
from pipelines.parts.architectures import Architecture
from pipelines.recipe.plan import Step
from tasks.estimates.backbone_size import forward_operations
from tasks.estimates.work import KnownStep, backbone_of, vocabulary_of

FLOAT_BYTES = 4
CHARACTERS_OF_AN_ENTRY = 26
"""Bytes in the files of a tokenizer for each token of its vocabulary."""


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
    chain = [step]
    while chain[-1].fingerprint not in folders and (start := steps.get(chain[-1].parents.get("start", ""))) is not None:
        chain.append(start)
    root = chain[-1]
    if (folder := folders.get(root.fingerprint)) is not None and (folder / SAFETENSORS).is_file():
        size = saved_size(folder)
        other = float(sum((folder / name).stat().st_size for name in CONFIGURATION if (folder / name).is_file()))
        chain = chain[:-1]
    else:
        size, other = _of_dimensions(root)
    for one in reversed(chain):
        for compression in one.stage.compression:
            size = compression.size_after(size)
    return size.total + other


def _of_dimensions(step: Step) -> tuple[StoredSize, float]:
    """Size of a network that is made from nothing, and the bytes of its vocabulary."""
    known = KnownStep.planned(step)
    backbone, vocabulary = backbone_of(known, {}), vocabulary_of(known, {})
    layers = FLOAT_BYTES * forward_operations(backbone, 0) / 2
    rows = FLOAT_BYTES * vocabulary * float(backbone.dims.get("embedding_size") or backbone.width)
    size = StoredSize(embeddings=rows, attention=layers / 3, feed_forward=2 * layers / 3)
    return size, math.ceil(vocabulary) * CHARACTERS_OF_AN_ENTRY
