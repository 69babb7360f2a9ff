"""Word2vec's steps against the losses of the training networks, by autograd in float64; training, resumption, and bad
input."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, logsigmoid

from pipelines.corpora.engines.work import run_units
from pipelines.errors import DataError
from pipelines.networks.huffman import paths
from pipelines.networks.word_vectors import NoisePredictor, PathPredictor, WordVectorsConfig
from pipelines.parts.estimates import TokenFile, Workspace, vector_epoch
from pipelines.parts.estimates.compiled import vector_steps
from pipelines.parts.estimates.compiled.vector_steps import Predictions, cbow, skip_gram
from pipelines.parts.estimates.vector_epoch import VectorEpoch, VectorOptions
from pipelines.parts.estimates.word2vec import Word2Vec
from pipelines.parts.estimates.word_frequencies import STATE

TOPICS, WORDS_OF_TOPIC, END, WIDTH, REACH = 4, 12, 1, 8, 2
SIZE = 2 + TOPICS * WORDS_OF_TOPIC


def documents(number: int = 200) -> list[list[int]]:
    """Documents of 20 words, each of the words of one topic."""
    random = np.random.default_rng(0)
    return [
        (2 + row % TOPICS * WORDS_OF_TOPIC + random.integers(0, WORDS_OF_TOPIC, 20)).tolist() for row in range(number)
    ]


def file_of(rows: list[list[int]], folder: Path) -> TokenFile:
    folder.mkdir(exist_ok=True)
    ids = np.asarray([token for row in rows for token in (*row, END)], dtype=np.uint16)
    ids.tofile(folder / "tokens.bin")
    return TokenFile(folder / "tokens.bin", "uint16", tuple(np.bincount(ids, minlength=SIZE).tolist()), END, (0, END))


def estimated(text: TokenFile, folder: Path, **options: object) -> np.ndarray:
    folder.mkdir(exist_ok=True)
    estimate = Word2Vec.model_validate({"threshold": 0, "lr": 0.1, **options})
    config = WordVectorsConfig(vocab_size=SIZE, hidden_size=WIDTH)
    space = Workspace(folder, lambda units, home: run_units(units, home, 1))
    return estimate.weights(text, config, space)["embeddings.weight"]


WORDS = [3, 7, 7, 2, 9, 4, 11]
"""Words of a text; the first four are a document."""
LOW, HIGH = [0, 0, 1, 2, 4, 4, 5], [2, 4, 4, 4, 6, 7, 7]
"""The range of each word's window: within its document, one or two words on each side."""
RATES = np.linspace(0.2, 0.1, len(WORDS))


def around(center: int) -> list[int]:
    """The neighbours of a word of WORDS."""
    return [WORDS[place] for place in range(LOW[center], HIGH[center]) if place != center]


def network_of(architecture: str, output: str) -> NoisePredictor | PathPredictor:
    """A training network in float64, with random vectors."""
    torch.manual_seed(0)
    config = WordVectorsConfig(vocab_size=SIZE, hidden_size=WIDTH, word_architecture=architecture)
    network = NoisePredictor(config) if output == "noise" else PathPredictor(config, [1, 9, *range(3, SIZE + 1)])
    network.double()
    for parameter in network.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return network


def loss_of(network: NoisePredictor | PathPredictor, center: int, neighbours: list[int], noise: list[int]) -> Tensor:
    """The network's loss where `neighbours` predict a centre."""
    word, context = torch.tensor([center]), torch.tensor([neighbours])
    if isinstance(network, NoisePredictor):
        scores = network(word, context, torch.tensor([noise]))
        real = torch.tensor([noise]) != center
        return -logsigmoid(scores[:, 0]).sum() - logsigmoid(-scores[:, 1:])[real].sum()
    logits, turns = network(word, context)
    return binary_cross_entropy_with_logits(logits[turns >= 0], turns[turns >= 0].double(), reduction="sum")


@pytest.mark.parametrize("architecture", ["skip_gram", "cbow"])
@pytest.mark.parametrize("output", ["noise", "tree"])
def test_steps_follow_the_gradients_of_the_networks_loss_in_float64(architecture: str, output: str) -> None:
    """One after the other: each sees what those before have changed."""
    network = network_of(architecture, output)
    inputs = network.word_vectors.embeddings.weight
    table = network.outputs.weight if isinstance(network, NoisePredictor) else network.inner_nodes.weight
    words, outputs = inputs.detach().numpy().copy(), table.detach().numpy().copy()
    random = np.random.default_rng(0)
    noise = [random.choice(np.arange(2, SIZE), 3, replace=False).tolist() for _ in WORDS]
    noise[1][0] = WORDS[1]  # a noise word that is the centre counts nothing
    total = 0.0
    for place, center in enumerate(WORDS):
        neighbours = around(place)
        for predicting in [[word] for word in neighbours] if architecture == "skip_gram" else [neighbours]:
            loss = loss_of(network, center, predicting, noise[place])
            for_inputs, for_outputs = torch.autograd.grad(loss, [inputs, table])
            with torch.no_grad():
                # the authors' code moves every word of a mean as far as the mean
                inputs -= RATES[place] * len(predicting) * for_inputs
                table -= RATES[place] * for_outputs
            total += float(loss.detach()) if place % vector_steps.LOSS_EVERY == 0 else 0.0

    if output == "noise":
        rows = np.asarray([[center, *drawn] for center, drawn in zip(WORDS, noise, strict=True)], dtype=np.int32)
        targets = np.where(rows == rows[:, :1], -1, 0).astype(np.int8)
        targets[:, 0] = 1
        at = np.arange(len(WORDS))
    else:
        nodes, turns = paths([1, 9, *range(3, SIZE + 1)])
        rows, targets, at = np.maximum(nodes, 0), np.maximum(turns, -1).astype(np.int8), np.asarray(WORDS)
    places = (np.asarray(values, dtype=np.int32) for values in (WORDS, [0] * len(WORDS), LOW, HIGH, at, rows))
    predictions = Predictions(*places, targets, RATES)
    tables = {"words": words, "outputs": outputs}
    measured = {"skip_gram": skip_gram, "cbow": cbow}[architecture](tables, predictions)
    assert measured == pytest.approx(total, rel=1e-12)
    np.testing.assert_allclose(words, inputs.detach().numpy(), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(outputs, table.detach().numpy(), rtol=1e-12, atol=1e-14)


def test_scores_that_are_certain_enough_move_nothing() -> None:
    words, outputs = np.full((3, WIDTH), 1.0, np.float32), np.full((3, WIDTH), 0.8, np.float32)
    both, window = np.asarray([1, 2], np.int32), (np.asarray([0, 0], np.int32), np.asarray([2, 2], np.int32))
    rows, targets = np.asarray([[1], [2]], np.int32), np.asarray([[0], [0]], np.int8)
    first = np.arange(2, dtype=np.int32)
    predictions = Predictions(both, first, *window, first, rows, targets, np.ones(2, np.float32))
    tables = {"words": words, "outputs": outputs}
    skip_gram(tables, predictions)  # scores of 6.4
    assert (words == 1.0).all() and (outputs == np.float32(0.8)).all()
    outputs *= 0.9
    skip_gram(tables, predictions)
    assert (words[1:] < 1.0).all()


def test_predictions_are_the_windows_of_the_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the chunk, every kept word is a centre once, with neighbours of its document and chunk."""
    rows = [[2, 3, 4, 5, 6, 7, 8], [9], [], [10, 11, 12, 13]]
    text = file_of(rows, tmp_path)
    monkeypatch.setattr(vector_epoch, "CHUNK", 5)
    options = VectorOptions("skip_gram", "noise", WIDTH, REACH, 3, 0.75, 0.0, 0.1, 2)
    epoch = VectorEpoch(tmp_path, 0, text, options)
    seen: list[int] = []
    rates: list[float] = []
    for chunk in epoch.predictions(np.random.default_rng(0)):
        ids = chunk.ids.tolist()
        for place, center in enumerate(ids):
            assert chunk.rows[chunk.at[place], 0] == center and chunk.targets[chunk.at[place], 0] == 1
            noise = chunk.rows[chunk.at[place], 1:]
            assert (np.where(noise == center, -1, 0) == chunk.targets[chunk.at[place], 1:]).all()
            assert not np.isin(noise, text.special).any()
            window = [ids[one] for one in range(chunk.low[place], chunk.high[place]) if one != place]
            document = next(row for row in rows if center in row)
            at = document.index(center)
            assert set(window) <= set(document[max(0, at - REACH) : at + REACH + 1]) - {center}
            seen.append(center)
        rates += chunk.rates.tolist()
    assert seen == [word for row in rows for word in row]
    assert rates == sorted(rates, reverse=True) and rates[0] == pytest.approx(0.1) and rates[-1] > 0.05


@pytest.mark.parametrize("architecture", ["skip_gram", "cbow"])
@pytest.mark.parametrize("output", ["noise", "tree"])
def test_words_of_one_topic_are_near_each_other(architecture: str, output: str, tmp_path: Path) -> None:
    text = file_of(documents(400), tmp_path)
    vectors = estimated(text, tmp_path / "trained", architecture=architecture, output=output, epochs=8)[2:]
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    similar = unit @ unit.T - 2 * np.eye(len(unit))
    topics = np.arange(SIZE - 2) // WORDS_OF_TOPIC
    assert (topics[similar.argmax(1)] == topics).mean() > 0.9
    # without knowledge, every prediction costs log 2: 1 or 6 inputs in the mean, 6 candidates or more than 5 nodes
    unknowing = math.log(2) * (6 if architecture == "skip_gram" else 1) * (6 if output == "noise" else 5)
    with np.load(tmp_path / "trained" / "epoch-7" / STATE) as stored:
        assert float(stored["loss"]) < 0.8 * unknowing


def test_a_killed_estimate_continues_with_the_missing_epoch_and_ends_the_same(tmp_path: Path) -> None:
    text = file_of(documents(), tmp_path)
    whole = estimated(text, tmp_path / "whole", epochs=4)
    for epoch in (2, 3):  # as if the job had been killed after two
        folder = tmp_path / "killed" / f"epoch-{epoch - 2}"
        folder.parent.mkdir(exist_ok=True)
        options = VectorOptions("skip_gram", "noise", WIDTH, 5, 5, 0.75, 0.0, 0.1, 4)
        folder.mkdir()
        VectorEpoch(tmp_path / "killed", epoch - 2, text, options)(folder)
    np.testing.assert_array_equal(estimated(text, tmp_path / "killed", epochs=4), whole)
    assert not (tmp_path / "killed" / "epoch-0" / STATE).exists(), "two epochs are kept on disk, not all"


def test_a_text_of_one_word_is_one_sentence_and_no_rate_leaves_the_range_of_numbers(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="the text has 1 word of the vocabulary, and word2vec needs two") as refused:
        estimated(file_of([[2, 2], [2]], tmp_path / "one"), tmp_path / "a")
    assert "\n" not in str(refused.value)
    text = file_of(documents(8), tmp_path / "two")
    assert np.isfinite(estimated(text, tmp_path / "b", lr=1.0, epochs=3)).all()
