"""Units: entities of a tagger and entries of a lexicon are words, all else characters; bad lexicons are refused."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from pydantic import ValidationError

from pipelines.errors import DataError, RecipeError
from pipelines.parts.segmentations.units import Units, read_units
from pipelines.recipe.problems import Setting
from tests.pipelines.training.small_recipe import GENERAL
from tests.steps import library_of

TEXT = "张三丰昨天在北京大学见了江泽民和 GPU 2号"


def words(part: Units, text: str) -> list[str]:
    return [text[begin:end].rstrip() for begin, end in pairwise([*part.word_starts(text), len(text)])]


def test_names_are_units_and_the_rest_are_characters() -> None:
    assert words(Units(), TEXT) == ["张三丰", *"昨天在", "北京大学", *"见了", "江泽民", "和", "GPU", "2", "号"]
    assert words(Units(tags=("nt",), joined=()), TEXT)[:4] == [*"张三丰昨"]
    assert words(Units(whole_words=True), TEXT)[:4] == ["张三丰", "昨天", "在", "北京大学"]


def test_adjacent_names_of_a_person_are_one_unit() -> None:
    """The tagger cuts family names off where the dictionary has no such person."""
    import rjieba

    text = "主席毛泽东邓小平"
    assert [tag for _, tag in rjieba.tag(text, True)][1:] == ["nr", "nr"]
    assert words(Units(), text) == ["主", "席", "毛泽东邓小平"]
    assert words(Units(joined=()), text) == ["主", "席", "毛泽东", "邓小平"]


def test_entries_of_a_lexicon_come_before_the_taggers_words(tmp_path: Path) -> None:
    file = tmp_path / "units.txt"
    file.write_text("# phrases\n大学见了\n昨天\n昨天在\n\n", encoding="utf-8")
    with_names = words(Units(lexicon=file), TEXT)
    assert with_names[:4] == ["张三丰", "昨天在", "北京", "大学见了"], "the longest entry, which cuts a name in two"
    alone = words(Units(tags=(), joined=(), lexicon=file), TEXT)
    assert alone[:7] == [*"张三丰", "昨天在", "北", "京", "大学见了"]


def test_files_that_are_no_lexicon_are_refused_with_the_line(tmp_path: Path) -> None:
    file = tmp_path / "units.txt"
    file.write_text("北京\n京\n", encoding="utf-8")
    with pytest.raises(DataError, match="units.txt, line 2: expected a phrase or an entity of at least two"):
        read_units(file)
    with pytest.raises(ValidationError, match="without tags and without a lexicon there are no units"):
        Units(tags=(), joined=())
    with pytest.raises(ValidationError, match="joined: nt is not among tags"):
        Units(tags=("nr",), joined=("nt",))


def test_a_recipe_is_refused_before_anything_is_computed(tmp_path: Path) -> None:
    mask = GENERAL.replace("{name: token_mask, rate: 0.2}", "whole_word_mask")
    (tmp_path / "empty.txt").write_text("# nothing\n", encoding="utf-8")
    for lexicon, why in (("none.txt", "none.txt: cannot be read"), ("empty.txt", "empty.txt: contains no units")):
        recipe = mask.replace(
            "    corruption", f"    segmentation: {{name: units, lexicon: {tmp_path / lexicon}}}\n    corruption"
        )
        with pytest.raises(RecipeError, match=f"segmentation.*units: .*{why}"):
            library_of(tmp_path, small=recipe).load("small", setting=Setting(language="zh"))
    with pytest.raises(RecipeError, match="units segments zh, but this dataset's language is en"):
        recipe = mask.replace("    corruption", "    segmentation: units\n    corruption")
        library_of(tmp_path, small=recipe).load("small", setting=Setting(language="en"))
