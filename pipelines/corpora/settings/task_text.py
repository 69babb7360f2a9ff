"""Settings under `task_text:` of a dataset: the text for task adaptation.

task_text: {own: true, selection: {name: nearest, neighbours: 50, vectors: hashed_ngrams}}
"""

from __future__ import annotations

from typing import Self

from pydantic import SerializeAsAny, model_validator

from pipelines.corpora.selections import Selection
from pipelines.corpora.settings.sources import StrictSettings


class TaskTextSettings(StrictSettings):
    """The task's own texts without labels, and further texts that are selected from the domain corpus."""

    own: bool = True
    """Whether the task's own texts are included; the selection resembles them in either case."""
    selection: SerializeAsAny[Selection] | None = None

    @model_validator(mode="after")
    def _is_not_empty(self) -> Self:
        if not self.own and self.selection is None:
            raise ValueError("the task text is empty without its own texts and without a selection; set one of them")
        return self
