"""Substitutes are those of Hugging Face's masked language model, or of the nearest vectors of its input."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModelForMaskedLM, AutoTokenizer

from pipelines.judging.attacks import Attack
from pipelines.judging.attacks.letters import WORD
from pipelines.judging.attacks.masked_substitutes import MaskedSubstitutes, substitutes
from tests.pipelines.judging.attacks.masked_model import masked_model
from tests.pipelines.recipe.mistakes import check_refusal, refusal
from tests.pipelines.recipe.recipe_texts import labelled
from tests.small_corpus import documents
from tests.steps import library_of

TEXT = "The logger returns the level of every configurationally unusual handler, and nothing else."


def parts() -> tuple[Any, Any, dict[int, str]]:
    """The model and its tokenizer as plain transformers open them, and the tokens that are words."""
    folder = masked_model()
    tokenizer, network = AutoTokenizer.from_pretrained(folder), AutoModelForMaskedLM.from_pretrained(folder).eval()
    tokens = enumerate(tokenizer.convert_ids_to_tokens(range(len(tokenizer))))
    words = {i: one for i, one in tokens if len(one) > 1 and WORD.fullmatch(one) and not one.startswith("[")}
    return network, tokenizer, words


@torch.no_grad()
def test_a_word_of_one_token_has_the_most_probable_words_in_its_place() -> None:
    network, tokenizer, words = parts()
    encoded = tokenizer(TEXT, return_tensors="pt")
    found = dict(zip([match[0] for match in WORD.finditer(TEXT)], substitutes(masked_model(), TEXT, 5), strict=True))
    checked = 0
    for at, token in enumerate(tokenizer.convert_ids_to_tokens(encoded["input_ids"][0])):
        written = [one for one in found if one.lower() == token]
        if not written:
            continue
        masked = encoded["input_ids"].clone()
        masked[0, at] = tokenizer.mask_token_id
        scores = network(input_ids=masked).logits[0, at]
        ranked = sorted(words, key=lambda number: -float(scores[number]))
        best = [words[number] for number in ranked if words[number] != token][:5]
        if TEXT.lower().count(token) == 1:
            assert list(found[written[0]]) == best
            checked += 1
    assert checked >= 3


def test_a_word_of_several_tokens_has_the_nearest_vectors() -> None:
    network, tokenizer, words = parts()
    table = network.get_input_embeddings().weight.detach().double().numpy()
    table /= np.linalg.norm(table, axis=1, keepdims=True)
    pieces = tokenizer("configurationally", add_special_tokens=False)["input_ids"]
    assert len(pieces) > 1
    mean = table[pieces].mean(0)
    ranked = sorted(words, key=lambda number: -float(table[number] @ mean))
    found = dict(zip([match[0] for match in WORD.finditer(TEXT)], substitutes(masked_model(), TEXT, 3), strict=True))
    assert list(found["configurationally"]) == [words[number] for number in ranked][:3]


def test_every_draw_takes_one_of_the_candidates_and_keeps_capitals() -> None:
    one = MaskedSubstitutes(candidates=2).reading(masked_model())
    made = {one.change("Level", 1.0, np.random.default_rng(turn), "en") for turn in range(30)}
    (others,) = substitutes(masked_model(), "Level", 2)
    assert made == {other.capitalize() for other in others} and len(made) == 2
    assert one.change(TEXT, 0.0, np.random.default_rng(0), "en") == TEXT


def test_words_behind_the_longest_row_stay() -> None:
    text = " ".join(documents("logging")[:3])
    changed = MaskedSubstitutes().reading(masked_model()).change(text, 1.0, np.random.default_rng(0), "en")
    assert text.split()[-20:] == changed.split()[-20:] and text.split()[:5] != changed.split()[:5]


NOISY = "  noisy: {{like: answer, augmentation: {{attack: {{name: masked_substitutes{}}}}}}}"


@pytest.mark.parametrize(
    ("stages", "says"),
    [
        ((NOISY.format(""),), "name the stage whose masked language model is read: from: <stage>"),
        ((NOISY.format(", from: answer"),), "from: answer predicts no masked tokens, its head is sequence_classif"),
        ((NOISY.format(", from: nothing"),), "nothing"),
        (
            ("  judged: {kind: evaluate, start: answer, corpus: task,",)
            + ("    suite: [{name: robustness, attacks: [{name: masked_substitutes, from: general}]}]}",),
            "masked_substitutes reads the model of another stage, which only training examples can be changed by",
        ),
    ],
)
def test_a_model_that_cannot_be_read_is_refused(stages: tuple[str, ...], says: str, tmp_path: Path) -> None:
    check_refusal(refusal(tmp_path, "meeting", labelled(*stages)), (says,))


def test_the_model_is_a_parent_of_the_step_and_its_name_no_part_of_the_identity(tmp_path: Path) -> None:
    stage = library_of(tmp_path, meeting=labelled(NOISY.format(", from: general"))).load("meeting").stages["noisy"]
    attack = stage.augmentation[0].attack
    assert isinstance(attack, MaskedSubstitutes) and attack.from_ == "general"
    assert Attack.model_validate(attack.model_dump()) == attack
