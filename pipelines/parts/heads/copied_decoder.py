"""Generation by a decoder that begins as a copy of its encoder (Rothe et al. 2020, BERT2BERT)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from pipelines.parts.heads import Batch, backbone_inputs
from pipelines.parts.heads.text_to_text import TextToTextHead
from pipelines.vocabulary import Ability, Field, Signal

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PretrainedConfig, PreTrainedModel, PreTrainedTokenizerFast

    from pipelines.task_families import Task


class CopiedDecoderHead(TextToTextHead, name="copied_decoder"):
    """Text to text with an encoder alone: its layers are also those that a new decoder begins with.

    The decoder has weights of its own from then on. Where the head is new it copies the encoder's weights of the start
    of the stage; cross-attention is random. It writes greedily.
    """

    paper = "arXiv:1907.12461"
    needs_abilities = frozenset({Ability.BIDIRECTIONAL, Ability.ONE_STACK})

    beams: Literal[1] = 1
    """Number of beams: the most probable token each time. With `_beams` after its name, the head has several."""

    def build(self, config: PretrainedConfig, task: Task | None) -> PreTrainedModel:
        from pipelines.networks.copied_decoder import CopiedDecoder

        return CopiedDecoder(config)

    def begin(self, network: PreTrainedModel) -> None:
        network.copy_encoder()  # type: ignore[operator]  # transformers types it as a module

    def signals(self, network: PreTrainedModel, batch: Batch, requested: frozenset[Signal]) -> dict[Signal, Any]:
        import torch

        if Signal.TARGET_LOGITS not in requested:
            return {}
        inputs, targets = backbone_inputs(batch, network), batch[Field.TARGET_IDS]
        ids = inputs["input_ids"]
        # padding of the target comes after all that is predicted: any token may stand for it
        shifted = torch.cat([ids[:, :1], targets[:, :-1].clamp(min=0)], dim=1)
        return {Signal.TARGET_LOGITS: network(ids, inputs.get("attention_mask"), shifted)}

    def _generate(
        self, network: PreTrainedModel, ids: Tensor, mask: Tensor, end: int, tokenizer: PreTrainedTokenizerFast
    ) -> Tensor:
        written: Tensor = network.write(  # type: ignore[operator]  # transformers types it as a module
            ids, mask, self.longest, end, int(tokenizer.pad_token_id), len(tokenizer)
        )
        return written
