"""N-gram tables as ARPA files, the exchange format of n-gram language models (Doug Paul at MIT Lincoln Labs; SRILM's
ngram-format).

    \\data\\
    ngram 1=4
    ngram 2=3

    \\1-grams:
    -0.9031	word	-0.3010
    …
    \\end\\

A line is log₁₀ p(last word | the others), the words, and log₁₀ of the back-off weight, if it is not 0. The end of a
document, one token here, is `<s>` where it begins an n-gram and `</s>` where it ends one. Shapes: n the n-grams of an
order, V the vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pipelines.errors import DataError
from pipelines.lineage.disk import atomic_write

if TYPE_CHECKING:
    from numpy.typing import NDArray

START, END, UNKNOWN = "<s>", "</s>", "<unk>"
NEVER = -99.0
"""log₁₀ of the probability of what is never predicted, by convention."""
LOG10 = math.log(10)
LINES = 2**18
"""N-grams that are written at once."""
LONGEST_LINE = 2**16
"""Most characters of a line: no order of words is as long."""


@dataclass(frozen=True)
class ArpaVocabulary:
    """The words of an ARPA file as ids."""

    words: Sequence[str]
    """The word of each id [V]."""
    end: int
    """Id of the end of a document."""

    @classmethod
    def of(cls, texts: Sequence[str], end: int, unknown: int | None) -> ArpaVocabulary:
        """The words of a tokenizer whose strings are `texts`. Raises DataError for one that a line cannot hold."""
        words = list(texts)
        if unknown is not None:
            words[unknown] = UNKNOWN
        words[end] = END
        for number, word in enumerate(words):
            if not word or any(sign.isspace() for sign in word):
                raise DataError(
                    f"token {number} ({word!r}) is empty or has a space, and words of an ARPA file are separated by "
                    "spaces; use a tokenizer of words or byte pairs"
                )
        return cls(words, end)


def write_arpa(tables: Mapping[str, NDArray[Any]], vocabulary: ArpaVocabulary, path: Path) -> None:
    """Write the `tables` of an n-gram model, by the names of its weights, into the file `path`."""
    orders = sum(name.endswith("log_probs") for name in tables)
    sizes = [len(tables[f"tables.{number}.log_probs"]) for number in range(orders)]
    with atomic_write(path) as temporary, temporary.open("w", encoding="utf-8", newline="\n") as file:
        file.write("\\data\\\n")
        # the end of a document is two words: what begins one, and what ends one
        file.writelines(f"ngram {number + 1}={size + (not number)}\n" for number, size in enumerate(sizes))
        for number in range(orders):
            file.write(f"\n\\{number + 1}-grams:\n")
            if not number:
                backoff = float(tables["tables.0.backoffs"][vocabulary.end]) / LOG10 if orders > 1 else 0.0
                file.write(f"{NEVER:g}\t{START}{_backoff(backoff)}\n")
            for begin in range(0, sizes[number], LINES):
                file.writelines(_lines(tables, vocabulary, number, slice(begin, min(begin + LINES, sizes[number]))))
        file.write("\n\\end\\\n")


def _lines(tables: Mapping[str, NDArray[Any]], vocabulary: ArpaVocabulary, number: int, part: slice) -> Iterator[str]:
    size, end = len(vocabulary.words), vocabulary.end
    index, ids = np.arange(part.start, part.stop), list[list[int]]()
    for order in range(number, 0, -1):
        keys = tables[f"tables.{order}.keys"][index]
        ids.append((keys % size).tolist())
        index = keys // size
    ids.append(index.tolist())
    log_probs = (tables[f"tables.{number}.log_probs"][part].astype(np.float64) / LOG10).tolist()
    own = tables.get(f"tables.{number}.backoffs")
    backoffs = [0.0] * len(log_probs) if own is None else (own[part].astype(np.float64) / LOG10).tolist()
    for log_prob, backoff, *row in zip(log_probs, backoffs, *reversed(ids), strict=True):
        if not number and row[0] == end:
            backoff = 0.0  # that of the beginning
        words = [
            START if token == end and at < len(row) - 1 else vocabulary.words[token] for at, token in enumerate(row)
        ]
        yield f"{log_prob:.9g}\t{' '.join(words)}{_backoff(backoff)}\n"


def _backoff(value: float) -> str:
    return f"\t{value:.9g}" if value else ""


def read_arpa(path: Path, vocabulary: ArpaVocabulary) -> dict[str, NDArray[Any]]:
    """The tables in the file `path`, by the names of an n-gram model's weights.

    Raises DataError, naming the line, for a file that is cut short or malformed, and for words that are not exactly
    those of `vocabulary`.
    """
    ids = {word: number for number, word in enumerate(vocabulary.words)}
    with path.open(encoding="utf-8", errors="strict", newline="\n") as file:
        reader = _Reader(path, file)
        try:
            sizes = reader.header()
            orders = [reader.order(number, size, ids, vocabulary.end) for number, size in enumerate(sizes, start=1)]
            reader.expect("\\end\\")
        except UnicodeDecodeError:
            raise reader.error("the line is not UTF-8") from None
    tables = _unigrams(path, vocabulary, orders[0], len(orders) > 1)
    for number, (rows, log_probs, backoffs) in enumerate(orders[1:], start=1):
        keys = _keys(path, tables, rows, len(vocabulary.words))
        ascending = np.argsort(keys, kind="stable")
        keys = keys[ascending]
        if len(twice := np.flatnonzero(keys[1:] == keys[:-1])):
            words = " ".join(vocabulary.words[token] for token in rows[ascending[twice[0]]])
            raise DataError(f"{path}: the {number + 1}-gram {words!r} is given twice; keep one line")
        tables[f"tables.{number}.keys"] = keys
        tables[f"tables.{number}.log_probs"] = log_probs[ascending]
        if number + 1 < len(orders):
            tables[f"tables.{number}.backoffs"] = backoffs[ascending]
    return tables


_Order = tuple["NDArray[np.int64]", "NDArray[np.float32]", "NDArray[np.float32]"]
"""Token ids [n, order] of each line, log-probabilities [n] and back-off weights [n], in natural logarithms."""


class _Reader:
    """The lines of an ARPA file."""

    def __init__(self, path: Path, file: Any) -> None:
        self.path, self.file, self.line = path, file, 0

    def error(self, message: str) -> DataError:
        return DataError(f"{self.path}:{self.line}: {message}")

    def next(self) -> str:
        """The next line that is not empty, without spaces at its ends."""
        while True:
            text: str = self.file.readline(LONGEST_LINE)
            self.line += 1
            if not text:
                raise self.error("the file ends before \\end\\: it was cut short; copy or write it again")
            if stripped := text.strip():
                return stripped

    def expect(self, mark: str) -> None:
        if (text := self.next()) != mark:
            raise self.error(f"expected {mark}, got {text[:60]!r}; is this an ARPA file, and whole?")

    def header(self) -> list[int]:
        """Number of n-grams of each order."""
        self.expect("\\data\\")
        sizes: list[int] = []
        text = self.next()
        while text.startswith("ngram "):
            order, _, size = text.removeprefix("ngram ").partition("=")
            if not (order.strip() == str(len(sizes) + 1) and size.strip().isdecimal()):
                raise self.error(f"expected 'ngram {len(sizes) + 1}=' and a number, got {text[:60]!r}")
            sizes.append(int(size))
            text = self.next()
        if text != "\\1-grams:" or not sizes:
            raise self.error(f"expected \\1-grams: after the numbers of n-grams, got {text[:60]!r}")
        return sizes

    def order(self, order: int, size: int, ids: Mapping[str, int], end: int) -> _Order:
        """The lines of the n-grams of `order`."""
        if order > 1:
            self.expect(f"\\{order}-grams:")
        tokens, log_probs, backoffs = list[list[int]](), list[float](), list[float]()
        begins = {**ids, START: end}
        for _ in range(size):
            parts = self.next().split()
            if len(parts) not in (order + 1, order + 2):
                raise self.error(
                    f"expected a number, {order} word{'s' * (order > 1)} and a back-off weight, got "
                    f"{' '.join(parts)[:60]!r}; the header promises {size:,} {order}-grams"
                )
            try:
                values = float(parts[0]), float(parts[order + 1]) if len(parts) > order + 1 else 0.0
                row = [begins[word] for word in parts[1 : order + 1]]
            except ValueError:
                raise self.error(
                    f"{' '.join(parts)[:60]!r}: expected a number first and, after the words, last"
                ) from None
            except KeyError as unknown:
                raise self.error(
                    f"the word {unknown.args[0]!r} is none of the stage's tokenizer; count and read with the same one"
                ) from None
            if order == 1 and parts[1] == START:
                row = [-1]
            tokens.append(row)
            log_probs.append(values[0])
            backoffs.append(values[1])
        shape = np.asarray(tokens, dtype=np.int64).reshape(-1, order)
        logs = (np.asarray(one, dtype=np.float64) * LOG10 for one in (log_probs, backoffs))
        first, second = (one.astype(np.float32) for one in logs)
        return shape, first, second


def _unigrams(path: Path, vocabulary: ArpaVocabulary, unigrams: _Order, contexts: bool) -> dict[str, NDArray[Any]]:
    rows, log_probs, backoffs = unigrams[0][:, 0], unigrams[1], unigrams[2]
    start, words = np.flatnonzero(rows < 0), np.flatnonzero(rows >= 0)
    seen = np.bincount(rows[words], minlength=len(vocabulary.words))
    if len(odd := np.flatnonzero(seen != 1)):
        word, times = vocabulary.words[odd[0]], int(seen[odd[0]])
        given = "is given twice" if times else "of the stage's tokenizer is not given"
        raise DataError(f"{path}: the word {word!r} {given}; count and read with the same tokenizer")
    own = np.zeros((2, len(vocabulary.words)), dtype=np.float32)
    own[:, rows[words]] = log_probs[words], backoffs[words]
    if len(start):
        own[1, vocabulary.end] = backoffs[start[0]]
    return {"tables.0.log_probs": own[0], **({"tables.0.backoffs": own[1]} if contexts else {})}


def _keys(path: Path, tables: Mapping[str, NDArray[Any]], rows: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """int64 [n]: key of each n-gram of token ids `rows` [n, order], whose contexts are in `tables`."""
    index = rows[:, 0]
    for number in range(1, rows.shape[1] - 1):
        shorter, keys = tables[f"tables.{number}.keys"], index * size + rows[:, number]
        index = np.searchsorted(shorter, keys)
        known = index < len(shorter)
        known[known] = shorter[index[known]] == keys[known]
        if not known.all():
            order, line = rows.shape[1], int(np.flatnonzero(~known)[0]) + 1
            raise DataError(
                f"{path}: the first {number + 1} words of {order}-gram {line} are no {number + 1}-gram of the file; it "
                "is damaged, or was pruned without its contexts"
            )
    return index * size + rows[:, -1]
