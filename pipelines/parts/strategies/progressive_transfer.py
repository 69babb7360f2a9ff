"""Progressive knowledge transfer: one layer after the other, those below frozen (Sun et al. 2020, §3.4)."""

from __future__ import annotations

from pipelines.parts.strategies import Decision, ParameterGroup, Strategy, TrainingProgress


class ProgressiveTransfer(Strategy, name="progressive_transfer"):
    """In the l-th of as many equal parts of the stage as there are layers, layer l trains alone; the embeddings train
    with the first, the head never: it is that of the teacher.

    The objective `layer_by_layer` has the loss of the same layer.
    """

    paper = "arXiv:2004.02984"
    decides = frozenset({Decision.WHEN})

    def trains(self, group: ParameterGroup, progress: TrainingProgress) -> bool:
        layer = min(group.layers, progress.step * group.layers // progress.total + 1)
        return max(1, group.depth) == layer
