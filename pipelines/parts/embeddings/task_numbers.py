"""Task embeddings (Sun et al. 2019, ERNIE 2.0 §4.1)."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from pipelines.parts.embeddings import Embedding


class TaskEmbedding(Embedding, name="task_numbers"):
    """A vector for the task that a row is read for."""

    paper = "arXiv:1907.12412"
    channel: ClassVar[str] = "tasks"

    size: int = Field(16, gt=0)
    """Largest number of tasks."""
