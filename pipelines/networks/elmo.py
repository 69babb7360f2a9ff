"""ELMo: two language models, one of each direction, over words that a convolutional network reads letter by letter
(Peters et al. 2018, arXiv:1802.05365; Józefowicz et al. 2016, arXiv:1602.02410, §3.1, for words out of letters).

Shapes: B rows of L tokens, which make up W words at most; U different words; P width of a projection, H = 2 · P.
"""

from __future__ import annotations

import warnings
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding
from transformers import AutoModel, PretrainedConfig
from transformers import initialization as init
from transformers.modeling_outputs import BaseModelOutput

from pipelines.networks.attention_free import AttentionFreeModel, register_architecture
from pipelines.networks.spelling import SpelledRows, Speller


class ElmoConfig(PretrainedConfig):
    """Dimensions of a bidirectional language model over letters, and the spelling of every token."""

    model_type = "elmo"

    vocab_size: int = 30000
    spellings: list[str] | None = None
    """The bytes of each token as characters 0 to 255; empty for a special token."""
    continuing: list[int] | None = None
    """Ids of the tokens that continue a word."""
    unk_token_id: int = 1
    """Target in place of a word that is not one token of the vocabulary."""
    word_length: int = 50
    """Letters of a word that are read, with its begin and end."""
    letter_size: int = 16
    """Width of a letter's embedding."""
    filters: list[list[int]] | None = None
    """Width in letters and number of the filters of each convolution."""
    highway_layers: int = 2
    projection_size: int = 512
    """P: width of a word and of each direction."""
    lstm_size: int = 4096
    """Width of an LSTM's cell, before its projection."""
    num_hidden_layers: int = 2
    hidden_size: int = 1024
    """H = 2 · P: width of a layer, both directions side by side."""
    layer_dropout: float = 0.1
    """Share of the elements dropped of what each LSTM reads, and of what the softmax reads."""
    initializer_range: float = 0.02
    pad_token_id: int | None = 0
    tie_word_embeddings: bool = False


class Directions(NamedTuple):
    """The states of both directions, a word at a time."""

    words: SpelledRows
    forward: list[Tensor]
    """Layers + 1 tensors [B, W, P]: each of the words up to its own."""
    backward: list[Tensor]
    """The same, each of the words from its own on."""


class Highway(nn.Module):
    """g · relu(A · x) + (1 − g) · x, with a learned gate g (Srivastava et al. 2015, arXiv:1505.00387)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.transform, self.gate = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, states: Tensor) -> Tensor:
        gate = torch.sigmoid(self.gate(states))
        return gate * torch.relu(self.transform(states)) + (1 - gate) * states


class WordsFromLetters(nn.Module):
    """Convolutions over the letters of a word, the maximum of each filter, highway layers, a projection."""

    def __init__(self, config: ElmoConfig, letters: int) -> None:
        super().__init__()
        filters = config.filters or [[1, 32]]
        width = sum(number for _, number in filters)
        self.letters = nn.Embedding(letters, config.letter_size)
        self.convolutions = nn.Sequential(*(nn.Conv1d(config.letter_size, number, size) for size, number in filters))
        self.highways = nn.Sequential(*(Highway(width) for _ in range(config.highway_layers)))
        self.projection = nn.Linear(width, config.projection_size)

    def forward(self, letters: Tensor) -> Tensor:
        """[U, P] from `letters` int64 [U, word length]."""
        embedded = self.letters(letters).transpose(1, 2)
        highest = [torch.relu(convolution(embedded).amax(-1)) for convolution in self.convolutions]
        result: Tensor = self.projection(self.highways(torch.cat(highest, dim=1)))
        return result


class OneDirection(nn.Module):
    """An LSTM whose output is projected, with a residual connection above the first layer."""

    def __init__(self, config: ElmoConfig, residual: bool) -> None:
        super().__init__()
        width = config.projection_size
        self.dropout, self.residual = nn.Dropout(config.layer_dropout), residual
        self.lstm = nn.LSTM(width, config.lstm_size, proj_size=width, batch_first=True)

    def forward(self, states: Tensor) -> Tensor:
        """[B, W, P] from `states` [B, W, P], read from left to right."""
        states = self.dropout(states.to(next(self.lstm.parameters()).dtype))
        outputs: Tensor = self.lstm(states)[0]
        return outputs + states if self.residual else outputs


class BothDirections(nn.Module):
    """A layer: one LSTM from left to right and one from right to left, which do not see each other."""

    def __init__(self, config: ElmoConfig, residual: bool) -> None:
        super().__init__()
        self.forward_lstm, self.backward_lstm = OneDirection(config, residual), OneDirection(config, residual)


class ElmoPreTrainedModel(AttentionFreeModel):
    """Base class of the backbone and its language models: configuration, names and weight initialisation."""

    config_class = ElmoConfig
    base_model_prefix = "elmo"
    _input_embed_layer = "letters"

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        """Letters uniform in ± 1, convolutions in ± 0.05, as in the authors' code; the carry of a highway prevails."""
        if isinstance(module, nn.Embedding):
            init.uniform_(module.weight, -1.0, 1.0)
        elif isinstance(module, nn.Conv1d):
            init.uniform_(module.weight, -0.05, 0.05)
            init.zeros_(cast("Tensor", module.bias))
        elif isinstance(module, nn.Linear):
            init.normal_(module.weight, std=module.in_features**-0.5)
            init.zeros_(module.bias)
        elif isinstance(module, Highway):
            init.constant_(module.gate.bias, -2.0)
        elif isinstance(module, nn.LSTM):
            bound = module.hidden_size**-0.5
            for weights in module.parameters():
                init.uniform_(weights, -bound, bound)


class ElmoModel(ElmoPreTrainedModel):
    """The backbone. Each direction is a function of the words on its side alone; padding on the right affects none."""

    def __init__(self, config: ElmoConfig) -> None:
        super().__init__(config)
        self.speller = Speller(
            config.spellings or [""] * config.vocab_size, config.continuing or (), config.word_length
        )
        self.words = WordsFromLetters(config, self.speller.letters)
        self.layers = nn.ModuleList(BothDirections(config, at > 0) for at in range(config.num_hidden_layers))
        self.post_init()  # type: ignore[no-untyped-call]  # transformers does not type it

    def directions(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Directions:
        """All layers of both directions over the words of `input_ids` [B, L]."""
        words = self.speller(input_ids, attention_mask)
        each = embedding(words.spelling_of, self.words(words.letters))
        ahead, back = [each], [each]
        reverse = words.reversal.unsqueeze(-1)
        # half precision gains little in steps over words, and a projected LSTM has no such kernel on every device
        with torch.autocast(each.device.type, enabled=False), warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="LSTM with projections is not supported with oneDNN")
            for layer in self.layers:
                both = cast("BothDirections", layer)
                ahead.append(both.forward_lstm(ahead[-1]))
                backwards = both.backward_lstm(back[-1].take_along_dim(reverse, 1))
                back.append(backwards.take_along_dim(reverse, 1))
        return Directions(words, ahead, back)

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, output_hidden_states: bool = False
    ) -> BaseModelOutput:
        """Run on `input_ids` [B, L]; every token of a word has the state of the word, and padding 0.

        States [B, L, H] are those of both directions side by side; the first of the layers + 1 `hidden_states` is the
        word without its context, twice.
        """
        words, ahead, back = self.directions(input_ids, attention_mask)
        chosen = list(zip(ahead, back, strict=True))
        layers = [
            torch.cat(pair, dim=-1).take_along_dim(words.word_of.clamp(min=0).unsqueeze(-1), 1)
            * (words.word_of >= 0).unsqueeze(-1)
            for pair in (chosen if output_hidden_states else chosen[-1:])
        ]
        return BaseModelOutput(
            last_hidden_state=layers[-1], hidden_states=tuple(layers) if output_hidden_states else None
        )


class ElmoForTwoLanguageModels(ElmoPreTrainedModel):
    """Both language models: one softmax over the vocabulary, which the directions share (Peters et al. 2018, §3.1)."""

    def __init__(self, config: ElmoConfig) -> None:
        super().__init__(config)
        # the network of these layers, whatever they are made of
        self.elmo: ElmoModel = AutoModel.from_config(config)
        self.dropout = nn.Dropout(config.layer_dropout)
        self.softmax = nn.Linear(config.projection_size, config.vocab_size)
        self.post_init()  # type: ignore[no-untyped-call]  # transformers does not type it

    def predictions(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> list[tuple[Tensor, Tensor]]:
        """Logits [N, V] and targets int64 [N] of each direction, for the N pairs of neighbours in `input_ids` [B, L]:
        the right one from the words up to the left one, then the left one from the words from the right one on."""
        words, ahead, back = self.elmo.directions(input_ids, attention_mask)
        pairs, ids = words.pairs(), words.ids(self.config.unk_token_id)
        known_and_next = ((ahead[-1][:, :-1], ids[:, 1:]), (back[-1][:, 1:], ids[:, :-1]))
        return [(self.softmax(self.dropout(states[pairs])), targets[pairs]) for states, targets in known_and_next]

    def count_predictions(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> int:
        """The number N of those pairs."""
        return int((self.elmo.speller.count(input_ids, attention_mask) - 1).clamp(min=0).sum())


def register_auto_classes() -> None:
    """Register this architecture with the Auto classes of transformers."""
    register_architecture(ElmoConfig, {AutoModel: ElmoModel})
