"""What a recipe says has the same identity as before, however many keys a stage has learnt since.

`identities.json` holds, for the stages of the recipes of 2026-11-23, a digest of what their fingerprints cover besides
code, libraries and the digests of others. A key that is new since then is left out of the identity where it has its
default (`exclude_if`): so a recipe that uses no new key computes nothing anew because of it.

A recipe whose own text changes has to be recorded again:

    python -m tests.pipelines.lineage.test_identities_stay NAME …
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from pipelines.lineage.fingerprint import fingerprint
from pipelines.lineage.provenance import DataSource
from pipelines.recipe.load import Library
from pipelines.recipe.plan import plan
from tests.steps import ROOT

GOLDEN = Path(__file__).with_name("identities.json")
RECORDED: dict[str, dict[str, str]] = json.loads(GOLDEN.read_text(encoding="utf-8")) if GOLDEN.exists() else {}
ELSEWHERE = ("code", "libraries", "accelerators", "parents", "subjects")
"""Keys of an identity that other tests hold."""
TABLES = ("general", "domain", "task_text", "train", "validation", "test", "general_heldout")


def identities(recipe: str) -> dict[str, str]:
    """Step → digest of its identity without `ELSEWHERE`, in the precision of any machine."""
    library = Library(ROOT / "recipes")
    data = {name: DataSource(digest=name, path=name) for name in TABLES}
    result = {}
    for step in plan(library.load(recipe), library, data).steps:
        if step.recipe == recipe:
            identity = {key: value for key, value in step.identity.items() if key not in ELSEWHERE}
            stage = identity["stage"]
            identity["stage"] = {**stage, "optimizer": {**stage["optimizer"], "precision": "auto"}}
            result[step.label] = fingerprint(identity)[:16]
    return result


@pytest.mark.parametrize("recipe", sorted(RECORDED))
def test_a_recipe_that_uses_no_new_key_keeps_its_identity(recipe: str) -> None:
    assert identities(recipe) == RECORDED[recipe]


if __name__ == "__main__":
    recorded = RECORDED | {name: identities(name) for name in sys.argv[1:]}
    GOLDEN.write_text(json.dumps(recorded, indent=1, sort_keys=True) + "\n", encoding="utf-8")
