"""Kneser-Ney against KenLM and NLTK, and against the formula over dictionaries with all its sums written out."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from nltk.lm.models import InterpolatedLanguageModel
from nltk.lm.smoothing import KneserNey
from nltk.util import everygrams

from pipelines.networks.ngram import NgramConfig, NgramForCausalLM
from pipelines.parts.estimates import TokenFile, Workspace
from pipelines.parts.estimates import kneser_ney as estimates
from tests.small_corpus import documents

Gram = tuple[int, ...]
TRAINING_WORDS = [text.split() for text in documents("logging")]
VOCABULARY = ["<end>", "<unknown>", *sorted({word for text in TRAINING_WORDS for word in text})]
END, UNKNOWN, SIZE = 0, 1, len(VOCABULARY)
IDS = {word: number for number, word in enumerate(VOCABULARY)}
TRAINING = [[IDS[word] for word in text] for text in TRAINING_WORDS]
HELD_OUT = [[IDS.get(word, UNKNOWN) for word in text.split()] for text in documents("argparse")[:8]]


def in_one_process(units: Sequence[Any], home: Path) -> list[Path]:
    for unit in units:
        (home / unit.name).mkdir(parents=True)
        unit(home / unit.name)
    return [home / unit.name for unit in units]


def model_of(
    texts: Sequence[Sequence[int]], order: int, estimate: estimates.KneserNey, folder: Path
) -> NgramForCausalLM:
    """A model of `texts`, each closed by END."""
    ids = np.concatenate([[*text, END] for text in texts]).astype(np.uint16)
    ids.tofile(folder / "tokens.bin")
    counts = np.bincount(ids, minlength=SIZE)
    text = TokenFile(folder / "tokens.bin", "uint16", tuple(counts.tolist()), END)
    config = NgramConfig(vocab_size=SIZE, order=order)
    weights = estimate.weights(text, config, Workspace(folder, in_one_process))
    network = NgramForCausalLM(config)
    network.ngram.load_state_dict({name: torch.from_numpy(values) for name, values in weights.items()}, strict=True)
    return network


class Formula:
    """Interpolated modified Kneser-Ney (Chen & Goodman 1999, eq. 25 and 26), in dictionaries; n-grams that occur no
    more often than the threshold of their order in `prune` give all of their count to the order below."""

    def __init__(self, texts: Sequence[Sequence[int]], order: int, prune: Sequence[int] = ()) -> None:
        raw: dict[int, Counter[Gram]] = {length: Counter() for length in range(1, order + 1)}
        for text in texts:
            padded = (END, *text, END)
            for length in range(1, order + 1):
                grams = [padded[at : at + length] for at in range(len(padded) - length + 1)]
                # the first END of a document is a history only, and never predicted
                raw[length].update(grams[1:] if length == 1 else grams)
        self.counts: dict[int, Mapping[Gram, int]] = {order: raw[order]}
        for length in range(1, order):
            preceding = defaultdict(set)
            for gram in raw[length + 1]:
                preceding[gram[1:]].add(gram[0])
            self.counts[length] = {
                gram: raw[length][gram] if length > 1 and gram[0] == END else len(preceding[gram])
                for gram in raw[length]
            }
        self.rare = {
            gram
            for length, grams in raw.items()
            for gram, count in grams.items()
            if prune and count <= prune[min(length, len(prune)) - 1]
        }
        self.following: dict[Gram, list[Gram]] = defaultdict(list)
        for grams in self.counts.values():
            for gram in grams:
                self.following[gram[:-1]].append(gram)
        self.discounts = {length: self._discounts(length) for length in self.counts}

    def _discounts(self, length: int) -> tuple[float, float, float]:
        n = Counter(self.counts[length].values())
        y = n[1] / (n[1] + 2 * n[2])
        result = 1 - 2 * y * n[2] / n[1], 2 - 3 * y * n[3] / n[2], 3 - 4 * y * n[4] / n[3]
        possible = all(0 <= one <= most for one, most in zip(result, (1, 2, 3), strict=True))
        return result if possible else estimates.FALLBACK

    def probability(self, gram: Gram) -> float:
        if not gram:
            return 1 / SIZE
        length, following = len(gram), self.following[gram[:-1]]
        if not following:
            return self.probability(gram[1:])
        total = sum(self.counts[length][one] for one in following)
        left = sum(self.taken(one) for one in following)
        own = self.counts[length].get(gram, 0) - self.taken(gram)
        return own / total + left / total * self.probability(gram[1:])

    def taken(self, gram: Gram) -> float:
        """What is subtracted from the count of an n-gram."""
        count = self.counts[len(gram)].get(gram, 0)
        if gram in self.rare or not count:
            return count
        return self.discounts[len(gram)][min(count, 3) - 1]


@pytest.mark.parametrize("order", [1, 2, 3, 4, 5])
def test_every_probability_is_the_formulas(order: int, tmp_path: Path) -> None:
    network, formula = model_of(TRAINING, order, estimates.KneserNey(), tmp_path), Formula(TRAINING, order)
    assert network.config.discounts == [pytest.approx(formula.discounts[one], abs=1e-6) for one in range(1, order + 1)]
    for text in HELD_OUT:
        ids = (END, *text[:60])
        logits = network(torch.tensor([ids])).logits[0].double()
        assert torch.allclose(logits.exp().sum(-1), torch.ones(len(ids), dtype=torch.float64), atol=1e-5)
        for at in range(1, len(ids)):
            expected = formula.probability(ids[max(0, at - order + 1) : at + 1])
            assert float(logits[at - 1, ids[at]]) == pytest.approx(math.log(expected), abs=2e-6)


@pytest.mark.parametrize(("order", "prune"), [(2, (0, 1)), (3, (0, 0, 1)), (4, (0, 1)), (5, (0, 0, 1, 2))])
def test_pruned_tables_are_the_formulas_and_sum_to_one(order: int, prune: tuple[int, ...], tmp_path: Path) -> None:
    network = model_of(TRAINING, order, estimates.KneserNey(prune=prune), tmp_path)
    formula = Formula(TRAINING, order, prune)
    kept = [len(grams) - sum(len(gram) == length for gram in formula.rare) for length, grams in formula.counts.items()]
    by_order = dict(zip(formula.counts, kept, strict=True))
    assert network.config.ngrams[1:] == [by_order[length] for length in range(2, order + 1)] and formula.rare
    for text in HELD_OUT[:4]:
        ids = (END, *text[:40])
        logits = network(torch.tensor([ids])).logits[0].double()
        assert torch.allclose(logits.exp().sum(-1), torch.ones(len(ids), dtype=torch.float64), atol=1e-5)
        for at in range(1, len(ids)):
            expected = formula.probability(ids[max(0, at - order + 1) : at + 1])
            assert float(logits[at - 1, ids[at]]) == pytest.approx(math.log(expected), abs=2e-6)


@pytest.mark.parametrize("prune", [(), (0, 0, 1)])
@pytest.mark.parametrize("order", [1, 2, 3, 5])
def test_looking_a_token_up_is_the_distributions_value(
    order: int, prune: tuple[int, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    network = model_of(TRAINING, order, estimates.KneserNey(prune=prune), tmp_path)
    ids = torch.tensor([[END, *text[:40]] for text in [*HELD_OUT, *TRAINING[:4]] if len(text) >= 40])
    expected = network(ids).logits[:, :-1].gather(2, ids[:, 1:, None]).squeeze(2)
    found = network.ngram.token_log_probs(ids)
    assert torch.equal(found[:, 1:], expected) and torch.equal(
        found[:, 0], network.ngram.levels[0].log_probs[ids[:, 0]]
    )
    monkeypatch.setattr("pipelines.networks.ngram.IN_ORDER", 1)  # the keys of many tokens are sorted first
    assert torch.equal(network.ngram.token_log_probs(ids), found)


class UnigramsInterpolated(KneserNey):  # type: ignore[misc]
    """NLTK's smoothing, whose unigrams too are discounted and interpolated: with the uniform distribution."""

    def unigram_score(self, word: str) -> float:
        count, total = self._continuation_counts(word)
        different = len({gram for context in self.counts[2].values() for gram in context})
        return max(count - self.discount, 0.0) / total + self.discount * different / total / SIZE


@pytest.mark.parametrize("order", [2, 3, 4])
def test_perplexity_is_nltks(order: int, tmp_path: Path) -> None:
    """NLTK has one discount. It counts an n-gram that begins a document by what precedes it, nothing: so there is one
    document, and histories of `order` − 1 tokens within a document are compared."""
    text = [one for document in TRAINING for one in document][:2000]
    network = model_of([text], order, estimates.KneserNey(discount=0.75), tmp_path)
    whole = [str(one) for one in (END, *text, END)]
    reference = InterpolatedLanguageModel(UnigramsInterpolated, order, params={"discount": 0.75, "order": order})
    reference.fit([everygrams(whole, max_len=order)], whole)
    ids = text[200:230] + HELD_OUT[0][:30]
    logits = network(torch.tensor([ids])).logits[0].double()
    ours, theirs = [], []
    for at in range(order - 1, len(ids)):
        history = [str(one) for one in ids[at - order + 1 : at]]
        ours.append(float(logits[at - 1, ids[at]]))
        theirs.append(reference.logscore(str(ids[at]), history) * math.log(2))
    assert np.allclose(ours, theirs, atol=1e-5)
    assert math.exp(-np.mean(ours)) == pytest.approx(math.exp(-np.mean(theirs)), abs=5e-5, rel=1e-6)


KENLM = {
    2: (9.503375459703205, (0.5, 1.0, 1.5)),
    3: (10.403033430866339, (0.453763, 1.24254, 1.97689)),
    4: (11.220345237026466, (0.735223, 1.43187, 1.93897)),
    5: (11.349950190225943, (0.913629, 1.69791, 2.01952)),
}
"""Order → perplexity of `held_out`, ends of sentences included, and discounts of the highest order: `lmplz -o ORDER
--discount_fallback` on `training`, and `query`, of KenLM at commit 4cb443e (2026-11-23). A token is the word `w` and
its number, a text is a line. As the vocabulary of lmplz, ours has one unknown word besides those of the text."""


def pseudo_text(count: int, state: int) -> list[list[int]]:
    """Texts of a skewed chain over 40 tokens, the same on any machine."""
    texts = []
    for _ in range(count):
        token, text = 0, list[int]()
        for _ in range(24):
            state = (state * 1103515245 + 12345) % 2**31
            step = (state >> 16) % 100
            token = (3 * token + step * step // 1000) % 40
            text.append(token + 1)
        texts.append(text)
    return texts


@pytest.mark.parametrize("order", KENLM)
def test_perplexity_is_kenlms(order: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{__name__}.SIZE", 42)
    network = model_of(pseudo_text(400, 1), order, estimates.KneserNey(), tmp_path)
    perplexity, discounts = KENLM[order]
    assert network.config.discounts[-1] == pytest.approx(discounts, abs=1e-5)
    nats = []
    for text in pseudo_text(40, 2):
        ids = torch.tensor([[END, *text, END]])
        logits = network(ids).logits[0].double()
        nats += [-float(logits[at - 1, ids[0, at]]) for at in range(1, ids.shape[1])]
    assert math.exp(np.mean(nats)) == pytest.approx(perplexity, rel=2e-6)
