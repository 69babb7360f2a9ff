"""Encoding of questions with their contexts, a long context as several overlapping rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pipelines.errors import DataError, RecipeError
from pipelines.parts.heads.token_rows import TokenRows, column
from pipelines.task_families.columns import Columns
from pipelines.task_families.encoding import EncodedExamples, FieldArrays, pad_rows
from pipelines.task_families.excerpt import number_of
from pipelines.task_families.tokenized import RowTexts
from pipelines.vocabulary import Field

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from transformers import PreTrainedTokenizerFast

    from pipelines.task_families import Row
    from pipelines.task_families.tokenized import Annotator

CONTEXT = 1
"""Sequence id of the context in the encoded pair (question, context)."""


@dataclass(frozen=True)
class Window:
    """The tokens of one row and the characters of the context that they cover."""

    answerable: NDArray[np.int64]
    """int64 [L]: 1 for tokens of the context."""
    characters: NDArray[np.int64]
    """int64 [L, 2]: begin and end (exclusive) of each context token in characters, without surrounding whitespace."""

    @classmethod
    def of(cls, encoding: Any, context: str) -> Window:
        """The window of `context` that `encoding` contains."""
        answerable = np.asarray([text == CONTEXT for text in encoding.sequence_ids], dtype=np.int64)
        characters = np.zeros((len(answerable), 2), dtype=np.int64)
        for token in np.flatnonzero(answerable):
            begin, end = encoding.offsets[token]
            while begin < end and context[begin].isspace():
                begin += 1
            while begin < end and context[end - 1].isspace():
                end -= 1
            characters[token] = begin, end
        return cls(answerable, characters)

    def tokens(self, begin: int, end: int) -> tuple[int, int]:
        """First and last token of the characters from `begin` up to `end`; 0, 0 if the window does not contain all of
        them."""
        context = np.flatnonzero(self.answerable)
        if len(context) == 0 or begin < self.characters[context[0], 0] or end > self.characters[context[-1], 1]:
            return 0, 0
        covered = context[(self.characters[context, 1] > begin) & (self.characters[context, 0] < end)]
        return (int(covered[0]), int(covered[-1])) if len(covered) else (0, 0)


class EncodedContexts(EncodedExamples):
    """Encoded questions with contexts; each row is an item."""

    def __init__(
        self,
        examples: Sequence[Row],
        rows: TokenRows,
        windows: tuple[Sequence[NDArray[np.int64]], Sequence[NDArray[np.int64]]],
        owners: NDArray[np.int64],
        spans: NDArray[np.int64] | None,
    ) -> None:
        self.examples, self.lengths, self.owners = examples, rows.lengths, owners
        self._rows, self._spans = rows, spans
        self._answerable, self._characters = windows

    def window(self, item: int) -> Window:
        """The window of an item."""
        return Window(self._answerable[item], self._characters[item])

    def collate(self, chosen: NDArray[np.int64]) -> FieldArrays:
        """The items `chosen` as rows, with `ANSWERABLE` and, if the ground truth is known, `SPAN_LABELS`."""
        fields = self._rows.batch(chosen.tolist())
        fields[Field.ANSWERABLE] = pad_rows([self._answerable[item] for item in chosen], 0)
        if self._spans is not None:
            fields[Field.SPAN_LABELS] = self._spans[chosen]
        return fields

    def columns(self) -> Columns:
        spans: Columns = {} if self._spans is None else {"spans": self._spans}
        counts = np.bincount(self.owners, minlength=len(self.examples))
        windows: Columns = {"answerable": self._answerable, "characters": self._characters, "counts": counts}
        return {**self._rows.columns(), **windows, **spans}

    def with_columns(self, examples: Sequence[Row], columns: Columns) -> EncodedContexts:
        owners = np.repeat(np.arange(len(examples)), columns["counts"])
        windows = columns["answerable"], columns["characters"]
        return EncodedContexts(examples, self._rows.with_columns(columns), windows, owners, columns.get("spans"))


def encode_contexts(
    examples: Sequence[Row],
    tokenizer: PreTrainedTokenizerFast,
    length: int,
    *,
    longest_question: int,
    overlap: float,
    answers: bool,
    annotations: Sequence[Annotator] = (),
) -> EncodedContexts:
    """Encode in rows of at most `length` tokens: the question, truncated to `longest_question` tokens and to half of a
    row, and as much of the context as fits, of which the share `overlap` is repeated from the row before.

    The ground truth is the first answer of an example. Raises RecipeError when nothing fits in `length`, and DataError
    for an example without question or context, or whose answer is not at its stated offset.
    """
    fast = tokenizer.backend_tokenizer
    frame = fast.num_special_tokens_to_add(True)
    most = min(longest_question, (length - frame) // 2)
    if most < 1:
        raise RecipeError(
            f"budget.length: {length} tokens have no room for a question and a context besides {frame} special tokens; "
            "raise it"
        )
    questions, contexts = ([str(text) for text in column(examples, name)] for name in ("question", "context"))
    for name, texts in (("question", questions), ("context", contexts)):
        for index, text in enumerate(texts):
            if not text.strip():
                raise DataError(f"example {number_of(examples, index)}: the column {name!r} is empty")
    fast.no_padding()
    fast.no_truncation()
    questions = [_truncated(fast, question, most) for question in questions]
    shared = int(overlap * (length - frame - most))
    fast.enable_truncation(length, stride=shared, strategy="only_second")
    encodings = fast.encode_batch(list(zip(questions, contexts, strict=True)))
    fast.no_truncation()
    every = [[encoding, *encoding.overflowing] for encoding in encodings]
    owners = np.repeat(np.arange(len(every)), [len(parts) for parts in every])
    flat = [part for parts in every for part in parts]
    windows = [Window.of(part, contexts[owner]) for part, owner in zip(flat, owners, strict=True)]
    spans = None
    if answers:
        answer_characters = [_answer(number_of(examples, index), example) for index, example in enumerate(examples)]
        tokens = [window.tokens(*answer_characters[owner]) for window, owner in zip(windows, owners, strict=True)]
        spans = np.asarray(tokens, dtype=np.int64).reshape(-1, 2)
    pairs = [(questions[owner], contexts[owner]) for owner in owners]
    columns = [("question", "context")] * len(pairs)
    sources = RowTexts.of(annotations, examples, owners.tolist(), pairs, columns)
    parts = [one.answerable for one in windows], [one.characters for one in windows]
    return EncodedContexts(examples, TokenRows.of(flat, tokenizer, sources), parts, owners, spans)


def _truncated(fast: Any, question: str, most: int) -> str:
    """The longest beginning of `question` of at most `most` tokens."""
    while len(encoding := fast.encode(question, add_special_tokens=False)) > most:
        # a character may be several tokens, and a truncated word is tokenized differently
        question = question[: min(encoding.offsets[most - 1][1], len(question) - 1)]
    return question


def _answer(number: int, example: Row) -> tuple[int, int]:
    """Begin and end (exclusive) of the answer in characters, without surrounding whitespace; −1, −1 if there is
    none."""
    texts, starts = example.get("answer_texts"), example.get("answer_starts")
    if texts is None or starts is None or len(texts) != len(starts):
        raise DataError(f"example {number}: requires the columns 'answer_texts' and 'answer_starts' of equal length")
    if len(texts) == 0:
        return -1, -1
    text, start = str(texts[0]), int(starts[0])
    if start < 0 or not text.strip() or example["context"][start : start + len(text)] != text:
        raise DataError(f"example {number}: the answer {text!r} is not at character {start} of 'context'")
    start += len(text) - len(text.lstrip())
    return start, start + len(text.strip())
