"""Paragraph vectors against the losses of the paper in float64, by loops and autograd; training, inference, and bad
input."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import psutil
import pytest
import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from pipelines.corpora.engines.work import run_units
from pipelines.errors import DataError
from pipelines.networks.paragraph_vectors import (
    FlatWords,
    ParagraphVectorsConfig,
    ParagraphVectorsModel,
    contrast,
    descend_paragraphs,
    paragraph_context,
    window_sums,
)
from pipelines.parts.estimates import TokenFile, Workspace, vector_epoch
from pipelines.parts.estimates.compiled import vector_steps
from pipelines.parts.estimates.compiled.vector_steps import Predictions
from pipelines.parts.estimates.paragraph_vectors import ParagraphVectors
from pipelines.parts.estimates.vector_epoch import VectorEpoch, VectorOptions
from pipelines.parts.estimates.word_frequencies import STATE, kept_shares
from pipelines.parts.heads import Head
from pipelines.vocabulary import Field, Signal

TOPICS, WORDS_OF_TOPIC, END = 4, 12, 1
SIZE = 2 + TOPICS * WORDS_OF_TOPIC


def documents(number: int = 60) -> list[list[int]]:
    """Documents of 20 words, each of the words of one topic."""
    random = np.random.default_rng(0)
    return [
        (2 + row % TOPICS * WORDS_OF_TOPIC + random.integers(0, WORDS_OF_TOPIC, 20)).tolist() for row in range(number)
    ]


def file_of(rows: list[list[int]], folder: Path) -> TokenFile:
    ids = np.asarray([token for row in rows for token in (*row, END)], dtype=np.uint16)
    ids.tofile(folder / "tokens.bin")
    return TokenFile(folder / "tokens.bin", "uint16", tuple(np.bincount(ids, minlength=SIZE).tolist()), END, (0, END))


def config_of(architecture: str) -> ParagraphVectorsConfig:
    return ParagraphVectorsConfig(
        vocab_size=SIZE,
        hidden_size=8,
        paragraph_architecture=architecture,
        window=2,
        noise_words=32,
        special_ids=[0, END],
    )


def estimated(architecture: str, text: TokenFile, folder: Path, epochs: int = 6) -> ParagraphVectorsModel:
    folder.mkdir(exist_ok=True)
    config = config_of(architecture)
    estimate = ParagraphVectors(epochs=epochs, threshold=0, lr=0.1)
    weights = estimate.weights(text, config, Workspace(folder, lambda units, home: run_units(units, home, 1)))
    model = ParagraphVectorsModel(config)
    estimate.set_weights(model, weights)
    model.train(False)
    return model


def loss_by_loops(
    paragraphs: Tensor, rows: list[list[int]], inner: Tensor | None, outer: Tensor, noise: list[int]
) -> Tensor:
    """−Σ log σ(h · o) − 5 / S Σ log σ(−h · n), h being the mean of paragraph and neighbours, or the paragraph."""
    total = torch.zeros((), dtype=torch.float64)
    for number, row in enumerate(rows):
        for at, word in enumerate(row):
            hidden = paragraphs[number]
            if inner is not None:
                near = [row[other] for other in range(max(0, at - 2), min(len(row), at + 3)) if other != at]
                hidden = (hidden + sum(inner[one] for one in near)) / (1 + len(near))
            total = total - torch.log(torch.sigmoid(hidden @ outer[word]))
            for other in noise:
                if other != word:
                    total = total - 5 / len(noise) * torch.log(torch.sigmoid(-hidden @ outer[other]))
    return total


@pytest.mark.parametrize("architecture", ["dm", "dbow"])
def test_loss_and_gradients_are_those_of_the_paper_in_float64(architecture: str) -> None:
    torch.manual_seed(0)
    rows = [[2, 3, 4, 3, 9], [7, 2], [5, 5, 6]]
    noise = [3, 8, 2, 11]
    tables = {name: torch.randn(SIZE, 8, dtype=torch.float64) for name in ("words", "outputs")}
    tables["paragraphs"] = torch.randn(len(rows), 8, dtype=torch.float64)
    if architecture == "dbow":
        del tables["words"]
    expected = {name: table.clone().requires_grad_() for name, table in tables.items()}
    loss = loss_by_loops(expected["paragraphs"], rows, expected.get("words"), expected["outputs"], noise)
    torch.autograd.backward(loss)

    words = FlatWords(
        torch.tensor([word for row in rows for word in row]),
        torch.tensor([number for number, row in enumerate(rows) for _ in row]),
    )
    context = paragraph_context(tables.get("words"), words, 2)
    inputs = context.base + context.share * tables["paragraphs"][words.paragraphs]
    result = contrast(inputs, words.ids, tables["outputs"], torch.tensor(noise), 5 / len(noise))
    assert result.loss == pytest.approx(float(loss.detach()), rel=1e-12)

    # the first step of a paragraph is as long as the rate, down its gradient
    vectors, squares = tables["paragraphs"].clone(), torch.zeros(len(rows), 1, dtype=torch.float64)
    descend_paragraphs(vectors, squares, words, context, tables["outputs"], torch.tensor(noise), 5 / len(noise), 1, 0.1)
    gradient = expected["paragraphs"].grad
    assert gradient is not None
    norms = gradient.norm(dim=1, keepdim=True)
    torch.testing.assert_close(squares.sqrt(), norms)
    torch.testing.assert_close(vectors, tables["paragraphs"] - 0.1 * gradient / norms)


@pytest.mark.parametrize("architecture", ["dm", "dbow"])
def test_training_steps_follow_the_gradients_of_a_words_loss_in_float64(architecture: str) -> None:
    """One word after the other: each sees what those before have changed."""
    random = np.random.default_rng(0)
    rows = [[2, 3, 4, 3, 9], [7, 2], [5]]
    tables = {name: random.normal(0, 0.5, (SIZE, 8)) for name in vector_epoch.READ[architecture]}
    tables["outputs"] = random.normal(0, 0.5, (SIZE, 8))
    expected = {name: torch.tensor(table, requires_grad=True) for name, table in tables.items()}
    noise = [random.choice(np.arange(10, SIZE), 4, replace=False).tolist() for row in rows for _ in row]
    places = [(number, at) for number, row in enumerate(rows) for at in range(len(row))]
    for (number, at), others in zip(places, noise, strict=True):
        row, hidden = rows[number], expected["paragraphs"][number]
        near = [other for other in range(max(0, at - 2), min(len(row), at + 3)) if other != at]
        if architecture == "dm":
            hidden = (hidden + sum(expected["words"][row[one]] for one in near)) / (1 + len(near))
        outputs = expected["outputs"]
        loss = -logsigmoid(hidden @ outputs[row[at]]) - logsigmoid(-(outputs[others] @ hidden)).sum()
        gradients = torch.autograd.grad(loss, list(expected.values()), materialize_grads=True)
        with torch.no_grad():
            for (name, table), gradient in zip(expected.items(), gradients, strict=True):
                # as the authors' code of word vectors: what is averaged moves as far as the mean
                table -= 0.2 * gradient * (1 + len(near) if architecture == "dm" and name != "outputs" else 1)

    starts = [0, 5, 7]
    low = [starts[number] + max(0, at - 2) for number, at in places]
    high = [starts[number] + min(len(rows[number]), at + 3) for number, at in places]
    ids = [word for row in rows for word in row]
    candidates = [[word, *others] for word, others in zip(ids, noise, strict=True)]
    numbers = ids, [number for number, _ in places], low, high, range(len(ids)), candidates
    targets = np.zeros((len(ids), 5), dtype=np.int8)
    targets[:, 0] = 1
    whole = (np.asarray(values, dtype=np.int32) for values in numbers)
    getattr(vector_steps, architecture)(tables, Predictions(*whole, targets, np.full(len(ids), 0.2)))
    for name, table in expected.items():
        np.testing.assert_allclose(tables[name], table.detach().numpy(), rtol=1e-12, atol=1e-14)


def test_window_sums_are_their_own_transpose() -> None:
    words = FlatWords(torch.zeros(9, dtype=torch.int64), torch.tensor([0, 0, 0, 0, 1, 2, 2, 2, 2]))
    identity = torch.eye(9, dtype=torch.float64)
    sums, counts = window_sums(identity, words, 2)
    assert torch.equal(sums, sums.T) and sums[0].tolist() == [0, 1, 1, 0, 0, 0, 0, 0, 0]
    assert counts.tolist() == [2, 3, 3, 2, 0, 2, 3, 3, 2]


@pytest.mark.parametrize("architecture", ["dm", "dbow"])
def test_new_texts_are_near_those_of_their_topic_and_words_stay_frozen(architecture: str, tmp_path: Path) -> None:
    text = file_of(documents(), tmp_path)
    model = estimated(architecture, text, tmp_path / "trained", epochs=12)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    new = torch.tensor(documents(16)[::-1])
    vectors = model.infer(new)
    unit = torch.nn.functional.normalize(vectors - vectors.mean(0), dim=1)
    nearest = (unit @ unit.T).fill_diagonal_(-2).argmax(1)
    topics = torch.arange(16).flip(0) % TOPICS
    assert torch.equal(topics[nearest], topics)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    with np.load(tmp_path / "trained" / "epoch-11" / STATE) as last:
        assert last["paragraphs"].shape == (60, 8), "every document of the text has a row of the table"


def test_a_vector_depends_on_its_own_row_alone(tmp_path: Path) -> None:
    model = estimated("dm", file_of(documents(), tmp_path), tmp_path / "trained", epochs=2)
    rows = documents(3)
    together = torch.tensor([[*rows[0], END, 0, 0], [*rows[1][:9], END, *[0] * 13], [END, *[0] * 22]])
    mask = (together != 0).long()
    found = model.infer(together, mask)
    torch.testing.assert_close(found[0], model.infer(torch.tensor([rows[0]]))[0], rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(found[1], model.infer(torch.tensor([rows[1][:9]]))[0], rtol=1e-4, atol=1e-6)
    assert not found[2].any(), "a text without words"
    states = model(together, mask).last_hidden_state
    assert torch.equal(states[:, 0], found) and torch.equal(states[:, 5], found)


def test_the_head_gives_the_inferred_vectors() -> None:
    torch.manual_seed(0)
    head = Head.model_validate("paragraph_vector")
    network = head.build(config_of("dm"), None)
    with torch.no_grad():
        network.base_model.outputs.weight.normal_()  # type: ignore[union-attr,operator]
    ids = torch.tensor(documents(4))
    vectors = head.signals(network, {Field.INPUT_IDS: ids}, frozenset({Signal.POOLED}))[Signal.POOLED]
    assert torch.equal(vectors, network.base_model.infer(ids)) and vectors.any(dim=1).all()  # type: ignore[operator]


def test_a_killed_estimate_continues_and_ends_the_same(tmp_path: Path) -> None:
    text = file_of(documents(), tmp_path)
    whole = estimated("dm", text, tmp_path / "whole", epochs=4)
    options = VectorOptions("dm", "noise", 8, 2, 5, 0.75, 0.0, 0.1, 4)
    for epoch in range(2):  # as if the job had been killed after two
        folder = tmp_path / "killed" / f"epoch-{epoch}"
        folder.mkdir(parents=True)
        VectorEpoch(tmp_path / "killed", epoch, text, options)(folder)
    resumed = estimated("dm", text, tmp_path / "killed", epochs=4)
    assert all(torch.equal(value, resumed.state_dict()[name]) for name, value in whole.state_dict().items())


def test_each_word_is_predicted_from_its_own_document(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [[2, 3, 4], [], [5], [6, 7, 8, 9]]
    monkeypatch.setattr(vector_epoch, "CHUNK", 3)
    options = VectorOptions("dm", "noise", 8, 2, 5, 0.75, 0.0, 0.1, 4)
    epoch = VectorEpoch(tmp_path, 0, file_of(rows, tmp_path), options)
    chunks = list(epoch.predictions(np.random.default_rng(0)))
    found = [pair for one in chunks for pair in zip(one.ids.tolist(), one.paragraphs.tolist(), strict=True)]
    assert found == [(word, number) for number, row in enumerate(rows) for word in row]


def test_frequent_words_are_read_less_often(tmp_path: Path) -> None:
    kept = kept_shares(file_of([[2] * 7, [3, 4], [], [2] * 4], tmp_path), 0.1)
    share = 0.1 / (11 / 13)
    assert kept[2] == pytest.approx(np.sqrt(share) + share) and kept[3] == 1 and not kept[[0, END]].any()


def test_a_table_larger_than_memory_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Free:
        available = 3000

    monkeypatch.setattr(psutil, "virtual_memory", Free)

    def trains(*_: object) -> list[Path]:
        raise AssertionError("nothing is to be trained")

    with pytest.raises(
        DataError, match=r"a table of 60 paragraphs of 8 elements needs .*lower backbone.hidden_size"
    ) as e:
        ParagraphVectors().weights(file_of(documents(), tmp_path), config_of("dm"), Workspace(tmp_path, trains))
    assert "\n" not in str(e.value)
    with pytest.raises(DataError, match="the text has 1 word of the vocabulary, and paragraph_vectors needs two"):
        ParagraphVectors().weights(file_of([[2, 2]], tmp_path), config_of("dm"), Workspace(tmp_path, trains))
