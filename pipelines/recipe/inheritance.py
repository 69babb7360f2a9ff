"""The keys that a stage inherits from the stage it starts from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipelines.recipe.kinds import Kind
from pipelines.recipe.strict import as_list

CARRIED = ("tokenizer", "limits", "segmentation", "annotations", "backbone")
"""Stage keys that every stage inherits from the one it starts from."""
BROUGHT = ("tokenizer", "limits", "backbone")
"""Those that the folder of a start answers for, whatever a stage that the recipe writes `like` another would say."""
CONTINUED = (
    *CARRIED,
    "layout",
    "attention",
    "corruption",
    "head",
    "objective",
    "strategy",
    "schedule",
    "optimizer",
    "dropout",
    "estimate",
    "budget",
)
"""Stage keys that a plain-text stage inherits from a plain-text start that is computed in the same way."""


def inherited_keys(stage: Mapping[str, Any], start: Mapping[str, Any]) -> tuple[str, ...]:
    """Keys that `stage`, as written, inherits from its `start`.

    How the start was trained is no part of a stage that is estimated by counting, nor the other way round.
    """
    kinds = (stage.get("kind"), start.get("kind"))
    both_plain = all(kind in set(Kind) and Kind(kind).reads_plain_text for kind in kinds)
    differently = "objective" in stage or "lines" in stage if start.get("estimate") else bool(stage.get("estimate"))
    return CONTINUED if both_plain and not differently else CARRIED


def like_another(
    stages: Mapping[str, Mapping[str, Any]], stage: Mapping[str, Any], inherited: Mapping[str, Any]
) -> dict[str, Any]:
    """The keys that `stage`, as written, takes from the stage of `stages` that it is `like`, which has `inherited`.

    With a start of its own it has the network of that: neither the one that the other starts from, nor the one that
    the other builds. What the other states beside a start, as embeddings that it adds, it takes.
    """
    if stage.get("start") is None:
        return dict(inherited)
    stated: set[str] = set()
    name = stage.get("like") if inherited.get("start") is not None else None
    while name is not None:
        stated |= stages[name].keys()
        name = stages[name].get("like")
    return {key: value for key, value in inherited.items() if key not in BROUGHT or key in stated}


def with_owner(recipe: str, stage: Mapping[str, Any]) -> dict[str, Any]:
    """A stage of another `recipe`, as written there, whose annotations read the stages of that."""
    annotations = stage.get("annotations")

    def owned(one: Any) -> Any:
        read = one.get("from") if isinstance(one, Mapping) else None
        return {**one, "from": f"{recipe}/{read}"} if isinstance(read, str) and read and "/" not in read else one

    if annotations is None:
        return dict(stage)
    return {**stage, "annotations": [owned(one) for one in as_list(annotations)]}
