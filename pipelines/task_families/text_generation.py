"""Text generation: a text for a text, as in translation and summaries."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from pipelines.task_families import Answer, Problem, Row, TaskFamily, empty
from pipelines.task_families.writing_systems import has_han

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_CHARACTERS = 6
"""Longest run of characters that chrF counts."""
_BETA = 2
"""How many times as much chrF values recall as precision."""
_WORDS = 4
"""Longest run of words that BLEU counts."""
_COUNTED = 3 * _CHARACTERS + 2 + 2 * _WORDS
"""Columns of statistics that chrF and BLEU are computed from."""
ROUGE = {"rouge1": "rouge1", "rouge2": "rouge2", "rouge_l": "rougeL"}
"""Metric → what rouge-score calls it."""
_UNITS = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]|[^\W\u3400-\u9fff\uf900-\ufaff]+")


class TextGeneration(TaskFamily, name="text_generation"):
    """A text for a text; chrF2 and BLEU of the whole table as sacreBLEU defines them, exact match, and ROUGE as rouge-score does.

    BLEU's words are those of sacreBLEU's tokenizer `13a`, or `zh` where most right texts hold Han characters. ROUGE (Lin
    2004) is the mean of the texts' F1 over words, pairs of words and the longest common subsequence, unstemmed; its words
    are runs of a to z and digits, or, where most right texts hold Han characters, those characters and runs of others.
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
        return empty(row, *self.columns)

    def labels(self, rows: Sequence[Row]) -> list[str]:
        """None: any text may be an answer."""
        return []

    def gold(self, row: Row) -> Answer:
        """The target."""
        return row["target"]

    def statistics(
        self, gold: Sequence[Answer], answers: Sequence[Answer], labels: Sequence[str]
    ) -> NDArray[np.float64]:
        """[N, 32]: for runs of 1 to 6 characters, how many were given, asked for and right (chrF); words given and asked
        for, runs of 1 to 4 words right and given (BLEU); 1 where the texts are the same, spaces aside; the text's ROUGE."""
        import numpy as np
        from rouge_score.rouge_scorer import RougeScorer
        from sacrebleu.metrics.bleu import BLEU

        chinese = 2 * sum(map(has_han, gold)) > len(gold)
        bleu = BLEU(tokenize="zh" if chinese else "13a", effective_order=True)
        rouge = RougeScorer([*ROUGE.values()], tokenizer=Units() if chinese else None)
        rows = np.zeros((len(gold), _COUNTED + 1 + len(ROUGE)))
        for row, right, given in zip(rows, gold, answers, strict=True):
            words = bleu.sentence_score(given, [right])
            counts = [words.sys_len, words.ref_len, *words.counts, *words.totals]
            likeness = rouge.score(right, given)
            shares = [likeness[kind].fmeasure for kind in ROUGE.values()]
            row[:] = [*_character_runs(right, given), *counts, right.split() == given.split(), *shares]
        return rows

    def scores(self, statistics: NDArray[np.float64]) -> dict[str, float]:
        """chrF2 and BLEU (exponential smoothing) from the counts of all rows, 0 to 1; the share of exact matches, and the
        means of ROUGE."""
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


class Units:
    """Words for ROUGE in a text with Han characters, in the form that rouge-score asks its tokenizers for."""

    def tokenize(self, text: str) -> list[str]:
        """Each Han character, and each run of other letters and digits, without case."""
        return _UNITS.findall(text.lower())


def _character_runs(right: str, given: str) -> list[int]:
    """For runs of 1 to 6 characters, spaces left out: how many `given` holds, `right` holds, and both hold."""
    counts = []
    right, given = "".join(right.split()), "".join(given.split())
    for length in range(1, _CHARACTERS + 1):
        asked, said = (Counter(text[i : i + length] for i in range(len(text) - length + 1)) for text in (right, given))
        # what no right text could hold is not counted against the given one
        counts += [said.total() if asked else 0, asked.total(), (asked & said).total()]
    return counts


def _chrf(counts: NDArray[np.float64]) -> float:
    """chrF2 from the [6, 3] counts given, asked and right: F of the means over the runs that both sides hold."""
    given, asked, right = counts[(counts[:, 0] > 0) & (counts[:, 1] > 0)].T
    if not right.any():
        return 0.0
    precision, recall = float((right / given).mean()), float((right / asked).mean())
    return (1 + _BETA**2) * precision * recall / (_BETA**2 * precision + recall)
