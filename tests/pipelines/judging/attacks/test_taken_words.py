"""Words that are masked, replaced by one of their class, or left alone in an n-gram (Tang et al. 2019, §3.3)."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from transformers import AutoTokenizer

from pipelines.judging.attacks.class_words import ClassWords
from pipelines.judging.attacks.letters import WORD
from pipelines.judging.attacks.masked_words import MaskedWords
from pipelines.judging.attacks.sampled_ngram import SampledNgram
from pipelines.judging.attacks.word_tables import WordTable, open_table
from pipelines.parts.tokenizers import Tokenizer
from pipelines.parts.tokenizers.maskable_words import MaskableWords
from pipelines.parts.tokenizers.words import Words
from pipelines.recipe.augmentations import Augmentation
from pipelines.recipe.load import Library
from pipelines.task_families.text_classification import TextClassification
from pipelines.training.batches.augmented_examples import changes
from tests.pipelines.judging.attacks.word_model import class_of, word_model
from tests.pipelines.recipe.mistakes import check_refusal, refusal
from tests.pipelines.recipe.recipe_texts import labelled
from tests.small_corpus import documents
from tests.steps import RECIPES

TEXT = "The logger returns the level of every configurable handler, and nothing else."


def test_a_word_of_a_class_is_drawn_by_its_count() -> None:
    vectors = np.asarray([[1, 0], [1, 0], [0, 1], [1, 0], [0, 0], [0, 1]], dtype=np.float32)
    table = WordTable(["a", "b", "c", "d", "e", "f"], np.asarray([5.0, 3, 7, 2, 9, 0]), vectors)
    drawn = Counter(table.of_its_class("b", number / 1000) for number in range(1000))
    assert drawn == {"a": 500, "b": 300, "d": 200}
    assert {table.of_its_class("c", number / 10) for number in range(10)} == {"c"}, "alone in its class"
    assert table.of_its_class("e", 0.5) is None, "without a vector"
    assert table.of_its_class("f", 0.5) is None, "it does not occur"
    assert table.of_its_class("other", 0.5) is None


def test_words_become_words_of_their_class_and_keep_capitals() -> None:
    attack = ClassWords().reading(word_model())
    assert {"logger", "returns"} <= set(open_table(word_model()).words) and "," not in open_table(word_model()).words
    seen = set()
    for turn in range(20):
        changed = attack.change(TEXT, 1.0, np.random.default_rng(turn), "en")
        for before, after in zip(WORD.findall(TEXT), WORD.findall(changed), strict=True):
            assert class_of(before.lower()) == class_of(after.lower()) and before[0].isupper() == after[0].isupper()
            seen.add(after)
    assert len(seen) > 20
    assert attack.change("Qwzx qwzxy", 1.0, np.random.default_rng(0), "en") == "Qwzx qwzxy", "unknown words stay"


def test_an_ngram_is_all_that_is_left() -> None:
    words, lengths, begins = TEXT.split(), Counter[int](), Counter[int]()
    for turn in range(4000):
        left = SampledNgram().change(TEXT, 1.0, np.random.default_rng(turn), "en").split()
        lengths[len(left)] += 1
        begins[next(at for at in range(len(words)) if words[at : at + len(left)] == left)] += 1
    assert set(lengths) == {1, 2, 3, 4, 5} and set(begins) == set(range(len(words)))
    assert all(count / 4000 == pytest.approx(0.2, abs=0.03) for count in lengths.values())
    assert SampledNgram(longest=20).change("two words", 1.0, np.random.default_rng(3), "en") == "two words"
    assert SampledNgram().change(TEXT, 0.0, np.random.default_rng(0), "en") == TEXT


def test_the_recipe_changes_words_as_often_as_the_paper() -> None:
    augmentation = Library(RECIPES).load("distilled_bilstm").stages["taught"].augmentation
    assert [type(one.attack) for one in augmentation] == [ClassWords, MaskedWords, SampledNgram]
    of_words = [
        one.model_copy(update={"attack": one.attack.reading(word_model())})
        if isinstance(one.attack, ClassWords)
        else one
        for one in augmentation
    ]
    texts = [" ".join(WORD.findall(text))[:400] for text in documents("logging", "json")[:60]]
    change = changes(of_words[:2], TextClassification(), seed=0, language="en")
    total, masked, replaced = 0, 0, 0
    for epoch in range(3):
        for number, text in enumerate(texts):
            after = str(change({"text": text, "label": "a"}, epoch, number)["text"]).split()
            for before, word in zip(text.split(), after, strict=True):
                total += 1
                masked += word == "[MASK]"
                replaced += word not in ("[MASK]", before)
    assert total > 3000 and masked / total == pytest.approx(0.1, abs=0.015)
    # a word may replace itself
    assert 0.06 < replaced / total < 0.115
    whole = changes(of_words, TextClassification(), seed=0, language="en")
    rounds = [str(whole({"text": TEXT, "label": "a"}, epoch, 0)["text"]) for epoch in range(400)]
    assert sum(len(one.split()) <= 5 for one in rounds) / 400 == pytest.approx(0.25, abs=0.06)
    assert len(set(rounds)) > 300, "every epoch has another"


def test_a_masked_word_is_one_token_of_the_student_and_of_its_teacher(tmp_path: Path) -> None:
    texts = documents("logging")
    masked = MaskedWords().change(TEXT, 1.0, np.random.default_rng(0), "en")
    words = len(WORD.findall(TEXT))
    assert masked == WORD.sub("[MASK]", TEXT)
    teacher = Tokenizer.model_validate({"name": "wordpiece", "vocab_size": 600}).train(texts)
    assert teacher(masked)["input_ids"].count(teacher.mask_token_id) == words
    MaskableWords(vocab_size=500, min_count=2).train(texts).save_pretrained(tmp_path)
    student, plain = AutoTokenizer.from_pretrained(tmp_path), Words(vocab_size=499, min_count=2).train(texts)
    assert student(masked)["input_ids"].count(student.mask_token_id) == words
    assert len(student) == len(student.init_kwargs["counts"]) == len(plain) + 1 <= 500
    assert student.mask_token_id == len(plain) and student.init_kwargs["counts"][-1] == 0
    assert student(TEXT)["input_ids"] == plain(TEXT)["input_ids"], "the words are those of the other tokenizer"


NOISY = "  noisy: {{like: answer, augmentation: {{attack: {{name: class_words{}}}}}}}"
COUNTED = """\
  classes: {{kind: pretrain, corpus: general, tokenizer: {}, backbone: {{name: word_vectors, hidden_size: 8}},
    estimate: brown_clusters, head: noise_prediction, segmentation: null, corruption: [], objective: [], strategy: [],
    budget: {{tokens: 4096, length: 32}}}}"""


@pytest.mark.parametrize(
    ("stages", "says"),
    [
        ((NOISY.format(""),), "class_words: name the stage whose words and vectors are read: from: <stage>"),
        (
            (NOISY.format(", from: general"),),
            "from: general is a transformer bert, not one vector for each word; backbones that",
        ),
        (
            (COUNTED.format("wordpiece"), NOISY.format(", from: classes")),
            "from: classes counts no words, its tokenizer",
        ),
    ],
)
def test_a_stage_without_counted_words_is_refused(stages: tuple[str, ...], says: str, tmp_path: Path) -> None:
    check_refusal(refusal(tmp_path, "meeting", labelled(*stages)), (says,))


@pytest.mark.parametrize("pattern", ["", "two words"])
def test_a_mask_is_one_word(pattern: str) -> None:
    with pytest.raises(ValueError, match="token"):
        MaskedWords(token=pattern)
    assert Augmentation.model_validate({"attack": "masked_words"}).rate == 0.1
