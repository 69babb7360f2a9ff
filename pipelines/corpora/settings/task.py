"""Where labelled examples may come from, as params.yaml spells it; every kind says of which task family they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, Discriminator, Field, Tag, model_validator
from pydantic_core import PydanticCustomError

from pipelines.components import did_you_mean, discover
from pipelines.corpora.settings.sources import Source, Sources, Strict, as_list
from pipelines.task_families import TaskFamily


def has_classes(family: TaskFamily) -> bool:
    """Whether an example has one label out of few, so that examples can be counted label by label."""
    return family.columns.get("label") == "string"


class LabelledTask(Strict):
    """What every kind of task says."""

    family: TaskFamily = Field(default_factory=TaskFamily.usually)
    licence: str | None = Field(default=None, min_length=1, exclude=True)
    """Of the labelled examples, for the dataset's card; no step depends on it."""
    labels_per_class: int | None = Field(default=None, ge=1)
    """Keep this many labelled examples of each class for training; the other training texts lose their labels."""
    labelled_examples: int | None = Field(default=None, ge=1)
    """Keep this many labelled examples for training, every label among them; the other training texts lose theirs."""

    @model_validator(mode="after")
    def _counts_one_way(self) -> Self:
        if self.labels_per_class is not None and self.labelled_examples is not None:
            raise ValueError("labels_per_class and labelled_examples both say how many to keep; keep one of them")
        if self.labels_per_class is not None and not has_classes(self.family):
            raise ValueError(
                f"labels_per_class: {self.family.name} has no classes; labelled_examples counts without them"
            )
        return self


class FileTask(LabelledTask):
    """A labelled task in files. Without `validation`, a share of the training examples is held out, label by label.

    The family's columns are also keys here, for files that call them otherwise: `text: sentence`. So are its side tables:
    `tables: tables.jsonl`.
    """

    train: str = Field(min_length=1)
    validation: str | None = None
    test: str = Field(min_length=1)
    unlabelled: Annotated[list[Source], BeforeValidator(as_list)] = Field(default=[])
    validation_share: float = Field(default=0.1, gt=0, lt=1)
    bad_rows: Literal["refuse", "drop"] = "refuse"
    """Whether a row that is no example of its family ends the preparation, or is left out and counted in the summary."""
    columns: dict[str, str] = Field(default={})
    """The family's column → the column of the files."""
    side_tables: dict[str, str] = Field(default={})
    """The family's side table → the file that holds it."""

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        family = _family_of(value.get("family", TaskFamily.usual))
        if family is None:
            return value  # the family itself is what is wrong
        known = [key for key in cls.model_fields if key not in ("columns", "side_tables")]
        own = {"columns": [*(family.fields or family.columns)], "side_tables": [*family.side_tables]}
        named = {kind: {key: value[key] for key in keys if key in value} for kind, keys in own.items()}
        rest = {key: item for key, item in value.items() if not any(key in keys for keys in own.values())}
        for key in rest:
            if key not in known:
                message = (
                    f"unknown key {str(key)!r}.{did_you_mean(str(key), [*known, *own['columns'], *own['side_tables']])}"
                )
                raise PydanticCustomError("unknown_key", "{message}", {"message": message, "key": str(key)})
        return rest | named

    @model_validator(mode="after")
    def _has_its_side_tables(self) -> Self:
        for name, table in self.family.side_tables.items():
            if name not in self.side_tables:
                fields = ", ".join(table.fields)
                raise ValueError(f"{self.family.name} needs the key {name!r}: the file of its {name} ({fields})")
        return self

    @property
    def files(self) -> list[str]:
        """Every file, folder or glob that the task reads examples or side tables from."""
        return [path for path in (self.train, self.validation, self.test, *self.side_tables.values()) if path]


class SplitTask(LabelledTask):
    """A task whose examples stand in one place, and are held out from there."""

    validation_share: float = Field(default=0.15, gt=0, lt=1)
    test_share: float = Field(default=0.45, gt=0, lt=1)

    @model_validator(mode="after")
    def _leaves_training_text(self) -> Self:
        if self.validation_share + self.test_share >= 1:
            raise ValueError("validation_share and test_share leave nothing to train on; lower one of them")
        return self


class DocumentationTask(SplitTask):
    """Examples of any family from SciPy's documentation strings. Parts are made of whole modules."""

    documentation: Literal["scipy"]
    classes: int = Field(default=10, ge=2)
    """How many subpackages: those with most documents."""


class TextsOfLabelTask(SplitTask):
    """Texts that stand apart by their label: which of the places is a text from?"""

    texts_of_label: dict[str, Sources] = Field(min_length=2)
    """Label → where its texts stand."""

    @model_validator(mode="after")
    def _are_classified(self) -> Self:
        if set(self.family.columns) != {"text", "label"}:
            raise ValueError(f"texts_of_label: {self.family.name} needs more than a text and its label")
        return self


class TaggedWordsTask(SplitTask):
    """Sentences of words with part-of-speech tags, some of which mean names: which characters are a name?"""

    family: TaskFamily = Field(default_factory=lambda: TaskFamily.model_validate("tagging"))
    tagged_words: Sources
    """Files of `word/tag` with spaces between; their `format` need not be given."""
    entities: dict[str, str] = Field(min_length=1)
    """Tag in the files → kind of name."""
    joined: list[str] = Field(default=[])
    """Tags of which words side by side are one name, as a family name and a given name are."""

    @model_validator(mode="after")
    def _are_tagged(self) -> Self:
        if set(self.family.columns) != {"tokens", "tags"}:
            raise ValueError(f"tagged_words: {self.family.name} has no tags")
        return self


def _family_of(family: Any) -> type[TaskFamily] | None:
    """The family that is spelled as a name or a mapping; None where there is no such family."""
    discover("pipelines.task_families")
    name = family.get("name") if isinstance(family, Mapping) else family
    member = TaskFamily.members.get(str(name))
    return member if member is not None and issubclass(member, TaskFamily) else None


KINDS = ("documentation", "texts_of_label", "tagged_words")
"""The key that tells a kind of task; files have none of them."""


def _kind(value: Any) -> str:
    keys = value if isinstance(value, Mapping) else type(value).model_fields if isinstance(value, BaseModel) else ()
    return next((kind for kind in KINDS if kind in keys), "files")


Task = Annotated[
    Annotated[DocumentationTask, Tag("documentation")]
    | Annotated[TextsOfLabelTask, Tag("texts_of_label")]
    | Annotated[TaggedWordsTask, Tag("tagged_words")]
    | Annotated[FileTask, Tag("files")],
    Discriminator(_kind),
]
