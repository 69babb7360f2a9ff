"""Word vectors: an embedding table, and the two networks that train it to predict words from their neighbours (Mikolov
et al. 2013, arXiv:1301.3781 and arXiv:1310.4546).

Shapes: N centres, W context words at most, K negatives, M predictions, D depth of the deepest centre in the tree.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from transformers import AutoModel, PretrainedConfig
from transformers import initialization as init
from transformers.modeling_outputs import BaseModelOutput

from pipelines.networks.attention_free import AttentionFreeModel, register_architecture
from pipelines.networks.huffman import paths


class WordVectorsConfig(PretrainedConfig):
    """Dimensions of a table of word vectors."""

    model_type = "word_vectors"

    vocab_size: int = 30000
    hidden_size: int = 300
    """Width of a vector."""
    num_hidden_layers: int = 0
    """Number of layers above the table: none."""
    token_counts: list[int] | None = None
    """Frequency of each token in the text that the vocabulary was built from; None if the tokenizer did not keep it."""
    word_architecture: str = "skip_gram"
    """`skip_gram` or `cbow`: input of the predictions while the vectors are trained."""
    pad_token_id: int | None = 0
    tie_word_embeddings: bool = False


class WordVectorsPreTrainedModel(AttentionFreeModel):
    """Base class of the table and the networks that train it: configuration, names and weight initialisation."""

    config_class = WordVectorsConfig
    base_model_prefix = "word_vectors"
    _input_embed_layer = "embeddings"

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        """Initialise input vectors with small random values and output vectors with zeros, as in the authors' code."""
        if isinstance(module, OutputTable):
            init.zeros_(module.weight)
        elif isinstance(module, nn.Embedding):
            bound = 0.5 / self.config.hidden_size
            init.uniform_(module.weight, -bound, bound)


class OutputTable(nn.Embedding):
    """Output vectors: those of predicted words or tree nodes, as opposed to the input vectors."""


class WordVectorsModel(WordVectorsPreTrainedModel):
    """The embedding table: one vector for each word, independent of its context."""

    def __init__(self, config: WordVectorsConfig) -> None:
        super().__init__(config)
        self.embeddings = nn.Embedding(config.vocab_size, config.hidden_size)
        self.post_init()  # type: ignore[no-untyped-call]  # transformers does not type it

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, output_hidden_states: bool = False
    ) -> BaseModelOutput:
        """Look up `input_ids` [B, L]. `attention_mask` is ignored."""
        vectors = self.embeddings(input_ids)
        return BaseModelOutput(last_hidden_state=vectors, hidden_states=(vectors,) if output_hidden_states else None)


class WordPredictor(WordVectorsPreTrainedModel):
    """Base class of the training networks: the table, and the inputs for predicting the centre of a window."""

    def __init__(self, config: WordVectorsConfig) -> None:
        super().__init__(config)
        self.word_vectors = WordVectorsModel(config)

    def inputs(self, contexts: Tensor) -> tuple[Tensor, Tensor]:
        """Vectors [N, S, H] from each of which the centre is predicted, and bool [N, S]: which of them are valid.

        `contexts` [N, W] is −1 where a window has fewer words. CBOW predicts once, from the mean of a window's words;
        skip-gram once from each of them. Skip-gram's windows are symmetric, so the pairs are the same as when each
        neighbour is predicted from the centre; the authors' code does the same.
        """
        real = contexts >= 0
        if self.config.word_architecture == "skip_gram":
            return self.word_vectors.embeddings(contexts.clamp(min=0)), real
        count = real.sum(1, keepdim=True)
        words = self.word_vectors.embeddings(contexts.clamp(min=0)) * real.unsqueeze(-1)
        return (words.sum(1) / count.clamp(min=1)).unsqueeze(1), count > 0

    def count_predictions(self, contexts: Tensor) -> int:
        """Number of predictions made from `contexts` [N, W]."""
        real = contexts >= 0
        return int((real if self.config.word_architecture == "skip_gram" else real.any(1)).sum())


class NoisePredictor(WordPredictor):
    """Scores the centre and words drawn from a noise distribution (arXiv:1310.4546, §2.2)."""

    def __init__(self, config: WordVectorsConfig) -> None:
        super().__init__(config)
        self.outputs = OutputTable(config.vocab_size, config.hidden_size)
        self.post_init()  # type: ignore[no-untyped-call]  # transformers does not type it

    def forward(self, centers: Tensor, contexts: Tensor, negatives: Tensor) -> Tensor:
        """Scores [M, 1 + K] from `centers` [N], `contexts` [N, W] and `negatives` [N, K], the centre first.

        A negative that equals the centre scores −∞ and so does not contribute to the loss.
        """
        inputs, real = self.inputs(contexts)
        candidates = torch.cat([centers.unsqueeze(1), negatives], 1)
        scores = inputs @ self.outputs(candidates).transpose(1, 2)
        collisions = (candidates == centers.unsqueeze(1)).index_fill(1, torch.zeros_like(centers[:1]), False)
        result: Tensor = scores.masked_fill(collisions.unsqueeze(1), -torch.inf)[real]
        return result


class PathPredictor(WordPredictor):
    """Scores the turns on the path from the root of a Huffman tree to the centre (arXiv:1301.3781, §3.1; Morin & Bengio
    2005)."""

    nodes: Tensor
    turns: Tensor

    def __init__(self, config: WordVectorsConfig, counts: Sequence[int]) -> None:
        super().__init__(config)
        nodes, turns = (torch.from_numpy(part) for part in paths(counts))
        self.inner_nodes = OutputTable(max(1, len(counts) - 1), config.hidden_size)
        # saved with the weights, which are meaningless for any other tree
        self.register_buffer("nodes", nodes)
        self.register_buffer("turns", turns)
        self.post_init()  # type: ignore[no-untyped-call]  # transformers does not type it

    def forward(self, centers: Tensor, contexts: Tensor) -> tuple[Tensor, Tensor]:
        """Logits of turning right and the correct turns, [M, D] each, from `centers` [N] and `contexts` [N, W].

        Beyond a word's depth logits are 0 and turns −100.
        """
        inputs, real = self.inputs(contexts)
        turns = self.turns[centers]
        # trim to the deepest word of the batch
        deepest = int((turns >= 0).any(0).sum())
        nodes, turns = self.nodes[centers, :deepest], turns[:, :deepest]
        on_path = turns >= 0
        scores = inputs @ self.inner_nodes(nodes.clamp(min=0)).transpose(1, 2)
        scores = scores.masked_fill(~on_path.unsqueeze(1), 0)
        return scores[real], turns.unsqueeze(1).expand(-1, real.shape[1], -1)[real]


def register_auto_classes() -> None:
    """Register this architecture with the Auto classes of transformers."""
    register_architecture(WordVectorsConfig, {AutoModel: WordVectorsModel})
