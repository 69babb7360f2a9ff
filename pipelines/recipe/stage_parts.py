"""The parts of a stage, the modules that define them and the files that they read."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from pipelines.components import Component
from pipelines.errors import RecipeError
from pipelines.lineage.fingerprint import digest_file
from pipelines.lineage.source import source_hash
from pipelines.parts.heads import Head
from pipelines.recipe.entries import entry_of
from pipelines.recipe.kinds import Kind
from pipelines.recipe.lines import line_views
from pipelines.recipe.schema import Stage


def modules_of(stage: Stage) -> list[str]:
    """Modules of the parts of a stage."""
    modules = {type(part).__module__ for part in parts_of(stage)}
    companions = [
        name
        for view in line_views(stage).values()
        for objective in view.objective
        for name in objective.companion_heads
    ]
    return sorted(modules | {type(Head.model_validate(name)).__module__ for name in companions})


def computing_modules(stage: Stage) -> list[str]:
    """Modules whose code the result of a stage depends on, whatever its data: what computes it, and its parts."""
    return [entry_of(stage).partition(":")[0], Kind.__module__, *modules_of(stage)]


@cache
def code_of(modules: tuple[str, ...]) -> str:
    """`source_hash`, once for the same modules: a plan has many steps of the same code, and it hashes megabytes."""
    return source_hash(modules)


def files_of(stage: Stage) -> list[str]:
    """Digests of the files that the parts of a stage read. Raises RecipeError for a missing file."""
    paths = [(part.name, path) for part in parts_of(stage) for path in part.reads_files]
    if missing := next(((name, path) for name, path in paths if not path.is_file()), None):
        raise RecipeError(
            f"{missing[0]}: there is no file {missing[1]}; give a path relative to the current directory, or an "
            "absolute one"
        )
    return [digest_file(path) for _, path in paths]


def parts_of(stage: Stage) -> list[Component]:
    """Parts of a stage and the components nested in them."""
    values: list[object] = [stage.tokenizer, stage.backbone, stage.schedule, stage.optimizer, stage.mixing]
    values.append(stage.estimate)
    for view in line_views(stage).values():
        values += [view.segmentation, view.layout, view.attention, view.knowledge, view.head]
        values += [*view.annotations, *view.corruption, *view.objective]
    values += [one.attack for one in stage.augmentation]
    values += [*stage.strategy, *stage.compression, *stage.suite, *stage.probes]
    return [part for value in values if isinstance(value, Component) for part in _nested(value)]


def _nested(part: Component) -> Iterator[Component]:
    """Yield `part` and the components in its fields, at any depth."""
    yield part
    for key in type(part).model_fields:
        value = getattr(part, key)
        for one in value if isinstance(value, tuple) else (value,):
            if isinstance(one, Component):
                yield from _nested(one)
