"""Stochastic gradient descent on vectors of words and paragraphs, with a step for every prediction as in the authors'
code, compiled by Numba (Mikolov et al. 2013, arXiv:1301.3781 and arXiv:1310.4546; Le & Mikolov 2014, arXiv:1405.4053).

Shapes: V words, D paragraphs, N words of a text, H elements of a vector, C candidates of a prediction (the centre and
noise words, or the nodes of its path in a tree).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeVar, cast

import numpy as np
from numba import njit

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Function = TypeVar("Function", bound=Callable[..., object])
    Floats = NDArray[np.float32]
    Tables = Mapping[str, Floats]

LOSS_EVERY = 32
"""Centres of which the loss of one is computed."""
MOST = 6.0
"""Scores beyond are certain enough, and move nothing, as in the authors' code for trees. Without a limit, vectors leave
the range of numbers where the rate is too high."""
ZERO, ONE = np.float32(0), np.float32(1)


def compiled(function: Function) -> Function:
    """`function` as machine code, made at its first call and kept beside this file, or in the user's cache folder.

    Sums are in the order that fills a processor's vectors.
    """
    compiling = partial(njit, error_model="numpy", fastmath={"reassoc", "contract", "nsz", "arcp"})
    try:
        return cast("Function", compiling(cache=True)(function))
    except RuntimeError:  # neither folder can be written to: compiled by every process
        return cast("Function", compiling()(function))


class Predictions(NamedTuple):
    """What is to predict each word of a text, and what it is to be told from."""

    ids: NDArray[np.int32]
    """[N] the words."""
    paragraphs: NDArray[np.int32]
    """[N] the paragraph of each."""
    low: NDArray[np.int32]
    """[N] first word of each window, by its place in the text."""
    high: NDArray[np.int32]
    """[N] the first one after it. The centre belongs to the range and is none of its neighbours."""
    at: NDArray[np.int32]
    """[N] the row of `rows` and `targets` of each centre."""
    rows: NDArray[np.int32]
    """[·, C] candidates: rows of the table of output vectors."""
    targets: NDArray[np.int8]
    """[·, C]: 1 for the centre, or a turn to the right; 0 for noise, or a turn to the left; −1 for what counts nothing,
    such as a noise word that is the centre."""
    rates: NDArray[np.float32]
    """[N] learning rate at each centre."""


@compiled
def _predict(
    vector: Floats, table: Floats, rows: NDArray[np.int32], targets: NDArray[np.int8], rate: np.float32, change: Floats
) -> None:
    """Compare `vector` [H] with the rows of `table` that are its candidates [C], move those, and add to `change` [H]
    what `vector` is to be moved by."""
    for candidate in range(len(rows)):
        if targets[candidate] < 0:
            continue
        output = table[rows[candidate]]
        score = ZERO
        for element in range(len(vector)):
            score += vector[element] * output[element]
        if abs(score) > MOST:
            continue
        step = rate * (np.float32(targets[candidate]) - ONE / (ONE + np.exp(-score)))
        for element in range(len(vector)):
            change[element] += step * output[element]
            output[element] += step * vector[element]


@compiled
def _loss(vector: Floats, table: Floats, rows: NDArray[np.int32], targets: NDArray[np.int8]) -> float:
    """Σ −log σ(±score) over the candidates of `vector` [H]."""
    loss = 0.0
    for candidate in range(len(rows)):
        if targets[candidate] < 0:
            continue
        score = 0.0  # float64, whose exponentials are finite
        for element in range(len(vector)):
            score += vector[element] * table[rows[candidate], element]
        loss += np.log1p(np.exp(-score if targets[candidate] else score))
    return loss


@compiled
def _skip_gram(words: Floats, outputs: Floats, predictions: Predictions) -> float:
    ids, _, low, high, at, rows, targets, rates = predictions
    change = np.empty_like(words[0])
    loss = 0.0
    for center in range(len(ids)):
        candidates, labels = rows[at[center]], targets[at[center]]
        for neighbour in range(low[center], high[center]):
            if neighbour == center:
                continue
            vector = words[ids[neighbour]]
            if center % LOSS_EVERY == 0:
                loss += _loss(vector, outputs, candidates, labels)
            for element in range(len(vector)):
                change[element] = ZERO
            _predict(vector, outputs, candidates, labels, rates[center], change)
            for element in range(len(vector)):
                vector[element] += change[element]
    return loss


@compiled
def _mean(table: Floats, words: Floats, outputs: Floats, predictions: Predictions) -> float:
    ids, paragraphs, low, high, at, rows, targets, rates = predictions
    mean, change = np.empty_like(outputs[0]), np.empty_like(outputs[0])
    with_paragraph = len(table) > 0
    loss = 0.0
    for center in range(len(ids)):
        inputs = max(0, high[center] - low[center] - 1) + (1 if with_paragraph else 0)
        if inputs == 0:
            continue
        candidates, labels = rows[at[center]], targets[at[center]]
        for element in range(len(mean)):
            mean[element] = table[paragraphs[center], element] if with_paragraph else ZERO
            change[element] = ZERO
        for neighbour in range(low[center], high[center]):
            if neighbour != center:
                vector = words[ids[neighbour]]
                for element in range(len(mean)):
                    mean[element] += vector[element]
        for element in range(len(mean)):
            mean[element] /= np.float32(inputs)
        if center % LOSS_EVERY == 0:
            loss += _loss(mean, outputs, candidates, labels)
        _predict(mean, outputs, candidates, labels, rates[center], change)
        if with_paragraph:
            vector = table[paragraphs[center]]
            for element in range(len(mean)):
                vector[element] += change[element]
        for neighbour in range(low[center], high[center]):
            if neighbour != center:
                vector = words[ids[neighbour]]
                for element in range(len(mean)):
                    vector[element] += change[element]
    return loss


def skip_gram(tables: Tables, predictions: Predictions) -> float:
    """Let each neighbour predict the centre, one after the other, changing the tables `words` and `outputs`; return the
    loss of one of `LOSS_EVERY` centres."""
    return float(_skip_gram(tables["words"], tables["outputs"], predictions))


def cbow(tables: Tables, predictions: Predictions) -> float:
    """Let the mean of all neighbours predict the centre, changing `words` and `outputs`; return the loss of one of
    `LOSS_EVERY` centres.

    Each neighbour is moved as far as the mean is to be moved, as in the authors' code: as many times its gradient as
    there are neighbours.
    """
    words = tables["words"]
    return float(_mean(words[:0], words, tables["outputs"], predictions))


def dm(tables: Tables, predictions: Predictions) -> float:
    """Let the mean of a word's paragraph and of its neighbours predict it, as `cbow` does, changing `paragraphs`,
    `words` and `outputs` (Le & Mikolov 2014, §2.2)."""
    return float(_mean(tables["paragraphs"], tables["words"], tables["outputs"], predictions))


def dbow(tables: Tables, predictions: Predictions) -> float:
    """Let a word's paragraph predict it, changing `paragraphs` and `outputs` (Le & Mikolov 2014, §2.3)."""
    paragraphs = tables["paragraphs"]
    return float(_mean(paragraphs, paragraphs[:0], tables["outputs"], predictions._replace(high=predictions.low)))
