"""ELMo against its equations: letters, highway layers, projected LSTMs, two directions that do not meet, the loss."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import conv1d, log_softmax
from transformers import PreTrainedTokenizerFast

from pipelines.networks.elmo import ElmoForTwoLanguageModels, Highway, WordsFromLetters
from pipelines.parts.backbones.elmo import Elmo
from pipelines.parts.heads.bidirectional_lm import BidirectionalLMHead
from pipelines.parts.objectives import TrainingStep
from pipelines.parts.objectives.bidirectional_lm import BidirectionalLM
from pipelines.parts.tokenizers.spelled_words import SpelledWords
from pipelines.vocabulary import Field, Signal
from tests.small_corpus import documents

SENTENCES = ["Return the unhappiest of handlers", "the handler of naïve text", "log it"]
"""With words that are no token of their own, and of different lengths."""
FILTERS = ((1, 3), (2, 4), (5, 6))


@pytest.fixture(scope="module")
def tokenizer() -> PreTrainedTokenizerFast:
    return SpelledWords(vocab_size=1100, min_count=2).train(documents("logging"))


@pytest.fixture(scope="module")
def network(tokenizer: PreTrainedTokenizerFast) -> ElmoForTwoLanguageModels:
    torch.manual_seed(0)
    body = Elmo(projection_size=6, lstm_size=10, letter_size=4, filters=FILTERS, num_hidden_layers=3)
    built = BidirectionalLMHead().build(body.config(tokenizer, 64), None)
    assert isinstance(built, ElmoForTwoLanguageModels)
    return built.double().eval()


def rows(tokenizer: PreTrainedTokenizerFast, *texts: str) -> tuple[Tensor, Tensor]:
    padded = tokenizer(list(texts), padding=True, return_tensors="pt")
    return padded["input_ids"], padded["attention_mask"]


def test_a_word_is_read_by_its_letters_as_the_paper_says(network: ElmoForTwoLanguageModels) -> None:
    """Convolution, maximum over positions, relu, highway (Srivastava et al. 2015, eq. 3), projection: by hand."""
    words: WordsFromLetters = network.elmo.words
    letters = torch.randint(0, network.elmo.speller.letters, (7, 50))
    with torch.no_grad():
        embedded = words.letters.weight[letters]
        maxima = []
        for part in words.convolutions:
            assert isinstance(part, nn.Conv1d)
            found = conv1d(embedded.transpose(1, 2), part.weight, part.bias)
            maxima.append(torch.stack([found[..., at] for at in range(found.shape[-1])]).max(0).values.clamp(min=0))
        state = torch.cat(maxima, 1)
        assert state.shape == (7, 13)
        for highway in words.highways:
            assert isinstance(highway, Highway)
            gate = 1 / (1 + torch.exp(-(state @ highway.gate.weight.T + highway.gate.bias)))
            transformed = (state @ highway.transform.weight.T + highway.transform.bias).clamp(min=0)
            state = gate * transformed + (1 - gate) * state
        expected = state @ words.projection.weight.T + words.projection.bias
        assert torch.allclose(words(letters), expected, atol=1e-12)


def cell_by_cell(lstm: nn.LSTM, inputs: Tensor) -> Tensor:
    """An LSTM with projection (Sak et al. 2014, arXiv:1402.1128, eqs. 1 to 6, no peepholes), one word at a time."""
    output = inputs.new_zeros(lstm.proj_size)
    cell = inputs.new_zeros(lstm.hidden_size)
    outputs = []
    for word in inputs:
        gates = lstm.weight_ih_l0 @ word + lstm.bias_ih_l0 + lstm.weight_hh_l0 @ output + lstm.bias_hh_l0
        enter, forget, new, leave = gates.chunk(4)
        cell = torch.sigmoid(forget) * cell + torch.sigmoid(enter) * torch.tanh(new)
        output = lstm.weight_hr_l0 @ (torch.sigmoid(leave) * torch.tanh(cell))
        outputs.append(output)
    return torch.stack(outputs)


@torch.no_grad()
def test_layers_are_projected_lstms_with_residuals_above_the_first(
    network: ElmoForTwoLanguageModels, tokenizer: PreTrainedTokenizerFast
) -> None:
    for text in SENTENCES:
        _, ahead, back = network.elmo.directions(*rows(tokenizer, text))
        assert len(ahead) == len(back) == 4 and torch.equal(ahead[0], back[0])
        for at, layer in enumerate(network.elmo.layers):
            for one, states, order in ((layer.forward_lstm, ahead, 1), (layer.backward_lstm, back, -1)):
                below = states[at][0].flip(0) if order < 0 else states[at][0]
                expected = cell_by_cell(one.lstm, below)
                expected = expected + below if at else expected
                expected = expected.flip(0) if order < 0 else expected
                assert torch.allclose(states[at + 1][0], expected, atol=1e-12), (text, at, order)


def test_neither_direction_sees_what_it_predicts(
    network: ElmoForTwoLanguageModels, tokenizer: PreTrainedTokenizerFast
) -> None:
    """Exactly nothing of a later word is in a forward state, and of an earlier one in a backward state; all else is."""
    ids, mask = rows(tokenizer, "log the message of the handler to a file")
    words, ahead, back = network.elmo.directions(ids, mask)
    number = int(words.lengths)
    for layer in range(1, len(ahead)):
        for at in range(number):
            (seen,) = torch.autograd.grad(ahead[layer][0, at].sum(), ahead[0], retain_graph=True)
            assert (seen[0].abs().sum(1) > 0).tolist() == [other <= at for other in range(number)]
            (seen,) = torch.autograd.grad(back[layer][0, at].sum(), back[0], retain_graph=True)
            assert (seen[0].abs().sum(1) > 0).tolist() == [other >= at for other in range(number)]


@torch.no_grad()
def test_padding_and_company_change_nothing(
    network: ElmoForTwoLanguageModels, tokenizer: PreTrainedTokenizerFast
) -> None:
    together = network.elmo(*rows(tokenizer, *SENTENCES), output_hidden_states=True).hidden_states
    for row, text in enumerate(SENTENCES):
        ids, mask = rows(tokenizer, text)
        alone = network.elmo(ids, mask, output_hidden_states=True).hidden_states
        for layer, expected in zip(together, alone, strict=True):
            assert torch.allclose(layer[row, : ids.shape[1]], expected[0], atol=1e-12)
            assert not layer[row, ids.shape[1] :].any()


@torch.no_grad()
def test_the_loss_is_the_sum_of_both_log_likelihoods(
    network: ElmoForTwoLanguageModels, tokenizer: PreTrainedTokenizerFast
) -> None:
    """Peters et al. 2018, §3.1: Σ log p(tₖ | t₁ … tₖ₋₁) + log p(tₖ | tₖ₊₁ … t_N), per neighbouring pair."""
    ids, mask = rows(tokenizer, *SENTENCES)
    unknown = tokenizer.unk_token_id
    expected = {"forward_lm": list[float](), "backward_lm": list[float]()}
    for text in SENTENCES:
        own, own_mask = rows(tokenizer, text)
        _, ahead, back = network.elmo.directions(own, own_mask)
        words = [tokenizer.eos_token_id]
        for word in text.split():
            cut = tokenizer.encode(word, add_special_tokens=False)
            words.append(cut[0] if len(cut) == 1 else unknown)
        words.append(tokenizer.eos_token_id)
        for at in range(1, len(words)):
            scores = log_softmax(network.softmax(ahead[-1][0, at - 1]), -1)
            expected["forward_lm"].append(-float(scores[words[at]]))
            scores = log_softmax(network.softmax(back[-1][0, at]), -1)
            expected["backward_lm"].append(-float(scores[words[at - 1]]))
    batch = {Field.INPUT_IDS: ids, Field.ATTENTION_MASK: mask}
    wanted = frozenset({Signal.BIDIRECTIONAL_LOGITS, Signal.BIDIRECTIONAL_TARGETS})
    step = TrainingStep(batch, BidirectionalLMHead().signals(network, batch, wanted), network, lambda *_: {})
    terms = BidirectionalLM().loss(step)
    for name, values in expected.items():
        assert float(terms[name]) == pytest.approx(sum(values) / len(values), rel=1e-5)
    assert BidirectionalLM().counts(batch, network) == {name: len(values) for name, values in expected.items()}
