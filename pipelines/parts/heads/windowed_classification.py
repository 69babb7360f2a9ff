"""Classification of texts longer than a row by the vectors of their windows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pipelines.parts.heads.windowed_texts import WindowedTextHead

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedModel

    from pipelines.task_families import Task


class WindowedClassificationHead(WindowedTextHead, name="windowed_classification"):
    """Class scores of a text from the mean of its windows' vectors, or from the largest value of each element."""

    paper = "arXiv:1905.05583"

    combined: Literal["mean", "max"] = "mean"
    """How the vectors of windows become that of a text (Sun et al. 2019, How to Fine-Tune BERT §5.3.1)."""

    def build(self, config: PretrainedConfig, task: Task | None) -> PreTrainedModel:
        return self._network(config, task, self.combined)
