"""Published figures that were compared with a source: each entry is of a claim, and a correction is in the recipe."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines.errors import RecipeError
from tasks.records.published import FILE, NOT_COMPARED, published_sentence, read_published, with_corrections
from tests.steps import ROOT, shipped

ENTRY = "{read: 'https://a.org/1', kind: transcript, date: 2026-11-28, agrees: true, says: table 1}"


def written(root: Path, text: str) -> dict[str, dict[str, object]]:
    (root / FILE).parent.mkdir(parents=True, exist_ok=True)
    (root / FILE).write_text(text, encoding="utf-8")
    return read_published(root)


def test_every_entry_is_of_a_claim_and_every_correction_is_in_its_recipe() -> None:
    for name, entry in read_published(ROOT).items():
        recipe, _, claim = name.partition("/")
        assert claim in shipped(recipe).claims, f"{FILE}: {name}: the recipe has no such claim"
        published = shipped(recipe).claims[claim].published
        if "now" in entry:
            assert entry["now"] in published and entry["was"] not in published, f"{FILE}: {name}: unlike the recipe"


def test_records_of_before_a_correction_have_the_words_of_now(tmp_path: Path) -> None:
    entry = ENTRY.replace("says:", "was: '81.8', now: '85.4', says:")
    published = written(tmp_path, f"a/one: {entry}\n")
    records = {name: {"recipe": "a", "claim": name, "published": "RACE 81.8"} for name in ("one", "two")}
    shown = with_corrections(records, published)
    assert [shown[name]["published"] for name in ("one", "two")] == ["RACE 85.4", "RACE 81.8"]


def test_the_page_counts_those_that_agree(tmp_path: Path) -> None:
    records = [{"recipe": "a", "claim": name} for name in ("one", "two", "two", "three")]
    assert published_sentence(records, {}) == f"The published figures were {NOT_COMPARED}"
    in_part = ENTRY.replace("agrees: true", "agrees: in part")
    sentence = published_sentence(records, written(tmp_path, f"a/one: {ENTRY}\na/two: {in_part}\nb/one: {ENTRY}\n"))
    assert sentence.startswith("The published figures of 1 of these 3 claims ") and sentence.endswith(NOT_COMPARED)


def test_a_project_without_the_file_has_compared_none(tmp_path: Path) -> None:
    assert read_published(tmp_path) == {}


@pytest.mark.parametrize(("text", "problem"), [
    ("[a/one]", "must map claims"), ("a/one: {read: x}", "must have the keys"), ("a: [", "is not YAML"),
    (f"a/one: {ENTRY.replace('transcript', 'memory')}", "kind: 'memory' is none of"),
    (f"a/one: {ENTRY.replace('true', 'perhaps')}", "agrees: 'perhaps' is none of"),
    (f"a/one: {ENTRY.replace('2026-11-28', 'today')}", "date: 'today' is no date"),
    (f"a/one: {ENTRY.replace('table 1', chr(39) * 2)}", "says: is empty"),
])  # fmt: skip
def test_a_malformed_entry_is_one_sentence(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(RecipeError, match=problem):
        written(tmp_path, f"{text}\n")
