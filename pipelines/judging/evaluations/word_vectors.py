"""Intrinsic evaluation of word vectors: neighbours, analogies, and correlation with human similarity judgements."""

from __future__ import annotations

import gzip
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from pydantic import Field, PositiveInt

from pipelines.errors import DataError
from pipelines.judging.evaluations import Evaluation
from pipelines.vocabulary import Ability

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pipelines.judging.evaluations.context import EvaluationContext

FIRST_SHOWN = 100
"""Rank by frequency of the first word whose neighbours are shown; each next one has twice the rank."""
DIGITS = 4
QUESTIONS_AT_ONCE = 256


class WordVectorsEvaluation(Evaluation, name="word_vectors"):
    """The input embeddings of each model, without the layers above them.

    A word is known if the model's tokenizer encodes it as one token. Analogies are answered by 3CosAdd: the word
    nearest to b − a + c other than these three, over unit vectors (Mikolov et al. 2013; Levy & Goldberg 2014, eq. 3).
    """

    paper = "arXiv:1301.3781"
    judges: ClassVar[Literal["task models", "language models", "models"]] = "language models"
    incompatible_abilities: ClassVar[Mapping[Ability, str]] = {Ability.COUNTED: "tables of counts and no vectors"}

    words: tuple[str, ...] = ()
    """Words whose neighbours are shown; if empty, words from frequent to rare."""
    neighbours: int = Field(5, ge=1, le=10_000)
    """Neighbours shown per word."""
    analogies: str | None = None
    """A file of questions: tab-separated lines of relation, a, b, c, d, or the published form with `:
    relation` lines."""
    similarity: str | None = None
    """A file of judgements: tab-separated lines of word, word, score."""
    shown: PositiveInt = Field(8, le=100)
    """Words shown if `words` is empty."""

    @property
    def reads_files(self) -> tuple[Path, ...]:
        return tuple(Path(path) for path in (self.analogies, self.similarity) if path is not None)

    def measure(self, context: EvaluationContext) -> dict[str, Any]:
        models: list[dict[str, Any]] = []
        headline: dict[str, float] = {}
        for stage, subjects in context.language_models.items():
            record = {"stage": stage, **self.measure_folder(subjects[0].folder)}
            models.append(record)
            if "analogies" in record:
                headline[f"analogies/{stage}"] = record["analogies"]["accuracy"]
            if "similarity" in record:
                headline[f"similarity/{stage}"] = record["similarity"]["spearman"]
        return {"models": models, "headline": headline}

    def measure_folder(self, folder: Path) -> dict[str, Any]:
        """The record of the model in `folder`. Raises DataError for a file that is missing or malformed."""
        table = EmbeddingTable(folder)
        record: dict[str, Any] = {"width": table.unit.shape[1], "words": int(table.ordinary.sum())}
        chosen = self.words or table.from_frequent_to_rare(self.shown)
        record["neighbours"] = {word: table.neighbours(word, self.neighbours) for word in chosen}
        if self.analogies is not None:
            record["analogies"] = answer_analogies(table, read_analogies(Path(self.analogies)))
        if self.similarity is not None:
            record["similarity"] = compare_judgements(table, read_similarity(Path(self.similarity)))
        return record


class EmbeddingTable:
    """The input embeddings of a saved model, and its vocabulary."""

    def __init__(self, folder: Path) -> None:
        from tokenizers import Tokenizer
        from transformers import AutoModel, AutoTokenizer

        from pipelines.networks import register

        register()
        self._tokenizer: Any = Tokenizer.from_file(str(folder / "tokenizer.json"))
        settings = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
        model = AutoModel.from_pretrained(folder, use_safetensors=True, local_files_only=True, trust_remote_code=False)
        vectors = model.get_input_embeddings().weight.detach().float().numpy()
        size = min(len(vectors), self._tokenizer.get_vocab_size())
        self.unit: NDArray[np.float32] = vectors[:size] / np.maximum(
            np.linalg.norm(vectors[:size], axis=1, keepdims=True), 1e-12
        )
        """float32 [V, H]: vectors of length one."""
        self._special = set(settings.all_special_ids)
        self.ordinary: NDArray[np.bool_] = ~np.isin(np.arange(size), settings.all_special_ids)
        """bool [V]: what is no special token."""
        counts = getattr(model.config, "token_counts", None)
        # without counts, ids are assumed to be in order of descending frequency, as in most tokenizers
        self._rank = np.arange(size) if counts is None else np.argsort(-np.asarray(counts[:size]), kind="stable")

    def find(self, word: str) -> int | None:
        """Token id of `word`; None if the tokenizer encodes it as none or several tokens."""
        ids = self._tokenizer.encode(word, add_special_tokens=False).ids
        return ids[0] if len(ids) == 1 and ids[0] not in self._special and ids[0] < len(self.unit) else None

    def words(self, text: str) -> list[int]:
        """Token ids of `text` without special tokens, such as that of unknown words."""
        ids = self._tokenizer.encode(text, add_special_tokens=False).ids
        return [token for token in ids if token < len(self.unit) and self.ordinary[token]]

    def word(self, token: int) -> str:
        """The text of a token."""
        return str(self._tokenizer.decode([token])).strip()

    def from_frequent_to_rare(self, number: int) -> list[str]:
        """Up to `number` words of rank 100, 200, 400 …; in a small vocabulary, at least the most frequent word."""
        ranked = [int(token) for token in self._rank if self.ordinary[token]]
        ranks = [rank for rank in (FIRST_SHOWN << step for step in range(number)) if rank < len(ranked)]
        return [self.word(ranked[rank]) for rank in ranks or [0]]

    def neighbours(self, word: str, number: int) -> list[tuple[str, float]] | None:
        """The `number` words with the highest cosine to `word`, with that cosine; None for an unknown word."""
        token = self.find(word)
        if token is None:
            return None
        cosine = np.where(self.ordinary, self.unit @ self.unit[token], -np.inf)
        cosine[token] = -np.inf
        best = np.argsort(-cosine, kind="stable")[:number]
        return [(self.word(other), round(float(cosine[other]), DIGITS)) for other in best.tolist()]


def answers_right(
    table: EmbeddingTable, questions: Sequence[tuple[str, str, str, str, str]]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Whether the four words of each question (relation, a, b, c, d) are known, and whether d is the word nearest to
    b − a + c other than these three; bool [N] each. A question with an unknown word is answered wrong."""
    tokens = [[table.find(word) for word in words] for _, *words in questions]
    known = np.asarray([None not in one for one in tokens], dtype=bool)
    ids = np.asarray([one for one in tokens if None not in one], dtype=np.int64).reshape(-1, 4)
    right = np.zeros(len(ids), dtype=bool)
    for first in range(0, len(ids), QUESTIONS_AT_ONCE):
        a, b, c, d = ids[first : first + QUESTIONS_AT_ONCE].T
        cosine = (table.unit[b] - table.unit[a] + table.unit[c]) @ table.unit.T
        cosine[:, ~table.ordinary] = -np.inf
        for given in (a, b, c):
            cosine[np.arange(len(a)), given] = -np.inf
        right[first : first + QUESTIONS_AT_ONCE] = cosine.argmax(1) == d
    answered = np.zeros(len(known), dtype=bool)
    answered[known] = right
    return known, answered


def answer_analogies(table: EmbeddingTable, questions: Sequence[tuple[str, str, str, str, str]]) -> dict[str, Any]:
    """Accuracy over the questions (relation, a, b, c, d), by relation and overall; unknown words are counted
    separately.

    `accuracy` is over the questions whose four words are known, with its 95 % Wilson interval; `accuracy_of_all` counts
    the others as wrong.
    """
    from scipy.stats import binomtest

    known, answered = answers_right(table, questions)
    right = answered[known]
    relations: dict[str, list[int]] = {}
    for (relation, *_), is_known, correct in zip(questions, known.tolist(), answered.tolist(), strict=True):
        if is_known:
            tally = relations.setdefault(relation, [0, 0])
            tally[0] += correct
            tally[1] += 1
    record: dict[str, Any] = {
        "questions": len(questions),
        "coverage": round(len(right) / len(questions), DIGITS),
        "accuracy": round(float(right.mean()) if len(right) else 0.0, DIGITS),
        "accuracy_of_all": round(float(right.sum()) / len(questions), DIGITS),
        "relations": {name: {"right": tally[0], "questions": tally[1]} for name, tally in sorted(relations.items())},
    }
    if len(right):
        ends = binomtest(int(right.sum()), len(right)).proportion_ci(0.95, "wilson")
        record |= {"low": round(float(ends.low), DIGITS), "high": round(float(ends.high), DIGITS)}
    return record


def compare_judgements(table: EmbeddingTable, pairs: Sequence[tuple[str, str, float]]) -> dict[str, Any]:
    """Spearman's correlation of cosines and scores over the pairs with both words known, with its 95 % interval.

    The interval is Fisher's with the variance of Bonett & Wright (2000); the correlation is 0 with fewer than four
    pairs.
    """
    from scipy.stats import spearmanr

    tokens = [(table.find(a), table.find(b), score) for a, b, score in pairs]
    known = [(a, b, score) for a, b, score in tokens if a is not None and b is not None]
    record: dict[str, Any] = {"pairs": len(pairs), "coverage": round(len(known) / len(pairs), DIGITS), "spearman": 0.0}
    scores = [score for *_, score in known]
    if len(known) < 4 or len(set(scores)) == 1:
        return record
    cosines = [float(table.unit[a] @ table.unit[b]) for a, b, _ in known]
    value = float(spearmanr(cosines, scores).statistic)
    edge = 1.96 * math.sqrt((1 + value**2 / 2) / (len(known) - 3))
    center = math.atanh(max(-0.999999, min(0.999999, value)))
    return record | {
        "spearman": round(value, DIGITS),
        "low": round(math.tanh(center - edge), DIGITS),
        "high": round(math.tanh(center + edge), DIGITS),
    }


def read_analogies(path: Path) -> list[tuple[str, str, str, str, str]]:
    """Questions (relation, a, b, c, d): a is to b as c is to d."""
    questions: list[tuple[str, str, str, str, str]] = []
    relation = ""
    for number, line in _lines(path):
        if line.startswith(":"):
            relation = line[1:].strip()
            continue
        fields = line.split("\t") if "\t" in line else line.split()
        if len(fields) == 4:
            fields = [relation, *fields]
        if len(fields) != 5:
            raise DataError(f"{path}, line {number}: {len(fields)} fields; expected a, b, c, d or relation, a, b, c, d")
        questions.append((fields[0], fields[1], fields[2], fields[3], fields[4]))
    return _not_empty(questions, path)


def read_similarity(path: Path) -> list[tuple[str, str, float]]:
    """Judgements (word, word, score). A first line without a score is a header."""
    pairs: list[tuple[str, str, float]] = []
    for number, line in _lines(path):
        fields = line.split("\t")
        try:
            first, second, score = fields[0], fields[1], float(fields[2])
        except (IndexError, ValueError):
            if number == 1:
                continue
            raise DataError(f"{path}, line {number}: expected word, word, score, separated by tabs") from None
        pairs.append((first, second, score))
    return _not_empty(pairs, path)


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Numbers and texts of the non-empty lines of a file."""
    if not path.is_file():
        raise DataError(f"{path}: no such file; give a path, absolute or relative to the project")
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as file:
        yield from ((number, line.strip()) for number, line in enumerate(file, 1) if line.strip())


def _not_empty(rows: list[Any], path: Path) -> list[Any]:
    if not rows:
        raise DataError(f"{path}: the file is empty; it needs at least one line")
    return rows
