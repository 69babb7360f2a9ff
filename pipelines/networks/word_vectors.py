"""Word vectors: a table, and the two ways in which it learns to predict words from their neighbours (Mikolov et al. 2013,
arXiv:1301.3781 and arXiv:1310.4546).

Shapes: N centres, W places for the words around each, K negatives, M predictions, D depth of the deepest centre.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from transformers import AutoConfig, AutoModel, PretrainedConfig, PreTrainedModel
from transformers import initialization as init
from transformers.utils.generic import ModelOutput

from pipelines.networks.huffman import paths


class WordVectorsConfig(PretrainedConfig):
    """The dimensions of a table of word vectors."""

    model_type = "word_vectors"

    vocab_size: int = 30000
    hidden_size: int = 300
    """Width of a vector."""
    num_hidden_layers: int = 0
    """There are none above the table."""
    token_counts: list[int] | None = None
    """How often each token stands in the text that the vocabulary was made of; None where that was not kept."""
    word_architecture: str = "skip_gram"
    """`skip_gram` or `cbow`: what a centre is predicted from while the vectors are trained."""
    pad_token_id: int | None = 0
    tie_word_embeddings: bool = False


@dataclass
class WordVectorsOutput(ModelOutput):
    """What a table says."""

    last_hidden_state: Tensor | None = None
    """[B, L, H]: the vector of each token."""
    hidden_states: tuple[Tensor, ...] | None = None
    """The same, alone in a tuple."""


class WordVectorsPreTrainedModel(PreTrainedModel):
    """What the table and the networks that train it share: configuration, names and initial weights."""

    config_class = WordVectorsConfig
    base_model_prefix = "word_vectors"
    _input_embed_layer = "embeddings"
    supports_gradient_checkpointing = False
    # it attends to nothing: every implementation of attention is as good as any other
    _supports_sdpa = True
    _supports_flash_attn = True
    _supports_flex_attn = True
    _supports_attention_backend = True

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        """Small random vectors, zero outputs, as in the authors' program."""
        if isinstance(module, OutputTable):
            init.zeros_(module.weight)
        elif isinstance(module, nn.Embedding):
            edge = 0.5 / self.config.hidden_size
            init.uniform_(module.weight, -edge, edge)


class OutputTable(nn.Embedding):
    """WordVectorsOutput of what is predicted, beside the vectors of what predicts."""


class WordVectorsModel(WordVectorsPreTrainedModel):
    """The table: the same vector for a word whatever stands around it."""

    def __init__(self, config: WordVectorsConfig) -> None:
        super().__init__(config)
        self.embeddings = nn.Embedding(config.vocab_size, config.hidden_size)
        self.post_init()  # type: ignore[no-untyped-call]  # transformers does not type it

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, output_hidden_states: bool = False
    ) -> WordVectorsOutput:
        """Look up `input_ids` [B, L]. The mask changes nothing."""
        found = self.embeddings(input_ids)
        return WordVectorsOutput(last_hidden_state=found, hidden_states=(found,) if output_hidden_states else None)


class WordPredictor(WordVectorsPreTrainedModel):
    """A table, and what it predicts the middle word of a window from."""

    def __init__(self, config: WordVectorsConfig) -> None:
        super().__init__(config)
        self.word_vectors = WordVectorsModel(config)

    def inputs(self, contexts: Tensor) -> tuple[Tensor, Tensor]:
        """WordVectorsOutput [N, S, H] from each of which the centre is predicted, and which of them are there: bool [N, S].

        `contexts` [N, W] is −1 where a window has fewer words. CBOW predicts once, from the mean of a window's words;
        skip-gram once from each of them. Skip-gram's windows are symmetric, so the pairs are those of predicting each
        neighbour from the centre; so does the authors' program.
        """
        real = contexts >= 0
        if self.config.word_architecture == "skip_gram":
            return self.word_vectors.embeddings(contexts.clamp(min=0)), real
        count = real.sum(1, keepdim=True)
        words = self.word_vectors.embeddings(contexts.clamp(min=0)) * real.unsqueeze(-1)
        return (words.sum(1) / count.clamp(min=1)).unsqueeze(1), count > 0

    def count_predictions(self, contexts: Tensor) -> int:
        """How many predictions are made from `contexts` [N, W]."""
        real = contexts >= 0
        return int((real if self.config.word_architecture == "skip_gram" else real.any(1)).sum())


class NoisePredictor(WordPredictor):
    """Scores the centre and words drawn from a noise distribution (arXiv:1310.4546, §2.2)."""

    def __init__(self, config: WordVectorsConfig) -> None:
        super().__init__(config)
        self.outputs = OutputTable(config.vocab_size, config.hidden_size)
        self.post_init()  # type: ignore[no-untyped-call]  # transformers does not type it

    def forward(self, centers: Tensor, contexts: Tensor, negatives: Tensor) -> Tensor:
        """[M, 1 + K] from `centers` [N], `contexts` [N, W] and `negatives` [N, K], the centre's score first.

        A negative that happens to be the centre scores −∞: it says nothing about noise.
        """
        inputs, real = self.inputs(contexts)
        candidates = torch.cat([centers.unsqueeze(1), negatives], 1)
        scores = inputs @ self.outputs(candidates).transpose(1, 2)
        drawn_again = (candidates == centers.unsqueeze(1)).index_fill(1, torch.zeros_like(centers[:1]), False)
        said: Tensor = scores.masked_fill(drawn_again.unsqueeze(1), -torch.inf)[real]
        return said


class PathPredictor(WordPredictor):
    """Scores the turns on the way from the root of a Huffman tree to the centre (arXiv:1301.3781, §3.1; Morin & Bengio
    2005)."""

    nodes: Tensor
    turns: Tensor

    def __init__(self, config: WordVectorsConfig, counts: Sequence[int]) -> None:
        super().__init__(config)
        nodes, turns = (torch.from_numpy(part) for part in paths(counts))
        self.inner_nodes = OutputTable(max(1, len(counts) - 1), config.hidden_size)
        # saved with the weights, which mean nothing in another tree
        self.register_buffer("nodes", nodes)
        self.register_buffer("turns", turns)
        self.post_init()  # type: ignore[no-untyped-call]  # transformers does not type it

    def forward(self, centers: Tensor, contexts: Tensor) -> tuple[Tensor, Tensor]:
        """Scores of turning right and the turns to take, [M, D] each, from `centers` [N] and `contexts` [N, W].

        Beyond a word's depth scores are 0 and turns −100.
        """
        inputs, real = self.inputs(contexts)
        turns = self.turns[centers]
        # no further than the deepest word of the batch
        deepest = int((turns >= 0).any(0).sum())
        nodes, turns = self.nodes[centers, :deepest], turns[:, :deepest]
        on_path = turns >= 0
        scores = inputs @ self.inner_nodes(nodes.clamp(min=0)).transpose(1, 2)
        scores = scores.masked_fill(~on_path.unsqueeze(1), 0)
        return scores[real], turns.unsqueeze(1).expand(-1, real.shape[1], -1)[real]


def register_auto_classes() -> None:
    """Let the Auto classes open folders of this architecture."""
    AutoConfig.register("word_vectors", WordVectorsConfig, exist_ok=True)
    AutoModel.register(WordVectorsConfig, WordVectorsModel, exist_ok=True)
