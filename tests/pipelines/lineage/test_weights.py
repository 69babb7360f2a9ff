"""What a model's weights went through: one walk, whoever asks."""

from __future__ import annotations

from typing import Any

from pipelines.lineage.weights import PLAIN_TEXT, weight_history
from pipelines.recipe.kinds import Kind
from pipelines.reports.elements.curves import tokens_before


def _record(name: str, kind: str, start: str | None, untrained: bool = False) -> dict[str, Any]:
    return {
        "fingerprint": name,
        "kind": kind,
        "parents": {"start": start} if start else {},
        "identity": {"untrained": untrained},
        "result": {"tokens": 100},
    }


RECORDS = {
    record["fingerprint"]: record
    for record in (
        _record("general", "pretrain", None),
        _record("domain", "adapt_domain", "general"),
        _record("classify", "finetune", "domain"),
        _record("scratch", "finetune", "general", untrained=True),
        _record("int8", "compress", "scratch"),
        _record("foreign", "finetune", "in another store"),
    )
}


def _names(fingerprint: str) -> list[str]:
    return [record["fingerprint"] for record in weight_history(fingerprint, RECORDS)]


def test_the_walk_goes_from_a_model_to_the_first_whose_weights_it_continues() -> None:
    assert _names("classify") == ["classify", "domain", "general"]
    assert _names("foreign") == ["foreign"]
    assert _names("unknown") == []


def test_random_weights_continue_nothing_but_the_models_made_of_them_do() -> None:
    assert _names("scratch") == ["scratch"]
    assert _names("int8") == ["int8", "scratch"]
    assert tokens_before("scratch", RECORDS) == 0
    assert tokens_before("int8", RECORDS) == 100
    assert tokens_before("classify", RECORDS) == 200


def test_the_kinds_of_plain_text_are_those_of_stages() -> None:
    assert [kind for kind in Kind if kind.reads_plain_text] == [Kind(word) for word in PLAIN_TEXT]
