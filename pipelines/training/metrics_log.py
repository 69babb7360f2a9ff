"""metrics.jsonl: one JSON object per line, without clock times, so that equal runs write equal files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipelines.lineage.disk import atomic_write, flush
from pipelines.lineage.results import SCRATCH
from pipelines.training.ranks import process_group

if TYPE_CHECKING:
    from torch import Tensor


PROGRESS_KEYS = ("step", "tokens")
"""Keys of a line that are no metrics: how far training was when it was written."""


class MetricsLog:
    """Averages training terms between two lines, and appends lines. A resumed run first drops lines after its step.

    Each rank sums its own terms, which are parts of the batch's; rank 0 writes the sums over all ranks.
    """

    def __init__(self, path: Path, every: int, tokens_per_step: int) -> None:
        self.path, self.every, self.tokens_per_step = path, every, tokens_per_step
        self._sums: dict[str, Tensor] = {}
        self._counts: dict[str, int] = {}
        """Term → number of steps in its sum: with several lines, a term is part of the steps of its own."""
        self._written, self._digest = 0, sha256()
        """Number of bytes in the file, and their digest."""
        self.last: dict[str, float] = {}

    def pending(self) -> dict[str, Any]:
        """State for a checkpoint: the sums of each rank since the last line, so that a resumed run averages over the
        same steps, and the number of bytes written, which the checkpoint's name certifies (`flushed_digest`)."""
        return {
            "sums": process_group.all_gather(dict(self._sums)),
            "counts": dict(self._counts),
            "written": self._written,
        }

    def flushed_digest(self) -> str:
        """Flush the file to the disk; returns the digest of its content."""
        if self.path.exists():
            flush(self.path)
        return self._digest.hexdigest()

    def prefix_digests(self) -> Iterator[str]:
        """The digests of all prefixes of the file on the disk: the empty one, and after each line."""
        digest = sha256()
        yield digest.hexdigest()
        if self.path.exists():
            with self.path.open("rb") as file:
                for line in file:
                    digest.update(line)
                    yield digest.hexdigest()

    def rewind(self, pending: dict[str, Any]) -> None:
        """Go back to a checkpoint: truncate the file to the lines of then, and restore the `pending` sums."""
        self._counts, sums = dict(pending["counts"]), pending["sums"]
        if len(sums) == process_group.world_size():
            self._sums = dict(sums[process_group.rank()])
        else:  # the number of ranks has changed: rank 0 continues from the sums of all
            first = process_group.rank() == 0
            self._sums = {name: sum(one[name] for one in sums) * first for name in sums[0]}
        if process_group.rank() == 0:
            self._written = pending["written"]
            kept = self.path.read_bytes()[: self._written] if self._written else b""
            self._digest = sha256(kept)
            with atomic_write(self.path, self.path.parent / SCRATCH / self.path.name) as temporary:
                temporary.write_bytes(kept)
            for line in kept.splitlines():
                self.last.update({name: value for name, value in json.loads(line).items() if name not in PROGRESS_KEYS})

    def _sums_over_ranks(self) -> dict[str, Tensor]:
        import torch

        if process_group.world_size() == 1 or not self._sums:
            return dict(self._sums)
        values = torch.stack([value.float().cpu() for value in self._sums.values()])
        return dict(zip(self._sums, process_group.all_reduce_sum(values), strict=True))

    def train(self, step: int, terms: dict[str, Tensor], lr: float, last: bool) -> None:
        """Add one optimizer step's terms; writes a line every `every` steps, and after the last one."""
        for name, value in terms.items():
            # summed as tensors: reading the value would synchronise with the device in every step
            self._sums[name] = self._sums[name] + value.detach() if name in self._sums else value.detach().clone()
            self._counts[name] = self._counts.get(name, 0) + 1
        if step % self.every == 0 or last:
            values = {
                f"train/{name}": round(float(value) / self._counts[name], 6)
                for name, value in self._sums_over_ranks().items()
            }
            self.write(step, {**values, "lr": lr})
            self._sums, self._counts = {}, {}

    def write(self, step: int, values: dict[str, float]) -> None:
        """Append one line."""
        self.last.update(values)
        if process_group.rank() > 0:
            return
        line = json.dumps({"step": step, "tokens": step * self.tokens_per_step, **values}).encode() + b"\n"
        with self.path.open("ab") as file:
            file.write(line)
        self._written += len(line)
        self._digest.update(line)


def read_metrics(path: Path) -> list[dict[str, float]]:
    """All complete lines of a metrics file, without a last line that is still being written."""
    if not path.exists():
        return []
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    return [json.loads(line) for line in lines if line.endswith("\n")]
