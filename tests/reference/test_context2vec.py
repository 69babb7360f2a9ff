"""Contexts against their equation in float64, a prefix and a suffix at a time, and the cloze that judges them (Melamud
et al. 2016, §3.1)."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from pipelines.errors import DataError, RecipeError
from pipelines.judging.evaluations.cloze import WINDOW, ClozeEvaluation, correct, fields_of
from pipelines.networks.context2vec import Context2vecConfig, ContextToWord
from pipelines.networks.word_vectors import NoisePredictor, WordVectorsConfig
from pipelines.parts.corruptions.every_word import EveryWord
from pipelines.parts.heads.context_to_word import ContextToWordHead
from pipelines.parts.heads.noise_prediction import NoisePredictionHead
from pipelines.parts.objectives import TrainingStep
from pipelines.parts.objectives.context_to_word import ContextNegativeSampling
from pipelines.vocabulary import Field, Signal
from tests.pipelines.parts.corruptions.rows import SIZE, plain, token_ids

REQUESTED = frozenset({Signal.NOISE_LOGITS})
LENGTHS = (7, 4, 1)


def network() -> ContextToWord:
    torch.manual_seed(0)
    config = Context2vecConfig(vocab_size=SIZE, embedding_size=4, lstm_size=5, inner_size=6, hidden_size=3)
    built = ContextToWordHead().build(config, None)
    assert isinstance(built, ContextToWord)
    with torch.no_grad():
        built.targets.weight.normal_()  # at first they are 0
    return built.double().eval()


def last(lstm: torch.nn.LSTM, vectors: torch.Tensor) -> np.ndarray:
    """The state of an LSTM after `vectors` [n, E], gate by gate; 0 after none."""
    weights = {name.removesuffix("_l0"): value.detach().numpy() for name, value in lstm.named_parameters()}
    hidden = cell = np.zeros(lstm.hidden_size)
    for one in vectors.detach().numpy():
        gates = weights["weight_ih"] @ one + weights["weight_hh"] @ hidden + weights["bias_ih"] + weights["bias_hh"]
        i, f, g, o = np.split(gates, 4)
        i, f, o = (1 / (1 + np.exp(-gate)) for gate in (i, f, o))
        cell = f * cell + i * np.tanh(g)
        hidden = o * np.tanh(cell)
    return hidden


@torch.no_grad()
def test_a_context_is_what_is_before_and_after_a_word_without_it() -> None:
    built = network()
    encoder = built.context2vec
    ids = torch.from_numpy(np.random.default_rng(0).integers(5, SIZE, (3, 7)))
    mask = torch.tensor([[1] * length + [0] * (7 - length) for length in LENGTHS])
    states = encoder(ids, mask, output_hidden_states=True).hidden_states[1]
    for row, length in enumerate(LENGTHS):
        vectors = encoder.embeddings.weight[ids[row, :length]]
        for at in range(length):
            sides = [last(encoder.ahead, vectors[:at]), last(encoder.back, vectors[at + 1 :].flip(0))]
            inner = encoder.inner.weight.numpy() @ np.concatenate(sides) + encoder.inner.bias.numpy()
            expected = encoder.outer.weight.numpy() @ np.maximum(inner, 0) + encoder.outer.bias.numpy()
            assert states[row, at].numpy() == pytest.approx(expected, abs=1e-9)
    other = ids.clone()
    other[0, 3] = 5 if int(ids[0, 3]) != 5 else 6
    moved = (encoder(other, mask).last_hidden_state != encoder(ids, mask).last_hidden_state).any(-1)
    assert moved[0].tolist() == [True] * 3 + [False] + [True] * 3 and not moved[1:].any()


def test_the_loss_is_equation_1_over_all_words_of_the_rows() -> None:
    built = network()
    given = EveryWord().apply(plain(2, 6), token_ids(), np.random.default_rng(0))
    given[Field.NEGATIVES] = np.random.default_rng(1).integers(5, SIZE, (len(given[Field.CENTERS]), 3))
    given[Field.NEGATIVES][1, 2] = given[Field.CENTERS][1]
    batch = {name: torch.from_numpy(value) for name, value in given.items()}
    signals = ContextToWordHead().signals(built, batch, REQUESTED)
    loss = ContextNegativeSampling().loss(TrainingStep(batch, signals, built, lambda name, batch, requested: {}))
    states = built.context2vec(batch[Field.INPUT_IDS]).last_hidden_state[:, 1:-1].flatten(0, 1).detach().numpy()
    table, total = built.targets.weight.detach().numpy(), 0.0
    for state, word, negatives in zip(states, given[Field.CENTERS], given[Field.NEGATIVES], strict=True):
        total += np.log1p(np.exp(-state @ table[word]))
        total += sum(np.log1p(np.exp(state @ table[other])) for other in negatives if other != word)
    assert float(loss["negative_sampling"].detach()) == pytest.approx(total / len(states), rel=1e-5)
    assert ContextNegativeSampling().counts(batch, built) == {"negative_sampling": len(states)}
    loss["negative_sampling"].backward()  # type: ignore[no-untyped-call]  # torch does not type it
    assert all(one.grad is not None and bool(torch.isfinite(one.grad).all()) for one in built.parameters())


WORDS = ["<pad>", "<unk>", "<eos>", *"abcdefgh"]
TEXTS = ["a b c d e f g h", "h g", "x a x", "q", "c c c"]


def opened(head: Any, network: Any) -> Any:
    fast = Tokenizer(models.WordLevel({word: at for at, word in enumerate(WORDS)}, unk_token="<unk>"))
    fast.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=fast, pad_token="<pad>", unk_token="<unk>", eos_token="<eos>")
    return SimpleNamespace(tokenizer=tokenizer, network=network, record=SimpleNamespace(head=head))


def averaging(architecture: str = "cbow") -> Any:
    head = NoisePredictionHead.model_validate({"architecture": architecture})
    torch.manual_seed(0)
    built = head.build(WordVectorsConfig(vocab_size=len(WORDS), hidden_size=4), None)
    assert isinstance(built, NoisePredictor)
    with torch.no_grad():
        built.word_vectors.embeddings.weight.normal_()
        built.outputs.weight.normal_()
    return opened(head, built)


def test_blanks_are_words_of_the_texts_among_other_words_of_them() -> None:
    evaluation, model = ClozeEvaluation(blanks=3, others=6), averaging()
    blanks = evaluation.blanks_of(model, TEXTS, 0)
    assert [blank.text for blank in blanks] == [0, 0, 0, 1, 1, 2, 4, 4, 4], "no blank for unknown words alone"
    for blank in blanks:
        word = blank.ids[blank.position]
        assert word > 2 and word not in blank.others and (blank.others > 2).all() and len(blank.others) == 6
    assert blanks[5].around.tolist() == [-1] * (2 * WINDOW), "unknown words are no neighbours"
    again = evaluation.blanks_of(model, TEXTS, 0)
    assert all(np.array_equal(one.others, other.others) for one, other in zip(blanks, again, strict=True))


@torch.no_grad()
def test_a_blank_is_right_if_the_mean_of_its_neighbours_scores_the_word_highest() -> None:
    model = averaging()
    blanks = [one for one in ClozeEvaluation(blanks=8, others=2).blanks_of(model, TEXTS, 0) if (one.around >= 0).any()]
    inputs, outputs = model.network.word_vectors.embeddings.weight.numpy(), model.network.outputs.weight.numpy()
    expected = []
    for blank in blanks:
        mean = inputs[blank.around[blank.around >= 0]].mean(0)
        scores = outputs[[blank.ids[blank.position], *blank.others]] @ mean
        expected.append(bool((scores[0] > scores[1:]).all()))
    assert correct(model, blanks, "cbow").tolist() == expected and 0 < sum(expected) < len(expected)


@torch.no_grad()
def test_a_blank_is_read_in_the_whole_of_its_text_whatever_is_read_beside_it() -> None:
    model = opened(ContextToWordHead(), network().float())
    blanks = ClozeEvaluation(blanks=4, others=3).blanks_of(model, TEXTS, 1)
    alone = [bool(correct(model, [blank], "general")[0]) for blank in blanks]
    assert correct(model, blanks, "general").tolist() == alone
    fields = fields_of(blanks, 0)
    assert (fields[Field.ATTENTION_MASK].sum(1) == [len(blank.ids) for blank in blanks]).all()


def test_models_and_texts_that_have_no_cloze_are_refused() -> None:
    skip_gram = averaging("skip_gram")
    with pytest.raises(RecipeError, match="cloze: general predicts a word from each of its neighbours alone"):
        correct(skip_gram, ClozeEvaluation().blanks_of(skip_gram, TEXTS, 0), "general")
    with pytest.raises(DataError, match="fewer than two different words"):
        ClozeEvaluation().blanks_of(skip_gram, ["c c", "x"], 0)


def test_the_figure_is_the_share_of_all_blanks() -> None:
    (figure,) = ClozeEvaluation.figures(cast("Any", None))
    assert figure.name == "cloze_accuracy" and not figure.lower
    assert figure.score(np.asarray([[1.0, 4.0], [2.0, 2.0], [0.0, 0.0]])) == pytest.approx(0.5)
