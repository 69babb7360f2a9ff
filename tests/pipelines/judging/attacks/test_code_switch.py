"""Code switching: which words change, how a translation is drawn, and what a dictionary must be."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from pipelines.corpora.documentation.transcription import transcribed
from pipelines.errors import DataError
from pipelines.judging.attacks.code_switch import CodeSwitch
from pipelines.judging.attacks.letters import WORD
from pipelines.judging.attacks.lexicon import read_lexicon
from tests.pipelines.recipe.mistakes import check_refusal, refusal
from tests.pipelines.recipe.recipe_texts import labelled

SHIPPED = Path(__file__).parents[4] / "recipes/knowledge/transcribed_words.tsv"


def dictionary(folder: Path, text: str) -> CodeSwitch:
    path = folder / "words.tsv"
    path.write_text(text, encoding="utf-8")
    return CodeSwitch(lexicon=str(path))


def draw(turn: int = 0) -> np.random.Generator:
    return np.random.default_rng(turn)


def test_every_word_of_the_dictionary_is_switched_at_full_rate_and_no_other(tmp_path: Path) -> None:
    made = dictionary(tmp_path, "the\tდერ\nsum\tსუმმე\nUS\tუსა\n")
    text = "The sum of US debts; SUM it, for us: the_sum, sums."
    assert made.change(text, 1.0, draw(), "en") == "დერ სუმმე of უსა debts; სუმმე it, for us: დერ_სუმმე, sums."
    assert made.change(text, 0.0, draw(), "en") == text


def test_words_and_their_translations_are_independent_uniform_draws(tmp_path: Path) -> None:
    made = dictionary(tmp_path, "big\tgross\tgrand\tგრანდე\n")
    words = made.change(" ".join(["big"] * 6000), 0.3, draw(), "en").split()
    counts = Counter(words)
    assert set(counts) == {"big", "gross", "grand", "გრანდე"}
    # three standard deviations of a binomial count
    assert counts["big"] == pytest.approx(4200, abs=3 * (6000 * 0.3 * 0.7) ** 0.5)
    for word in ("gross", "grand", "გრანდე"):
        assert counts[word] == pytest.approx(600, abs=3 * (6000 * 0.1 * 0.9) ** 0.5)


def test_the_shipped_dictionary_translates_as_the_second_language_of_every_installation() -> None:
    known = read_lexicon(SHIPPED)
    assert len(known) == 2000 and all(WORD.fullmatch(word) for word in known)
    assert all(others == (transcribed(word),) for word, others in known.items())


def test_a_dictionary_that_cannot_be_used_is_refused_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"words.tsv, line 2: expected a word and other words for it"):
        dictionary(tmp_path, "a\tb\nc\n").change("a", 1.0, draw(), "en")


@pytest.mark.parametrize(
    ("options", "says"),
    [("", "lexicon"), (", lexicon: none.tsv", "code_switch: there is no file none.tsv")],
)
def test_a_recipe_names_a_dictionary_that_exists(options: str, says: str, tmp_path: Path) -> None:
    stage = f"  switched: {{like: answer, augmentation: {{attack: {{name: code_switch{options}}}}}}}"
    check_refusal(refusal(tmp_path, "meeting", labelled(stage)), ("stages.switched.augmentation", says))
