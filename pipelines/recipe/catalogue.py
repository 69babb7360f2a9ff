"""Generate the catalogue: every component of every family with its keys, and the components of each recipe.

python -m pipelines.recipe.catalogue            # writes docs/catalogue.md
python -m pipelines.recipe.catalogue --print    # prints it instead
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pipelines.components import Component, discover
from pipelines.recipe.figures import figure_names
from pipelines.recipe.lines import line_views
from pipelines.recipe.load import Library
from pipelines.recipe.schema import Recipe, Stage

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "catalogue.md"
FAMILIES = {
    "cleaning": "pipelines.corpora.cleaning",
    "task_families": "pipelines.task_families",
    "selections": "pipelines.corpora.selections",
    "text_vectors": "pipelines.corpora.vectors",
    "tokenizers": "pipelines.parts.tokenizers",
    "segmentations": "pipelines.parts.segmentations",
    "annotations": "pipelines.parts.annotations",
    "layouts": "pipelines.parts.layouts",
    "corruptions": "pipelines.parts.corruptions",
    "architectures": "pipelines.parts.architectures",
    "embeddings": "pipelines.parts.embeddings",
    "backbones": "pipelines.parts.backbones",
    "attention": "pipelines.parts.attention",
    "knowledge": "pipelines.parts.knowledge",
    "heads": "pipelines.parts.heads",
    "objectives": "pipelines.parts.objectives",
    "mixing": "pipelines.parts.mixing",
    "strategies": "pipelines.parts.strategies",
    "estimates": "pipelines.parts.estimates",
    "schedules": "pipelines.parts.schedules",
    "optimizers": "pipelines.parts.optimizers",
    "compressions": "pipelines.parts.compressions",
    "runtimes": "pipelines.serving.runtimes",
    "attacks": "pipelines.judging.attacks",
    "evaluations": "pipelines.judging.evaluations",
    "probes": "pipelines.judging.probes",
    "claims": "pipelines.judging.claims",
    "gate": "pipelines.judging.gate",
}
"""Family → package of its base class and members, in the order in which text passes through them."""
PARTS = (
    "tokenizer",
    "segmentation",
    "annotations",
    "layout",
    "backbone",
    "corruption",
    "attention",
    "knowledge",
    "head",
    "objective",
    "mixing",
    "strategy",
    "schedule",
    "optimizer",
    "estimate",
    "compression",
    "suite",
    "probes",
)
"""Keys of a stage that hold components."""


@dataclass(frozen=True)
class ComponentParameter:
    """One key of a component, as shown in the catalogue."""

    name: str
    type: str
    default: str
    """Default in YAML syntax; empty when the key is required."""
    summary: str


def main() -> None:
    """Write the page; with `--print`, print it."""
    if "--print" in sys.argv[1:]:
        print(render(), end="")
        return
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(render(), encoding="utf-8")


def render() -> str:
    """Render the whole page as Markdown."""
    lines = ["# Catalogue", "", "Written by `python -m pipelines.recipe.catalogue` from the code: do not edit.", ""]
    for package in FAMILIES:
        family, members = members_of(package)
        lines += [f"## {family.__name__}", "", _flat(inspect.getdoc(importlib.import_module(family.__module__))), ""]
        for name in sorted(members):
            lines += _component(name, members[name])
    lines += ["## Figures", "", *_figures(), ""]
    lines += ["## Recipes", "", *_recipes(Library(ROOT / "recipes"))]
    return "\n".join(lines).rstrip() + "\n"


def members_of(package: str) -> tuple[type[Component], dict[str, type[Component]]]:
    """Base class of the family `package` of FAMILIES, and its members by name."""
    module = importlib.import_module(FAMILIES[package])
    discover(module.__name__)
    families: set[type[Component]] = {
        value
        for value in vars(module).values()
        if isinstance(value, type)
        and issubclass(value, Component)
        and Component in value.__bases__
        and value.__module__ == module.__name__
    }
    (family,) = families
    return family, dict(family.members)


def parameters(member: type[Component]) -> list[ComponentParameter]:
    """Keys of a component, each with the docstring under its declaration."""
    documented: dict[str, str] = {}
    for cls in reversed(member.__mro__):
        if issubclass(cls, Component):
            documented |= dict(_documented_attributes(cls))
    return [
        ComponentParameter(
            name=field.alias or name,
            type=_type(field.annotation),
            default="" if field.is_required() else _yaml(field.get_default(call_default_factory=True)),
            summary=documented.get(name, ""),
        )
        for name, field in member.model_fields.items()
    ]


def _component(name: str, member: type[Component]) -> Iterator[str]:
    yield f"### `{name}`"
    yield ""
    paper = f" ({member.paper})" if member.paper else ""
    yield f"{_flat(member.__doc__)}{paper}"
    yield ""
    if keys := parameters(member):
        yield "| key | default | type | |"
        yield "|---|---|---|---|"
        for parameter in keys:
            default = f"`{parameter.default}`" if parameter.default else "required"
            yield f"| `{parameter.name}` | {default} | {parameter.type} | {parameter.summary} |"
        yield ""


def _figures() -> Iterator[str]:
    """What a claim may compare, and who records it."""
    yield "What a claim may compare. Less is better where it is marked ↓; = marks what no seed and no example varies."
    yield ""
    yield "| figure | unit | recorded by |"
    yield "|---|---|---|"
    for name, figure, judges in figure_names():
        marks = " ↓" * figure.lower + " =" * figure.exact
        by = ", ".join(f"`{one}`" if one else "the record of the trained stage" for one in judges)
        yield f"| `{name}`{marks} | {figure.unit} | {by} |"


def _recipes(library: Library) -> Iterator[str]:
    yield "| recipe | paper | stages | " + " | ".join(PARTS) + " |"
    yield "|---" * (3 + len(PARTS)) + "|"
    for name in library.names():
        recipe = library.load(name)
        parts = [", ".join(f"`{part}`" for part in _used(recipe, key)) or "–" for key in PARTS]
        yield f"| `{name}` | {recipe.paper} | {', '.join(recipe.stages)} | {' | '.join(parts)} |"


def _used(recipe: Recipe, key: str) -> list[str]:
    names: dict[str, None] = {}
    for stage in (view for one in recipe.stages.values() for view in (one, *line_views(one).values())):
        value = getattr(stage, key)
        if key in ("layout", "schedule", "optimizer") and not _has_effect(stage, key):
            continue
        for part in value if isinstance(value, tuple) else (value,):
            if part is not None:
                names[getattr(part, "described", part.name)] = None
    return list(names)


def _has_effect(stage: Stage, key: str) -> bool:
    """Whether `layout`, `schedule` or `optimizer`, which every stage has, affects this stage."""
    return stage.trains and (key != "layout" or stage.kind.reads_plain_text)


def _documented_attributes(cls: type) -> Iterator[tuple[str, str]]:
    """Name and docstring of each annotated attribute of a class that has a docstring."""
    (definition,) = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
    assert isinstance(definition, ast.ClassDef)
    for statement, following in zip(definition.body, definition.body[1:], strict=False):
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            text = following.value if isinstance(following, ast.Expr) else None
            if isinstance(text, ast.Constant) and isinstance(text.value, str):
                yield statement.target.id, _flat(text.value)


def _type(annotation: object) -> str:
    text = (
        annotation.__name__ if isinstance(annotation, type) and not hasattr(annotation, "__args__") else str(annotation)
    )
    text = re.sub(r"\b(?:typing|builtins)\.", "", text)
    return re.sub(r"Literal\[(.*?)\]", lambda match: match[1].replace("'", "").replace(", ", " / "), text).replace(
        "|", "or"
    )


def _yaml(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (tuple, list)):
        return f"[{', '.join(map(_yaml, value))}]"
    if isinstance(value, Component):
        return value.name
    return str(value)


def _flat(text: str | None) -> str:
    return " ".join((text or "").split()).replace("|", "\\|")


if __name__ == "__main__":
    main()
