"""Generation by beam search with a decoder that begins as a copy of its encoder (Rothe et al. 2020, BERT2BERT, §3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field as Option

from pipelines.parts.heads.copied_decoder import CopiedDecoderHead

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel, PreTrainedTokenizerFast


class CopiedDecoderBeamsHead(CopiedDecoderHead, name="copied_decoder_beams"):
    """`copied_decoder` by beam search, which is that of transformers' `generate`."""

    beams: int = Option(4, ge=2)  # type: ignore[assignment]  # the head without beams has one
    """Number of beams."""
    length_penalty: float = Option(1.0, ge=-10, le=10)
    """α: texts of n tokens are compared by Σ log p / n^α, as transformers' `generate` does."""

    def _generate(
        self, network: PreTrainedModel, ids: Tensor, mask: Tensor, end: int, tokenizer: PreTrainedTokenizerFast
    ) -> Tensor:
        from pipelines.networks.beam_search import Writing
        from pipelines.networks.copied_decoder import CopiedDecoder
        from pipelines.networks.copied_steps import CopiedSteps

        assert isinstance(network, CopiedDecoder)
        writing = Writing(self.longest, end, int(tokenizer.pad_token_id), self.beams, self.length_penalty)
        return writing.write(CopiedSteps(network, ids, mask, len(tokenizer)), len(ids), ids.device)
