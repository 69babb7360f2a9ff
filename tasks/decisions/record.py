"""What came of a promotion, as it is written down.

reports/<promotion>/promotion.json      the judgement: models, outcomes, verdict, and the decision once there is one
data/store/.promotions.jsonl            the decisions, in order: tasks.decisions.journal
"""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from pipelines.errors import CursusError
from pipelines.judging.gate import CriterionOutcome
from pipelines.judging.gate.verdict import Verdict, sentence
from pipelines.lineage.disk import write_whole

RECORD = "promotion.json"
GATE = "the gate"
"""Who decides where no person does."""
Words = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
Action = Literal["promoted", "refused", "left open", "rolled back", "adopted"]


def now() -> str:
    """ISO 8601, UTC."""
    return datetime.now(UTC).isoformat(timespec="seconds")


class Judge(BaseModel):
    """A person's decision on a verdict that was left open, or the gate's own."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    decision: Literal["promote", "reject"]
    reason: Words
    name: Words


class Contestant(BaseModel):
    """A model that is compared."""

    model_config = ConfigDict(frozen=True)

    fingerprint: str
    label: str
    """The stage, and its seed: `small`, `classify@1`."""
    recipe: str


class Decision(BaseModel):
    """One line of the journal."""

    model_config = ConfigDict(frozen=True)

    said: Literal["decision"] = "decision"
    id: str = Field(default_factory=lambda: uuid.uuid4().hex)
    promotion: str | None = None
    """The promotion whose record says why; None for a rollback or an adoption."""
    at: str
    action: Action
    model: str
    alias: str
    fingerprint: str
    """The model it is about."""
    verdict: Verdict | None
    decided_by: str
    reason: str
    evidence: str | None
    """Fingerprint of the judging step."""
    champion: str | None
    """Fingerprint of the model that the alias is on from then."""
    former: str | None
    """Fingerprint of the one that a rollback brings back."""


class Promotion(BaseModel):
    """A candidate, what it was held against, and what came of it."""

    id: str
    began: str
    model: str
    """As it is registered."""
    alias: str
    dataset: str
    family: str
    metrics: tuple[str, ...]
    examples: int
    candidate: Contestant
    champion: Contestant | None
    outcomes: list[CriterionOutcome]
    verdict: Verdict
    evidence: str
    """Fingerprint of the judging step."""
    decision: Decision | None = None

    @property
    def sentence(self) -> str:
        """The verdict, and what it hangs on."""
        return sentence(self.verdict, self.outcomes)

    def write(self, root: Path) -> Path:
        """Put the record into its folder under reports/; the file."""
        folder = root / "reports" / self.id
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(folder / RECORD, self.model_dump_json(indent=1) + "\n")
        return folder / RECORD

    @classmethod
    def read(cls, root: Path, identifier: str) -> Self:
        """The record of a promotion. Raises CursusError where there is none."""
        path = root / "reports" / identifier / RECORD
        try:
            return cls.model_validate_json(path.read_bytes())
        except (OSError, ValidationError) as error:
            raise CursusError(f"{path}: no record of a promotion ({type(error).__name__}); judge again") from None
