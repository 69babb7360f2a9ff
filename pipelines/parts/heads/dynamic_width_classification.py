"""Classification of texts and pairs at several widths of one network (Hou et al. 2020, DynaBERT)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import Field as Option
from pydantic import field_validator

from pipelines.errors import RecipeError
from pipelines.parts.architectures import Architecture
from pipelines.parts.heads import Batch, Head
from pipelines.parts.heads.sequence_classification import SequenceClassificationHead
from pipelines.vocabulary import Ability, Signal

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedModel

    from pipelines.networks.leading_widths import WidthLayer
    from pipelines.task_families import Task

WIDTH_LOGITS = Signal.of_head("width_logits")
"""[widths, B, C]: class scores of the sub-network of each width, the whole network last."""
WIDTH_STATES = Signal.of_head("width_states")
"""tuple of layers + 1 tensors [widths, B, L, H]: HIDDEN_STATES at each width."""
OWN = frozenset({WIDTH_LOGITS, WIDTH_STATES})


class DynamicWidthClassificationHead(SequenceClassificationHead, name="dynamic_width_classification"):
    """Class scores of a network and of its sub-networks, which have the first heads and neurons of every layer.

    It answers with the whole network; `leading_widths` makes a network of one of the others. It has the weights of
    `sequence_classification`, and continues such a head that pools as it does. Trained with `match_widths`. Raises
    RecipeError for an architecture whose heads and neurons cannot be left out alone.
    """

    paper = "arXiv:2004.04037"
    provides = SequenceClassificationHead.provides | OWN
    # together those of BERT, RoBERTa and ELECTRA alone: an ability of its own would move what every model depends on
    needs_abilities = SequenceClassificationHead.needs_abilities | {Ability.ATTENTION_SCORES, Ability.VISIBILITY}

    shares: tuple[float, ...] = Option((0.25, 0.5, 0.75, 1.0), min_length=2)
    """Shares of the heads and neurons of a layer that are trained, from the narrowest to 1, the whole network."""

    @field_validator("shares")
    @classmethod
    def _ascending(cls, shares: tuple[float, ...]) -> tuple[float, ...]:
        if list(shares) != sorted({share for share in shares if share > 0}) or shares[-1] != 1:
            raise ValueError(
                f"{', '.join(map(str, shares))}: give shares of the width in ascending order, each once, 1 last"
            )
        return shares

    def continues(self, other: Head) -> bool:
        alike = isinstance(other, SequenceClassificationHead) and not other.skips_layers
        options = ("pooling", "hidden", "both_orders")
        return alike and all(getattr(self, one) == getattr(other, one) for one in options)

    def build(self, config: PretrainedConfig, task: Task | None) -> PreTrainedModel:
        architecture = Architecture.of(config)
        stacks = {} if architecture is None else architecture.stacks
        if not stacks or any(names.heads is None or names.feed_forward is None for names in stacks.values()):
            raise RecipeError(
                f"head {self.name}: heads and neurons of the backbone {config.model_type} cannot be left out alone; "
                "use sequence_classification"
            )
        return super().build(config, task)

    def signals(self, network: PreTrainedModel, batch: Batch, requested: frozenset[Signal]) -> dict[Signal, Any]:
        if not requested & OWN:
            return super().signals(network, batch, requested)
        from pipelines.networks.leading_widths import at_width

        layers, at_widths = _layers(network), []
        assert layers, network.config.model_type
        states = frozenset({Signal.HIDDEN_STATES}) if WIDTH_STATES in requested else frozenset()
        for share in self.shares:
            with at_width(layers, share):
                needed = requested - OWN if share == 1 else frozenset()
                at_widths.append(super().signals(network, batch, needed | states | {Signal.LOGITS}))
        return at_widths[-1] | _of_widths(at_widths)


def _of_widths(at_widths: list[dict[Signal, Any]]) -> dict[Signal, Any]:
    import torch

    signals: dict[Signal, Any] = {WIDTH_LOGITS: torch.stack([one[Signal.LOGITS] for one in at_widths])}
    if all(Signal.HIDDEN_STATES in one for one in at_widths):
        by_layer = zip(*(one[Signal.HIDDEN_STATES] for one in at_widths), strict=True)
        signals[WIDTH_STATES] = tuple(torch.stack(states) for states in by_layer)
    return signals


def _layers(network: PreTrainedModel) -> list[WidthLayer]:
    """The layers of a network that `build` made."""
    from pipelines.networks.leading_widths import width_layers

    architecture = Architecture.of(network.config)
    assert architecture is not None
    return width_layers(network.base_model, architecture.stacks, architecture.head_width(network.config))
