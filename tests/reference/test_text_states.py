"""The states of a text in a finished model: of tokens that are cut otherwise than those of the model, and of texts that
are longer than its rows."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from transformers import AutoConfig, PreTrainedTokenizerFast

from pipelines.models.opening import ModelRecord, build_network, open_lines
from pipelines.models.text_states import TextStates
from pipelines.parts.heads.masked_lm import MaskedLMHead
from pipelines.task_families.tokenized import TokenizedText

WIDTH, LENGTH = 16, 12
TEXT = "Send an email to all addresses, wait for an answer; then close the connection and return its status."


@pytest.fixture(scope="module")
def model(tokenizer: PreTrainedTokenizerFast, tmp_path_factory: pytest.TempPathFactory) -> TextStates:
    folder = tmp_path_factory.mktemp("model")
    config = AutoConfig.for_model(
        "bert", vocab_size=len(tokenizer), pad_token_id=0, hidden_size=WIDTH, num_hidden_layers=2,
        num_attention_heads=2, intermediate_size=32, max_position_embeddings=LENGTH,
    )  # fmt: skip
    torch.manual_seed(0)
    network = build_network(ModelRecord(head=MaskedLMHead()), config)
    network.save_pretrained(folder)
    ours = copy.deepcopy(tokenizer)  # that of all tests stays as it is
    ours.model_max_length = LENGTH
    ours.save_pretrained(folder)
    return TextStates(folder, open_lines)


def of_words(text: str) -> TokenizedText:
    """A text whose tokens are its words, and the spaces between them."""
    begins = [0, *(at for at in range(1, len(text)) if (text[at] == " ") != (text[at - 1] == " "))]
    spans = np.asarray([*zip(begins, [*begins[1:], len(text)], strict=True)], dtype=np.int64)
    return TokenizedText({}, text, "text", spans, None, "here")


def test_a_token_has_the_mean_of_those_that_share_its_characters(model: TextStates) -> None:
    states = model.states(of_words(TEXT))
    backend = open_lines(model.folder, "cpu").tokenizer.backend_tokenizer
    backend.enable_truncation(LENGTH)
    backend.no_padding()
    first = backend.encode(TEXT)
    windows, expected = [first, *first.overflowing], np.zeros((len(TEXT.split()) * 2 - 1, WIDTH))
    assert len(windows) > 1, "the text is longer than a row"
    with torch.no_grad():
        read = [model.network.base_model(torch.tensor([one.ids])).last_hidden_state[0].double() for one in windows]
    tokens = [
        (begin, end, state.numpy())
        for window, of_window in zip(windows, read, strict=True)
        for (begin, end), special, state in zip(window.offsets, window.special_tokens_mask, of_window, strict=True)
        if not special
    ]
    for number, (begin, end) in enumerate(of_words(TEXT).spans):
        shared = [state for start, stop, state in tokens if start < end and stop > begin]
        if shared:
            expected[number] = np.mean(shared, axis=0)
    np.testing.assert_allclose(states, expected, atol=1e-6)
    assert not states[1::2].any() and states[::2].any(1).all(), "a space is no token there"


def test_neither_threads_nor_other_texts_change_them(model: TextStates) -> None:
    before = torch.get_num_threads()
    states = model.states(of_words(TEXT))
    assert torch.get_num_threads() == before
    model.states(of_words("Another text."))
    torch.set_num_threads(2)
    try:
        assert np.array_equal(model.states(of_words(TEXT)), states) and torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_a_text_without_tokens_has_no_states(model: TextStates) -> None:
    empty = TokenizedText({}, "", "text", np.empty((0, 2), dtype=np.int64), None, "here")
    assert model.states(empty).shape == (0, WIDTH)
