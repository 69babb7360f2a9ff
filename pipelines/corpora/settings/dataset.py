"""Settings under `datasets:` in params.yaml, validated before any data is read.

load_settings(root)["docstrings"].task.labels_per_class        # 20
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Self

from pydantic import Field, ValidationError, model_validator
from pydantic_core import ErrorDetails, PydanticCustomError

from pipelines.components import did_you_mean
from pipelines.components.plain_yaml import read_yaml
from pipelines.corpora.settings.cleaning import CleanSettings
from pipelines.corpora.settings.like import LIKE, InvalidLikeError, keys_of
from pipelines.corpora.settings.mixture import Mixtures, check_mixture
from pipelines.corpora.settings.named import NamedCorpora, NamedTasks, check_names
from pipelines.corpora.settings.overlap import DecontaminateSettings, DeduplicateSettings
from pipelines.corpora.settings.quality import QualitySettings
from pipelines.corpora.settings.sources import ReadSource, Sources, StrictSettings
from pipelines.corpora.settings.task import KINDS, Task
from pipelines.corpora.settings.task_text import TaskTextSettings
from pipelines.errors import RecipeError
from pipelines.task_families.labelled_tables import MAIN

FILE = "params.yaml"
_NAME = re.compile(r"^[a-z0-9][a-z0-9_-]{0,99}$")
_TAGS = ("files", "package", "columns")
"""Parts of an error's location that come from pydantic's union tags, not from the user."""


class DatasetSettings(StrictSettings):
    """One entry of `datasets:`. `recipe`, `variants`, `budget` and `model` do not affect the data."""

    like: str | None = None
    """Another dataset, from which all keys are taken that are not set here."""
    language: str = Field(default="en", pattern=r"^[a-z]{2,3}$")
    general: Sources
    domain: Sources
    task: Task | None = None
    """The main task; without it, the first of `tasks` is the main one."""
    tasks: NamedTasks = Field(default={})
    """Further labelled tasks by name."""
    corpora: NamedCorpora = Field(default={})
    """Further corpora by name."""
    task_text: TaskTextSettings = TaskTextSettings()
    mixtures: Mixtures = Mixtures()
    recipe: str = "regime"
    variants: list[str] = Field(default=[])
    budget: dict[str, dict[str, Any]] = Field(default={})
    model: str | None = Field(default=None, pattern=_NAME.pattern)
    """Registered name of its models; by default its own name and the family of its task."""
    clean: CleanSettings = CleanSettings()
    deduplicate: DeduplicateSettings = DeduplicateSettings()
    decontaminate: DecontaminateSettings = DecontaminateSettings()
    quality: QualitySettings = QualitySettings()

    @property
    def main(self) -> Task:
        """The main task, which recipes call `task`."""
        return self.task if self.task is not None else next(iter(self.tasks.values()))

    @property
    def main_name(self) -> str | None:
        """Name of the main task among `tasks`; None for one that stands under `task`."""
        return None if self.task is not None else next(iter(self.tasks))

    @property
    def labelled(self) -> dict[str, Task]:
        """Every labelled task once: the main one as `task`, then the others by name."""
        return {MAIN: self.main} | {name: task for name, task in self.tasks.items() if name != self.main_name}

    @model_validator(mode="before")
    @classmethod
    def _has_a_task(cls, value: Any) -> Any:
        if isinstance(value, Mapping) and value.get("task") is None and value.get("tasks") is None:
            message = "give the labelled examples: one set under task, or several by name under tasks"
            raise PydanticCustomError("no_task", "{message}", {"message": message, "path": ("task",)})
        return value

    @model_validator(mode="after")
    def _parts_fit(self) -> Self:
        check_names(self.tasks, self.corpora, self.main_name)
        if problem := self.clean.problem(self.language):
            raise ValueError(f"clean: {problem}")
        for corpus, mixture in self.mixtures.by_corpus().items():
            check_mixture(mixture, corpus, getattr(self, corpus), self.language)
        if any(isinstance(source, ReadSource) and source.values for source in (*self.general, *self.domain)):
            raise ValueError("values: only sources of a named corpus (corpora) have columns beside the text")
        return self


def load_settings(root: Path) -> dict[str, DatasetSettings]:
    """Datasets of `root`/params.yaml by name. RecipeError names the line and the key of the first error."""
    document = read_params(root)
    blocks = document.get("datasets")
    if not isinstance(blocks, Mapping) or not blocks:
        raise RecipeError(f"{FILE}: the block 'datasets:' is missing or empty; docs/data.md shows how to write one")
    for name in blocks:
        if not isinstance(name, str):
            where = _line(document, (name,))
            raise RecipeError(f"{where}: datasets: the name {name!r} is no text; begin it with a letter, or quote it")
    return {name: _validated(name, block, document) for name, block in blocks.items()}


def load_dataset(dataset: str, root: Path) -> DatasetSettings:
    """Settings of one dataset. RecipeError when params.yaml has no such dataset."""
    settings = load_settings(root)
    if dataset not in settings:
        raise RecipeError(f"{FILE}: no dataset is called {dataset!r}.{did_you_mean(dataset, settings)}")
    return settings[dataset]


def read_params(root: Path) -> Any:
    """Read params.yaml as a mapping with line numbers. RecipeError when it is missing or is not a YAML mapping."""
    path = root / FILE
    if not path.exists():
        raise RecipeError(f"{path}: there is no {FILE} here; `cursus init` makes a project")
    state = path.stat()
    document = _read_cached(path, state.st_mtime_ns, state.st_size)
    if not isinstance(document, Mapping):
        raise RecipeError(f"{path}: expected a mapping with the key 'datasets'")
    return document


@lru_cache(maxsize=8)
def _read_cached(path: Path, modified: int, size: int) -> Any:
    """The file in the state that the other arguments identify: a command reads its settings several times."""
    return read_yaml(path, "a file of settings")


def line_of(dataset: str, root: Path, *keys: str) -> str:
    """`params.yaml:12`: the line of a key of a dataset, in the dataset itself or in the one under `like`."""
    document = read_params(root)
    return _line(document, (dataset, *keys), keys_of(dataset, document["datasets"]))


def _validated(name: str, block: Any, document: Any) -> DatasetSettings:
    if not _NAME.fullmatch(name):
        where = _line(document, (name,))
        raise RecipeError(
            f"{where}: dataset {name!r}: use up to 100 lower-case letters, digits, '-' and '_' (it names a folder)"
        )
    sources: dict[str, tuple[str, Any]] | None = None
    try:
        if isinstance(block, Mapping):
            sources = keys_of(name, document["datasets"])
            block = {key: value for key, (_, value) in sources.items()}
        return DatasetSettings.model_validate(plain_values(block))
    except InvalidLikeError as wrong:
        raise RecipeError(f"{_line(document, (name, LIKE))}: datasets.{name}.{LIKE}: {wrong}") from None
    except ValidationError as invalid:
        error = invalid.errors()[0]
        context = error.get("ctx", {})
        path = (*error["loc"], *context.get("path", ()), *([context["key"]] if "key" in context else ()))
        written = (*error["loc"], *context.get("path", ()))
        tags = () if written[:1] == ("corpora",) else (*KINDS, *_TAGS)
        own = 2 if written[:1] == ("tasks",) else 1  # the name of a task may be that of a tag
        keys = [str(part) for number, part in enumerate(written) if number < own or part not in tags]
        where = _line(document, (name, *path), sources)
        raise RecipeError(f"{where}: {'.'.join(['datasets', name, *keys])}: {in_words(error)}") from None


def in_words(error: ErrorDetails) -> str:
    """The message of a validation error, without the names of classes."""
    if error["type"] in ("model_type", "dict_type", "model_attributes_type"):
        return f"expected a mapping of keys to values, got {error['input']!r:.100}"
    return error["msg"].removeprefix("Value error, ")


def plain_values(value: Any) -> Any:
    """Convert ruamel's types, which keep line numbers, to plain ones."""
    if isinstance(value, Mapping):
        return {str(key): plain_values(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain_values(item) for item in value]
    return value


def _line(document: Any, path: tuple[Any, ...], sources: Mapping[str, tuple[str, Any]] | None = None) -> str:
    """`params.yaml:12`: the line of the deepest key of `path` (a dataset, then keys) that exists in the file.

    `sources` maps each key of the dataset to the dataset it is taken from.
    """
    if sources and len(path) > 1 and path[1] in sources:
        path = (sources[path[1]][0], *path[1:])
    line, node = 0, document
    for part in ("datasets", *path):
        if isinstance(node, Mapping) and part in node:
            line = node.lc.key(part)[0]  # type: ignore[attr-defined]  # ruamel's mappings have line numbers
        elif isinstance(node, list) and isinstance(part, int) and part < len(node):
            line = node.lc.item(part)[0]  # type: ignore[attr-defined]
        else:
            continue  # a tag of a union, or a missing key
        node = node[part]
    return f"{FILE}:{line + 1}"
