"""Records of cases: lines of `docs/reliability/<kind>.jsonl`."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict

from benchmarks.checkouts import ROOT
from pipelines.lineage.disk import write_text_atomically

FOLDER = ROOT / "docs" / "reliability"
COUNTED = ("lost", "wrong", "hangs", "unclear")
"""Fields of a record that say what went wrong."""


class Record(BaseModel):
    """One case."""

    model_config = ConfigDict(extra="forbid")

    kind: str
    number: int
    struck: str
    """The injected fault, and when."""
    begun: bool
    """Whether the disturbed checkout had begun a step; otherwise only the result of the next run is compared."""
    finished: int
    """Published steps, results and checkpoints that the fault could have lost."""
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
    fixed: list[str]
    """Earlier runs of this case that went wrong: when, at which commit, and how. The code was changed, the case run
    again."""
    date: str
    commit: str
    code: str
    """Digest of the files of a checkout, which a campaign does not mix."""
    machine: str

    @property
    def good(self) -> bool:
        return not self.problems

    @property
    def problems(self) -> str:
        """What went wrong, for a person to read; empty if nothing did."""
        counted = {kind: getattr(self, kind) for kind in COUNTED}
        return "; ".join(f"{kind}: {', '.join(all_of_it)}" for kind, all_of_it in counted.items() if all_of_it)

    @property
    def history(self) -> list[str]:
        """`fixed` of a case that is run again."""
        return self.fixed if self.good else [*self.fixed, f"{self.date[:10]}, {self.commit}: {self.problems}"]


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
