"""Distillation of the weights themselves, through projections that all layers share (Zhao et al. 2019, §3.2)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal, NamedTuple

from pipelines.errors import RecipeError
from pipelines.networks.shape import NetworkShape
from pipelines.parts.objectives import Batch, Companion, Companions, Objective, TrainingStep
from pipelines.vocabulary import Field

if TYPE_CHECKING:
    from torch import Tensor, nn
    from transformers import PretrainedConfig, PreTrainedModel

    from pipelines.networks.weight_projection import WeightProjection

WIDTHS = ("hidden_size", "intermediate_size", "embedding_size")
"""Keys of a configuration that state the sizes of axes which a projection maps."""


class ProjectedWeights(Objective, name="projected_weights"):
    """Mean squared difference between the weights of the backbone and those of the teacher's, layer by layer, after a
    projection to the shape of the one or of the other (eq. 1 and 2).

    `up` projects the student's weights to the teacher's shapes, `down` the teacher's to the student's; both add both.
    One matrix serves every axis of one size: hidden states, neurons, embeddings. Of the token embeddings, those of the
    tokens that both vocabularies have are compared. Student and teacher have the same architecture with as many layers
    and positions; RecipeError otherwise.
    """

    paper = "arXiv:1909.11687"
    needs_fields = frozenset({Field.INPUT_IDS})
    needs_teacher = True

    direction: Literal["up", "down", "both"] = "up"
    """In the paper's experiments, `up` is the better one (§5)."""

    def companions(self, make: Companions) -> dict[str, Companion]:
        teacher = make.teacher()
        if teacher.own_tokens is not None:
            raise RecipeError(
                f"objective {self.name}: it compares the vectors of single tokens; set teacher_vocabulary: "
                "shared_tokens instead of own_tokens"
            )
        widths = self._widths(make.network.config, teacher.network.config)
        self._check(make.network, teacher, widths)
        return {"teacher": teacher}

    def unfit(self, student: NetworkShape, teacher: NetworkShape) -> str | None:
        if None not in (student.layers, teacher.layers) and student.layers != teacher.layers:
            return (
                f"the student has {student.layers} layers and its teacher {teacher.layers}, and the weights of each "
                "layer are compared with those of its number; give both as many"
            )
        return None

    def build(self, student: PretrainedConfig, teacher: PretrainedConfig | None) -> nn.Module | None:
        from torch import nn

        assert teacher is not None
        return nn.ModuleList(self._projections(self._widths(student, teacher)))

    def loss(self, step: TrainingStep) -> dict[str, Tensor]:
        pairs = [*weight_pairs(step.network, step.companions["teacher"])]
        terms = []
        for projection in step.modules[self.name].children():
            differences = [
                projection(one.own, one.own.shape, one.other.shape, table=one.table) - one.other
                if projection.up
                else projection(one.other, one.own.shape, one.other.shape, table=one.table) - one.own
                for one in pairs
            ]
            count = sum(one.numel() for one in differences)
            terms.append(sum((one.square().sum() for one in differences), start=differences[0].new_zeros(())) / count)
        return {"projected_weights": sum(terms[1:], start=terms[0])}

    def counts(self, batch: Batch, network: PreTrainedModel) -> dict[str, int]:
        return {"projected_weights": len(batch[Field.INPUT_IDS])}

    def _projections(self, widths: set[tuple[int, int]]) -> list[WeightProjection]:
        from pipelines.networks.weight_projection import WeightProjection

        return [WeightProjection(widths, up=way == "up") for way in ("up", "down") if self.direction in (way, "both")]

    def _widths(self, student: PretrainedConfig, teacher: PretrainedConfig) -> set[tuple[int, int]]:
        sizes = ((getattr(student, key, None), getattr(teacher, key, None)) for key in WIDTHS)
        return {(one, other) for one, other in sizes if one is not None and other is not None}

    def _check(self, network: PreTrainedModel, teacher: Companion, widths: set[tuple[int, int]]) -> None:
        names = [{name for name, _ in one.base_model.named_parameters()} for one in (network, teacher.network)]
        if other := sorted(names[0] ^ names[1]):
            raise RecipeError(
                f"objective {self.name}: student and teacher have other weights, such as {other[0]}; give both the "
                "same architecture and as many layers"
            )
        for pair in weight_pairs(network, teacher):
            own, wide = pair.own.shape, pair.other.shape
            fits = [
                one == two or ((one, two) in widths and not (pair.table and axis == 0))
                for axis, (one, two) in enumerate(zip(own, wide, strict=False))
            ]
            if len(own) != len(wide) or not all(fits):
                raise RecipeError(
                    f"objective {self.name}: {pair.name} has the shape {tuple(own)} in the student and {tuple(wide)} "
                    f"in its teacher; a projection maps {', '.join(WIDTHS)}, and the rest must be equal"
                )


class WeightPair(NamedTuple):
    """A parameter of the backbone, in float32."""

    name: str
    own: Tensor
    """The student's."""
    other: Tensor
    """The teacher's, without gradient."""
    table: bool
    """Whether its first axis is a vocabulary, positions or types, and no width."""


def weight_pairs(student: PreTrainedModel, teacher: Companion) -> Iterator[WeightPair]:
    """Each parameter of the backbone, of student and teacher.

    Of the token embeddings only the rows of tokens that both have, in the order of the student's ids.
    """
    from torch import nn

    tables = {id(one.weight) for one in student.base_model.modules() if isinstance(one, nn.Embedding)}
    wide = dict(teacher.network.base_model.named_parameters())
    tokens = student.get_input_embeddings().weight
    for name, parameter in student.base_model.named_parameters():
        own: Tensor = parameter
        other: Tensor = wide[name]
        if parameter is tokens and teacher.shared_ids is not None:
            ids = teacher.shared_ids.to(own.device)
            own, other = own[: len(ids)][ids >= 0], other[ids[ids >= 0]]
        yield WeightPair(name, own.float(), other.detach().float(), id(parameter) in tables)
