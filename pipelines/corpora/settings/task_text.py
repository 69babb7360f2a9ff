"""What the text for task adaptation is made of, as params.yaml spells it.

task_text: {own: true, selection: {name: nearest, neighbours: 50, vectors: hashed_ngrams}}
"""

from __future__ import annotations

from typing import Self

from pydantic import SerializeAsAny, model_validator

from pipelines.corpora.selections import Selection
from pipelines.corpora.settings.sources import Strict


class TaskTextSettings(Strict):
    """The task's own texts without labels, and what is selected from the domain corpus to stand beside them."""

    own: bool = True
    """Whether the task's own texts are in it; what is selected is like them in either case."""
    selection: SerializeAsAny[Selection] | None = None

    @model_validator(mode="after")
    def _holds_something(self) -> Self:
        if not self.own and self.selection is None:
            raise ValueError("without its own texts and without a selection there is no text; say one of them")
        return self
