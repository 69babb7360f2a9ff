"""Matches of single layers of a student and its teacher as data (Yang et al. 2020, TextBrewer §3.2 and §3.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Self, TypeAlias, cast

from pydantic import BaseModel, ConfigDict, field_validator, model_validator
from pydantic import Field as Option

from pipelines.networks.shape import NetworkShape
from pipelines.parts.objectives import Batch, Companion, Companions, Objective, TrainingStep
from pipelines.parts.objectives.layer_differences import BY_LAYERS, OVER, difference
from pipelines.parts.objectives.match_attention import MatchAttention, seen_pairs
from pipelines.parts.objectives.real_tokens import real_tokens
from pipelines.vocabulary import Field, Signal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor, nn
    from transformers import PretrainedConfig, PreTrainedModel

Layers: TypeAlias = int | tuple[int, int]
ATTENTION = ("scores", "distributions")
"""Losses of the scores of attention; those of the objective match_attention."""
LossName: TypeAlias = Literal[
    "mean_square", "cosine_distance", "first_states", "token_relations", "layer_flow", "scores", "distributions"
]


def numbers(layers: Layers) -> tuple[int, ...]:
    """One layer or two, as a tuple."""
    return (layers,) if isinstance(layers, int) else layers


class LayerMatch(BaseModel):
    """A layer of the student, or a pair of layers, that learns from one of the teacher."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    student: Layers
    """Layer of the student: 0 is the embeddings, for hidden states alone; two layers for losses that relate them."""
    teacher: Layers
    """Layer of the teacher, or two."""
    loss: LossName = "mean_square"
    """How they are compared. Hidden states: `mean_square` or `cosine_distance` of each token; `first_states`, mean
    square of the normalised state of the first token (Sun et al. 2019); `token_relations`, of products of all pairs of
    tokens (Huang & Wang 2017); `layer_flow`, of products of all pairs of elements (Yim et al. 2017). Attention: mean
    square of the `scores`, or the relative entropy of the `distributions`."""
    heads: Literal["each", "mean"] = "each"
    """Whether each head of attention is compared, or their mean."""
    weight: float = Option(1.0, gt=0)
    """Factor of this match."""
    projection: Literal["linear", "relu", "tanh"] | None = None
    """Learned map of the student's states to the teacher's width, and what follows it."""

    @field_validator("student", "teacher")
    @classmethod
    def _no_negative(cls, layers: Layers) -> Layers:
        if min(numbers(layers)) < 0:
            raise ValueError("layers are counted from 0, the embeddings, upwards")
        return layers

    @model_validator(mode="after")
    def _as_many_layers(self) -> Self:
        pairs = {len(numbers(one)) for one in (self.student, self.teacher)}
        if self.loss in ATTENTION and (pairs != {1} or 0 in (self.student, self.teacher)):
            raise ValueError(f"{self.loss} compares attention of one layer with that of another, from 1 upwards")
        if self.loss in ATTENTION and self.projection is not None:
            raise ValueError(f"{self.loss}: attention has no width, so that there is nothing to project")
        if self.loss not in ATTENTION and pairs != {2 if self.loss in BY_LAYERS else 1}:
            needed = "two layers, [lower, upper]" if self.loss in BY_LAYERS else "one layer"
            raise ValueError(f"{self.loss} needs {needed}, of the student and of the teacher")
        return self


class MatchLayers(Objective, name="match_layers"):
    """A weighted loss for each of several matches of layers; the systems of the literature are lists of them.

    Which layers there are is checked when the recipe is loaded, and again before training.
    """

    paper = "arXiv:2002.12620"
    may_read = frozenset({Field.INPUT_IDS, Field.ATTENTION_MASK, Field.VISIBLE, Field.DOCUMENT_STARTS})
    needs_signals = frozenset({Signal.HIDDEN_STATES})
    needs_teacher = True

    matches: tuple[LayerMatch, ...] = Option((LayerMatch(student=1, teacher=1),), min_length=1)
    """The matches."""

    @property
    def required_signals(self) -> frozenset[Signal]:
        kinds = {Signal.ATTENTION_SCORES if one.loss in ATTENTION else Signal.HIDDEN_STATES for one in self.matches}
        return frozenset(kinds)

    def tiny(self) -> Self:
        """The same matches of the embeddings and the first layer."""
        matches = tuple(
            one.model_copy(update={side: _lowest(getattr(one, side)) for side in ("student", "teacher")})
            for one in self.matches
        )
        return self.model_copy(update={"matches": matches})

    def unfit(self, student: NetworkShape, teacher: NetworkShape) -> str | None:
        for one in self.matches:
            for side, shape in (("student", student), ("teacher", teacher)):
                highest = max(numbers(getattr(one, side)))
                if shape.layers is not None and highest > shape.layers:
                    return (
                        f"there is no layer {highest} of the {side}, which has {shape.layers}; match layers from 0, "
                        f"the embeddings, to {shape.layers}"
                    )
            widths = (student.width, teacher.width)
            needs_width = one.loss not in (*ATTENTION, "token_relations") and one.projection is None
            if needs_width and None not in widths and widths[0] != widths[1]:
                return (
                    f"{one.loss} of layer {one.student} compares states of {widths[0]} and {widths[1]} elements; give "
                    "the match projection: linear"
                )
            heads = (student.heads, teacher.heads)
            if one.loss in ATTENTION and one.heads == "each" and None not in heads and heads[0] != heads[1]:
                return (
                    f"{one.loss} of layer {one.student} compares {heads[0]} attention heads with {heads[1]}; give the "
                    "match heads: mean"
                )
        return None

    def companions(self, make: Companions) -> dict[str, Companion]:
        return {"teacher": make.teacher()}

    def build(self, student: PretrainedConfig, teacher: PretrainedConfig | None) -> nn.Module | None:
        from torch import nn

        assert teacher is not None
        after = {"linear": nn.Identity, "relu": nn.ReLU, "tanh": nn.Tanh}
        projections = {
            str(number): nn.Sequential(nn.Linear(student.hidden_size, teacher.hidden_size), after[one.projection]())
            for number, one in enumerate(self.matches)
            if one.projection is not None
        }
        return nn.ModuleDict(projections) if projections else None

    def loss(self, step: TrainingStep) -> dict[str, Tensor]:
        teacher = step.companion_signals("teacher")
        return {
            f"match_layers/{number}": one.weight * self._difference(number, one, step, teacher)
            for number, one in enumerate(self.matches)
        }

    def counts(self, batch: Batch, network: PreTrainedModel) -> dict[str, int]:
        tokens = real_tokens(batch)
        sizes = {
            "tokens": lambda: int(tokens.sum()),
            "rows": lambda: len(tokens),
            "pairs": lambda: int(tokens.sum(1).square().sum()),
        }
        return {
            f"match_layers/{number}": _attention_of(one).counts(batch, network)[MatchAttention.name]
            if one.loss in ATTENTION
            else sizes[OVER[one.loss]]()
            for number, one in enumerate(self.matches)
        }

    def _difference(self, number: int, one: LayerMatch, step: TrainingStep, teacher: object) -> Tensor:
        signal = Signal.ATTENTION_SCORES if one.loss in ATTENTION else Signal.HIDDEN_STATES
        own, other = (cast("dict[Signal, Sequence[Tensor]]", x)[signal] for x in (step.signals, teacher))
        if one.loss in ATTENTION:
            assert isinstance(one.student, int) and isinstance(one.teacher, int)
            seen = seen_pairs(step.batch).unsqueeze(1)
            return _attention_of(one).difference(own[one.student - 1].float(), other[one.teacher - 1].float(), seen)
        modules = step.modules.get(self.name)
        states = [own[layer].float() for layer in numbers(one.student)]
        if one.projection is not None and modules is not None:
            projection = cast("nn.ModuleDict", modules)[str(number)]
            states = [projection(state) for state in states]
        goals = [other[layer].float() for layer in numbers(one.teacher)]
        return difference(one.loss, states, goals, real_tokens(step.batch))


def _lowest(layers: Layers) -> Layers:
    return min(layers, 1) if isinstance(layers, int) else (min(layers[0], 1), min(layers[1], 1))


def _attention_of(one: LayerMatch) -> MatchAttention:
    return MatchAttention.model_validate({"compare": one.loss, "heads": one.heads})
