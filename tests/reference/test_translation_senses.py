"""Senses from translations: model 1 against its equations in float64, by loops; clusters, labels and vectors of a word
with two translations; texts that are no pairs."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
import torch
from torch.nn.functional import normalize

from pipelines.corpora.engines.work import run_units
from pipelines.errors import DataError
from pipelines.networks.prototype_vectors import PrototypeVectorsConfig, PrototypeVectorsModel
from pipelines.parts.estimates import TokenFile, Workspace
from pipelines.parts.estimates.context_clusters import LABELS
from pipelines.parts.estimates.translation_clusters import clusters_of, run_numbers, translations_of
from pipelines.parts.estimates.translation_prototypes import TranslationPrototypes
from pipelines.parts.estimates.word_alignment import NULL, Links, PairedWords, aligned, translation_probabilities

PAD, END, AMBIGUOUS = 0, 1, 2
TOPICS, WORDS_OF_TOPIC, ALTERNATIVES = 2, 8, 3
FOREIGN = 3 + TOPICS * WORDS_OF_TOPIC
"""Words of the translation: some for the ambiguous word in each topic, from here on, then one for each other word."""
REGULAR = FOREIGN + ALTERNATIVES * TOPICS
SIZE = REGULAR + TOPICS * WORDS_OF_TOPIC


def pairs(number: int = 600) -> list[tuple[list[int], list[int]]]:
    """Texts of one topic with an ambiguous word, whose translation in each topic is one of a few words of it."""
    random = np.random.default_rng(0)
    rows = []
    for row in range(number):
        topic = row % TOPICS
        words = (3 + topic * WORDS_OF_TOPIC + random.integers(0, WORDS_OF_TOPIC, 8)).tolist()
        foreign = [REGULAR + word - 3 for word in words]
        at = int(random.integers(1, 7))
        if row % 5:  # a word of every text could not be told from the empty word
            words[at], foreign[at] = AMBIGUOUS, FOREIGN + ALTERNATIVES * topic + int(random.integers(0, ALTERNATIVES))
        rows.append((words, foreign[::-1]))
    return rows


def file_of(rows: list[list[int]], folder: Path) -> TokenFile:
    ids = np.asarray([token for row in rows for token in (*row, END)], dtype=np.uint16)
    ids.tofile(folder / "tokens.bin")
    counts = tuple(np.bincount(ids, minlength=SIZE).tolist())
    return TokenFile(folder / "tokens.bin", "uint16", counts, END, (PAD, END))


def flat(rows: list[tuple[list[int], list[int]]]) -> PairedWords:
    sides = [np.asarray([word for row in rows for word in row[side]]) for side in (0, 1)]
    owners = [np.repeat(np.arange(len(rows)), [len(row[side]) for row in rows]) for side in (0, 1)]
    return PairedWords(sides[0], owners[0], sides[1], owners[1], SIZE)


def test_em_of_model_1_follows_its_equations() -> None:
    rows = [([2, 3], [30, 31]), ([2, 4, 2], [30]), ([5], [32, 31, 30]), ([3, 5], [31, 33])]
    words = flat(rows)
    links = Links.of(words)
    t: dict[tuple[int, int], float] = defaultdict(lambda: 1.0)
    for _ in range(4):
        counts: dict[tuple[int, int], float] = defaultdict(float)
        totals: dict[int, float] = defaultdict(float)
        for source, target in rows:
            for f in target:
                known = [NULL, *(e + 1 for e in source)]
                whole = sum(t[e, f] for e in known)
                for e in known:
                    counts[e, f] += t[e, f] / whole
                    totals[e] += t[e, f] / whole
        t = defaultdict(float, {(e, f): count / totals[e] for (e, f), count in counts.items()})
    ours = translation_probabilities(words, links, 4)
    for cell, source, target in zip(links.cell, links.source, links.target, strict=True):
        e = NULL if source < 0 else int(words.source[source]) + 1
        assert ours[cell] == pytest.approx(t[e, int(words.target[target])], rel=1e-12)
    sums = np.bincount(links.owner, ours)
    assert sums[np.unique(links.owner)] == pytest.approx(1, rel=1e-12)


def test_words_are_aligned_whatever_their_order() -> None:
    rows = pairs(200)
    words = flat(rows)
    found = aligned(words, 5)
    right = 0
    for position, (word, target) in enumerate(zip(words.source, found, strict=True)):
        if target >= 0:
            assert words.source_pair[position] == words.target_pair[target]
            foreign = int(words.target[target])
            right += foreign < REGULAR if word == AMBIGUOUS else foreign == REGULAR + word - 3
    assert right > 0.95 * (found >= 0).sum()
    different = sum(len(set(source)) for source, _ in rows)  # of a word that a text has twice, one is aligned
    assert right > 0.9 * different
    assert aligned(PairedWords(*(np.zeros(0, dtype=np.int64),) * 4, SIZE), 2).tolist() == []


def test_clusters_are_those_of_directions() -> None:
    random = np.random.default_rng(0)
    vectors = np.concatenate([one + random.normal(size=(5, 6)) * 0.1 for one in np.eye(6)[:3]]).astype(np.float32)
    groups = clusters_of(vectors * random.uniform(1, 5, (15, 1)).astype(np.float32))
    assert len(set(groups.tolist())) == 3 and all(len(set(groups[at : at + 5].tolist())) == 1 for at in (0, 5, 10))
    assert clusters_of(vectors[:1]).tolist() == [0] and clusters_of(vectors[:0]).tolist() == []


def estimated(text: TokenFile, folder: Path, **options: Any) -> tuple[PrototypeVectorsModel, dict[str, Any]]:
    folder.mkdir(exist_ok=True)
    config = PrototypeVectorsConfig(vocab_size=SIZE, hidden_size=12, window=3)
    stated = {"fewest": 100, "least": 20, "epochs": 10, "threshold": 0, "batch_words": 128, **options}
    estimate = TranslationPrototypes.model_validate(stated)
    weights = estimate.weights(text, config, Workspace(folder, lambda units, home: run_units(units, home, 1)))
    model = PrototypeVectorsModel(config)
    estimate.set_weights(model, weights)
    model.train(False)
    return model, weights


def test_a_word_with_translations_of_two_kinds_has_two_senses(tmp_path: Path) -> None:
    rows = pairs()
    text = file_of([one for row in rows for one in row], tmp_path)
    model, weights = estimated(text, tmp_path / "trained")
    assert weights["others"][AMBIGUOUS] == 1, "six translations, of two kinds"
    assert weights["others"].sum() == 1, "every other word has one translation, and words of translations have none"
    tokens = text.tokens.astype(np.int64)
    labels = np.fromfile(tmp_path / "trained" / "clusters" / LABELS, dtype=np.uint32)
    at = np.flatnonzero(tokens == AMBIGUOUS)
    topics = run_numbers(tokens, END)[at] // 2 % TOPICS
    assert len(set(zip(labels[at].tolist(), topics.tolist(), strict=True))) == TOPICS, "a name for each topic"
    # without translations, contexts decide
    texts = torch.tensor([row[0] for row in rows if AMBIGUOUS in row[0]][:40])
    states = normalize(model(texts).last_hidden_state[texts == AMBIGUOUS], dim=1)
    nearest = (states @ states.T).fill_diagonal_(-2).argmax(1)
    known = (texts[:, 0] - 3) // WORDS_OF_TOPIC
    assert float((known[nearest] == known).float().mean()) > 0.9


def test_pairs_that_do_not_fit_into_memory_are_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Free:
        available = 300

    monkeypatch.setattr(psutil, "virtual_memory", Free)
    text = file_of([[2, 3], [20, 21, 22]], tmp_path)
    tokens = text.tokens.astype(np.int64)
    with pytest.raises(DataError, match="the alignment of 1 pairs of texts needs 0.0 GiB.*budget.tokens"):
        translations_of(tokens, run_numbers(tokens, END), text, 1)


def test_texts_that_are_no_pairs_are_one_sentence(tmp_path: Path) -> None:
    text = file_of([[2, 3], [20, 21], [4]], tmp_path)
    tokens = text.tokens.astype(np.int64)
    assert run_numbers(tokens, END).tolist() == [0, 0, 0, 1, 1, 1, 2, 2]
    with pytest.raises(DataError, match="3 texts are no pairs of a text and its translation; give the stage `texts`"):
        translations_of(tokens, run_numbers(tokens, END), text, 1)

    def trains(*_: object) -> list[Path]:
        raise AssertionError("nothing is to be trained")

    with pytest.raises(DataError, match="the most frequent word occurs 1 time, and translation_prototypes"):
        TranslationPrototypes().weights(
            text, PrototypeVectorsConfig(vocab_size=SIZE, hidden_size=4), Workspace(tmp_path, trains)
        )
