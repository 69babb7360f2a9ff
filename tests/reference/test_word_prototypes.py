"""Prototypes of words: skip-gram against equation 4 in float64, by loops and autograd; k-means against scikit-learn;
contexts, likelihoods and similarity against their definitions; bad input."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from pydantic import ValidationError
from sklearn.cluster import KMeans
from torch.nn.functional import logsigmoid, normalize

from pipelines.corpora.engines.work import run_units
from pipelines.errors import DataError
from pipelines.networks.prototype_vectors import PrototypeVectorsConfig, PrototypeVectorsModel, context_directions
from pipelines.parts.estimates import TokenFile, Workspace
from pipelines.parts.estimates.context_clusters import TextContexts, informativeness, spherical_kmeans
from pipelines.parts.estimates.skip_gram_epoch import SkipGramOptions, train_batch
from pipelines.parts.estimates.word_prototypes import WordPrototypes
from pipelines.parts.heads import Head
from pipelines.vocabulary import Field, Signal

PAD, END, AMBIGUOUS = 0, 1, 2
TOPICS, WORDS_OF_TOPIC = 2, 10
SIZE = 3 + TOPICS * WORDS_OF_TOPIC
WIDTH, WINDOW = 12, 3


def documents(number: int = 400) -> list[list[int]]:
    """Documents of words of one topic, with a word of both topics among them."""
    random = np.random.default_rng(0)
    rows = []
    for row in range(number):
        words = 3 + row % TOPICS * WORDS_OF_TOPIC + random.integers(0, WORDS_OF_TOPIC, 12)
        words[random.integers(2, 10)] = AMBIGUOUS
        rows.append(words.tolist())
    return rows


def file_of(rows: list[list[int]], folder: Path, size: int = SIZE) -> TokenFile:
    ids = np.asarray([token for row in rows for token in (*row, END)], dtype=np.uint16)
    ids.tofile(folder / "tokens.bin")
    counts = tuple(np.bincount(ids, minlength=size).tolist())
    return TokenFile(folder / "tokens.bin", "uint16", counts, END, (PAD, END))


def config_of(**options: Any) -> PrototypeVectorsConfig:
    return PrototypeVectorsConfig(**{"vocab_size": SIZE, "hidden_size": WIDTH, "window": WINDOW, **options})


def estimated(text: TokenFile, folder: Path, **options: Any) -> tuple[PrototypeVectorsModel, dict[str, NDArray[Any]]]:
    folder.mkdir(exist_ok=True)
    config = config_of()
    stated = {"clusters": 2, "fewest": 300, "epochs": 4, "threshold": 0, "batch_words": 256, **options}
    estimate = WordPrototypes.model_validate(stated)
    weights = estimate.weights(text, config, Workspace(folder, lambda units, home: run_units(units, home, 1)))
    model = PrototypeVectorsModel(config)
    estimate.set_weights(model, weights)
    model.train(False)
    return model, weights


def test_a_step_follows_equation_4_in_float64() -> None:
    torch.manual_seed(0)
    ids, numbers = torch.tensor([2, 5, 3, 2, 2, 7, 5]), torch.tensor([0, 0, 0, 0, 1, 1, 1])
    reach, noise = torch.tensor([1, 3, 2, 3, 1, 2, 3]), torch.tensor([4, 5, 4])
    options = SkipGramOptions(window=3, samples=5.0, power=0.75, threshold=0.0, rate=0.1, batch_words=64)
    tables = {name: torch.randn(9, 4, dtype=torch.float64) for name in ("vectors", "outputs")}
    expected = {name: table.clone().requires_grad_() for name, table in tables.items()}
    loss = torch.zeros((), dtype=torch.float64)
    for at, word in enumerate(ids):
        for other in range(len(ids)):
            if other != at and abs(other - at) <= reach[at] and numbers[other] == numbers[at]:
                loss = loss - logsigmoid(expected["vectors"][word] @ expected["outputs"][ids[other]])
                for drawn in noise:
                    score = expected["vectors"][word] @ expected["outputs"][drawn]
                    loss = loss - 5 / len(noise) * logsigmoid(-score)
    torch.autograd.backward(loss)
    state = {name: table.clone() for name, table in tables.items()}
    state |= {f"{name} squares": torch.zeros_like(table) for name, table in tables.items()}
    assert train_batch(state, ids, numbers, reach, noise, options) == pytest.approx(float(loss.detach()), rel=1e-12)
    for name, table in tables.items():
        gradient = expected[name].grad
        assert gradient is not None
        torch.testing.assert_close(state[f"{name} squares"], gradient**2)
        # the first step of AdaGrad is one of the sign
        torch.testing.assert_close(state[name], table - 0.1 * gradient.sign() * (gradient.abs() > 0))


def test_kmeans_ends_where_that_of_scikit_learn_does() -> None:
    random = np.random.default_rng(1)
    middle = np.eye(5)[:3] * 4
    points = np.concatenate([one + random.normal(size=(60, 5)) * 0.7 for one in middle]).astype(np.float32)
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    ours = spherical_kmeans(points, 3, np.random.default_rng(0))
    theirs = KMeans(3, n_init=10, random_state=0).fit(points)
    labels = (points @ ours.T).argmax(1)
    match = {int(label): int(other) for label, other in zip(labels, theirs.labels_, strict=True)}
    assert len(match) == 3 and [match[int(label)] for label in labels] == theirs.labels_.tolist()
    directions = theirs.cluster_centers_ / np.linalg.norm(theirs.cluster_centers_, axis=1, keepdims=True)
    for label, other in match.items():
        np.testing.assert_allclose(ours[label], directions[other], atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(ours, axis=1), 1, atol=1e-6)


def test_a_lost_cluster_takes_the_farthest_point_and_equal_points_make_one() -> None:
    points = np.asarray([[1, 0], [0.98, 0.2], [0, 1]], dtype=np.float32)
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    lost = np.asarray([[1, 0.1], [-1, -1]], dtype=np.float32)
    ours = spherical_kmeans(points, 2, np.random.default_rng(0), lost / np.linalg.norm(lost, axis=1, keepdims=True))
    assert sorted((points @ ours.T).argmax(1).tolist()[:2]) in ([0, 0], [1, 1])
    assert (points @ ours.T).argmax(1)[2] != (points @ ours.T).argmax(1)[0]
    assert len(spherical_kmeans(points[[0, 0, 0]], 3, np.random.default_rng(0))) == 1


def test_contexts_of_a_text_and_of_a_row_are_weighted_means_of_neighbours(tmp_path: Path) -> None:
    rows = documents(6)
    text = file_of(rows, tmp_path)
    weights = informativeness(text)
    for word in range(SIZE):
        holding = sum(word in row for row in rows)
        assert weights[word] == pytest.approx(np.log(len(rows) / holding) if holding and word > END else 0, abs=1e-6)
    vectors = np.random.default_rng(0).normal(size=(SIZE, WIDTH)).astype(np.float32)
    tokens = text.tokens.astype(np.int64)
    contexts = TextContexts(tokens, np.cumsum(tokens == END), vectors * weights[:, None], WINDOW)
    found = contexts.at(np.arange(len(tokens)))
    of_rows = context_directions(
        torch.from_numpy(vectors * weights[:, None])[torch.tensor(rows)], torch.zeros(6, 12), WINDOW
    )
    at = 0
    for number, row in enumerate(rows):
        for place in range(len(row)):
            near = [row[other] for other in range(max(0, place - 3), min(len(row), place + 4)) if other != place]
            expected = np.average(vectors[near].astype(np.float64), axis=0, weights=weights[near])
            expected /= np.linalg.norm(expected)
            assert found[at] == pytest.approx(expected, abs=1e-5)
            assert of_rows[number, place].numpy() == pytest.approx(expected, abs=1e-5)
            at += 1
        at += 1  # the end of the document


@torch.no_grad()
def test_products_of_states_are_average_similarities_of_prototypes() -> None:
    """AvgSimC = Σ_i Σ_j p(i | c) p(j | c') cos(μ_i, μ_j), p inversely as the distance of the context from a centre."""
    torch.manual_seed(0)
    model = PrototypeVectorsModel(config_of(prototypes=SIZE + 2, most_prototypes=3)).double()
    model.informativeness.uniform_(0.5, 2.0)
    model.informativeness[[PAD, END]] = 0
    model.others[AMBIGUOUS], model.further[AMBIGUOUS] = 2, SIZE
    model.centres.copy_(normalize(torch.randn(SIZE + 2, WIDTH, dtype=torch.float64), dim=1))
    model.prototypes.weight.normal_()
    rows = torch.tensor([[5, AMBIGUOUS, 6, 7, END], [8, 9, AMBIGUOUS, END, PAD]])
    static, states = model(rows, (rows != PAD).long(), output_hidden_states=True).hidden_states
    assert torch.equal(static, model.embeddings(rows))
    parts = []
    for row, at in ((0, 1), (1, 2)):
        near = [one for place, one in enumerate(rows[row].tolist()) if place != at and abs(place - at) <= WINDOW]
        context = torch.stack([model.informativeness[one] * model.embeddings.weight[one] for one in near]).sum(0)
        context = context / context.norm()
        numbers = [AMBIGUOUS, SIZE, SIZE + 1]
        close = torch.stack([1 / (1 - model.centres[one] @ context + 1e-3) for one in numbers])
        parts.append((close / close.sum(), normalize(model.prototypes.weight[numbers], dim=1)))
    (p, mu), (q, nu) = parts
    expected = sum(p[i] * q[j] * (mu[i] @ nu[j]) for i in range(3) for j in range(3))
    assert float(states[0, 1] @ states[1, 2]) == pytest.approx(float(expected), rel=1e-9)
    # a word with one prototype has the same vector everywhere
    torch.testing.assert_close(states[0, 0], normalize(model.prototypes.weight[5], dim=0))


def test_an_ambiguous_word_gets_a_prototype_for_each_topic(tmp_path: Path) -> None:
    text = file_of(documents(), tmp_path)
    model, weights = estimated(text, tmp_path / "two")
    assert (
        weights["others"][AMBIGUOUS] == 1 and weights["others"].sum() == 1 + (np.asarray(text.counts)[3:] >= 300).sum()
    )
    assert model.config.prototypes == len(weights["prototypes.weight"]) == len(weights["centres"])
    rows = torch.tensor(documents(40))
    states = model(rows).last_hidden_state[rows == AMBIGUOUS]
    similar = (normalize(states, dim=1) @ normalize(states, dim=1).T).fill_diagonal_(-2)
    topics = torch.arange(40) % TOPICS
    assert float((topics[similar.argmax(1)] == topics).float().mean()) > 0.95
    one, _ = estimated(text, tmp_path / "one", clusters=1)
    same = one(rows).last_hidden_state[rows == AMBIGUOUS]
    torch.testing.assert_close(same, same[:1].expand_as(same))
    # what a stage on plain text keeps of a row
    head = Head.model_validate("prototype_vector")
    network = head.build(config_of(), None)
    pooled = head.signals(network, {Field.INPUT_IDS: rows}, frozenset({Signal.POOLED}))[Signal.POOLED]
    torch.testing.assert_close(pooled, network.base_model(rows).last_hidden_state.mean(1))


def test_a_killed_estimate_continues_and_ends_the_same(tmp_path: Path) -> None:
    text = file_of(documents(60), tmp_path)
    _, whole = estimated(text, tmp_path / "whole", fewest=50, epochs=2)
    (tmp_path / "killed").mkdir()

    def until_clusters(units: Any, home: Path) -> list[Path]:
        if units[0].name.startswith("prototypes"):
            raise KeyboardInterrupt
        return run_units(units, home, 1)

    stated = {"clusters": 2, "fewest": 50, "epochs": 2, "threshold": 0, "batch_words": 256}
    with pytest.raises(KeyboardInterrupt):
        WordPrototypes.model_validate(stated).weights(text, config_of(), Workspace(tmp_path / "killed", until_clusters))
    _, resumed = estimated(text, tmp_path / "killed", fewest=50, epochs=2)
    assert whole.keys() == resumed.keys() and all(np.array_equal(whole[name], resumed[name]) for name in whole)


def test_fewer_contexts_than_clusters_are_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match="fewest: 5 contexts cannot make 10 clusters; raise fewest to 10 or more"):
        WordPrototypes(fewest=5)
    with pytest.raises(ValidationError, match="contexts: 3 contexts cannot make 10 clusters"):
        WordPrototypes(contexts=3)

    def trains(*_: object) -> list[Path]:
        raise AssertionError("nothing is to be trained")

    text = file_of([[2, 3, 2], [3, 2]], tmp_path)
    with pytest.raises(
        DataError, match="the most frequent word occurs 3 times, and word_prototypes makes 10 clus"
    ) as e:
        WordPrototypes().weights(text, config_of(), Workspace(tmp_path, trains))
    assert "\n" not in str(e.value)
    with pytest.raises(DataError, match="the text has 1 word of the vocabulary"):
        WordPrototypes().weights(file_of([[2, 2]], tmp_path), config_of(), Workspace(tmp_path, trains))
