"""Sequence autoencoders against the equations of an LSTM in float64, and against a whole GPT-2."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from transformers import AutoModelForCausalLM, GPT2Config, PretrainedConfig, PreTrainedModel

from pipelines.errors import RecipeError
from pipelines.networks.lstm import LstmConfig, register_auto_classes
from pipelines.parts.corruptions.row_as_target import RowAsTarget
from pipelines.parts.heads.causal_sequence_to_sequence import CausalSequenceToSequenceHead
from pipelines.parts.objectives import TrainingStep
from pipelines.parts.objectives.sequence_to_sequence import SequenceToSequence
from pipelines.vocabulary import Field, Signal
from tests.pipelines.parts.corruptions.rows import plain, token_ids

ROWS, LENGTH, VOCABULARY = 3, 7, 40
PAD = 0


def sigmoid(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return 1 / (1 + np.exp(-values))


def network(config: PretrainedConfig) -> PreTrainedModel:
    register_auto_classes()
    torch.manual_seed(0)
    return CausalSequenceToSequenceHead().build(config, None).double().eval()


def batch(length: int = LENGTH) -> dict[Field, torch.Tensor]:
    made = RowAsTarget().apply(plain(ROWS, length), token_ids(), np.random.default_rng(0))
    return {name: torch.from_numpy(value) for name, value in made.items()}


def logits(built: PreTrainedModel, rows: dict[Field, torch.Tensor]) -> torch.Tensor:
    given = CausalSequenceToSequenceHead().signals(built, rows, frozenset({Signal.TARGET_LOGITS}))
    result: torch.Tensor = given[Signal.TARGET_LOGITS]
    return result


def test_encoder_and_decoder_are_one_lstm() -> None:
    """c(t) = f c(t−1) + i g, h(t) = o tanh c(t) over the row, then over <pad> and the row without its last token; the
    loss is the mean negative log likelihood of the row."""
    built, rows = network(LstmConfig(vocab_size=VOCABULARY, hidden_size=6, pad_token_id=PAD)), batch()
    weights = {name: value.detach().numpy() for name, value in built.state_dict().items()}
    gates = [weights[f"recurrent.layers.0.{kind}_l0"] for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]
    total = 0.0
    for row in rows[Field.INPUT_IDS].numpy():
        hidden = cell = np.zeros(6)

        def step(token: int, hidden: Any, cell: Any) -> tuple[Any, Any]:
            word = weights["recurrent.embeddings.weight"][token]
            i, f, g, o = np.split(gates[0] @ word + gates[1] @ hidden + gates[2] + gates[3], 4)
            cell = sigmoid(f) * cell + sigmoid(i) * np.tanh(g)
            return sigmoid(o) * np.tanh(cell), cell

        for token in row:
            hidden, cell = step(token, hidden, cell)
        for read, written in zip([PAD, *row[:-1]], row, strict=True):
            hidden, cell = step(read, hidden, cell)
            scores = weights["lm_head.weight"] @ hidden + weights["lm_head.bias"]
            total -= scores[written] - np.log(np.exp(scores).sum())
    signals = {Signal.TARGET_LOGITS: logits(built, rows)}
    step_of = TrainingStep(batch=rows, signals=signals, network=built, forward_companion=lambda *_: {})
    loss = SequenceToSequence().loss(step_of)["sequence_to_sequence"]
    assert float(loss.detach()) == pytest.approx(total / (ROWS * LENGTH), abs=1e-6)
    assert SequenceToSequence().counts(rows, built) == {"sequence_to_sequence": ROWS * LENGTH}


def test_the_gradient_of_what_is_written_reaches_what_was_read() -> None:
    built, rows = network(LstmConfig(vocab_size=VOCABULARY, hidden_size=6, pad_token_id=PAD)), batch()
    rows[Field.INPUT_IDS][:, 0] = VOCABULARY - 1  # a token that the targets do not have
    logits(built, rows).sum().backward()  # type: ignore[no-untyped-call]
    gradient = built.get_input_embeddings().weight.grad
    assert isinstance(gradient, torch.Tensor) and bool(gradient[VOCABULARY - 1].abs().sum() > 0)


def test_any_causal_network_writes_what_it_would_after_the_row() -> None:
    config = GPT2Config(vocab_size=VOCABULARY, n_embd=16, n_layer=2, n_head=2, n_positions=32, pad_token_id=PAD)
    built, rows = network(config), batch()
    ids = rows[Field.INPUT_IDS]
    whole = torch.cat([ids, torch.full((ROWS, 1), PAD), ids[:, :-1]], dim=1)
    reference = AutoModelForCausalLM.from_config(config).double().eval()
    reference.load_state_dict(built.state_dict())
    assert torch.allclose(logits(built, rows), reference(input_ids=whole).logits[:, LENGTH:])


def test_row_and_target_must_fit_the_positions() -> None:
    config = GPT2Config(vocab_size=VOCABULARY, n_embd=16, n_layer=1, n_head=2, n_positions=12, pad_token_id=PAD)
    with pytest.raises(RecipeError, match="a row of 7 tokens and its target of 7 do not fit 12 positions; raise"):
        logits(network(config), batch())


def test_padding_is_no_target_and_earlier_noise_is_not_copied() -> None:
    rows = plain(2, 9)
    rows[Field.ATTENTION_MASK] = np.asarray([[1] * 9, [1] * 5 + [0] * 4])
    rows[Field.INPUT_IDS] = np.where(rows[Field.INPUT_IDS] > 20, 4, rows[Field.INPUT_IDS])
    target = RowAsTarget().apply(rows, token_ids(), np.random.default_rng(0))[Field.TARGET_IDS]
    assert np.array_equal(target[0], rows[Field.ORIGINAL_IDS][0])
    assert np.array_equal(target[1, :5], rows[Field.ORIGINAL_IDS][1, :5]) and (target[1, 5:] == -100).all()
