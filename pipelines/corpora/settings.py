"""What a user may write under `datasets:` in params.yaml, checked before anything is read.

load_settings(root)["docstrings"].task.labels_per_class        # 20
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Tag, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from pipelines.components import did_you_mean
from pipelines.errors import RecipeError

FILE = "params.yaml"


class Strict(BaseModel):
    """A frozen block of settings that answers an unknown key with the nearest known one."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, value: Any) -> Any:
        if isinstance(value, Mapping):
            for key in value:
                if key not in cls.model_fields:
                    message = f"unknown key {str(key)!r}.{did_you_mean(str(key), cls.model_fields)}"
                    raise PydanticCustomError("unknown_key", "{message}", {"message": message, "key": str(key)})
        return value


class FileSource(Strict):
    """A file, a folder or a glob of txt, jsonl, jsonl.gz, csv or parquet; `text` is the column to read."""

    path: str = Field(min_length=1)
    text: str = "text"


class DocumentationSource(Strict):
    """The documentation strings of the standard library and of the installed packages Cursus depends on."""

    documentation: Literal["general", "domain"]


class FileTask(Strict):
    """A labelled task in files. Without `validation`, a share of the training examples is held out, label by label."""

    train: str = Field(min_length=1)
    validation: str | None = None
    test: str = Field(min_length=1)
    text: str = "text"
    label: str = "label"
    unlabelled: Annotated[list[Source], BeforeValidator(lambda value: _as_list(value))] = []
    validation_share: float = Field(default=0.1, gt=0, lt=1)
    labels_per_class: int | None = Field(default=None, ge=1)
    """Keep this many labelled examples of each class for training; the other training texts lose their labels."""


class DocumentationTask(Strict):
    """Which SciPy subpackage does this text document? Parts are made of whole modules."""

    documentation: Literal["scipy"]
    classes: int = Field(default=10, ge=2)
    labels_per_class: int = Field(default=20, ge=1)
    validation_share: float = Field(default=0.15, gt=0, lt=1)
    test_share: float = Field(default=0.45, gt=0, lt=1)

    @model_validator(mode="after")
    def _leaves_training_text(self) -> Self:
        if self.validation_share + self.test_share >= 1:
            raise ValueError("validation_share and test_share leave no module for training; lower one of them")
        return self


def _kind(value: Any) -> str:
    if isinstance(value, DocumentationSource | DocumentationTask):
        return "documentation"
    return "documentation" if isinstance(value, Mapping) and "documentation" in value else "files"


def _as_list(value: Any) -> Any:
    return value if isinstance(value, list) else [value]


def _as_mapping(value: Any) -> Any:
    return {"path": value} if isinstance(value, str) else value


Source = Annotated[
    Annotated[DocumentationSource, Tag("documentation")] | Annotated[FileSource, Tag("files")],
    Discriminator(_kind),
    BeforeValidator(_as_mapping),
]
Sources = Annotated[list[Source], BeforeValidator(_as_list), Field(min_length=1)]
Task = Annotated[
    Annotated[DocumentationTask, Tag("documentation")] | Annotated[FileTask, Tag("files")], Discriminator(_kind)
]


class CleanSettings(Strict):
    """Unlabelled texts shorter than `min_characters` go; texts longer than `max_characters` are cut."""

    min_characters: int = Field(default=10, ge=1)
    max_characters: int = Field(default=50_000, ge=100)


class DecontaminateSettings(Strict):
    """A text goes when it shares at least `overlap` of its (or the evaluation text's) runs of `words` words."""

    words: int = Field(default=13, ge=2)
    overlap: float = Field(default=0.5, gt=0, le=1)


class QualitySettings(Strict):
    """What the labelled tables must satisfy: every label this often, no label more than this share."""

    min_examples_per_label: int = Field(default=1, ge=1)
    max_label_share: float = Field(default=0.95, gt=0, le=1)


class DatasetSettings(Strict):
    """One entry of `datasets:`. `recipe`, `variants` and `budget` say what to train, and never move the data."""

    language: str = Field(default="en", pattern=r"^[a-z]{2,3}$")
    general: Sources
    domain: Sources
    task: Task
    recipe: str = "bert"
    variants: list[str] = []
    budget: dict[str, Any] = {}
    clean: CleanSettings = CleanSettings()
    decontaminate: DecontaminateSettings = DecontaminateSettings()
    quality: QualitySettings = QualitySettings()


def load_settings(root: Path) -> dict[str, DatasetSettings]:
    """The datasets of `root`/params.yaml by name. RecipeError names the line and the key of the first mistake."""
    document = read_params(root)
    blocks = document.get("datasets")
    if not isinstance(blocks, Mapping) or not blocks:
        raise RecipeError(f"{FILE}: there is no block 'datasets:'; add one, docs/data.md shows how")
    return {str(name): _validated(str(name), block, document) for name, block in blocks.items()}


def load_dataset(dataset: str, root: Path) -> DatasetSettings:
    """The settings of one dataset. RecipeError when params.yaml has no such dataset."""
    settings = load_settings(root)
    if dataset not in settings:
        raise RecipeError(f"{FILE}: no dataset is called {dataset!r}.{did_you_mean(dataset, settings)}")
    return settings[dataset]


def read_params(root: Path) -> Any:
    """params.yaml as a mapping that remembers its lines. RecipeError when it is missing or is no YAML mapping."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    path = root / FILE
    try:
        document = YAML(typ="rt").load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise RecipeError(f"{path}: there is no {FILE} here; run from the root of a checkout") from None
    except (YAMLError, UnicodeDecodeError) as error:
        raise RecipeError(f"{path}: not readable as YAML: {error}") from error
    if not isinstance(document, Mapping):
        raise RecipeError(f"{path}: expected a mapping with the key 'datasets'")
    return document


def _validated(name: str, block: Any, document: Any) -> DatasetSettings:
    if not re.fullmatch(r"[a-z0-9][a-z0-9_-]*", name):
        where = _line(document, ("datasets", name))
        raise RecipeError(f"{where}: dataset {name!r}: use lower-case letters, digits, '-' and '_' (it names a folder)")
    try:
        return DatasetSettings.model_validate(_plain(block))
    except ValidationError as invalid:
        error = invalid.errors()[0]
        keys = [str(part) for part in error["loc"] if part not in ("documentation", "files")]
        unknown = error.get("ctx", {}).get("key")
        place = tuple(error["loc"]) + ((unknown,) if unknown else ())
        where = _line(document, ("datasets", name, *place))
        raise RecipeError(f"{where}: {'.'.join(['datasets', name, *keys])}: {error['msg']}") from None


def _plain(value: Any) -> Any:
    """The document without ruamel's line-keeping types."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value


def _line(document: Any, place: tuple[Any, ...]) -> str:
    """`params.yaml:12`: the line of the deepest key of `place` that the file really has."""
    line, node = 0, document
    for part in place:
        if isinstance(node, Mapping) and part in node:
            line = node.lc.key(part)[0]  # type: ignore[attr-defined]  # ruamel's mappings know their lines
        elif isinstance(node, list) and isinstance(part, int) and part < len(node):
            line = node.lc.item(part)[0]  # type: ignore[attr-defined]
        else:
            continue  # a tag of a union, or a key that is missing
        node = node[part]
    return f"{FILE}:{line + 1}"
