"""Word2vec's steps against the losses of the training networks, by autograd in float64; training, resumption, and bad
input."""

from __future__ import annotations

import math
from dataclasses import replace
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
from pipelines.parts.estimates import TokenFile, Workspace, word2vec_epoch
from pipelines.parts.estimates.word2vec import Word2Vec
from pipelines.parts.estimates.word2vec_epoch import STATE, TrainingWindows, Word2VecEpoch, Word2VecOptions, descend
from pipelines.parts.estimates.word_windows import Candidates, WordWindows, cbow, skip_gram

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
    estimate = Word2Vec.model_validate({"threshold": 0, "batch_words": 64, "lr": 0.1, **options})
    config = WordVectorsConfig(vocab_size=SIZE, hidden_size=WIDTH)
    space = Workspace(folder, lambda units, home: run_units(units, home, 1))
    return estimate.weights(text, config, space)["embeddings.weight"]


WORDS = [3, 7, 7, 2, 9, 4, 11]
"""Words of a text; the first four are a document."""
LOW, HIGH = [0, 0, 1, 2, 4, 4, 5], [2, 4, 4, 4, 6, 7, 7]
"""The range of each word's window: within its document, one or two words on each side."""


def windows_of() -> tuple[WordWindows, Tensor]:
    """The windows of WORDS, and the ids of these with `REACH` more on each side."""
    windows = WordWindows(torch.tensor(LOW) + REACH, torch.tensor(HIGH) + REACH, REACH)
    return windows, torch.tensor([0] * REACH + WORDS + [0] * REACH)


def contexts_of() -> Tensor:
    """[N, 2 W] neighbours as the training networks read them: −1 where there is none."""
    rows = [[WORDS[j] for j in range(LOW[i], HIGH[i]) if j != i] for i in range(len(WORDS))]
    return torch.tensor([row + [-1] * (2 * REACH - len(row)) for row in rows])


@pytest.mark.parametrize("architecture", ["skip_gram", "cbow"])
@pytest.mark.parametrize("output", ["noise", "tree"])
def test_a_step_follows_the_gradient_of_the_networks_loss_in_float64(architecture: str, output: str) -> None:
    torch.manual_seed(0)
    counts = [1, 9, *range(3, SIZE + 1)]
    config = WordVectorsConfig(vocab_size=SIZE, hidden_size=WIDTH, word_architecture=architecture)
    negatives = torch.randint(2, SIZE, (len(WORDS), 3))
    negatives[1, 0] = WORDS[1]  # a noise word that is the centre counts nothing
    centers = torch.tensor(WORDS)
    network = NoisePredictor(config) if output == "noise" else PathPredictor(config, counts)
    network.double()
    table = network.outputs if isinstance(network, NoisePredictor) else network.inner_nodes
    for parameter in network.parameters():
        torch.nn.init.normal_(parameter)
    if isinstance(network, NoisePredictor):
        scores = network(centers, contexts_of(), negatives)
        loss = -logsigmoid(scores[:, 0]).sum() - logsigmoid(-scores[:, 1:]).sum()
        rows = torch.cat([centers.unsqueeze(1), negatives], 1)
        real = (rows != centers.unsqueeze(1)).double().index_fill(1, torch.tensor([0]), 1.0)
        candidates = Candidates(rows, torch.tensor([[1.0, 0, 0, 0]], dtype=torch.float64), real)
    else:
        logits, turns = network(centers, contexts_of())
        on_path = turns >= 0
        loss = binary_cross_entropy_with_logits(logits[on_path], turns[on_path].double(), reduction="sum")
        nodes, right = (torch.from_numpy(part)[centers] for part in paths(counts))
        candidates = Candidates(nodes.clamp(min=0), right.clamp(min=0).double(), (right >= 0).double())
    torch.autograd.backward(loss)

    windows, ids = windows_of()
    inputs = network.word_vectors.embeddings.weight.detach()
    outputs = table.weight.detach()
    predicting = skip_gram if architecture == "skip_gram" else cbow
    result = predicting(inputs[ids], windows, outputs[candidates.rows], candidates)
    torch.testing.assert_close(result.loss, loss.detach(), rtol=1e-12, atol=0)

    rate = 0.1
    state = {"words": inputs.clone(), "outputs": outputs.clone()}
    batch = TrainingWindows(ids, windows, candidates, 0.0)
    whole = torch.ones(SIZE, dtype=torch.float64)
    descend(state, batch, {"words": whole, "outputs": whole}, architecture, rate)
    for name, before, gradient in (
        ("words", inputs, network.word_vectors.embeddings.weight.grad),
        ("outputs", outputs, table.weight.grad),
    ):
        assert gradient is not None
        torch.testing.assert_close(state[name], before - rate * gradient, rtol=1e-10, atol=1e-12)

    halved = predicting(inputs[ids], windows, outputs[candidates.rows], candidates, candidates.real / 2)
    torch.testing.assert_close(halved.outputs, result.outputs / 2)
    torch.testing.assert_close(halved.words, result.words)


def test_batches_are_the_windows_of_the_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the batch and the chunk, every kept word is a centre once, with neighbours of its document and chunk."""
    rows = [[2, 3, 4, 5, 6, 7, 8], [9], [], [10, 11, 12, 13]]
    text = file_of(rows, tmp_path)
    monkeypatch.setattr(word2vec_epoch, "CHUNK", 5)
    options = Word2VecOptions("skip_gram", "noise", WIDTH, REACH, 3, 0.75, 0.0, 0.1, 2, 4)
    epoch = Word2VecEpoch(tmp_path, 0, text, options)
    seen: list[int] = []
    done = [0.0]
    for batch in epoch._batches(np.random.default_rng(0)):
        neighbours = batch.windows.neighbours
        for number, center in enumerate(batch.candidates.rows[:, 0].tolist()):
            assert int(batch.ids[number + REACH]) == center, "the centre is the word in the middle"
            around = batch.ids[number : number + 2 * REACH + 1][neighbours[number]].tolist()
            document = next(row for row in rows if center in row)
            at = document.index(center)
            assert set(around) <= set(document[max(0, at - REACH) : at + REACH + 1]) - {center}
            assert len(around) == int(batch.windows.counts[number])
            seen.append(center)
        assert done[-1] <= batch.done < 1
        done.append(batch.done)
    assert seen == [word for row in rows for word in row]


@pytest.mark.parametrize("architecture", ["skip_gram", "cbow"])
@pytest.mark.parametrize("output", ["noise", "tree"])
def test_words_of_one_topic_are_near_each_other(architecture: str, output: str, tmp_path: Path) -> None:
    text = file_of(documents(400), tmp_path)
    rate = 0.1 if architecture == "skip_gram" else 0.5
    vectors = estimated(text, tmp_path / "trained", architecture=architecture, output=output, epochs=8, lr=rate)[2:]
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
        options = Word2VecOptions("skip_gram", "noise", WIDTH, 5, 5, 0.75, 0.0, 0.1, 4, 64)
        folder.mkdir()
        Word2VecEpoch(tmp_path / "killed", epoch - 2, text, options)(folder)
    threads = torch.get_num_threads()
    np.testing.assert_array_equal(estimated(text, tmp_path / "killed", epochs=4), whole)
    assert torch.get_num_threads() == threads, "the threads of the process are its own"
    assert not (tmp_path / "killed" / "epoch-0" / STATE).exists(), "two epochs are kept on disk, not all"


def test_gradients_of_what_most_predictions_share_are_scaled_down(tmp_path: Path) -> None:
    """The root of a tree is in every prediction: 512 windows, 6 inputs in the mean, a rate of 0.1."""
    text = file_of(documents(), tmp_path)
    options = Word2VecOptions("skip_gram", "tree", WIDTH, 5, 5, 0.75, 0.0, 0.1, 4, 512)
    shares = Word2VecEpoch(tmp_path, 0, text, options)._shares()
    nodes, _ = paths(text.counts)
    assert shares["outputs"][nodes[2, 0]] == pytest.approx(word2vec_epoch.LARGEST_STEP / (0.1 * 512 * 6))
    noise = Word2VecEpoch(tmp_path, 0, text, replace(options, output="noise"))._shares()
    often = text.counts[2] / (sum(text.counts) - text.counts[END])
    assert noise["words"][2] == pytest.approx(word2vec_epoch.LARGEST_STEP / (0.1 * 512 * 6 * 6 * often))
    small = Word2VecEpoch(tmp_path, 0, text, replace(options, architecture="cbow", batch_words=4))._shares()
    assert all((values == 1).all() for values in small.values())


def test_a_text_of_one_word_is_one_sentence_and_no_rate_leaves_the_range_of_numbers(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="the text has 1 word of the vocabulary, and word2vec needs two") as refused:
        estimated(file_of([[2, 2], [2]], tmp_path / "one"), tmp_path / "a")
    assert "\n" not in str(refused.value)
    text = file_of(documents(8), tmp_path / "two")
    assert np.isfinite(estimated(text, tmp_path / "b", lr=1.0, batch_words=4096, epochs=3)).all()
