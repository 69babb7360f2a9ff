"""Two directional Transformers against torch's own layers in float64, and against what each direction may see."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import log_softmax
from transformers import AutoModel, PreTrainedTokenizerFast

from pipelines.networks.elmo import ElmoForTwoLanguageModels
from pipelines.networks.transformer_bilm import DirectedLayer, TransformerBilmModel, register_auto_classes
from pipelines.parts.backbones.transformer_bilm import TransformerBilm
from pipelines.parts.heads.bidirectional_lm import BidirectionalLMHead
from pipelines.parts.objectives import TrainingStep
from pipelines.parts.objectives.bidirectional_lm import BidirectionalLM
from pipelines.parts.tokenizers.spelled_words import SpelledWords
from pipelines.vocabulary import Field, Signal
from tests.small_corpus import documents

SENTENCES = ["Return the unhappiest of handlers", "the handler of naïve text", "log it"]
"""With words that are no token of their own, and of different lengths."""
WIDTH, HEADS, INNER, LAYERS = 12, 3, 20, 3


@pytest.fixture(scope="module")
def tokenizer() -> PreTrainedTokenizerFast:
    return SpelledWords(vocab_size=1100, min_count=2).train(documents("logging"))


@pytest.fixture(scope="module")
def network(tokenizer: PreTrainedTokenizerFast) -> ElmoForTwoLanguageModels:
    torch.manual_seed(0)
    body = TransformerBilm(
        projection_size=WIDTH,
        num_attention_heads=HEADS,
        intermediate_size=INNER,
        num_hidden_layers=LAYERS,
        letter_size=4,
        filters=((1, 3), (2, 4), (5, 6)),
    )
    built = BidirectionalLMHead().build(body.config(tokenizer, 64), None)
    assert isinstance(built, ElmoForTwoLanguageModels)
    assert isinstance(built.elmo, TransformerBilmModel)
    with torch.no_grad():
        for value in built.parameters():
            value.add_(torch.randn_like(value) * 0.1)
    return built.double().eval()


def rows(tokenizer: PreTrainedTokenizerFast, *texts: str) -> tuple[Tensor, Tensor]:
    padded = tokenizer(list(texts), padding=True, return_tensors="pt")
    return padded["input_ids"], padded["attention_mask"]


def torchs(layer: DirectedLayer) -> nn.TransformerEncoderLayer:
    """The same layer as torch has it."""
    theirs = nn.TransformerEncoderLayer(WIDTH, HEADS, INNER, norm_first=True, batch_first=True, dtype=torch.float64)
    attention = layer.attention
    three = (attention.query, attention.key, attention.value)
    with torch.no_grad():
        theirs.self_attn.in_proj_weight.copy_(torch.cat([one.weight for one in three]))
        theirs.self_attn.in_proj_bias.copy_(torch.cat([one.bias for one in three]))
    theirs.self_attn.out_proj.load_state_dict(attention.output.state_dict())
    for own, ours in (
        (theirs.norm1, layer.attention_norm),
        (theirs.norm2, layer.feed_forward_norm),
        (theirs.linear1, layer.inner),
        (theirs.linear2, layer.outer),
    ):
        own.load_state_dict(ours.state_dict())
    return theirs.eval()


@torch.no_grad()
def test_each_direction_is_a_transformer_with_a_causal_mask(
    network: ElmoForTwoLanguageModels, tokenizer: PreTrainedTokenizerFast
) -> None:
    for text in SENTENCES:
        _, ahead, back = network.elmo.directions(*rows(tokenizer, text))
        assert len(ahead) == len(back) == LAYERS + 1 and torch.equal(ahead[0], back[0])
        count = ahead[0].shape[1]
        waves = torch.zeros(count, WIDTH, dtype=torch.float64)
        for position in range(count):
            for k in range(WIDTH // 2):
                angle = position / 10000 ** (2 * k / WIDTH)
                waves[position, 2 * k], waves[position, 2 * k + 1] = math.sin(angle), math.cos(angle)
        later = torch.ones(count, count, dtype=torch.bool).triu(1)
        for states, turn in ((ahead, lambda one: one), (back, lambda one: one.flip(1))):
            expected = turn(states[0]) + waves
            for at, both in enumerate(network.elmo.layers):
                layer = both.forward_layer if states is ahead else both.backward_layer
                expected = torchs(layer)(expected, src_mask=later)
                shown = expected
                if at == LAYERS - 1:
                    norm = layer.last_norm
                    shown = nn.functional.layer_norm(expected, (WIDTH,), norm.weight, norm.bias)
                # the waves are those of float32
                torch.testing.assert_close(turn(states[at + 1]), shown, atol=1e-5, rtol=0)


def test_neither_direction_sees_what_it_predicts(
    network: ElmoForTwoLanguageModels, tokenizer: PreTrainedTokenizerFast
) -> None:
    """Exactly nothing of a later word is in a forward state, and of an earlier one in a backward state; all else is."""
    ids, mask = rows(tokenizer, "log the message of the handler to a file")
    words, ahead, back = network.elmo.directions(ids, mask)
    number = int(words.lengths)
    for layer in range(1, len(ahead)):
        for at in range(number):
            (seen,) = torch.autograd.grad(ahead[layer][0, at, 0], ahead[0], retain_graph=True)
            assert (seen[0].abs().sum(1) > 0).tolist() == [other <= at for other in range(number)]
            (seen,) = torch.autograd.grad(back[layer][0, at, 0], back[0], retain_graph=True)
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
    """Σ log p(tₖ | t₁ … tₖ₋₁) + log p(tₖ | tₖ₊₁ … t_N), per neighbouring pair, of one softmax for both directions."""
    ids, mask = rows(tokenizer, SENTENCES[1])
    words, ahead, back = network.elmo.directions(ids, mask)
    targets = words.ids(tokenizer.unk_token_id)[0]
    number = len(targets)
    logits = [log_softmax(network.softmax(states[-1][0]), -1) for states in (ahead, back)]
    expected = {
        "forward_lm": -sum(float(logits[0][at, targets[at + 1]]) for at in range(number - 1)) / (number - 1),
        "backward_lm": -sum(float(logits[1][at, targets[at - 1]]) for at in range(1, number)) / (number - 1),
    }
    batch = {Field.INPUT_IDS: ids, Field.ATTENTION_MASK: mask}
    signals = frozenset({Signal.BIDIRECTIONAL_LOGITS, Signal.BIDIRECTIONAL_TARGETS})
    step = TrainingStep(batch, BidirectionalLMHead().signals(network, batch, signals), network, lambda *_: {})
    terms = {name: float(value) for name, value in BidirectionalLM().loss(step).items()}
    assert terms == {name: pytest.approx(value, rel=1e-5) for name, value in expected.items()}


@torch.no_grad()
def test_a_saved_folder_is_opened_as_it_was(
    network: ElmoForTwoLanguageModels, tokenizer: PreTrainedTokenizerFast, tmp_path: Path
) -> None:
    register_auto_classes()
    network.elmo.save_pretrained(tmp_path)
    opened = AutoModel.from_pretrained(tmp_path, dtype=torch.float64).eval()
    assert isinstance(opened, TransformerBilmModel)
    inputs = rows(tokenizer, *SENTENCES)
    assert torch.equal(network.elmo(*inputs).last_hidden_state, opened(*inputs).last_hidden_state)


def test_heads_that_are_not_whole_are_refused() -> None:
    with pytest.raises(ValueError, match="projection_size 512 is no multiple of num_attention_heads 3"):
        TransformerBilm(num_attention_heads=3)
    with pytest.raises(ValueError, match="filters: 7 letters are wider than a word of 5"):
        TransformerBilm(word_length=5)
