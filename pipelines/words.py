"""Words of a vocabulary that parts add to: what only the parts of one system exchange, each names in its own file.

    Signal.of_head("letter_logits")                  # in the file of the head, and in that of the objective
    Field.of_masked_positions("first_letters")       # in that of the corruption, and in that of the objective

A word is known by its name alone, wherever it is named first.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Self

EACH_ROW, EACH_MASKED_POSITION, EACH_WINDOW = "for each row", "for each predicted position", "for each word window"
FIELDS_OF_PARTS: dict[str, str] = {}
"""Name of each field that parts added → what it has values for."""


class VocabularyWord(StrEnum):
    """A kind of word: those that its class lists, and those that parts add."""

    @classmethod
    def _added(cls, name: str) -> Self:
        """The word `name`, added if there is none. From then on `cls(name)` is it."""
        known = cls._value2member_map_.get(name)
        if known is None:
            # as enum.Flag makes its combinations: a member that iteration does not list
            known = str.__new__(cls, name)
            known._name_, known._value_ = name.upper(), name
            cls._value2member_map_[name] = known
        assert isinstance(known, cls)
        return known

    @property
    def is_listed(self) -> bool:
        """Whether the class lists the word, so that no part has added it."""
        return self._name_ in type(self)._member_map_


class FieldWord(VocabularyWord):
    """The name of a tensor in a batch; one that parts add says what it has values for."""

    @classmethod
    def of_rows(cls, name: str) -> Self:
        """The field `name` of parts, with one value of any shape and type for each row: [B, …]."""
        return cls._of_parts(name, EACH_ROW)

    @classmethod
    def of_masked_positions(cls, name: str) -> Self:
        """The field `name` of parts, with one value for each predicted position: [M, …]."""
        return cls._of_parts(name, EACH_MASKED_POSITION)

    @classmethod
    def of_windows(cls, name: str) -> Self:
        """The field `name` of parts, with one value for each word window: [N, …]."""
        return cls._of_parts(name, EACH_WINDOW)

    @classmethod
    def _of_parts(cls, name: str, values: str) -> Self:
        if name not in FIELDS_OF_PARTS and name in cls._value2member_map_:
            kind = "of every batch" if cls(name).is_listed else "of a channel"
            raise ValueError(f"{name!r} is a field {kind} already: give the field of this part another name")
        if FIELDS_OF_PARTS.setdefault(name, values) != values:
            raise ValueError(f"another part gives the field {name!r} values {FIELDS_OF_PARTS[name]}, this one {values}")
        return cls._added(name)
