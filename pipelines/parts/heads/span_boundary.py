"""Span-boundary head: predicts the tokens of masked spans twice, at their own positions and from the edges of their
spans."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from pydantic import Field as Option

from pipelines.parts.heads import Batch
from pipelines.parts.heads.masked_lm import MaskedLMHead
from pipelines.vocabulary import Field, Signal

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PretrainedConfig, PreTrainedModel

    from pipelines.task_families import Task


class SpanBoundaryHead(MaskedLMHead, name="span_boundary"):
    """Transformers' own masked-LM network, with a small network that reads only span edges (Joshi et al. 2019, §3.2).

    Plain transformers loads the saved folder as the architecture's masked-LM network and reports the weights
    `boundary.*` as unused.
    """

    paper = "arXiv:1907.10529"
    needs = MaskedLMHead.needs | {Field.SPAN_EDGES, Field.SPAN_OFFSETS}
    provides = MaskedLMHead.provides | {Signal.BOUNDARY_LOGITS}

    positions: int = Option(20, gt=0)
    """Number of distinct token positions within a span; later tokens share the last one. A span of ten words may be
    longer."""
    position_size: int = Option(200, gt=0)
    """Size of the position embeddings (§4.2)."""

    def build(self, config: PretrainedConfig, task: Task | None) -> PreTrainedModel:
        from pipelines.networks.span_boundary import SpanBoundaryPredictor

        network = super().build(config, task)
        network.boundary = SpanBoundaryPredictor(
            config, embeddings(network).shape[1], self.positions, self.position_size
        )
        return network

    def signals(self, network: PreTrainedModel, batch: Batch, requested: frozenset[Signal]) -> dict[Signal, Any]:
        from pipelines.networks.span_boundary import SpanBoundaryPredictor

        top, signals = self.top_and_signals(network, batch, requested)
        if Signal.BOUNDARY_LOGITS in requested:
            boundary = network.get_submodule("boundary")
            assert isinstance(boundary, SpanBoundaryPredictor)
            signals[Signal.BOUNDARY_LOGITS] = boundary(
                top, batch[Field.SPAN_EDGES], batch[Field.SPAN_OFFSETS], embeddings(network)
            )
        return signals


def embeddings(network: PreTrainedModel) -> Tensor:
    """The token embeddings [V, width], which are also the output projection."""
    return cast("Tensor", network.get_input_embeddings().weight)
