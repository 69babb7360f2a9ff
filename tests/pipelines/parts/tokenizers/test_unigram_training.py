"""Unigram pieces against every way to write a word, and against the library's own trainer."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, trainers

from pipelines.parts.tokenizers.unigram_training import SegmentationLattice, learn_pieces
from tests.small_corpus import documents


def ways(word: str, pieces: dict[str, int]) -> Iterator[list[str]]:
    """Every way to write `word` with `pieces`."""
    if not word:
        yield []
    for end in range(1, len(word) + 1):
        if word[:end] in pieces:
            yield from ([word[:end], *rest] for rest in ways(word[end:], pieces))


@given(
    words=st.dictionaries(st.text("abc", min_size=1, max_size=7), st.integers(1, 9), min_size=1, max_size=5),
    data=st.data(),
)
@settings(max_examples=60, deadline=None, derandomize=True)
def test_expected_counts_are_those_over_every_way(words: dict[str, int], data: st.DataObject) -> None:
    longer = data.draw(st.sets(st.text("abc", min_size=2, max_size=4), max_size=8))
    pieces = {piece: number for number, piece in enumerate(["a", "b", "c", *sorted(longer)])}
    scores = np.log(np.random.default_rng(0).dirichlet(np.ones(len(pieces))))
    edges, node = [], 0
    for word in words:
        spans = [(begin, end) for begin in range(len(word)) for end in range(begin + 1, len(word) + 1)]
        edges += [
            (node + begin, end - begin, pieces[word[begin:end]]) for begin, end in spans if word[begin:end] in pieces
        ]
        node += len(word) + 1
    begins, lengths, numbers = np.asarray(edges, dtype=np.int32).T
    lattice = SegmentationLattice.of(np.asarray([len(word) for word in words]), begins, lengths, numbers)
    expected, best = np.zeros(len(pieces)), []
    for word, count in words.items():
        written = [[pieces[piece] for piece in way] for way in ways(word, pieces)]
        likely = np.asarray([math.exp(sum(scores[way])) for way in written])
        for way, share in zip(written, likely / likely.sum(), strict=True):
            np.add.at(expected, way, count * share)
        best.append(math.log(likely.max()))
    counts = np.asarray([*words.values()], dtype=np.float64)
    assert lattice.expected(scores, counts) == pytest.approx(expected, abs=1e-9)
    assert lattice.best(scores) == pytest.approx(best, abs=1e-9)


def test_pieces_are_no_less_likely_than_the_librarys() -> None:
    words = Counter(
        word for text in documents("asyncio", "logging", "argparse", "email") for word in text.split() if word.isascii()
    )
    size = 800
    theirs = Tokenizer(models.Unigram())
    theirs.train_from_iterator(
        list(words.elements()),
        trainers.UnigramTrainer(vocab_size=size, unk_token="<unk>", special_tokens=["<unk>"], show_progress=False),
    )
    ours = Tokenizer(models.Unigram([("<unk>", 0.0), *learn_pieces(words, size - 1)], unk_id=0))

    def likelihood(fast: Tokenizer) -> float:
        scores = dict(json.loads(fast.to_str())["model"]["vocab"])
        return sum(count * sum(scores[piece] for piece in fast.encode(word).tokens) for word, count in words.items())

    assert ours.get_vocab_size() == theirs.get_vocab_size() == size
    # both log likelihoods are negative: at most 1 % worse
    assert likelihood(ours) > 1.01 * likelihood(theirs)


def test_pieces_are_a_distribution_that_writes_everything() -> None:
    words = Counter("".join(documents("json")[:5]).split())
    words["x" * 200] += 1
    pieces = dict(learn_pieces(words, 300))
    assert len(pieces) == 300 and sum(map(math.exp, pieces.values())) == pytest.approx(1, abs=1e-9)
    assert set("".join(words)) <= pieces.keys() and list(pieces.values()) == sorted(pieces.values(), reverse=True)
    with pytest.raises(ValueError, match="cannot hold"):
        learn_pieces(words, 10)
