"""WordPiece with a token for each speaker of a dialogue (Wu et al. 2020, TOD-BERT §3.2)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field, field_validator

from pipelines.parts.tokenizers.wordpiece import WordPiece
from pipelines.task_families.dialogues import ROLES

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast


class DialogueWordPiece(WordPiece, name="dialogue_wordpiece"):
    """BERT's tokenizer, whose last tokens mark the speakers: special tokens, which are never masked."""

    paper = "arXiv:2004.06871"
    offers: ClassVar[frozenset[str]] = frozenset({"mask", "roles"})

    roles: tuple[str, ...] = Field(ROLES, min_length=2)
    """Marks of the speakers, as they are written in the text."""

    @field_validator("roles")
    @classmethod
    def _distinct(cls, roles: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(roles)) < len(roles) or any(not role or role != "".join(role.split()) for role in roles):
            raise ValueError(f"the marks of speakers are different texts without spaces, got {', '.join(roles)}")
        return roles

    def train(self, texts: Iterable[str]) -> PreTrainedTokenizerFast:
        plain = WordPiece(
            vocab_size=self.vocab_size - len(self.roles), lowercase=self.lowercase, sample_bytes=self.sample_bytes
        )
        tokenizer = plain.train([self._unmarked(text) for text in texts])
        tokenizer.add_special_tokens({"extra_special_tokens": [*self.roles]})
        return tokenizer

    def _unmarked(self, text: str) -> str:
        for role in self.roles:
            text = text.replace(role, " ")
        return text
