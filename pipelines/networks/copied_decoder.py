"""An encoder, and above it a decoder whose layers begin as copies of the encoder's, with new cross-attention (Rothe et
al. 2020, arXiv:1907.12461, §2).

Shapes: B rows, L tokens of the source, T of the target, H the width, V the vocabulary.
"""

from __future__ import annotations

from copy import deepcopy
from inspect import signature

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu, linear
from transformers import AutoModel, PretrainedConfig

from pipelines.errors import RecipeError
from pipelines.networks.backbone_with_head import BackboneWithHead
from pipelines.networks.backbone_with_head import linear as initialised_linear


class CopiedDecoder(BackboneWithHead):
    """backbone → decoder of the same architecture → scores of the vocabulary, by the decoder's own embeddings.

    Raises RecipeError for an architecture whose layers cannot attend to other states.
    """

    def __init__(self, config: PretrainedConfig) -> None:
        super().__init__(config)
        of_decoder = deepcopy(config)
        of_decoder.is_decoder = True
        of_decoder.add_cross_attention = True
        self.decoder = AutoModel.from_config(of_decoder)
        accepted = signature(self.decoder.forward).parameters
        if "encoder_hidden_states" not in accepted or not self._new_names():
            raise RecipeError(
                f"head copied_decoder: {config.model_type} has no cross-attention, by which a decoder reads the "
                "encoder; use bert, roberta or electra"
            )
        if getattr(self.decoder, "pooler", None) is not None:
            self.decoder.pooler = None
        embeddings = self.decoder.get_input_embeddings()
        assert isinstance(embeddings, nn.Embedding)
        self.transform = initialised_linear(config.hidden_size, embeddings.embedding_dim, config)
        self.transform_norm = nn.LayerNorm(embeddings.embedding_dim)
        self.bias = nn.Parameter(torch.zeros(embeddings.num_embeddings))

    def _new_names(self) -> set[str]:
        """Names of the decoder's weights that the encoder does not have."""
        return set(self.decoder.state_dict()) - set(self.base_model.state_dict())

    @torch.no_grad()
    def copy_encoder(self) -> None:
        """Set every weight of the decoder that the encoder has, too; cross-attention stays random."""
        ours = self.decoder.state_dict()
        for name, value in self.base_model.state_dict().items():
            if name in ours:
                ours[name].copy_(value)

    def encode(self, input_ids: Tensor, attention_mask: Tensor | None) -> Tensor:
        """[B, L, H]: states of the sources `input_ids` [B, L]."""
        mask = {} if attention_mask is None else {"attention_mask": attention_mask}
        states: Tensor = self.run_backbone({"input_ids": input_ids, **mask}).last_hidden_state
        return states

    def score(self, states: Tensor) -> Tensor:
        """[…, V]: scores of the next token, from states of the decoder […, H]."""
        embeddings = self.decoder.get_input_embeddings()
        assert isinstance(embeddings, nn.Embedding)
        return linear(self.transform_norm(gelu(self.transform(states))), embeddings.weight, self.bias)

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None, decoder_input_ids: Tensor) -> Tensor:
        """[B, T, V]: scores of the token after each of `decoder_input_ids` [B, T]."""
        outputs = self.decoder(
            input_ids=decoder_input_ids,
            encoder_hidden_states=self.encode(input_ids, attention_mask),
            encoder_attention_mask=attention_mask,
            use_cache=False,
        )
        return self.score(outputs.last_hidden_state)

    def write(self, input_ids: Tensor, attention_mask: Tensor, longest: int, end: int, pad: int, tokens: int) -> Tensor:
        """int64 [B, up to `longest`]: the most probable of `tokens` tokens each time, up to `end`, then `pad`.

        A text begins after the first token of its source, which begins every row.
        """
        states, cache = self.encode(input_ids, attention_mask), None
        last, written = input_ids[:, :1], list[Tensor]()
        open_rows = torch.ones(len(input_ids), dtype=torch.bool, device=input_ids.device)
        while len(written) < longest and bool(open_rows.any()):
            outputs = self.decoder(
                input_ids=last,
                encoder_hidden_states=states,
                encoder_attention_mask=attention_mask,
                past_key_values=cache,
                use_cache=True,
            )
            cache = outputs.past_key_values
            best = self.score(outputs.last_hidden_state[:, -1])[:, :tokens].argmax(-1)
            last = torch.where(open_rows, best, pad)[:, None]
            written.append(last)
            open_rows = open_rows & (best != end)
        return torch.cat(written, dim=1)
