"""The kinds of stages."""

from __future__ import annotations

from enum import StrEnum

from pipelines.lineage.weights import PLAIN_TEXT


class Kind(StrEnum):
    """What a stage does. The first three kinds train on plain text, the fourth on labels."""

    PRETRAIN = "pretrain"
    ADAPT_DOMAIN = "adapt_domain"
    ADAPT_TASK = "adapt_task"
    FINETUNE = "finetune"
    COMPRESS = "compress"
    EVALUATE = "evaluate"
    PROBE = "probe"

    @property
    def reads_plain_text(self) -> bool:
        """Whether the stage trains on text without labels."""
        return self in PLAIN_TEXT

    @property
    def judges(self) -> bool:
        """Whether the stage measures models of other stages and produces none itself."""
        return self in (Kind.EVALUATE, Kind.PROBE)
