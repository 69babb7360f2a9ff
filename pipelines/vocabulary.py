"""The closed words between the parts: what a batch carries, and what a network says.

A corruption *provides* fields, a head *provides* signals, an objective *needs* both; demand ⊆ supply is checked when a
recipe is loaded. A new word here is an architectural decision, not a convenience.

Shapes: B sequences in a batch, L tokens in a sequence, M predicted positions in the whole batch, V vocabulary, H hidden
size, C classes.
"""

from __future__ import annotations

from enum import StrEnum


class Field(StrEnum):
    """A tensor in a batch."""

    INPUT_IDS = "input_ids"
    """int64 [B, L]: what the network reads."""
    ATTENTION_MASK = "attention_mask"
    """int64 [B, L]: 1 for a token, 0 for padding. Absent when nothing is padded."""
    POSITION_IDS = "position_ids"
    """int64 [B, L]: where each token is said to stand. Absent when tokens stand where they are."""
    ORIGINAL_IDS = "original_ids"
    """int64 [B, L]: the tokens before corruption."""
    DOCUMENTS = "documents"
    """int64 [B, L]: the number of the document each token of a plain-text row belongs to."""
    MASKED_POSITIONS = "masked_positions"
    """int64 [M]: indices into the flattened [B·L] tokens, ascending."""
    MASKED_LABELS = "masked_labels"
    """int64 [M]: the token that stood at each masked position."""
    PARTNER = "partner"
    """int64 [B]: the row that holds the other half of this row's passage; −1 where no passage spans both."""
    LABELS = "labels"
    """int64 [B]: the class of each text."""


class Signal(StrEnum):
    """A tensor that a network says."""

    MASKED_LOGITS = "masked_logits"
    """[M, V]: vocabulary scores at the masked positions only."""
    POOLED = "pooled"
    """[B, H]: one vector for each sequence."""
    LOGITS = "logits"
    """[B, C]: class scores of each text."""
    HIDDEN_STATES = "hidden_states"
    """tuple of layers + 1 tensors [B, L, H]: embeddings first, top layer last."""
