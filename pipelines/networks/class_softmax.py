"""Softmax in two steps: the class of the next word, then the word among those of its class (Goodman 2001, "Classes for
fast maximum entropy training", eq. 2).

    p(w | h) = p(class of w | h) · p(w | h, class of w)

To learn from a word, C + |class| scores are needed instead of V: 2 √V where √V classes are of one size. Here a class is
a range of ids that have about the same probability together, as ids are sorted by frequency (Mikolov et al. 2011,
"Extensions of recurrent neural network language model", §4). Shapes: B rows, L tokens, N positions, H the width of a
state, C classes, V the vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import linear as scored
from transformers import PretrainedConfig

from pipelines.networks.backbone_with_head import BackboneWithHead, linear
from pipelines.networks.vocabulary_loss import IGNORED, vocabulary_cross_entropy


def class_starts(frequencies: Sequence[float], classes: int) -> list[int]:
    """The first id of each class, from 0: at most `classes` ranges of ids with about the same sum of `frequencies`.

    A word that is as frequent as a class by itself is one, so that there may be fewer.
    """
    # a word that was never counted is as rare as one that was seen once
    ends = np.cumsum(np.maximum(np.asarray(frequencies, dtype=np.float64), 1e-9))
    numbers = np.minimum(((ends - ends[0] / 2) / ends[-1] * classes).astype(np.int64), classes - 1)
    starts: list[int] = np.unique(numbers, return_index=True)[1].tolist()
    return starts


class ClassSoftmaxLM(BackboneWithHead):
    """A causal backbone, a linear layer to the classes, and one to the words.

    `starts` are the first ids of the classes.
    """

    class_of: Tensor
    """int64 [V]: class of each word."""

    def __init__(self, config: PretrainedConfig, starts: Sequence[int]) -> None:
        super().__init__(config)
        self.classes = linear(config.hidden_size, len(starts), config)
        self.words = linear(config.hidden_size, config.vocab_size, config)
        self.ranges = list(pairwise([*starts, config.vocab_size]))
        """The first id of each class, and that after its last."""
        sizes = torch.tensor([end - start for start, end in self.ranges])
        # saved with the weights, which are meaningless for other classes
        self.register_buffer("class_of", torch.repeat_interleave(torch.arange(len(sizes)), sizes))

    def states(self, inputs: dict[str, Tensor]) -> Any:
        """Outputs of the backbone, `last_hidden_state` [B, L, H] among them."""
        return self.run_backbone(inputs)

    def loss(self, states: Tensor, targets: Tensor) -> Tensor:
        """Scalar: mean cross-entropy of `targets` int64 [...] after `states` [..., H]; IGNORED ones do not count."""
        states, targets = states.flatten(0, -2), targets.flatten()
        counted = torch.nonzero(targets != IGNORED).squeeze(1)
        words = targets[counted]
        # sorted, the positions of a class are neighbours
        order = torch.argsort(words, stable=True)
        words, states = words[order], states[counted[order]]
        classes = self.class_of[words]
        loss = vocabulary_cross_entropy(self.classes(states), classes)
        numbers, sizes = torch.unique_consecutive(classes, return_counts=True)
        chosen = sizes.tolist()
        parts = zip(numbers.tolist(), torch.split(states, chosen), torch.split(words, chosen), strict=True)
        # split once: the gradient of each slice by itself would be as large as the whole
        lengths = [end - start for start, end in self.ranges]
        weights, biases = torch.split(self.words.weight, lengths), torch.split(self.words.bias, lengths)
        for number, of_class, inside in parts:
            start, end = self.ranges[number]
            if end - start > 1:
                weight, bias = weights[number], biases[number]
                # every batch has products of other shapes, for each of which a kernel of half precision is generated
                with torch.autocast(states.device.type, enabled=False):
                    scores = scored(of_class.to(weight.dtype), weight, bias)
                loss = loss + vocabulary_cross_entropy(scores, inside - start) * (len(inside) / len(words))
        return loss

    def log_probs(self, states: Tensor) -> Tensor:
        """float32 [..., V]: log-probability of each word after `states` [..., H]."""
        of_class, scores = self.classes(states).float().log_softmax(-1), self.words(states).float()
        inside = [scores[..., start:end].log_softmax(-1) for start, end in self.ranges]
        return torch.cat([one + of_class[..., number, None] for number, one in enumerate(inside)], -1)
