"""Annotations: what is known of each token alongside its id, as channels that are stored with the tokens."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

from pydantic import ConfigDict, PrivateAttr, model_validator
from pydantic import Field as Option

from pipelines.components import Component
from pipelines.vocabulary import Channel

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from transformers import PreTrainedModel

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
        """Channel → [T, *shape]: the values of the T tokens of `text`, which has no special tokens; of a channel of
        vectors float32, of others int64.

        A pure function of the text and this annotation's options and files. Raises DataError naming `text.where` for a
        row that cannot be annotated.
        """


class ReadModel(Protocol):
    """The finished model of another stage, as an annotation reads it."""

    @property
    def network(self) -> PreTrainedModel:
        """The backbone with its heads, frozen, in evaluation mode, on the processor."""

    @property
    def files(self) -> tuple[Path, ...]:
        """The files of its weights and its vocabulary."""

    def save(self, folder: Path) -> None:
        """Write the model into `folder`."""

    def states(self, text: TokenizedText) -> NDArray[np.float32]:
        """[T, H]: its top hidden states at the T tokens of `text`, which it reads in tokens of its own.

        A token has the mean over the tokens there that share a character with it; 0 where none does.
        """


class ModelAnnotation(Annotation):
    """An annotation that reads the network of another stage: `from: <stage>`, a parent of its own step.

    A member calls `self.model.states(text)` in `annotate`. The model that it reads is saved with every model that is
    trained with it, and annotates what that one answers.
    """

    model_config = ConfigDict(serialize_by_alias=True)

    from_: str = Option("", alias="from")
    """Stage (or `recipe/stage`) whose network is read."""
    folder: str = Option("", pattern=r"^([0-9a-f]{12})?$", exclude_if=lambda value: not value)
    """In a saved model, the folder with the model that is read; not written in a recipe."""
    _model: ReadModel | None = PrivateAttr(None)

    @property
    def model(self) -> ReadModel:
        """The model that is read. AssertionError in a recipe, of which nothing is computed yet."""
        assert self._model is not None, f"{self.name}: `reading` says which model is read"
        return self._model

    @property
    def reads_files(self) -> tuple[Path, ...]:
        return () if self._model is None else self._model.files

    def reading(self, model: ReadModel, folder: str) -> Self:
        """This annotation of `model`, which saved models hold in `folder`; without the name of its stage."""
        result = self.model_copy(update={"from_": "", "folder": folder})
        result._model = model
        return result
