"""Records of promotions and of the decisions on them.

reports/<promotion>/promotion.json      models, criterion outcomes, verdict, and the decision once there is one
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
from pipelines.lineage.disk import write_text_atomically

RECORD = "promotion.json"
GATE = "the gate"
"""`decided_by` of a decision that no person made."""
Words = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
Action = Literal["promoted", "refused", "left open", "rolled back", "adopted"]


def now() -> str:
    """ISO 8601, UTC."""
    return datetime.now(UTC).isoformat(timespec="seconds")


class ManualDecision(BaseModel):
    """A person's decision on a verdict that was left open, with the reason and the person's name."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    decision: Literal["promote", "reject"]
    reason: Words
    name: Words


class Contestant(BaseModel):
    """One of the two models that are compared."""

    model_config = ConfigDict(frozen=True)

    fingerprint: str
    label: str
    """The stage, and its seed: `small`, `classify@1`."""
    recipe: str


class PromotionDecision(BaseModel):
    """A line of the promotion journal: what was decided about a model, by whom and why."""

    model_config = ConfigDict(frozen=True, serialize_by_alias=True)

    line: Literal["decision"] = Field("decision", alias="said")
    """Kind of the line; the key is that of journals written before."""
    id: str = Field(default_factory=lambda: uuid.uuid4().hex)
    promotion: str | None = None
    """Id of the promotion with the reasons; None for a rollback or an adoption."""
    at: str
    action: Action
    model: str
    alias: str
    fingerprint: str
    """The model that was promoted, refused or restored."""
    verdict: Verdict | None
    decided_by: str
    reason: str
    evidence: str | None
    """Fingerprint of the judging step."""
    further_evidence: tuple[str, ...] = Field((), exclude_if=lambda value: not value)
    """Those of the other tasks, of a model that answers several."""
    champion: str | None
    """Fingerprint of the model that the alias points to after the decision."""
    former: str | None
    """Fingerprint of the model that a rollback restores."""


class JudgedTask(BaseModel):
    """One of the tasks of models that answer several."""

    model_config = ConfigDict(frozen=True)

    task: str
    """Name that the dataset has for it."""
    family: str
    metrics: tuple[str, ...]
    examples: int
    evidence: str
    """Fingerprint of the judging step."""


class Promotion(BaseModel):
    """The record of a promotion: a candidate, the champion it was compared with, the outcomes and the decision."""

    model_config = ConfigDict(serialize_by_alias=True)

    id: str
    began: str
    model: str
    """Name in the model registry."""
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
    tasks: tuple[JudgedTask, ...] = Field((), exclude_if=lambda value: not value)
    """All tasks of models that answer several; then `family`, `metrics`, `examples` and `evidence` are of the first."""
    decision: PromotionDecision | None = None

    @property
    def sentence(self) -> str:
        """The verdict, and the criteria it depends on."""
        return sentence(self.verdict, self.outcomes)

    @property
    def all_evidence(self) -> tuple[str, ...]:
        """Fingerprints of the judging steps, one for each task."""
        return tuple(one.evidence for one in self.tasks) or (self.evidence,)

    @property
    def test_examples(self) -> str:
        """What the models were judged on, in words."""
        if not self.tasks:
            return f"the {self.examples} test examples of {self.dataset}"
        each = ", ".join(f"{one.examples} of {one.task}" for one in self.tasks)
        return f"the test examples of {self.dataset} ({each})"

    def write(self, root: Path) -> Path:
        """Write the record into its folder under reports/ and return the file."""
        folder = root / "reports" / self.id
        folder.mkdir(parents=True, exist_ok=True)
        write_text_atomically(folder / RECORD, self.model_dump_json(indent=1) + "\n")
        return folder / RECORD

    @classmethod
    def read(cls, root: Path, identifier: str) -> Self:
        """Read the record of a promotion. Raises CursusError when there is none that can be read."""
        path = root / "reports" / identifier / RECORD
        try:
            return cls.model_validate_json(path.read_bytes())
        except (OSError, ValidationError) as error:
            raise CursusError(
                f"{path}: no readable promotion record ({type(error).__name__}); run `cursus promote` again"
            ) from None
