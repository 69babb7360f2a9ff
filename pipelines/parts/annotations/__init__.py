"""Annotations: what is known of each token alongside its id, as channels that are stored with the tokens."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Self

from pydantic import model_validator

from pipelines.components import Component
from pipelines.vocabulary import Channel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pipelines.task_families.tokenized import TokenizedText


class Annotation(Component):
    """A method of giving every token of a text its values of one channel or several.

    It reads the text, its tokens, and the other columns of the document or the example. On plain text its values are
    computed once and kept in the token shards; on labelled rows they are computed as the examples are encoded.
    """

    makes: ClassVar[str] = ""
    """Name of the channel that members make with their default options, for messages; empty where an option names
    it."""

    @model_validator(mode="after")
    def _channels_have_names_of_their_own(self) -> Self:
        # a channel refuses the name of another field
        assert self.channels, f"{self.name} makes no channel"
        return self

    @property
    @abstractmethod
    def channels(self) -> tuple[Channel, ...]:
        """The channels, each with the range of its values."""

    @property
    def columns(self) -> Mapping[str, str]:
        """Column → type that a document or an example must have besides its text, by pyarrow's names of types."""
        return {}

    @property
    def optional_columns(self) -> tuple[str, ...]:
        """Columns that `annotate` reads where a row has a value for them."""
        return ()

    def check_files(self) -> None:
        """Raise DataError naming file and line if one of `reads_files` is not what this annotation reads."""

    @abstractmethod
    def annotate(self, text: TokenizedText) -> Mapping[str, NDArray[Any]]:
        """Channel → int64 [T, *shape]: the values of the T tokens of `text`, which has no special tokens.

        A pure function of the text and this annotation's options and files. Raises DataError naming `text.where` for a
        row that cannot be annotated.
        """
