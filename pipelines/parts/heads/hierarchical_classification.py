"""Classification of texts longer than a row by a second network that reads their windows in order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field as Option

from pipelines.parts.heads.windowed_texts import WindowedTextHead

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedModel

    from pipelines.task_families import Task


class HierarchicalClassificationHead(WindowedTextHead, name="hierarchical_classification"):
    """Class scores of a text from the last state of an LSTM over the vectors of its windows (RoBERT, §3.1)."""

    paper = "arXiv:1910.10781"

    size: int = Option(100, ge=1)
    """Width of the LSTM."""

    def build(self, config: PretrainedConfig, task: Task | None) -> PreTrainedModel:
        from pipelines.networks.windowed_classifier import READER

        return self._network(config, task, READER, self.size)
