"""Word embeddings of any backbone by counting; its other weights stay random, to be trained from there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np
from pydantic import Field, PositiveInt

from pipelines.errors import DataError
from pipelines.parts.estimates import Estimation, TokenFile, Workspace
from pipelines.parts.estimates.lsa import neighbour_counts, positive_information
from pipelines.vocabulary import Ability

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_array
    from transformers import PretrainedConfig, PreTrainedModel

EMBEDDINGS = "word embeddings"
POWER_ITERATIONS = 4
"""Power iterations of the randomised decomposition (Halko, Martinsson & Tropp 2011, §4.5), which takes a third of the
time of an exact one."""
DEVIATION = 0.02
"""Standard deviation of embeddings where the configuration names none (Devlin et al. 2018)."""


class LsaEmbeddings(Estimation, name="lsa_embeddings"):
    """Rows of the table of word embeddings are left singular vectors of positive pointwise mutual information with
    neighbours (Levy, Goldberg & Dagan 2015, §2.1, §3), all of one length.

    Three times as long as random rows are on average, since a position's vector is added to each. A token that has no
    neighbours in the text, such as a special one, keeps its random row. Counting takes seconds, and a network that
    starts from such vectors learns in minutes what takes hours from random ones (docs/journal.md).
    """

    paper = "Levy, Goldberg & Dagan 2015; as a start: Kocmi & Bojar 2017, arXiv:1711.09160"
    needs_abilities: ClassVar[frozenset[Ability]] = frozenset({Ability.ONE_STACK})
    draws = True

    window: PositiveInt = 10
    """Tokens on each side that are neighbours."""
    smoothing: float = Field(0.75, gt=0, le=1)
    """Exponent of the neighbours' frequencies, which makes rare ones less informative."""
    power: float = Field(0.5, ge=0)
    """Exponent of the singular values in the vectors (Levy et al. 2015, §3.3)."""

    def weights(self, text: TokenFile, config: PretrainedConfig, workspace: Workspace) -> dict[str, NDArray[Any]]:
        width = int(getattr(config, "embedding_size", config.hidden_size))
        matrix = positive_information(neighbour_counts(text, self.window), self.smoothing)
        if width >= matrix.shape[0] or not matrix.nnz:
            raise DataError(
                f"{text.path}: counts of {matrix.shape[0]} words have no {width} singular values; lower the width of "
                "backbone, or give the stage more text"
            )
        left, values = leading_singular_vectors(matrix, width)
        vectors = left * values**self.power
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        vectors[np.diff(matrix.indptr) == 0] = 0.0  # up to rounding they are
        deviation = float(getattr(config, "initializer_range", DEVIATION))
        scale = 3 * deviation * np.sqrt(width)
        return {EMBEDDINGS: np.divide(vectors * scale, lengths, where=lengths > 0, out=vectors).astype(np.float32)}

    def set_weights(self, network: PreTrainedModel, weights: dict[str, NDArray[Any]]) -> None:
        import torch

        table = cast("torch.Tensor", network.get_input_embeddings().weight)
        vectors = torch.from_numpy(weights[EMBEDDINGS])
        with torch.no_grad():
            counted = vectors.any(dim=1)
            table[: len(vectors)][counted] = vectors[counted].to(table.dtype)


def leading_singular_vectors(matrix: csr_array, width: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """[V, width] left singular vectors of the largest singular values, and these; nearly: where values are close, their
    vectors are mixed, which a start does not mind."""
    from sklearn.utils.extmath import randomized_svd

    left, values, _ = randomized_svd(matrix, width, n_iter=POWER_ITERATIONS, random_state=0)
    return left, values
