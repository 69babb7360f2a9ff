"""Every component of every family, as the contract tests see them."""

from __future__ import annotations

from typing import Any

from pipelines.components import Component
from pipelines.recipe.catalogue import FAMILIES, members_of

REQUIRED: dict[str, dict[str, Any]] = {
    "random_texts": {"texts": 10},
    "encoder": {"checkpoint": "models/minilm"},
    "shift_positions": {"positions": 64},
    "token_types": {"types": [4, 5]},
    "code_switch": {"lexicon": "recipes/knowledge/transcribed_words.tsv"},
    "nearest_words": {"vectors": "tests/contracts/word_vectors.txt"},
    "similar_words": {"lexicon": "recipes/knowledge/similar_words_zh.tsv"},
    "triples": {"file": "recipes/knowledge/scientific_terms.tsv"},
    "annotations.languages": {"order": ["en", "zh"], "of": "en"},
    "languages_by_script": {"order": ["en", "zh"], "scripts": {"latin": "en", "han": "zh"}},
    "lexicon": {"channel": "polarity", "file": "polarity.tsv", "values": ["negative", "positive"]},
    "vector_column": {"column": "vectors", "width": 4},
    "region_vectors": {"width": 4},
    "embeddings.vectors": {"size": 4},
    "annotations.natural_labels": {"pattern": "[.]([a-z]+)", "labels": ["linalg", "stats"]},
    "one_value": {"channel": "tasks", "size": 4},
    "word_column": {"channel": "columns", "column": "columns", "largest": 31},
    "classification": {"ladder": ["scratch", "classify"]},
    "greater": {"system": "classify", "baseline": "scratch"},
    "within": {"system": "small", "baseline": "classify", "margin": 0.01},
    "times": {"system": "small", "baseline": "classify", "at_least": 4},
    "steadier": {"system": "small", "baseline": "classify"},
    "in_order": {"stages": ["classify", "scratch"]},
    "rises_with": {"stages": ["none", "hour", "day"]},
    "power_law": {"stages": ["small", "base", "large"], "at": [1, 2, 4]},
    "transfers": {"system": "classify", "baseline": "scratch"},
    "falls_with_shift": {"system": "classify"},
    "exceeds": {"system": "classify"},
    "gains_more": {"system": ["classify", "scratch"], "baseline": ["classify", "scratch"]},
    "arpa": {"file": "models/trigram.arpa"},
    "footprint": {"stages": ["classify", "small"]},
    "sense_neighbours": {"senses": "recipes/senses/en.tsv"},
    "fact_recall": {"graphs": ["recipes/knowledge/scientific_terms.tsv"]},
    "answered_analogies": {"file": "recipes/knowledge/analogies.tsv"},
    "unseen_pairs": {"seen_by": "bigram"},
    "robustness": {"attacks": ["letter_case"]},
    "stage_effects": {
        "factors": ["general"],
        "paths": [{"stage": "scratch", "through": []}, {"stage": "classify", "through": ["general"]}],
    },
}
"""What a member cannot be built without."""


def members(package: str) -> dict[str, type[Component]]:
    """The members of the family that `pipelines.<package>` holds, by name."""
    return members_of(package)[1]


def build(member: type[Component]) -> Component:
    """A member with its defaults, and the least it requires."""
    return member.model_validate(required(member.family().__module__.rpartition(".")[2], member.name))


def required(package: str, name: str) -> dict[str, Any]:
    """The options that the member `name` of the family in `package` cannot be built without."""
    return REQUIRED.get(f"{package}.{name}", REQUIRED.get(name, {}))


EVERY = [(package, name) for package in FAMILIES for name in members(package)]
