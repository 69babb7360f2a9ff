"""Records of cases: lines of `docs/reliability/<kind>.jsonl`."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict

from benchmarks.checkouts import ROOT
from pipelines.lineage.disk import write_text_atomically

FOLDER = ROOT / "docs" / "reliability"


class Record(BaseModel):
    """One case."""

    model_config = ConfigDict(extra="forbid")

    kind: str
    number: int
    struck: str
    """The injected fault, and when."""
    ended: str
    """How the disturbed run ended."""
    runs: int
    """Number of further runs until everything was done."""
    recovery_seconds: float | None
    """Duration of those runs; None if the next fault came before their end."""
    lost: list[str]
    wrong: list[str]
    hangs: list[str]
    unclear: list[str]
    date: str
    commit: str
    machine: str

    @property
    def good(self) -> bool:
        return not (self.lost or self.wrong or self.hangs or self.unclear)


def read(kind: str, folder: Path = FOLDER) -> list[Record]:
    """The records of a kind, by case number; an incomplete last line of a killed campaign is ignored."""
    path = folder / f"{kind}.jsonl"
    if not path.exists():
        return []
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    parsed = [Record.model_validate_json(line) for line in lines if line.endswith("\n")]
    return sorted(parsed, key=lambda record: record.number)


def write(kind: str, records: list[Record], folder: Path = FOLDER) -> None:
    """Replace the records of a kind."""
    folder.mkdir(parents=True, exist_ok=True)
    write_text_atomically(folder / f"{kind}.jsonl", "".join(record.model_dump_json() + "\n" for record in records))
