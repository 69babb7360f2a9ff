"""Lines: the streams of training that share one backbone in a stage, each with data, head and objectives of its own.

    lines:                                                  MT-DNN: one backbone, a head for each task
      cola: {corpus: cola, head: sequence_classification, objective: cross_entropy}
      stsb: {corpus: stsb, head: regression, objective: squared_error}
    mixing: {name: proportional, exponent: 0.5}

A key that a line leaves out has the value of the stage. What is true of a stage with a single line holds for every line
of a stage with several: checks and training therefore read `line_views`, one stage for each line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from pydantic import Field, SerializeAsAny, field_validator

from pipelines.parts.annotations import Annotation
from pipelines.parts.attention import AttentionPattern
from pipelines.parts.corruptions import Corruption
from pipelines.parts.heads import Head
from pipelines.parts.knowledge import Knowledge
from pipelines.parts.layouts import Layout
from pipelines.parts.objectives import Objective
from pipelines.parts.segmentations import Segmentation
from pipelines.recipe.kinds import Kind
from pipelines.recipe.strict import StrictModel, as_list

if TYPE_CHECKING:
    from pipelines.recipe.schema import Stage

TeacherVocabulary: TypeAlias = Literal["shared_tokens", "own_tokens"]
"""How a teacher of another vocabulary reads what its student reads."""


class Line(StrictModel):
    """One line of a stage. Keys that are not given have the value of the stage; they mean what they mean there."""

    corpus: tuple[str, ...] = Field((), exclude_if=lambda value: not value)
    texts: tuple[str, ...] = Field((), exclude_if=lambda value: not value)
    segmentation: SerializeAsAny[Segmentation] | None = Field(None, exclude_if=lambda value: value is None)
    annotations: tuple[SerializeAsAny[Annotation], ...] | None = Field(None, exclude_if=lambda value: value is None)
    layout: SerializeAsAny[Layout] | None = Field(None, exclude_if=lambda value: value is None)
    attention: SerializeAsAny[AttentionPattern] | None = Field(None, exclude_if=lambda value: value is None)
    knowledge: SerializeAsAny[Knowledge] | None = Field(None, exclude_if=lambda value: value is None)
    corruption: tuple[SerializeAsAny[Corruption], ...] | None = Field(None, exclude_if=lambda value: value is None)
    head: SerializeAsAny[Head] | None = Field(None, exclude_if=lambda value: value is None)
    objective: tuple[SerializeAsAny[Objective], ...] | None = Field(None, exclude_if=lambda value: value is None)
    teacher: str | None = Field(None, exclude_if=lambda value: value is None)
    teacher_vocabulary: TeacherVocabulary | None = Field(None, exclude_if=lambda value: value is None)
    weight: float = Field(1.0, gt=0, le=1_000_000)
    """Factor of this line's loss."""

    @field_validator("corpus", "texts", "annotations", "corruption", "objective", mode="before")
    @classmethod
    def _listed(cls, value: Any) -> Any:
        return as_list(value)


LINE_KEYS = frozenset(Line.model_fields) - {"weight"}
"""Keys of a stage that each of its lines may set for itself."""


def line_views(stage: Stage) -> dict[str, Stage]:
    """Line → the stage that this line would be alone; `{"": stage}` for a stage without lines.

    Its kind is the one that reads what the line's head reads: plain text or labelled examples.
    """
    if not stage.lines:
        return {"": stage}
    return {name: _view(stage, line) for name, line in stage.lines.items()}


def _view(stage: Stage, line: Line) -> Stage:
    own: dict[str, Any] = {key: getattr(line, key) for key in LINE_KEYS & line.model_fields_set}
    head: Head | None = own.get("head", stage.head)
    kind = stage.kind
    if head is not None and kind is not Kind.COMPRESS:
        if head.reads:
            kind = Kind.FINETUNE
        elif not kind.reads_plain_text:
            kind = Kind.ADAPT_TASK
    return stage.model_copy(update={**own, "kind": kind, "lines": {}, "mixing": None})


def teacher_role(line: str) -> str:
    """Role, among the parents of a step, of the teacher of `line`; "" is the only line of a stage without lines."""
    return f"teacher:{line}" if line else "teacher"
