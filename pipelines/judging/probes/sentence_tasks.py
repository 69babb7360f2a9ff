"""Probing tasks that need no labels, made from plain text (Conneau et al. 2018, §2).

sentence_length   which of six equally full bins the sentence's number of words falls into
word_content      which one of some medium-frequency words the sentence contains
bigram_shift      whether two adjacent words were swapped

Words are separated by spaces; in Chinese text, jieba segments them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pipelines.task_families.writing_systems import has_han, join_words

SHORTEST, LONGEST = 5, 40
"""Minimum and maximum number of words of a sentence."""
BINS = 6
WORDS = 20
"""Target words of `word_content`; 1000 in the paper, over a hundred million sentences."""
COMMON, RARE = 0.05, 0.004
"""Maximum and minimum share of the sentences that contain such a word."""
TEST_EVERY = 5
"""Every fifth document is a test document."""
_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z0-9\"'(])|(?<=[。！？])|\n\s*\n")


@dataclass(frozen=True)
class SentenceTask:
    """Sentences with their labels; `documents` has the index of each sentence's document."""

    name: str
    texts: list[str]
    labels: list[str]
    documents: list[int]

    @property
    def tested(self) -> list[bool]:
        return [document % TEST_EVERY == 0 for document in self.documents]

    @property
    def chance(self) -> float:
        """Accuracy on the test sentences of always predicting the most frequent training label."""
        counts = Counter(label for label, tested in zip(self.labels, self.tested, strict=True) if not tested)
        targets = [label for label, tested in zip(self.labels, self.tested, strict=True) if tested]
        return targets.count(counts.most_common(1)[0][0]) / len(targets) if targets and counts else 0.0


def sentence_tasks(documents: Sequence[str], seed: int, most: int) -> list[SentenceTask]:
    """The tasks over up to `most` sentences of `documents`, in document order.

    A task is omitted if its training sentences have a single label, or if it has fewer than two test sentences.
    """
    sentences = [(document, words) for document, text in enumerate(documents) for words in sentences_of(text)][:most]
    made = [_length(sentences), _content(sentences), _shift(sentences, seed)] if sentences else []
    return [task for task in made if _is_usable(task)]


def sentences_of(text: str) -> list[list[str]]:
    """The words of the sentences of a text that have `SHORTEST` to `LONGEST` words."""
    sentences = []
    for sentence in _END.split(text):
        words = words_of(" ".join(sentence.split()))
        if SHORTEST <= len(words) <= LONGEST and any(_is_word(word) for word in words):
            sentences.append(words)
    return sentences


def words_of(sentence: str) -> list[str]:
    """The words of a sentence, punctuation included."""
    if not has_han(sentence):
        return sentence.split()
    import rjieba

    return [word for word in rjieba.cut(sentence) if not word.isspace()]


def _length(sentences: Sequence[tuple[int, list[str]]]) -> SentenceTask:
    sizes = np.asarray([len(words) for _, words in sentences])
    learnt = sizes[[document % TEST_EVERY != 0 for document, _ in sentences]]
    ends = np.unique(np.quantile(learnt if len(learnt) else sizes, np.arange(1, BINS) / BINS))
    labels = [str(label) for label in np.searchsorted(ends, sizes, side="left")]
    return SentenceTask(
        "sentence_length",
        [join_words(words) for _, words in sentences],
        labels,
        [document for document, _ in sentences],
    )


def _content(sentences: Sequence[tuple[int, list[str]]]) -> SentenceTask:
    counts = Counter(word for _, words in sentences for word in {word.lower() for word in words if _is_word(word)})
    fit = [word for word, count in counts.items() if RARE * len(sentences) <= count <= COMMON * len(sentences)]
    chosen = set(sorted(fit, key=lambda word: (-counts[word], word))[:WORDS])
    held = [(document, words, chosen & {word.lower() for word in words}) for document, words in sentences]
    one = [(document, words, next(iter(inside))) for document, words, inside in held if len(inside) == 1]
    return SentenceTask(
        "word_content", [join_words(words) for _, words, _ in one], [word for *_, word in one], [d for d, *_ in one]
    )


def _shift(sentences: Sequence[tuple[int, list[str]]], seed: int) -> SentenceTask:
    random = np.random.default_rng([seed, 13])
    texts, labels, documents = [], [], []
    for document, words in sentences:
        pairs = [
            n
            for n in range(len(words) - 1)
            if _is_word(words[n]) and _is_word(words[n + 1]) and words[n].lower() != words[n + 1].lower()
        ]
        swap, position = random.random() < 0.5, random.random()
        if not pairs:
            continue
        first = pairs[int(position * len(pairs))]
        written = [*words[:first], words[first + 1], words[first], *words[first + 2 :]] if swap else words
        texts.append(join_words(written))
        labels.append("swapped" if swap else "as written")
        documents.append(document)
    return SentenceTask("bigram_shift", texts, labels, documents)


def _is_usable(task: SentenceTask) -> bool:
    sides = [
        [label for label, tested in zip(task.labels, task.tested, strict=True) if tested is side]
        for side in (False, True)
    ]
    return len(set(sides[0])) > 1 and len(sides[1]) > 1


def _is_word(word: str) -> bool:
    return word.isalpha()
