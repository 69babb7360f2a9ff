"""A teacher of another vocabulary: what it reads and what it says, over the tokens that both vocabularies have."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from pipelines.errors import RecipeError
from pipelines.vocabulary import OVER_VOCABULARY, Field, Signal

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

    from pipelines.parts.objectives import Batch, Signals

_LOG = logging.getLogger(__name__)
ROLES = ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token", "bos_token", "eos_token")
"""Special tokens that correspond by what they are for, whatever they are called."""
TOKENS = frozenset(
    {Field.INPUT_IDS, Field.ORIGINAL_IDS, Field.MASKED_LABELS, Field.TARGET_IDS}
    | {Field.CENTERS, Field.CONTEXTS, Field.NEGATIVES}
)
"""Fields that hold ids of tokens; negative values are none."""


class SharedTokens:
    """The tokens of a student that its teacher has too: those of the same text, and special tokens of the same role.

    V tokens of the student, W of the teacher. Raises RecipeError where they share no ordinary token, or where the
    teacher has no token in place of those it does not know.
    """

    def __init__(self, student: PreTrainedTokenizerFast, teacher: PreTrainedTokenizerFast) -> None:
        own, other = student.get_vocab(), teacher.get_vocab()
        roles = {getattr(student, role): getattr(teacher, role) for role in ROLES if getattr(student, role)}
        ids = torch.full((max(own.values()) + 1,), -1)
        for token, index in own.items():
            ids[index] = other.get(roles.get(token) or token, -1)
        self.shared = ids >= 0
        """bool [V]: whether the teacher has the token."""
        special = torch.zeros_like(self.shared)
        special[list(student.all_special_ids)] = True
        ordinary = int((self.shared & ~special).sum())
        if not ordinary:
            raise RecipeError("the teacher has none of the student's tokens besides special ones")
        unknown = teacher.unk_token_id
        if unknown is None and not self.shared.all():
            raise RecipeError("the teacher's tokenizer has no unknown token to read in place of those it does not have")
        self.ids = torch.where(self.shared, ids, 0 if unknown is None else unknown)
        """int64 [V]: the teacher's id of each token, that of its unknown token where it has none."""
        _LOG.info("the teacher has %.1f %% of the student's tokens", 100 * ordinary / int((~special).sum()))

    @property
    def shared_ids(self) -> Tensor:
        """int64 [V]: the teacher's id of each token, −1 where it has none."""
        return torch.where(self.shared, self.ids, -1)

    def read(self, batch: Batch) -> dict[Field, Any]:
        """`batch` in the ids of the teacher."""
        return {name: self._translated(value) if name in TOKENS else value for name, value in batch.items()}

    def output(self, signals: Signals, width: int) -> dict[Signal, Any]:
        """The teacher's `signals` over the student's vocabulary, whose logits have `width` ≥ V elements.

        Logits [..., W] become log-probabilities [..., width] of the shared tokens among themselves, −∞ for all others.
        """
        return {
            name: self._shared_only(value, width) if name in OVER_VOCABULARY else value
            for name, value in signals.items()
        }

    def _translated(self, ids: Tensor) -> Tensor:
        self.ids = self.ids.to(ids.device)
        return torch.where(ids < 0, ids, self.ids[ids.clamp(min=0)])

    def _shared_only(self, logits: Tensor, width: int) -> Tensor:
        self.ids, self.shared = self.ids.to(logits.device), self.shared.to(logits.device)
        chosen = logits.float()[..., self.ids].masked_fill(~self.shared, -torch.inf).log_softmax(-1)
        return pad(chosen, (0, width - len(self.ids)), value=-torch.inf)
