"""Softmax over a binary tree: the probability of a word is that of all turns on its path (Morin & Bengio 2005; Mnih &
Hinton 2008, eq. 4).

    p(w | h) = Π over the nodes n on the path to w  σ(±(q_n · h + b_n))

To learn from a word, as many scores are needed as its path has turns. The tree is saved with the weights, which are
meaningless for any other. Shapes: B rows, L tokens, N positions, H the width of a state, V the vocabulary, D the depth
of the deepest word.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, embedding, logsigmoid
from transformers import PretrainedConfig

from pipelines.networks.backbone_with_head import BackboneWithHead, linear
from pipelines.networks.vocabulary_loss import IGNORED
from pipelines.networks.word_trees import WordTree, depths, tree_paths


class TreeSoftmaxLM(BackboneWithHead):
    """A causal backbone, and a vector and a bias for each inner node of a tree over the words."""

    parents: Tensor
    """int64 [2V − 1]: parent of each node, as in `WordTree`."""
    sides: Tensor
    """int64 [2V − 1]: side of each node."""

    def __init__(self, config: PretrainedConfig, tree: WordTree) -> None:
        super().__init__(config)
        self.nodes = linear(config.hidden_size, config.vocab_size - 1, config)
        self.register_buffer("parents", torch.empty(2 * config.vocab_size - 1, dtype=torch.int64))
        self.register_buffer("sides", torch.empty(2 * config.vocab_size - 1, dtype=torch.int64))
        self._paths: tuple[object, tuple[Tensor, Tensor]] | None = None
        self.set_tree(tree)

    def set_tree(self, tree: WordTree) -> None:
        """Give the words another tree; the weights of its nodes stay as they are."""
        self.parents.copy_(torch.from_numpy(tree.parents))
        self.sides.copy_(torch.from_numpy(tree.sides))

    @property
    def tree(self) -> WordTree:
        """A copy of the tree over the words."""
        return WordTree(self.parents.cpu().numpy().copy(), self.sides.cpu().numpy().copy())

    def paths(self) -> tuple[Tensor, Tensor]:
        """int64 [V, D] each: the nodes and the turns on the path to each word (`tree_paths`)."""
        # weights may have been read since, in place or into other tensors
        state = (self.parents.data_ptr(), self.parents._version, self.sides.data_ptr(), self.sides._version)
        if self._paths is None or self._paths[0] != state:
            nodes, turns = (torch.from_numpy(part).to(self.parents.device) for part in tree_paths(self.tree))
            self._paths = (state, (nodes, turns))
        return self._paths[1]

    def states(self, inputs: dict[str, Tensor]) -> Any:
        """Outputs of the backbone, `last_hidden_state` [B, L, H] among them."""
        return self.run_backbone(inputs)

    def loss(self, states: Tensor, targets: Tensor) -> Tensor:
        """Scalar: mean negative log-probability of `targets` int64 [...] after `states` [..., H]; IGNORED ones do not
        count."""
        states, targets = states.flatten(0, -2), targets.flatten()
        counted = torch.nonzero(targets != IGNORED).squeeze(1)
        words = targets[counted]
        nodes, turns = self.paths()
        turns = turns[words]
        # trim to the deepest word of the batch
        deepest = int((turns >= 0).any(0).sum())
        nodes, turns = nodes[words, :deepest].clamp(min=0), turns[:, :deepest]
        with torch.autocast(states.device.type, enabled=False):
            vectors = embedding(nodes, self.nodes.weight)
            scores = (vectors @ states[counted].to(vectors.dtype).unsqueeze(-1)).squeeze(-1) + self.nodes.bias[nodes]
        on_path = (turns >= 0).to(scores.dtype)
        correct = turns.clamp(min=0).to(scores.dtype)
        return binary_cross_entropy_with_logits(scores, correct, on_path, reduction="sum") / max(1, len(words))

    def log_probs(self, states: Tensor) -> Tensor:
        """float32 [..., V]: log-probability of each word after `states` [..., H]; all V − 1 nodes are scored."""
        scores = self.nodes(states).float()
        size = self.config.vocab_size
        total = scores.new_zeros(*scores.shape[:-1], 2 * size - 1)
        depth = torch.from_numpy(depths(self.tree)).to(scores.device)
        for level in range(1, int(depth.max()) + 1):
            below = torch.nonzero(depth == level).squeeze(1)
            above = self.parents[below]
            signs = (2 * self.sides[below] - 1).to(scores.dtype)
            total = total.index_copy(-1, below, total[..., above] + logsigmoid(signs * scores[..., above - size]))
        leaves: Tensor = total[..., :size]
        return leaves
