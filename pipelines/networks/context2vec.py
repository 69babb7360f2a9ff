"""context2vec: the vector of what is around a word, by an LSTM from each side and a perceptron (Melamud, Goldberger &
Dagan 2016, "context2vec: learning generic context embedding with bidirectional LSTM", §3.1).

    c_i = L₂(ReLU(L₁(ahead(w₁ … wᵢ₋₁) ⊕ back(wₙ … wᵢ₊₁))))

and a word w scores c_i · t(w), by a table of target words of its own. Shapes: B rows of L tokens, N centres, 1 + K
candidates for each, S the width of an LSTM, H that of a context and of a target.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding
from transformers import AutoModel, PretrainedConfig
from transformers import initialization as init
from transformers.modeling_outputs import BaseModelOutput

from pipelines.networks.attention_free import AttentionFreeModel, register_architecture
from pipelines.networks.word_vectors import OutputTable


class Context2vecConfig(PretrainedConfig):
    """Dimensions of a context encoder."""

    model_type = "context2vec"

    vocab_size: int = 30000
    embedding_size: int = 300
    """Width of a context word's vector."""
    lstm_size: int = 600
    """S: width of each direction."""
    inner_size: int = 1200
    """Width of the perceptron's hidden layer."""
    hidden_size: int = 600
    """H: width of a context's vector, and of a target word's."""
    num_hidden_layers: int = 1
    """Number of states above the embeddings."""
    pad_token_id: int | None = 0
    tie_word_embeddings: bool = False


class Context2vecPreTrainedModel(AttentionFreeModel):
    """Base class of the encoder and the network that trains it: configuration, names and weight initialisation."""

    config_class = Context2vecConfig
    base_model_prefix = "context2vec"
    _input_embed_layer = "embeddings"

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        """Vectors of variance 1 / width, those of targets 0 as in word2vec; layers uniform in ± 1 / √inputs."""
        if isinstance(module, OutputTable):
            init.zeros_(module.weight)
        elif isinstance(module, nn.Embedding):
            init.normal_(module.weight, std=module.embedding_dim**-0.5)
        elif isinstance(module, nn.Linear):
            bound = module.in_features**-0.5
            init.uniform_(module.weight, -bound, bound)
            init.zeros_(module.bias)
        elif isinstance(module, nn.LSTM):
            bound = module.hidden_size**-0.5
            for weights in module.parameters():
                init.uniform_(weights, -bound, bound)


class Context2vecModel(Context2vecPreTrainedModel):
    """The encoder. A token's own vector is no part of its state, and padding on the right of no other token's."""

    def __init__(self, config: Context2vecConfig) -> None:
        super().__init__(config)
        self.embeddings = nn.Embedding(config.vocab_size, config.embedding_size)
        self.ahead = nn.LSTM(config.embedding_size, config.lstm_size, batch_first=True)
        self.back = nn.LSTM(config.embedding_size, config.lstm_size, batch_first=True)
        self.inner = nn.Linear(2 * config.lstm_size, config.inner_size)
        self.outer = nn.Linear(config.inner_size, config.hidden_size)
        self.post_init()  # type: ignore[no-untyped-call]  # transformers does not type it

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, output_hidden_states: bool = False
    ) -> BaseModelOutput:
        """Vectors [B, L, H] of the contexts of `input_ids` [B, L]; where a side has no word its state is 0."""
        words = self.embeddings(input_ids)
        length = input_ids.shape[1]
        lengths = torch.full_like(input_ids[:, :1], length) if attention_mask is None else attention_mask.sum(1, True)
        position = torch.arange(length, device=input_ids.device)
        # rows end at different tokens, from which one direction begins
        mirrored = torch.where(position < lengths, lengths - 1 - position, position).unsqueeze(-1)
        # half precision gains nothing at this width
        with torch.autocast(words.device.type, enabled=False):
            vectors = words.to(self.outer.weight.dtype)
            ahead = self.ahead(vectors)[0]
            back = self.back(vectors.take_along_dim(mirrored, 1))[0].take_along_dim(mirrored, 1)
            none = torch.zeros_like(ahead[:, :1])
            before = torch.cat([none, ahead[:, :-1]], 1)
            after = torch.cat([back[:, 1:], none], 1) * (position + 1 < lengths).unsqueeze(-1)
            states = self.outer(torch.relu(self.inner(torch.cat([before, after], -1))))
        return BaseModelOutput(
            last_hidden_state=states, hidden_states=(words, states) if output_hidden_states else None
        )


class ContextToWord(Context2vecPreTrainedModel):
    """The encoder, and the table of target words that contexts are scored against."""

    def __init__(self, config: Context2vecConfig) -> None:
        super().__init__(config)
        self.context2vec = Context2vecModel(config)
        self.targets = OutputTable(config.vocab_size, config.hidden_size)
        self.post_init()  # type: ignore[no-untyped-call]  # transformers does not type it

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None,
        center_tokens: Tensor,
        centers: Tensor,
        negatives: Tensor,
    ) -> Tensor:
        """Scores [N, 1 + K] of `centers` [N] and `negatives` [N, K] in the contexts of the tokens that are centres.

        `center_tokens` [B, L] is 1 for those tokens. A negative that equals the centre scores −∞ and so does not
        contribute to the loss.
        """
        contexts = self.context2vec(input_ids, attention_mask).last_hidden_state[center_tokens > 0]
        candidates = torch.cat([centers.unsqueeze(1), negatives], 1)
        scores = (embedding(candidates, self.targets.weight) @ contexts.unsqueeze(-1)).squeeze(-1)
        collisions = (candidates == centers.unsqueeze(1)).index_fill(1, torch.zeros_like(centers[:1]), False)
        result: Tensor = scores.masked_fill(collisions, -torch.inf)
        return result


def register_auto_classes() -> None:
    """Register this architecture with the Auto classes of transformers."""
    register_architecture(Context2vecConfig, {AutoModel: Context2vecModel})
