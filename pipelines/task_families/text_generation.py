"""Text generation from a text, as in translation and summarisation."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from pipelines.task_families import Answer, Problem, Row, TaskFamily, empty_text_problem
from pipelines.task_families.writing_systems import has_han

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_CHARACTERS = 6
"""Maximum n of chrF's character n-grams."""
_BETA = 2
"""Weight of recall relative to precision in chrF."""
_WORDS = 4
"""Maximum n of BLEU's word n-grams."""
_COUNTED = 3 * _CHARACTERS + 2 + 2 * _WORDS
"""Number of statistics for chrF and BLEU."""
ROUGE = {"rouge1": "rouge1", "rouge2": "rouge2", "rouge_l": "rougeL"}
"""Metric → name in rouge-score."""
_UNITS = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]|[^\W\u3400-\u9fff\uf900-\ufaff]+")


class TextGeneration(TaskFamily, name="text_generation"):
    """A target text for a source text; corpus-level chrF2 and BLEU as in sacreBLEU, exact match, and ROUGE as in
    rouge-score.

    BLEU uses sacreBLEU's tokenizer `13a`, or `zh` if most references contain Han characters. ROUGE (Lin 2004) is the
    mean F1 of the texts over unigrams, bigrams and the longest common subsequence, unstemmed; its words are runs of a
    to z and digits, or, if most references contain Han characters, those characters and runs of others.
    """

    paper: ClassVar[str] = "arXiv:1804.08771"
    columns: ClassVar[dict[str, str]] = {"source": "string", "target": "string"}
    target: ClassVar[tuple[str, ...]] = ("target",)
    hub_category: ClassVar[str | None] = "text-generation"
    metrics: ClassVar[tuple[str, ...]] = ("chrf", "bleu", "exact_match", *ROUGE)

    def text(self, row: Row) -> str:
        """The source."""
        return str(row["source"])

    def problem(self, row: Row) -> Problem | None:
        """An empty source or target."""
        return empty_text_problem(row, *self.columns)

    def labels(self, rows: Sequence[Row]) -> list[str]:
        """Empty: any text may be an answer."""
        return []

    def gold(self, row: Row) -> Answer:
        """The target."""
        return row["target"]

    def statistics(
        self, gold: Sequence[Answer], answers: Sequence[Answer], labels: Sequence[str]
    ) -> NDArray[np.float64]:
        """[N, 32]: given, expected and matching character n-grams, n from 1 to 6 (chrF); given and expected words,
        matching and given word n-grams, n from 1 to 4 (BLEU); 1 for an exact match, ignoring spaces; ROUGE of the
        text."""
        import numpy as np
        from rouge_score.rouge_scorer import RougeScorer
        from sacrebleu.metrics.bleu import BLEU

        chinese = 2 * sum(map(has_han, gold)) > len(gold)
        bleu = BLEU(tokenize="zh" if chinese else "13a", effective_order=True)
        rouge = RougeScorer([*ROUGE.values()], tokenizer=HanTokenizer() if chinese else None)
        rows = np.zeros((len(gold), _COUNTED + 1 + len(ROUGE)))
        for row, right, given in zip(rows, gold, answers, strict=True):
            words = bleu.sentence_score(given, [right])
            counts = [words.sys_len, words.ref_len, *words.counts, *words.totals]
            rouge_scores = rouge.score(right, given)
            shares = [rouge_scores[kind].fmeasure for kind in ROUGE.values()]
            row[:] = [*_character_ngrams(right, given), *counts, right.split() == given.split(), *shares]
        return rows

    def scores(self, statistics: NDArray[np.float64]) -> dict[str, float]:
        """chrF2 and BLEU (exponential smoothing) from the summed counts, 0 to 1; share of exact matches; mean ROUGE."""
        from sacrebleu.metrics.bleu import BLEU

        totals = statistics.sum(axis=0)
        words = totals[3 * _CHARACTERS : _COUNTED]
        bleu = BLEU.compute_bleu(
            list(words[2 : 2 + _WORDS]), list(words[2 + _WORDS :]), int(words[0]), int(words[1]), smooth_method="exp"
        )
        return {
            "chrf": _chrf(totals[: 3 * _CHARACTERS].reshape(_CHARACTERS, 3)),
            "bleu": float(bleu.score / 100),
            "exact_match": float(totals[_COUNTED] / len(statistics)),
            **{
                metric: float(value / len(statistics))
                for metric, value in zip(ROUGE, totals[_COUNTED + 1 :], strict=True)
            },
        }

    def source(self, row: Row, labels: Sequence[str]) -> str:
        """`text: … output:`"""
        return f"text: {row['source']} output:"

    def answer_text(self, row: Row) -> str:
        """The target."""
        return str(row["target"])

    def read_answer(self, text: str, row: Row, labels: Sequence[str]) -> Answer:
        """The text itself."""
        return text.strip()


class HanTokenizer:
    """Tokenizer for ROUGE in texts with Han characters, with the interface of rouge-score's tokenizers."""

    def tokenize(self, text: str) -> list[str]:
        """Han characters and runs of other letters and digits, lower case."""
        return _UNITS.findall(text.lower())


def _character_ngrams(right: str, given: str) -> list[int]:
    """For character n-grams, n from 1 to 6, without spaces: count in `given`, in `right`, and in both."""
    counts = []
    right, given = "".join(right.split()), "".join(given.split())
    for length in range(1, _CHARACTERS + 1):
        expected, generated = (
            Counter(text[i : i + length] for i in range(len(text) - length + 1)) for text in (right, given)
        )
        # n-grams longer than the reference do not count against the given text
        counts += [generated.total() if expected else 0, expected.total(), (expected & generated).total()]
    return counts


def _chrf(counts: NDArray[np.float64]) -> float:
    """chrF2 from [6, 3] counts (given, expected, matching): F of mean precision and recall over n that both sides
    have."""
    given, expected, right = counts[(counts[:, 0] > 0) & (counts[:, 1] > 0)].T
    if not right.any():
        return 0.0
    precision, recall = float((right / given).mean()), float((right / expected).mean())
    return (1 + _BETA**2) * precision * recall / (_BETA**2 * precision + recall)
