"""Estimates that are trained in a random order have a draw for every seed, and the same weights for the same one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pytest

from pipelines.corpora.engines.work import run_units
from pipelines.networks.paragraph_vectors import ParagraphVectorsConfig
from pipelines.networks.prototype_vectors import PrototypeVectorsConfig
from pipelines.networks.word_vectors import WordVectorsConfig
from pipelines.parts.estimates import Estimation, TokenFile, Workspace
from pipelines.parts.estimates.glove import Glove
from pipelines.parts.estimates.latent_dirichlet import LatentDirichlet
from pipelines.parts.estimates.lsa import Lsa
from pipelines.parts.estimates.paragraph_vectors import ParagraphVectors
from pipelines.parts.estimates.word2vec import Word2Vec
from pipelines.parts.estimates.word_prototypes import WordPrototypes

if TYPE_CHECKING:
    from collections.abc import Callable

    from transformers import PretrainedConfig

SIZE, WIDTH, END = 20, 4, 1
Configured: TypeAlias = "Callable[..., PretrainedConfig]"


def text_in(folder: Path) -> TokenFile:
    random = np.random.default_rng(0)
    rows = [[*(2 + row % 3 * 6 + random.integers(0, 6, 20)).tolist(), END] for row in range(60)]
    ids = np.asarray([token for row in rows for token in row], dtype=np.uint16)
    ids.tofile(folder / "tokens.bin")
    return TokenFile(folder / "tokens.bin", "uint16", tuple(np.bincount(ids, minlength=SIZE).tolist()), END, (0, END))


def weights_of(estimate: Estimation, config: Configured, folder: Path, seed: int) -> list[np.ndarray]:
    folder.mkdir()
    space = Workspace(folder, lambda units, home: run_units(units, home, 1), seed)
    weights = estimate.weights(text_in(folder), config(vocab_size=SIZE, hidden_size=WIDTH), space)
    return [weights["embeddings.weight"], *(weights[name] for name in sorted(weights) if name.startswith("prototypes"))]


@pytest.mark.parametrize(
    ("estimate", "config"),
    [
        (Word2Vec(epochs=2), WordVectorsConfig),
        (Word2Vec(epochs=2, architecture="cbow", output="tree"), WordVectorsConfig),
        (Glove(epochs=2), WordVectorsConfig),
        (LatentDirichlet(), WordVectorsConfig),
        (ParagraphVectors(epochs=2), ParagraphVectorsConfig),
        (WordPrototypes(epochs=1, fewest=20, clusters=2), PrototypeVectorsConfig),
        (WordPrototypes(epochs=1, fewest=20, clusters=2, learned_by="windows"), PrototypeVectorsConfig),
    ],
    ids=lambda one: one.name if isinstance(one, Estimation) else "",
)
def test_every_seed_is_a_draw_and_a_seed_draws_the_same(
    estimate: Estimation, config: Configured, tmp_path: Path
) -> None:
    first, again, other = (weights_of(estimate, config, tmp_path / str(n), seed) for n, seed in enumerate((3, 3, 4)))
    assert type(estimate).draws
    for one, same, different in zip(first, again, other, strict=True):
        assert np.array_equal(one, same)
        assert not np.allclose(one, different, atol=1e-6)


def test_what_only_counts_knows_no_seed(tmp_path: Path) -> None:
    first, other = (weights_of(Lsa(), WordVectorsConfig, tmp_path / str(seed), seed) for seed in (0, 1))
    assert not Lsa.draws and np.array_equal(first[0], other[0])
