"""Knowledge: facts that are injected into the rows of labelled examples."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self

from pipelines.components import Component
from pipelines.vocabulary import Field

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

    from pipelines.task_families.encoding import FieldArrays


class Knowledge(Component):
    """A source of facts about the entities of a text.

    Injected tokens stand in columns of their own, after the row's padding, and have no attention mask: the tokens of
    the text keep their columns, and whatever reads a row's text (labels, pooling, answers) reads it as it was. What a
    fact is about is said by its position ids, `BRANCHES` and `ENTITIES`, which an attention pattern has to read.
    """

    provides: ClassVar[frozenset[Field]] = frozenset({Field.BRANCHES, Field.ENTITIES, Field.POSITION_IDS})
    """Fields that an injected batch has."""

    @abstractmethod
    def injection(self, tokenizer: PreTrainedTokenizerFast, length: int) -> Callable[[FieldArrays], FieldArrays]:
        """The function that injects into a collated batch, whose texts have at most `length` tokens.

        Raises DataError naming the file and the line if a file of this source is not what it should be.
        """

    @property
    @abstractmethod
    def missing(self) -> str | None:
        """Why this source cannot be read; None if it can."""

    @abstractmethod
    def save(self, folder: Path) -> Self:
        """This source, with its files copied into the model folder `folder` and named relative to it."""

    @abstractmethod
    def within(self, folder: Path) -> Self:
        """A source that was saved, with its files located in the model folder `folder`."""
