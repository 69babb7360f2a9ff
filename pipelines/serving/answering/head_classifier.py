"""Class probabilities of texts from networks that no runtime serves: they read more than tokens, or only their head
knows how to call them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pipelines.serving.answering.answerer import Answerer
from pipelines.serving.answering.inference import softmax


class HeadClassifier:
    """A classifier of texts that its head encodes and computes as in training, with channels and attention pattern."""

    def __init__(self, folder: Path, threads: int = 1) -> None:
        self._answerer = Answerer(folder, threads)
        self.labels = list(self._answerer.task.labels)

    def predict(self, texts: Sequence[str], batch_size: int = 32) -> NDArray[np.float32]:
        """Probabilities [N, C] of `texts`, in order. Raises DataError for a text without tokens."""
        if not texts:
            return np.zeros((0, len(self.labels)), dtype=np.float32)
        return softmax(self._answerer.class_logits([{"text": text} for text in texts], batch_size))
