"""Probing tasks that need no labels, made from plain text (Conneau et al. 2018, §2).

sentence_length   into which of six equally full bins the number of a sentence's words falls
word_content      which one of some words of middling frequency stands in it
bigram_shift      whether two neighbouring words were swapped

Words are what stands between spaces; where Chinese characters stand, jieba finds them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pipelines.task_families.writing_systems import has_han, join_words

SHORTEST, LONGEST = 5, 40
"""Words of a sentence."""
BINS = 6
WORDS = 20
"""Words of `word_content`; 1000 in the paper, of a hundred million sentences."""
COMMON, RARE = 0.05, 0.004
"""Shares of the sentences that such a word stands in, at most and at least."""
TEST_EVERY = 5
"""Every fifth document is tested on."""
_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z0-9\"'(])|(?<=[。！？])|\n\s*\n")


@dataclass(frozen=True)
class SentenceTask:
    """Sentences with their labels; `documents` says of which document each is."""

    name: str
    texts: list[str]
    labels: list[str]
    documents: list[int]

    @property
    def tested(self) -> list[bool]:
        return [document % TEST_EVERY == 0 for document in self.documents]

    @property
    def chance(self) -> float:
        """Accuracy on the tested sentences of always answering the most frequent label of the others."""
        counts = Counter(label for label, tested in zip(self.labels, self.tested, strict=True) if not tested)
        asked = [label for label, tested in zip(self.labels, self.tested, strict=True) if tested]
        return asked.count(counts.most_common(1)[0][0]) / len(asked) if asked and counts else 0.0


def sentence_tasks(documents: Sequence[str], seed: int, most: int) -> list[SentenceTask]:
    """The tasks over up to `most` sentences of `documents`, whose order is that of the documents. A task whose sentences, on
    one side of the split, are fewer than two or have one label only, is left out."""
    found = [(number, words) for number, text in enumerate(documents) for words in sentences_of(text)][:most]
    made = [_length(found), _content(found), _shift(found, seed)] if found else []
    return [task for task in made if _asks(task)]


def sentences_of(text: str) -> list[list[str]]:
    """The words of the sentences of a text that have from `SHORTEST` to `LONGEST` of them."""
    found = []
    for sentence in _END.split(text):
        words = words_of(" ".join(sentence.split()))
        if SHORTEST <= len(words) <= LONGEST and any(_is_word(word) for word in words):
            found.append(words)
    return found


def words_of(sentence: str) -> list[str]:
    """The words of a sentence, punctuation included."""
    if not has_han(sentence):
        return sentence.split()
    import rjieba

    return [word for word in rjieba.cut(sentence) if not word.isspace()]


def _length(found: Sequence[tuple[int, list[str]]]) -> SentenceTask:
    sizes = np.asarray([len(words) for _, words in found])
    learnt = sizes[[document % TEST_EVERY != 0 for document, _ in found]]
    ends = np.unique(np.quantile(learnt if len(learnt) else sizes, np.arange(1, BINS) / BINS))
    labels = [str(label) for label in np.searchsorted(ends, sizes, side="left")]
    return SentenceTask(
        "sentence_length", [join_words(words) for _, words in found], labels, [document for document, _ in found]
    )


def _content(found: Sequence[tuple[int, list[str]]]) -> SentenceTask:
    counts = Counter(word for _, words in found for word in {word.lower() for word in words if _is_word(word)})
    fit = [word for word, count in counts.items() if RARE * len(found) <= count <= COMMON * len(found)]
    chosen = set(sorted(fit, key=lambda word: (-counts[word], word))[:WORDS])
    held = [(document, words, chosen & {word.lower() for word in words}) for document, words in found]
    one = [(document, words, next(iter(inside))) for document, words, inside in held if len(inside) == 1]
    return SentenceTask(
        "word_content", [join_words(words) for _, words, _ in one], [word for *_, word in one], [d for d, *_ in one]
    )


def _shift(found: Sequence[tuple[int, list[str]]], seed: int) -> SentenceTask:
    random = np.random.default_rng([seed, 13])
    texts, labels, documents = [], [], []
    for document, words in found:
        pairs = [
            n
            for n in range(len(words) - 1)
            if _is_word(words[n]) and _is_word(words[n + 1]) and words[n].lower() != words[n + 1].lower()
        ]
        swap, place = random.random() < 0.5, random.random()
        if not pairs:
            continue
        at = pairs[int(place * len(pairs))]
        written = [*words[:at], words[at + 1], words[at], *words[at + 2 :]] if swap else words
        texts.append(join_words(written))
        labels.append("swapped" if swap else "as written")
        documents.append(document)
    return SentenceTask("bigram_shift", texts, labels, documents)


def _asks(task: SentenceTask) -> bool:
    sides = [
        [label for label, tested in zip(task.labels, task.tested, strict=True) if tested is side]
        for side in (False, True)
    ]
    return len(set(sides[0])) > 1 and len(sides[1]) > 1


def _is_word(word: str) -> bool:
    return word.isalpha()
