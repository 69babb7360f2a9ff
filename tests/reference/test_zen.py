"""ZEN: the lexicon by its formula, n-grams found one by one, and layers of transformers' BERT with the paper's sum."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from random import Random

import pytest
import torch
from torch import Tensor
from transformers import AutoModel, BertConfig, BertModel, PreTrainedTokenizerFast

from pipelines.errors import DataError, RecipeError
from pipelines.networks.zen import NgramMatcher, ZenConfig, ZenModel, register_auto_classes
from pipelines.parts.backbones.zen import Zen
from pipelines.parts.tokenizers.characters import Characters
from pipelines.parts.tokenizers.ngram_characters import NgramCharacters, mutual_information
from tests.chinese_text import ARTICLES
from tests.pipelines.recipe.mistakes import check_refusal, refusal
from tests.pipelines.recipe.recipe_texts import written

NGRAMS = [[7, 8], [8, 9, 10], [7, 8, 9], [5, 5], [6, 7, 8, 9]]
ROWS = torch.tensor([[6, 7, 8, 9, 10, 5, 5, 5], [20, 7, 8, 21, 8, 9, 10, 0], [30, 31, 32, 33, 34, 0, 0, 0]])
DIMS = {
    "vocab_size": 50,
    "hidden_size": 12,
    "num_hidden_layers": 3,
    "num_attention_heads": 2,
    "intermediate_size": 20,
}


def network(ngrams: list[list[int]]) -> ZenModel:
    torch.manual_seed(1)
    built = ZenModel(ZenConfig(**DIMS, num_ngram_layers=2, ngrams=ngrams))
    with torch.no_grad():
        for name, value in built.named_parameters():
            if "ngram_embeddings" not in name:
                value.add_(torch.randn_like(value) * 0.2)
        built.ngram_embeddings.weight[1:].normal_()
    return built.double().eval()


def occurrences(row: list[int]) -> list[tuple[int, int, int]]:
    """Number of the n-gram, from 1, begin and end of each that the row holds."""
    return [
        (number, begin, begin + len(ngram))
        for number, ngram in enumerate(NGRAMS, 1)
        for begin in range(len(row) - len(ngram) + 1)
        if row[begin : begin + len(ngram)] == ngram
    ]


def test_every_ngram_of_a_row_is_found_and_covers_its_tokens() -> None:
    matches = NgramMatcher(NGRAMS)(ROWS)
    for row, ids, covers in zip(ROWS.tolist(), matches.ids, matches.covers, strict=True):
        found = sorted(
            (int(one), int(covers[:, at].nonzero().min()), int(covers[:, at].nonzero().max()) + 1)
            for at, one in enumerate(ids)
            if one
        )
        assert found == sorted(occurrences(row))
        assert not covers[:, ids == 0].any()
    assert matches.ids.shape[1] == max(len(occurrences(row)) for row in ROWS.tolist())


def test_an_ngram_with_a_masked_or_another_token_is_not_read() -> None:
    row = ROWS[:1].clone()
    for at, before in enumerate(ROWS[0].tolist()):
        row[0] = ROWS[0]
        row[0, at] = 4
        ids = NgramMatcher(NGRAMS)(row).ids
        assert sorted(ids[ids > 0].tolist()) == sorted(number for number, *_ in occurrences(row[0].tolist()))
        assert before == 4 or len(ids[ids > 0]) < len(occurrences(ROWS[0].tolist()))


@torch.no_grad()
def test_layers_are_berts_and_ngrams_are_added_to_the_characters_that_they_cover() -> None:
    built = network(NGRAMS)
    mask = (ROWS != 0).long()
    states = built(ROWS, mask, output_hidden_states=True).hidden_states
    for row, tokens in enumerate(ROWS.tolist()):
        kept = int(mask[row].sum())
        own = [one for one in occurrences(tokens) if one[2] <= kept]
        character = built.embeddings(input_ids=ROWS[row : row + 1, :kept])
        gram = built.ngram_norm(
            built.ngram_embeddings(torch.tensor([[number for number, *_ in own]], dtype=torch.long))
        )
        torch.testing.assert_close(states[0][row, :kept], character[0])
        for at, layer in enumerate(built.layers):
            character = layer(character)
            if at < 2 and own:
                gram = built.ngram_layers[at](gram)
                for k, (_, begin, end) in enumerate(own):
                    for i in range(begin, end):
                        character[0, i] += gram[0, k]
            torch.testing.assert_close(states[at + 1][row, :kept], character[0], atol=1e-9, rtol=0)


@torch.no_grad()
def test_without_a_lexicon_it_is_bert() -> None:
    built, bert = network([]), BertModel(BertConfig(**DIMS), add_pooling_layer=False).double().eval()
    renamed = {
        name.replace("layers.", "encoder.layer."): value
        for name, value in built.state_dict().items()
        if not name.startswith(("ngram", "matcher"))
    }
    bert.load_state_dict(renamed)
    mask = (ROWS != 0).long()
    ours, theirs = (one(input_ids=ROWS, attention_mask=mask).last_hidden_state for one in (built, bert))
    torch.testing.assert_close(ours[mask == 1], theirs[mask == 1])


@torch.no_grad()
def test_a_saved_folder_is_opened_as_it_was(tmp_path: Path) -> None:
    register_auto_classes()
    built = network(NGRAMS).float()
    built.save_pretrained(tmp_path)
    opened = AutoModel.from_pretrained(tmp_path).eval()
    assert isinstance(opened, ZenModel)
    assert torch.equal(built(ROWS).last_hidden_state, opened(ROWS).last_hidden_state)


def information(counts: Tensor) -> float:
    """log₂ p(xy) / (p(x) p(y)) of x, y, xy, and the numbers of single ones and of pairs."""
    x, y, xy, ones, twos = counts.tolist()
    return math.log2((xy / twos) / ((x / ones) * (y / ones)))


def test_mutual_information_is_that_of_counts() -> None:
    rows = [(1, 2, 1, 2, 3), (2, 3), (1,), (3, 1, 2)]
    given = mutual_information(rows)
    # 11 tokens: four 1, four 2, three 3; 7 pairs: 12 three times, 23 twice, 21 and 31 once
    assert given[1, 2] == pytest.approx(information(torch.tensor([4.0, 4, 3, 11, 7])), rel=1e-6)
    assert given[2, 3] == pytest.approx(information(torch.tensor([4.0, 3, 2, 11, 7])), rel=1e-6)
    assert set(given) == {(1, 2), (2, 1), (2, 3), (3, 1)}


def test_the_lexicon_holds_what_holds_together() -> None:
    """Words and single characters in any order: pairs within a word hold together, and pairs across words do not."""
    words, singles = ["法律", "任何人", "自由", "权利和义务"], [*"天地玄黄宇宙洪荒"]
    random = Random(0)
    texts = ["，".join("".join(random.choice(words + singles) for _ in range(9)) for _ in range(3)) for _ in range(300)]
    part = NgramCharacters(spaces=False, min_count=20, threshold=2.0)
    tokenizer = part.train(texts)
    tokens = tokenizer.convert_ids_to_tokens(range(len(tokenizer)))

    def lexicon_of(tokenizer: PreTrainedTokenizerFast) -> list[str]:
        return ["".join(tokens[one] for one in ngram) for ngram in tokenizer.init_kwargs["ngrams"]]

    assert set(lexicon_of(tokenizer)) == set(words)
    plain = Characters(spaces=False).train(texts)
    assert plain.get_vocab() == tokenizer.get_vocab(), "the characters are those without n-grams"
    counts = Counter(run for text in texts for run in text.split("，"))
    whole = part.model_copy(update={"threshold": -100.0, "min_count": 1, "longest": 32, "ngrams": 40}).train(texts)
    assert set(lexicon_of(whole)) <= set(counts) and len(lexicon_of(whole)) == 40, "runs between marks"
    assert set(lexicon_of(part.model_copy(update={"longest": 2}).train(texts))) == {"法律", "自由"}


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(DataError, match="no n-gram of 2 to 6 characters occurs 5 times or more; give more text"):
        NgramCharacters().train(["人权"])
    with pytest.raises(ValueError, match="num_ngram_layers 3 are more than the 2 layers over tokens"):
        Zen(num_hidden_layers=2, num_ngram_layers=3)
    with pytest.raises(ValueError, match="hidden_size 768 is no multiple of num_attention_heads 5"):
        Zen(num_attention_heads=5)
    tokenizer = NgramCharacters(min_count=1, threshold=0.0).train(ARTICLES)
    with pytest.raises(RecipeError, match="sequences of 64 tokens do not fit 32 positions"):
        Zen(positions=32).config(tokenizer, 64)


def test_ngrams_without_a_lexicon_are_refused_when_the_recipe_is_loaded(tmp_path: Path) -> None:
    recipe = written(tokenizer="characters", backbone="{name: zen, positions: 32}", head="masked_lm_on_states")
    message = refusal(tmp_path, "meeting", recipe)
    check_refusal(
        message,
        (
            "stages.general.backbone: zen needs a tokenizer with ngrams; characters has mask",
            "tokenizers that fit: ngram_characters",
        ),
    )
