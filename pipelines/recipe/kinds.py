"""The kinds of stages."""

from __future__ import annotations

from enum import StrEnum

from pipelines.lineage.weights import PLAIN_TEXT


class Kind(StrEnum):
    """What a stage does. The first three train on plain text, the fourth on labels."""

    PRETRAIN = "pretrain"
    ADAPT_DOMAIN = "adapt_domain"
    ADAPT_TASK = "adapt_task"
    FINETUNE = "finetune"
    COMPRESS = "compress"
    EVALUATE = "evaluate"
    PROBE = "probe"

    @property
    def reads_plain_text(self) -> bool:
        return self in PLAIN_TEXT

    @property
    def judges(self) -> bool:
        """Whether it looks at the models of other stages and makes none."""
        return self in (Kind.EVALUATE, Kind.PROBE)
