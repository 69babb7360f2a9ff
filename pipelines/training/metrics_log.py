"""metrics.jsonl: one JSON object a line, no clock in it, so that equal runs write equal files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipelines.lineage.disk import flush, written_whole
from pipelines.lineage.results import SCRATCH
from pipelines.training.ranks import process_group as group

if TYPE_CHECKING:
    from torch import Tensor


PLACE = ("step", "tokens")
"""Keys of a line that say where in training it was written."""


class MetricsLog:
    """Averages training terms between two lines, and appends lines. A resumed run first drops lines past its step.

    Each rank counts its own terms, which are parts of the batch's; the first writes their sums.
    """

    def __init__(self, path: Path, every: int, tokens_per_step: int) -> None:
        self.path, self.every, self.tokens_per_step = path, every, tokens_per_step
        self._sums: dict[str, Tensor] = {}
        self._count = 0
        self._written, self._digest = 0, sha256()
        """Bytes of the file, and their digest."""
        self.last: dict[str, float] = {}

    def pending(self) -> dict[str, Any]:
        """What each rank has counted since the last line, so that a resumed run averages over the same steps; and how much had
        been written, which the checkpoint's digest vouches for (`seal`)."""
        return {"sums": group.everyones(dict(self._sums)), "count": self._count, "written": self._written}

    def seal(self) -> str:
        """The digest of all that has been written, which is on the disk when this returns."""
        if self.path.exists():
            flush(self.path)
        return self._digest.hexdigest()

    def seals(self) -> Iterator[str]:
        """What `seal` has said or would have said of the file as it is on the disk: before its first line, and after each."""
        digest = sha256()
        yield digest.hexdigest()
        if self.path.exists():
            with self.path.open("rb") as file:
                for line in file:
                    digest.update(line)
                    yield digest.hexdigest()

    def rewind(self, pending: dict[str, Any]) -> None:
        """Go back to a checkpoint: to the lines that were written then, and on from what was pending."""
        self._count, sums = pending["count"], pending["sums"]
        if len(sums) == group.ranks():
            self._sums = dict(sums[group.rank()])
        else:  # other ranks than those that counted: the first goes on from all that they had
            first = group.rank() == 0
            self._sums = {name: sum(one[name] for one in sums) * first for name in sums[0]}
        if group.rank() == 0:
            self._written = pending["written"]
            kept = self.path.read_bytes()[: self._written] if self._written else b""
            self._digest = sha256(kept)
            with written_whole(self.path, self.path.parent / SCRATCH / self.path.name) as place:
                place.write_bytes(kept)
            for line in kept.splitlines():
                self.last.update({name: value for name, value in json.loads(line).items() if name not in PLACE})

    def _summed(self) -> dict[str, Tensor]:
        import torch

        if group.ranks() == 1 or not self._sums:
            return dict(self._sums)
        values = torch.stack([value.float().cpu() for value in self._sums.values()])
        return dict(zip(self._sums, group.summed(values), strict=True))

    def train(self, step: int, terms: dict[str, Tensor], lr: float, last: bool) -> None:
        """Count one optimizer step's terms; a line is written every so many steps, and after the last one."""
        for name, value in terms.items():
            # summed as tensors: reading a number would wait for the device every step
            self._sums[name] = self._sums[name] + value.detach() if name in self._sums else value.detach().clone()
        self._count += 1
        if step % self.every == 0 or last:
            values = {f"train/{name}": round(float(value) / self._count, 6) for name, value in self._summed().items()}
            self.write(step, {**values, "lr": lr})
            self._sums, self._count = {}, 0

    def write(self, step: int, values: dict[str, float]) -> None:
        """Append one line."""
        self.last.update(values)
        if group.rank() > 0:
            return
        line = json.dumps({"step": step, "tokens": step * self.tokens_per_step, **values}).encode() + b"\n"
        with self.path.open("ab") as file:
            file.write(line)
        self._written += len(line)
        self._digest.update(line)


def read_metrics(path: Path) -> list[dict[str, float]]:
    """All complete lines of a metrics file; a line that is still being written is left out."""
    if not path.exists():
        return []
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    return [json.loads(line) for line in lines if line.endswith("\n")]
