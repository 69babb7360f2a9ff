"""Paragraph vectors: a text's vector is what predicts its words best, the words' own vectors given (Le & Mikolov 2014).

Shapes: B rows of L tokens, N words of all paragraphs together, D paragraphs, S noise words, H elements of a vector.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus
from transformers import AutoModel, PretrainedConfig
from transformers import initialization as init
from transformers.modeling_outputs import BaseModelOutput

from pipelines.networks.attention_free import AttentionFreeModel, register_architecture
from pipelines.networks.word_vectors import OutputTable

SMALLEST = 1e-10
"""Added to sums of squared norms of gradients before the first division by their root."""


class ParagraphVectorsConfig(PretrainedConfig):
    """Dimensions of a model of paragraphs, and how it infers the vector of a text."""

    model_type = "paragraph_vectors"

    vocab_size: int = 30000
    hidden_size: int = 300
    num_hidden_layers: int = 0
    paragraph_architecture: str = "dm"
    """`dm`: a word is predicted from its neighbours and the paragraph; `dbow`: from the paragraph alone."""
    window: int = 5
    """Neighbours on each side, in `dm`."""
    samples: float = 5.0
    """Negatives of each word, in expectation."""
    noise_words: int = 256
    """Noise words that stand for the noise distribution when a vector is inferred."""
    inference_steps: int = 30
    inference_rate: float = 1.0
    special_ids: list[int] | None = None
    """Ids of tokens that are no words."""
    pad_token_id: int | None = 0
    tie_word_embeddings: bool = False


@dataclass(frozen=True)
class FlatWords:
    """The words of several paragraphs, one after the other."""

    ids: Tensor
    """int64 [N]."""
    paragraphs: Tensor
    """int64 [N]: number of each word's paragraph, from 0, ascending."""

    @property
    def bounds(self) -> tuple[Tensor, Tensor]:
        """int64 [N] each: position of the first word of each word's paragraph, and of the first one after it."""
        sizes = torch.bincount(self.paragraphs)
        ends = sizes.cumsum(0)
        return (ends - sizes)[self.paragraphs], ends[self.paragraphs]


def window_sums(values: Tensor, words: FlatWords, window: int) -> tuple[Tensor, Tensor]:
    """[N, H] sums of `values` [N, H] over each word's neighbours in its paragraph, and [N] the number of these.

    By differences of running sums, whose cost does not depend on the window.
    """
    begins, ends = words.bounds
    position = torch.arange(len(values), device=values.device)
    low, high = torch.maximum(position - window, begins), torch.minimum(position + window + 1, ends)
    running = torch.cat([values.new_zeros(1, values.shape[1]), values.cumsum(0)])
    return running[high] - running[low] - values, high - low - 1


class NoiseContrast(NamedTuple):
    """Loss of predicted words against noise, and its gradient."""

    loss: float
    """−Σ log σ(h · o) − weight Σ log σ(−h · n): eq. 4 of Mikolov et al. 2013 with shared negatives."""
    inputs: Tensor
    """[N, H]: gradient of each input h."""


def contrast(inputs: Tensor, ids: Tensor, table: Tensor, noise: Tensor, weight: float) -> NoiseContrast:
    """Contrast of words `ids` [N] with noise words [S], all with vectors in `table` [V, H], from `inputs` [N, H].

    Every noise word counts `weight` times; one that is the word itself does not count.
    """
    vectors, others = table[ids], table[noise]
    scores, against = (inputs * vectors).sum(1, keepdim=True), inputs @ others.T
    real = weight * (ids.unsqueeze(1) != noise)
    loss = softplus(-scores).sum() + (real * softplus(against)).sum()
    words, noises = scores.sigmoid() - 1, real * against.sigmoid()
    return NoiseContrast(float(loss), words * vectors + noises @ others)


class ParagraphContext(NamedTuple):
    """What the words of paragraphs give to the inputs that predict them: h = `base` + `share` · paragraph."""

    base: Tensor
    """[N, H], or zeros [1, 1] where words are predicted from the paragraph alone."""
    share: Tensor
    """[N, 1], or ones [1, 1]."""


def paragraph_context(table: Tensor | None, words: FlatWords, window: int) -> ParagraphContext:
    """The mean of a word's neighbours, with vectors in `table` [V, H], and its paragraph (§2.2); None: the paragraph
    alone (§2.3)."""
    if table is None:
        return ParagraphContext(torch.zeros(1, 1), torch.ones(1, 1))
    sums, counts = window_sums(table[words.ids], words, window)
    share = 1 / (1 + counts.to(sums.dtype)).unsqueeze(1)
    return ParagraphContext(sums * share, share)


def descend_paragraphs(
    vectors: Tensor, squares: Tensor, words: FlatWords, context: ParagraphContext, table: Tensor, noise: Tensor,
    weight: float, steps: int, rate: float,
) -> None:  # fmt: skip
    """`steps` steps down the gradient on `vectors` [D, H], in place; `table` and the context stay as they are.

    A step is divided by the root of `squares` [D, 1], the squared norms of a paragraph's gradients so far (Streeter &
    McMahan 2010, arXiv:1002.4862): a text of any length starts with a step of length `rate` in the direction of its
    gradient. AdaGrad, which divides each element by its own root, gives elements that say little of a text as much
    weight as those that tell it from others.
    """
    for _ in range(steps):
        inputs = context.base + context.share * vectors[words.paragraphs]
        gradient = contrast(inputs, words.ids, table, noise, weight).inputs * context.share
        summed = torch.zeros_like(vectors).index_add_(0, words.paragraphs, gradient)
        squares.add_(summed.square().sum(1, keepdim=True))
        vectors.sub_(rate * summed / (squares + SMALLEST).sqrt())


class ParagraphVectorsPreTrainedModel(AttentionFreeModel):
    """Base class: configuration, names and weight initialisation."""

    config_class = ParagraphVectorsConfig
    base_model_prefix = "paragraph_vectors"
    _input_embed_layer = "embeddings"

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        if isinstance(module, OutputTable):
            init.zeros_(module.weight)
        elif isinstance(module, nn.Embedding):
            bound = 0.5 / self.config.hidden_size
            init.uniform_(module.weight, -bound, bound)
        elif isinstance(module, ParagraphVectorsModel):
            init.zeros_(module.noise)


class ParagraphVectorsModel(ParagraphVectorsPreTrainedModel):
    """Tables of words. The state of every token is the vector of its row, inferred with the words frozen (§2.3)."""

    noise: Tensor

    def __init__(self, config: ParagraphVectorsConfig) -> None:
        super().__init__(config)
        self.embeddings = nn.Embedding(config.vocab_size, config.hidden_size)
        self.outputs = (
            OutputTable(config.vocab_size, config.hidden_size) if config.paragraph_architecture == "dm" else None
        )
        self.register_buffer("noise", torch.zeros(config.noise_words, dtype=torch.int64))
        self.post_init()  # type: ignore[no-untyped-call]  # transformers does not type it

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, output_hidden_states: bool = False
    ) -> BaseModelOutput:
        """States [B, L, H] of `input_ids` [B, L]: the vector of a row at each of its tokens. No gradient flows to the
        tables."""
        vectors = self.infer(input_ids, attention_mask)
        states = vectors.unsqueeze(1).expand(-1, input_ids.shape[1], -1)
        return BaseModelOutput(last_hidden_state=states, hidden_states=(states,) if output_hidden_states else None)

    @torch.no_grad()
    def infer(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        """[B, H]: from 0, steps down the loss of a row's words, the same for every row whatever is beside it.

        Padding and special tokens are no words; a row without words has a vector of 0.
        """
        real = torch.ones_like(input_ids, dtype=torch.bool) if attention_mask is None else attention_mask > 0
        for token in self.config.special_ids or ():
            real &= input_ids != token
        vectors = torch.zeros(len(input_ids), self.config.hidden_size, device=input_ids.device)
        if real.any():
            rows, numbers = torch.unique(torch.nonzero(real)[:, 0], return_inverse=True)
            words = FlatWords(input_ids[real], numbers)
            inferred = vectors[rows]
            table = (self.embeddings if self.outputs is None else self.outputs).weight.float()
            inner = None if self.outputs is None else self.embeddings.weight.float()
            averages = paragraph_context(inner, words, self.config.window)
            context = ParagraphContext(*(part.to(inferred) for part in averages))
            squares = inferred.new_zeros(len(rows), 1)
            weight = self.config.samples / len(self.noise)
            descend_paragraphs(
                inferred, squares, words, context, table, self.noise, weight, self.config.inference_steps,
                self.config.inference_rate,
            )  # fmt: skip
            vectors[rows] = inferred
        return vectors


class ParagraphEncoder(ParagraphVectorsPreTrainedModel):
    """The model as a stage on plain text keeps it: a vector for each row."""

    def __init__(self, config: ParagraphVectorsConfig) -> None:
        super().__init__(config)
        self.paragraph_vectors = ParagraphVectorsModel(config)
        self.post_init()  # type: ignore[no-untyped-call]  # transformers does not type it

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        """[B, H]: inferred vectors."""
        return self.paragraph_vectors.infer(input_ids, attention_mask)


def register_auto_classes() -> None:
    """Register this architecture with the Auto classes of transformers."""
    register_architecture(ParagraphVectorsConfig, {AutoModel: ParagraphVectorsModel})
