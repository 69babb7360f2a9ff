"""Which model is the champion, and who said so: an append-only journal in the store, of which MLflow's aliases are a projection.

    data/store/.promotions.jsonl     {"said": "decision", …}     what was decided, and which model the alias is on from then
                                     {"said": "told", "id": …}   MLflow has been told of it

A line is written whole and flushed before MLflow is asked for anything, so a kill between the two leaves one champion: that
of the journal, which the next start tells MLflow of.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from pipelines.lineage.disk import flush
from pipelines.lineage.locks import Lock
from pipelines.lineage.store import Store
from tasks.decisions.record import Decision

JOURNAL = ".promotions.jsonl"


class Told(BaseModel):
    """MLflow has been told of a decision."""

    said: Literal["told"] = "told"
    id: str


_LINE: TypeAdapter[Decision | Told] = TypeAdapter(Annotated[Decision | Told, Field(discriminator="said")])


@dataclass(frozen=True)
class Standing:
    """Fingerprints of the model that an alias is on, and of the one that it was on before."""

    champion: str | None = None
    former: str | None = None


class PromotionJournal:
    """The journal of a store. Building one opens nothing."""

    def __init__(self, store: Store) -> None:
        self.path = store.root / JOURNAL
        self._lock = store.root / f"{JOURNAL}.lock"

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Decide while nobody else does."""
        lock = Lock.take(self._lock, wait=True)
        assert lock is not None
        try:
            yield
        finally:
            lock.release()

    def add(self, line: Decision | Told) -> None:
        """Append a line and wait until it is on the disk."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("ab+") as file:
            if file.tell() and not self._ends_a_line():
                file.write(b"\n")  # half a line, of one that was killed: it is passed over
            file.write(line.model_dump_json().encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        flush(self.path.parent)

    def decisions(self) -> list[Decision]:
        """All decisions, in order."""
        return [line for line in self._lines() if isinstance(line, Decision)]

    def untold(self) -> list[Decision]:
        """The decisions that MLflow has not been told of, in order."""
        told = {line.id for line in self._lines() if isinstance(line, Told)}
        return [decision for decision in self.decisions() if decision.id not in told]

    def standing(self, model: str, alias: str) -> Standing:
        """Which model the alias of a registered model is on."""
        found = Standing()
        for decision in self.decisions():
            if (decision.model, decision.alias) == (model, alias):
                found = Standing(decision.champion, decision.former)
        return found

    def needed(self) -> set[str]:
        """Fingerprints that must stay in the store: every champion there was, and what its promotion was judged by."""
        named = (one for each in self.decisions() for one in (each.champion, each.former, each.evidence))
        return {name for name in named if name is not None}

    def _ends_a_line(self) -> bool:
        with self.path.open("rb") as file:
            file.seek(-1, os.SEEK_END)
            return file.read(1) == b"\n"

    def _lines(self) -> Iterator[Decision | Told]:
        try:
            lines = self.path.read_bytes().splitlines()
        except FileNotFoundError:
            return
        for line in lines:
            try:
                yield _LINE.validate_json(line)
            except ValidationError:
                continue
