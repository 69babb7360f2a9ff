"""The parameters of a stage's run: few, and the same keys for every stage of every recipe.

All settings of the stage are in the file `settings.json` of its run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pipelines.parts.optimizers import Optimizer
from pipelines.safety.redaction import redacted
from tasks.records.execution_parameters import NONE
from tasks.tracking.tracked_values import LONGEST_VALUE, TrackedStep, key

if TYPE_CHECKING:
    from mlflow.entities import Param

SETTINGS = "settings.json"
Settings = Mapping[str, Any]


def stage_parameters(step: TrackedStep) -> list[Param]:
    """A parameter for each key; `none` where it does not apply."""
    from mlflow.entities import Param

    values = {
        "recipe": step.recipe,
        "stage": step.stage,
        "kind": step.kind,
        "seed": str(step.seed),
        "dataset": step.dataset or "",
        **{name: read(step.settings) for name, read in READ.items()},
    }
    return [Param(key(name), redacted(value or NONE)[:LONGEST_VALUE]) for name, value in values.items()]


def _names(setting: str) -> Callable[[Settings], str]:
    """Names of the components under a key, also of those of the stage's lines."""
    return lambda settings: ", ".join(dict.fromkeys(name for one in _views(settings) for name in _named(one, setting)))


def _views(settings: Settings) -> list[Settings]:
    return [settings, *settings.get("lines", {}).values()]


def _named(settings: Settings, setting: str) -> Iterator[str]:
    value = settings.get(setting)
    for one in value if isinstance(value, (list, tuple)) else [value]:
        if isinstance(one, Mapping):
            yield str(one.get("name", ""))
        elif one is not None:
            yield str(one)


def _value(*path: str) -> Callable[[Settings], str]:
    """The number or word under nested keys."""

    def read(settings: Settings) -> str:
        value: Any = settings
        for name in path:
            value = value.get(name) if isinstance(value, Mapping) else None
        return "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)

    return read


def _architecture(settings: Settings) -> str:
    backbone = settings.get("backbone")
    return str(backbone.get("architecture") or backbone.get("name", "")) if isinstance(backbone, Mapping) else ""


def _optimizer(settings: Settings) -> str:
    # a mapping without a name is the default optimizer
    return str(settings["optimizer"].get("name", Optimizer.default_name)) if _trains(settings) else ""


def _batch(settings: Settings) -> str:
    """`4096 tokens` or `16 examples`, after what the budget counts."""
    budget = settings.get("budget", {})
    if not _trains(settings):
        return ""
    return f"{budget.get('batch_tokens')} tokens" if budget.get("tokens") else f"{budget.get('batch_texts')} examples"


def _training(read: Callable[[Settings], str]) -> Callable[[Settings], str]:
    """`read`, of a stage that trains: others have default values of these settings, which mean nothing."""
    return lambda settings: read(settings) if _trains(settings) else ""


def _trains(settings: Settings) -> bool:
    objective = any(one.get("objective") for one in _views(settings))
    return bool(objective) and isinstance(settings.get("optimizer"), Mapping)


READ: Mapping[str, Callable[[Settings], str]] = {
    "corpus": _names("corpus"),
    "architecture": _architecture,
    "tokenizer": _names("tokenizer"),
    "head": _names("head"),
    "objective": _names("objective"),
    "corruption": _names("corruption"),
    "compression": _names("compression"),
    "strategy": _training(_names("strategy")),
    "optimizer": _optimizer,
    "learning_rate": _training(_value("optimizer", "lr")),
    "schedule": _training(_names("schedule")),
    "batch": _batch,
    "length": _training(_value("budget", "length")),
    "budget_tokens": _training(_value("budget", "tokens")),
    "budget_epochs": _training(_value("budget", "epochs")),
    "labelled": _training(_value("budget", "labelled")),
}
"""Key → how it is read from the resolved settings of a stage."""
