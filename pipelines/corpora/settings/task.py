"""Settings under `task:` of a dataset: kinds of labelled tasks and the sources of their examples."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, Discriminator, Field, Tag, model_validator
from pydantic_core import PydanticCustomError

from pipelines.components import did_you_mean, discover
from pipelines.corpora.settings.sources import Source, Sources, StrictSettings, as_list
from pipelines.task_families import TaskFamily

RESPONSES = ("sessions", {"context", "question", "choices", "answer"})
"""Documentation's dialogues have examples of multiple choice, too: which response belongs to a session?"""
WORDS, LABELS = {"text", "tokens", "sentence", "words"}, {"label", "labels", "tags", "heads", "relations"}
"""Columns of texts and words, which another language would have too, and of what is said of each."""
VERSION = r"^\d+\.\d+$"
"""A version of SciPy, such as 1.10."""


def has_classes(family: TaskFamily) -> bool:
    """Whether an example has one label of a closed set, so that examples can be counted per class."""
    return family.columns.get("label") == "string"


def version(text: str) -> tuple[int, ...]:
    """The numbers of a version, which are compared in their order: 1.10 is later than 1.9."""
    return tuple(map(int, text.split(".")))


class LabelledTask(StrictSettings):
    """Keys common to all kinds of tasks."""

    family: TaskFamily = Field(default_factory=TaskFamily.default)
    licence: str | None = Field(default=None, min_length=1, exclude=True)
    """Licence of the labelled examples, for the dataset's card; no step depends on it."""
    labels_per_class: int | None = Field(default=None, ge=1)
    """Labelled training examples to keep per class; the other training texts lose their labels."""
    labelled_examples: int | None = Field(default=None, ge=1)
    """Labelled training examples to keep in total, every label among them; the other training texts lose their
    labels."""
    test_language: str | None = Field(None, pattern=r"^[a-z]{2,3}$", exclude_if=lambda language: language is None)
    """Language of the test table where it is not that of the dataset: models are tested in a language in which no
    example is labelled (zero-shot transfer, as in XNLI: Conneau et al. 2018, arXiv:1809.05053)."""

    @model_validator(mode="after")
    def _has_one_limit(self) -> Self:
        if self.labels_per_class is not None and self.labelled_examples is not None:
            raise ValueError("labels_per_class and labelled_examples are mutually exclusive; keep one of them")
        if self.labels_per_class is not None and not has_classes(self.family):
            raise ValueError(f"labels_per_class: {self.family.name} has no classes; use labelled_examples")
        return self


class FileTask(LabelledTask):
    """A labelled task in files. Without `validation`, a stratified share of the training examples is held out.

    Columns of the family are keys too, for files with other column names: `text: sentence`. So are its side tables:
    `tables: tables.jsonl`.
    """

    train: str = Field(min_length=1)
    validation: str | None = None
    test: str = Field(min_length=1)
    unlabelled: Annotated[list[Source], BeforeValidator(as_list)] = Field(default=[])
    validation_share: float = Field(default=0.1, gt=0, lt=1)
    bad_rows: Literal["refuse", "drop"] = "refuse"
    """Whether an invalid row is an error, or is dropped and counted in the summary."""
    columns: dict[str, str] = Field(default={})
    """The family's column → the column of the files."""
    side_tables: dict[str, str] = Field(default={})
    """The family's side table → the file that holds it."""

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        family = _family_of(value.get("family", TaskFamily.default_name))
        if family is None:
            return value  # the family itself is invalid; its own validator reports it
        known = [key for key in cls.model_fields if key not in ("columns", "side_tables")]
        own = {"columns": [*(family.fields or family.columns)], "side_tables": [*family.side_tables]}
        renamed = {kind: {key: value[key] for key in keys if key in value} for kind, keys in own.items()}
        rest = {key: item for key, item in value.items() if not any(key in keys for keys in own.values())}
        for key in rest:
            if key not in known:
                message = (
                    f"unknown key {str(key)!r}.{did_you_mean(str(key), [*known, *own['columns'], *own['side_tables']])}"
                )
                raise PydanticCustomError("unknown_key", "{message}", {"message": message, "key": str(key)})
        return rest | renamed

    @model_validator(mode="after")
    def _has_its_side_tables(self) -> Self:
        for name, table in self.family.side_tables.items():
            if name not in self.side_tables:
                fields = ", ".join(table.fields)
                raise ValueError(f"{self.family.name} needs the key {name!r}: the file of its {name} ({fields})")
        return self

    @property
    def files(self) -> list[str]:
        """Paths of all files, folders and globs from which the task reads examples or side tables."""
        return [path for path in (self.train, self.validation, self.test, *self.side_tables.values()) if path]


class SplitTask(LabelledTask):
    """A task with a single pool of examples, from which validation and test are held out."""

    validation_share: float = Field(default=0.15, gt=0, lt=1)
    test_share: float = Field(default=0.45, gt=0, lt=1)

    @model_validator(mode="after")
    def _leaves_training_text(self) -> Self:
        if self.validation_share + self.test_share >= 1:
            raise ValueError("validation_share and test_share leave no training examples; lower one of them")
        return self


class DocumentationTask(SplitTask):
    """Examples of any family from SciPy's documentation strings, split into parts by module."""

    documentation: Literal["scipy"]
    classes: int = Field(default=10, ge=2)
    """Number of subpackages: those with the most documents."""
    texts: Literal["whole", "summaries", "sessions"] = Field("whole", exclude_if=lambda texts: texts == "whole")
    """`summaries`: an example is the first paragraph, in one line; the whole texts of the training part are its text
    without labels. `sessions`: an example is a session at Python's prompt, as a dialogue."""
    tested_form: Literal["texts", "transcribed"] = Field("texts", exclude_if=lambda form: form == "texts")
    """`transcribed`: texts and words of the test examples stand in Georgian letters, those learned from do not."""
    since: str | None = Field(None, pattern=VERSION, exclude_if=lambda version: version is None)
    """Only texts that mention a change in this version of SciPy or a later one."""
    before: str | None = Field(None, pattern=VERSION, exclude_if=lambda version: version is None)
    """Only texts that mention no change in this version of SciPy or a later one."""

    @model_validator(mode="after")
    def _classifies_summaries(self) -> Self:
        columns = set(self.family.columns)
        if self.texts != "whole" and columns != {"text", "label"} and (self.texts, columns) != RESPONSES:
            raise ValueError(f"texts: {self.family.name} needs more than a text and its label; leave it out")
        return self

    @model_validator(mode="after")
    def _spans_versions(self) -> Self:
        if self.since is not None and self.before is not None and version(self.since) >= version(self.before):
            raise ValueError(f"since {self.since} and before {self.before} leave no version between them")
        return self

    @model_validator(mode="after")
    def _transcribes_texts(self) -> Self:
        if self.tested_form != "texts" and (others := set(self.family.columns) - WORDS - LABELS):
            raise ValueError(
                f"tested_form: {self.family.name} needs more than words and their labels "
                f"({', '.join(sorted(others))}); leave it out"
            )
        return self


class TextsOfLabelTask(SplitTask):
    """Texts in separate sources by label: from which source is a text?"""

    texts_of_label: dict[str, Sources] = Field(min_length=2)
    """Label → sources of its texts."""

    @model_validator(mode="after")
    def _are_classified(self) -> Self:
        if set(self.family.columns) != {"text", "label"}:
            raise ValueError(f"texts_of_label: {self.family.name} needs more than a text and its label")
        return self


class TaggedWordsTask(SplitTask):
    """Sentences of words with part-of-speech tags, some of which mark names: which characters belong to a name?"""

    family: TaskFamily = Field(default_factory=lambda: TaskFamily.model_validate("tagging"))
    tagged_words: Sources
    """Files of space-separated `word/tag`; `format` is optional."""
    entities: dict[str, str] = Field(min_length=1)
    """Tag in the files → entity type."""
    joined: list[str] = Field(default=[])
    """Tags whose neighbouring words form one name, such as a family name and a given name."""

    @model_validator(mode="after")
    def _are_tagged(self) -> Self:
        if set(self.family.columns) != {"tokens", "tags"}:
            raise ValueError(f"tagged_words: {self.family.name} has no tags")
        return self


def _family_of(family: Any) -> type[TaskFamily] | None:
    """The family given as a name or a mapping; None for an unknown family."""
    discover("pipelines.task_families")
    name = family.get("name") if isinstance(family, Mapping) else family
    member = TaskFamily.members.get(str(name))
    return member if member is not None and issubclass(member, TaskFamily) else None


KINDS = ("documentation", "texts_of_label", "tagged_words")
"""Keys that distinguish the kinds of tasks; tasks in files have none of them."""


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
