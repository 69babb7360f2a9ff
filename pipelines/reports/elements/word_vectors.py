"""Word vectors as the report shows them: nearest neighbours side by side, analogies, human similarity judgements."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipelines.messages.translation import message
from pipelines.reports.elements.axes import percent


def describe_word_vectors(stage: str, section: Mapping[str, Any]) -> dict[str, Any]:
    """The template's values for the word vectors that the evaluate stage `stage` measured."""
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
    """The model that solves most analogies, if they were measured."""
    measured = [model for model in words["models"] if "low" in model.get("analogies", {})]
    if not measured:
        return []
    best = max(measured, key=lambda model: float(model["analogies"]["accuracy"]))
    analogies = best["analogies"]
    return [
        message(
            "The vectors of {model} solve {accuracy} of the analogies with known words (95 % interval {low} to {high}; "
            "they know the words of {coverage} of {questions}).",
            model=best["stage"],
            accuracy=percent(analogies["accuracy"]),
            low=percent(analogies["low"]),
            high=percent(analogies["high"]),
            coverage=percent(analogies["coverage"]),
            questions=analogies["questions"],
        )
    ]


def _nearest(neighbours: Mapping[str, Any], word: str) -> str:
    """The nearest words; a dash for a word that was not queried or has no vector."""
    return ", ".join(other for other, _ in neighbours.get(word) or ()) or "–"


def _right(model: Mapping[str, Any], relation: str) -> str:
    tally = model.get("analogies", {}).get("relations", {}).get(relation)
    return message("{part} of {whole}", part=tally["right"], whole=tally["questions"]) if tally else "–"
