"""Vectors: rows of length one, the same alone or in company, near where texts are alike, in either writing system."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.corpora.vectors import TextVectors
from pipelines.errors import RecipeError
from tests.chinese_text import ARTICLES
from tests.shared_folders import shared_folder
from tests.small_corpus import documents

SMALL = {"dimensions": 16, "buckets": 4096}


def hashed(texts: list[str], **said: object):  # type: ignore[no-untyped-def]
    vectors = TextVectors.model_validate({"name": "hashed_ngrams"} | SMALL | said)
    folder = shared_folder("vectors")
    vectors.learn(texts, folder)
    return vectors.encoder(folder, folder)


@cache
def english():  # type: ignore[no-untyped-def]
    return hashed(documents("email", "asyncio")[:200])


@settings(max_examples=30, deadline=None)
@given(st.lists(st.text(max_size=60), min_size=1, max_size=8))
def test_rows_have_length_one_or_none_and_no_company_moves_them(texts: list[str]) -> None:
    found = english()(texts)
    lengths = np.linalg.norm(found, axis=1)
    assert found.shape == (len(texts), 16) and found.dtype == np.float32
    assert all(abs(length - 1) < 1e-5 or length == 0 for length in lengths)
    alone = np.concatenate([english()([text]) for text in texts])
    np.testing.assert_array_equal(found, alone)


def test_texts_about_one_thing_are_nearer_than_others() -> None:
    found = english()(documents("email")[:40] + documents("asyncio")[:40])
    cosines = found @ found.T
    within = (cosines[:40, :40].sum() - 40) / (40 * 39), (cosines[40:, 40:].sum() - 40) / (40 * 39)
    assert min(within) > cosines[:40, 40:].mean() + 0.02


def test_case_and_marks_say_nothing_and_empty_says_nothing() -> None:
    encode = english()
    np.testing.assert_allclose(encode(["An e-mail message."]), encode(["an E-MAIL, message"]), atol=1e-6)
    assert not encode(["", "...!?"]).any()


def test_chinese_has_a_word_a_character() -> None:
    texts = [piece for article in ARTICLES for piece in article.split("。") if len(piece) > 10]
    encode = hashed(texts)
    found = encode([texts[0], texts[0][: len(texts[0]) * 2 // 3], texts[-1]])
    assert found[0] @ found[1] > found[0] @ found[2]


def test_fewer_texts_than_directions_are_enough() -> None:
    assert hashed(["one text", "and another", "a third text"])(["one text"]).shape == (1, 2)


@cache
def checkpoint() -> Path:
    """A BERT with random weights, as transformers saves it."""
    import torch
    from tokenizers import BertWordPieceTokenizer
    from transformers import BertConfig, BertModel, BertTokenizerFast

    folder = shared_folder("checkpoint")
    tokenizer = BertWordPieceTokenizer()
    tokenizer.train_from_iterator(documents("email"), vocab_size=300, show_progress=False)
    BertTokenizerFast(tokenizer_object=tokenizer._tokenizer).save_pretrained(folder)
    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
    BertModel(BertConfig(vocab_size=300, **sizes)).save_pretrained(folder)
    return folder


def test_an_encoder_is_the_mean_of_its_states() -> None:
    import torch
    from transformers import AutoModel, AutoTokenizer

    vectors = TextVectors.model_validate({"name": "encoder", "checkpoint": str(checkpoint()), "length": 16, "batch": 2})
    assert {"config.json", "model.safetensors", "tokenizer.json"} <= set(vectors.files(Path()))
    texts = ["short", *documents("email")[:4]]
    found = vectors.encoder(Path(), Path())(texts)
    tokenizer, network = AutoTokenizer.from_pretrained(checkpoint()), AutoModel.from_pretrained(checkpoint()).eval()
    for text, row in zip(texts, found, strict=True):
        with torch.inference_mode():
            states = network(**tokenizer(text, truncation=True, max_length=16, return_tensors="pt")).last_hidden_state
        mean = states[0].mean(0)
        np.testing.assert_allclose(row, (mean / mean.norm()).numpy(), atol=1e-5)


@pytest.mark.parametrize(
    ("missing", "says"),
    [
        ("tokenizer.json", "has no tokenizer .*; save the tokenizer there too"),
        ("config.json", "has no config.json; give the folder of a Hugging Face checkpoint"),
        ("model.safetensors", "has no weights in safetensors"),
        ("", "is no folder"),
    ],
)
def test_a_checkpoint_that_is_not_whole_is_told(tmp_path: Path, missing: str, says: str) -> None:
    if missing:
        for path in checkpoint().iterdir():
            if path.name != missing:
                (tmp_path / path.name).symlink_to(path)
    place = tmp_path if missing else tmp_path / "nowhere"
    with pytest.raises(RecipeError, match=says):
        TextVectors.model_validate({"name": "encoder", "checkpoint": str(place)}).files(Path())
