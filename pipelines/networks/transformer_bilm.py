"""ELMo with a Transformer of each direction in place of its LSTMs (Peters et al. 2018, "Dissecting Contextual Word
Embeddings", arXiv:1808.08949).

Words are read by their letters, as in ELMo. Then a stack of layers attends from left to right, and another one, to the
same words in reverse, from right to left: h ↦ h + A(norm(h)), then h + F(norm(h)), with attention A to a word and those
that the direction has read before, and F two linear layers with a relu between (Vaswani et al. 2017, §3). Sines and
cosines of the number of words that were read are added to the first layer's input (ibid. §3.5), and the last layer's
output is normalised.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding, scaled_dot_product_attention
from transformers import AutoModel
from transformers import initialization as init

from pipelines.networks.attention_free import register_architecture
from pipelines.networks.elmo import Directions, ElmoConfig, ElmoModel, ElmoPreTrainedModel, WordsFromLetters
from pipelines.networks.spelling import Speller

LONGEST_WAVE = 10000.0
"""Wave length of the last pair of elements, in words and multiples of 2π."""


class TransformerBilmConfig(ElmoConfig):
    """Dimensions of two directional Transformers over letters; `lstm_size` has no meaning."""

    model_type = "transformer_bilm"

    num_attention_heads: int = 8
    intermediate_size: int = 2048
    """Width between the two linear layers of a feed-forward sub-layer."""


class CausalAttention(nn.Module):
    """Scaled products of a word with itself and those before it, in several heads."""

    def __init__(self, config: TransformerBilmConfig) -> None:
        super().__init__()
        width = config.projection_size
        self.heads = config.num_attention_heads
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.output = nn.Linear(width, width)

    def forward(self, states: Tensor) -> Tensor:
        """[B, W, P] from `states` [B, W, P]."""
        rows, words, _ = states.shape
        query, key, value = (
            projection(states).view(rows, words, self.heads, -1).transpose(1, 2)
            for projection in (self.query, self.key, self.value)
        )
        context = scaled_dot_product_attention(query, key, value, is_causal=True)
        result: Tensor = self.output(context.transpose(1, 2).flatten(-2))
        return result


class DirectedLayer(nn.Module):
    """Attention and feed-forward sub-layers, each on normalised input, and added to what it has read."""

    def __init__(self, config: TransformerBilmConfig, last: bool) -> None:
        super().__init__()
        width = config.projection_size
        self.attention, self.dropout = CausalAttention(config), nn.Dropout(config.layer_dropout)
        self.inner, self.outer = nn.Linear(width, config.intermediate_size), nn.Linear(config.intermediate_size, width)
        self.attention_norm, self.feed_forward_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.last_norm = nn.LayerNorm(width) if last else None

    def forward(self, states: Tensor) -> Tensor:
        """[B, W, P] from `states` [B, W, P], read from left to right."""
        states = states + self.dropout(self.attention(self.attention_norm(states)))
        states = states + self.dropout(self.outer(torch.relu(self.inner(self.feed_forward_norm(states)))))
        return states if self.last_norm is None else self.last_norm(states)


class BothDirectedLayers(nn.Module):
    """A layer of each direction, which do not see each other."""

    def __init__(self, config: TransformerBilmConfig, last: bool) -> None:
        super().__init__()
        self.forward_layer, self.backward_layer = DirectedLayer(config, last), DirectedLayer(config, last)


class TransformerBilmModel(ElmoModel):
    """The backbone. Each direction is a function of the words on its side alone; padding on the right affects none."""

    config_class = TransformerBilmConfig

    def __init__(self, config: TransformerBilmConfig) -> None:
        # ELMo's own constructor would build LSTMs
        ElmoPreTrainedModel.__init__(self, config)
        self.speller = Speller(
            config.spellings or [""] * config.vocab_size, config.continuing or (), config.word_length
        )
        self.words = WordsFromLetters(config, self.speller.letters)
        self.dropout = nn.Dropout(config.layer_dropout)
        count = config.num_hidden_layers
        self.layers = nn.ModuleList(BothDirectedLayers(config, at == count - 1) for at in range(count))
        self.post_init()  # type: ignore[no-untyped-call]  # transformers does not type it

    def directions(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Directions:
        """All layers of both directions over the words of `input_ids` [B, L]."""
        words = self.speller(input_ids, attention_mask)
        each = embedding(words.spelling_of, self.words(words.letters))
        ahead, back = [each], [each]
        reverse = words.reversal.unsqueeze(-1)
        waves = sinusoids(each.shape[1], each.shape[2], each.device).to(each.dtype)
        forwards, backwards = self.dropout(each + waves), self.dropout(each.take_along_dim(reverse, 1) + waves)
        for layer in self.layers:
            assert isinstance(layer, BothDirectedLayers)
            forwards, backwards = layer.forward_layer(forwards), layer.backward_layer(backwards)
            ahead.append(forwards)
            back.append(backwards.take_along_dim(reverse, 1))
        return Directions(words, ahead, back)

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        """As in ELMo; a new normalisation changes no scale."""
        super()._init_weights(module)
        if isinstance(module, nn.LayerNorm):
            init.ones_(module.weight)
            init.zeros_(module.bias)


def sinusoids(length: int, width: int, device: torch.device) -> Tensor:
    """float32 [length, width]: sin(t · w_k) and cos(t · w_k) in turns, w_k = 10000^(−2k / width)."""
    exponents = torch.arange(0, width, 2, device=device, dtype=torch.float32) / width
    angles = torch.arange(length, device=device, dtype=torch.float32)[:, None] * LONGEST_WAVE**-exponents
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)[:, :width]


def register_auto_classes() -> None:
    """Register this architecture with the Auto classes of transformers."""
    register_architecture(TransformerBilmConfig, {AutoModel: TransformerBilmModel})
