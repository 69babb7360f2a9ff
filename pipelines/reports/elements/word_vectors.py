"""Word vectors as the page shows them: neighbours side by side, analogies, judgements of people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipelines.reports.elements.axes import percent


def describe_words(stage: str, section: Mapping[str, Any]) -> dict[str, Any]:
    """What the page's template needs of the tables of vectors that the evaluate stage `stage` looked at."""
    models = section["models"]
    words = list(dict.fromkeys(word for model in models for word in model["neighbours"]))
    relations = list(
        dict.fromkeys(name for model in models for name in model.get("analogies", {}).get("relations", {}))
    )
    return {
        "stage": stage,
        "models": models,
        "neighbours": [(word, [_nearest(model["neighbours"], word) for model in models]) for word in words],
        "relations": [(name, [_right(model, name) for model in models]) for name in relations],
    }


def sentences(words: Mapping[str, Any]) -> list[str]:
    """Which table of vectors answers most analogies, where they were asked."""
    asked = [model for model in words["models"] if "low" in model.get("analogies", {})]
    if not asked:
        return []
    best = max(asked, key=lambda model: float(model["analogies"]["accuracy"]))
    found = best["analogies"]
    return [
        f"The vectors of {best['stage']} answer {percent(found['accuracy'])} of the analogies whose words they know "
        f"(95 % interval {percent(found['low'])} to {percent(found['high'])}; they know the words of "
        f"{percent(found['coverage'])} of {found['questions']})."
    ]


def _nearest(neighbours: Mapping[str, Any], word: str) -> str:
    """The nearest words; a dash where a word was not asked for, or is not known."""
    return ", ".join(other for other, _ in neighbours.get(word) or ()) or "–"


def _right(model: Mapping[str, Any], relation: str) -> str:
    tally = model.get("analogies", {}).get("relations", {}).get(relation)
    return f"{tally['right']} of {tally['questions']}" if tally else "–"
