"""An append-only journal, in the store, of which model is the champion and who decided so.

    data/store/.promotions.jsonl     {"said": "decision", …}     a decision, and the model that the alias points to then
                                     {"said": "told", "id": …}   MLflow has recorded that decision

MLflow's aliases are a projection of this journal. A line is written whole and flushed before MLflow receives any
request, so a kill between the two leaves one champion: the journal's, which the next start records in MLflow.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from pipelines.lineage.disk import flush
from pipelines.lineage.locks import Lock
from pipelines.lineage.store import Store
from tasks.decisions.record import PromotionDecision

JOURNAL = ".promotions.jsonl"


class DecisionRecorded(BaseModel):
    """A journal line: MLflow has recorded the decision with this id."""

    model_config = ConfigDict(serialize_by_alias=True)

    line: Literal["told"] = Field("told", alias="said")
    """Kind of the line; the key and the value are those of journals written before."""
    id: str


Line = PromotionDecision | DecisionRecorded
_LINE: TypeAdapter[Line] = TypeAdapter(Annotated[Line, Field(discriminator="line")])


@dataclass(frozen=True)
class AliasState:
    """Fingerprints of the model that an alias points to, and of the one that it pointed to before."""

    champion: str | None = None
    former: str | None = None


class PromotionJournal:
    """The journal of a store. The constructor opens no file."""

    def __init__(self, store: Store) -> None:
        self.path = store.root / JOURNAL
        self._lock = store.root / f"{JOURNAL}.lock"

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Hold the journal's lock, so that one process decides at a time."""
        lock = Lock.take(self._lock, wait=True)
        assert lock is not None
        try:
            yield
        finally:
            lock.release()

    def add(self, line: Line) -> None:
        """Append a line and wait until it is on the disk."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("ab+") as file:
            if file.tell() and not self._ends_with_newline():
                file.write(b"\n")  # a killed process left half a line, which readers skip
            file.write(line.model_dump_json().encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        flush(self.path.parent)

    def decisions(self) -> list[PromotionDecision]:
        """All decisions, in order."""
        return [line for line in self._lines() if isinstance(line, PromotionDecision)]

    def pending(self) -> list[PromotionDecision]:
        """The decisions that MLflow has not recorded yet, in order."""
        recorded = {line.id for line in self._lines() if isinstance(line, DecisionRecorded)}
        return [decision for decision in self.decisions() if decision.id not in recorded]

    def alias_state(self, model: str, alias: str) -> AliasState:
        """The models that the alias of a registered model points to, and pointed to before."""
        state = AliasState()
        for decision in self.decisions():
            if (decision.model, decision.alias) == (model, alias):
                state = AliasState(decision.champion, decision.former)
        return state

    def referenced(self) -> set[str]:
        """Fingerprints that must stay in the store: every champion so far, and the judging steps of their
        promotions."""
        named = (
            one
            for each in self.decisions()
            for one in (each.champion, each.former, each.evidence, *each.further_evidence)
        )
        return {name for name in named if name is not None}

    def _ends_with_newline(self) -> bool:
        with self.path.open("rb") as file:
            file.seek(-1, os.SEEK_END)
            return file.read(1) == b"\n"

    def _lines(self) -> Iterator[Line]:
        try:
            lines = self.path.read_bytes().splitlines()
        except FileNotFoundError:
            return
        for line in lines:
            try:
                yield _LINE.validate_json(line)
            except ValidationError:
                continue
