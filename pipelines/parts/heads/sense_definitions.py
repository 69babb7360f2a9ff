"""Senses of words by their definitions (Kumar et al. 2019)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from pipelines.errors import DataError, RecipeError
from pipelines.parts.heads import Batch, Head, Signals, backbone_inputs
from pipelines.parts.heads.layer_signals import LAYERS, NEED_ABILITIES, layer_signals
from pipelines.parts.heads.pooled_text import highest
from pipelines.parts.heads.row_groups import RowGroups
from pipelines.parts.heads.token_rows import TokenRows, column, refuse_empty
from pipelines.task_families.encoding import FieldArrays, pad_rows
from pipelines.task_families.excerpt import number_of
from pipelines.vocabulary import Ability, Field, Signal

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from transformers import PretrainedConfig, PreTrainedModel, PreTrainedTokenizerFast

    from pipelines.task_families import Answer, Row, Task
    from pipelines.task_families.columns import Columns
    from pipelines.task_families.encoding import EncodedExamples

SENSE_ROWS = Field.of_rows("sense_rows")
"""int64 [B, 1 + K]: 1 for the row of the context and of each definition, 0 for padding up to the example with the most
definitions."""
WORD_TOKENS = Field.of_rows("word_tokens")
"""int64 [B, L]: 1 for the tokens of the word in the row of the context."""


class SenseDefinitionsHead(Head, name="sense_definitions"):
    """Scores (W w + b) · d of definitions: w the mean state of a word's tokens in its context, d that of all tokens of
    a definition, from the same backbone.

    A sense is known by its definition alone, so that one without a training example is scored like any other. In the
    paper the definitions are read by an encoder of their own, which was trained on WordNet's relations and stays as it
    is. Rows of an example are adjacent, the context first; each may have `length` tokens, of a longer context those
    around the word.
    """

    paper = "Kumar et al. 2019"
    needs = frozenset({Field.INPUT_IDS, Field.ATTENTION_MASK, SENSE_ROWS, WORD_TOKENS})
    provides = LAYERS | {Signal.LOGITS, Signal.POOLED}
    needs_abilities = frozenset({Ability.ONE_STACK, Ability.BIDIRECTIONAL})
    needs_ability_for = NEED_ABILITIES
    reads = frozenset({"word_senses"})
    labels = frozenset({Field.LABELS})
    answers_from: ClassVar[frozenset[Signal]] = frozenset({Signal.LOGITS})

    def build(self, config: PretrainedConfig, task: Task | None) -> PreTrainedModel:
        from pipelines.networks.sense_scorer import SenseScorer

        return SenseScorer(config)

    def signals(self, network: PreTrainedModel, batch: Batch, requested: frozenset[Signal]) -> dict[Signal, Any]:
        own = {str(name): batch[name] for name in (SENSE_ROWS, WORD_TOKENS)}
        inputs = backbone_inputs(batch, network) | own
        outputs = network(**inputs, output_hidden_states=bool(LAYERS & requested))
        signals = {Signal.LOGITS: outputs.logits, Signal.POOLED: outputs.vectors}
        return signals | layer_signals(network, outputs, requested)

    def encode(
        self,
        examples: Sequence[Row],
        task: Task,
        tokenizer: PreTrainedTokenizerFast,
        length: int,
        *,
        answers: bool = True,
    ) -> EncodedExamples:
        for name in ("context", "word", "word_index", "definitions", *(("answer",) if answers else ())):
            column(examples, name)
        for index, example in enumerate(examples):
            if problem := task.family.problem(example if answers else {**example, "answer": 0}):
                raise DataError(f"example {number_of(examples, index)}: {problem}")
        contexts, words = _contexts(examples, tokenizer, length)
        all_definitions = [example["definitions"] for example in examples]
        fast = tokenizer.backend_tokenizer
        fast.enable_truncation(length)
        definitions = iter(fast.encode_batch_fast([text for texts in all_definitions for text in texts]))
        fast.no_truncation()
        encodings = [
            encoding
            for context, texts in zip(contexts, all_definitions, strict=True)
            for encoding in (context, *(next(definitions) for _ in texts))
        ]
        counts = np.asarray([1 + len(texts) for texts in all_definitions], dtype=np.int64)
        rows = TokenRows.of(encodings, tokenizer)
        refuse_empty(rows, examples, np.repeat(np.arange(len(examples)), counts).tolist())
        labels = np.asarray(column(examples, "answer"), dtype=np.int64) if answers else None
        return WordsWithDefinitions(examples, rows, counts, words, labels)

    def answer(
        self,
        network: PreTrainedModel,
        encoded: EncodedExamples,
        outputs: Iterable[tuple[NDArray[np.int64], Batch, Signals]],
        task: Task,
        tokenizer: PreTrainedTokenizerFast,
    ) -> list[Answer]:
        return [int(index) for index in highest(encoded, outputs)]


class WordsWithDefinitions(RowGroups):
    """Encoded examples, each the row of a context and those of its definitions.

    Args, besides those of RowGroups:
        words: int64 [L] for each example, 1 for the tokens of the word in the context's row.
    """

    def __init__(
        self,
        examples: Sequence[Row],
        rows: TokenRows,
        counts: NDArray[np.int64],
        words: Sequence[NDArray[np.int64]],
        labels: NDArray[np.int64] | None,
    ) -> None:
        super().__init__(examples, rows, counts, SENSE_ROWS, labels)
        self._words = words

    def collate(self, chosen: NDArray[np.int64]) -> FieldArrays:
        fields = super().collate(chosen)
        words = np.zeros((len(chosen), fields[Field.INPUT_IDS].shape[1]), dtype=np.int64)
        padded = pad_rows([self._words[item] for item in chosen], 0)
        words[:, : padded.shape[1]] = padded[:, : words.shape[1]]
        return {**fields, WORD_TOKENS: words}

    def columns(self) -> Columns:
        return {**super().columns(), "words": self._words}

    def with_columns(self, examples: Sequence[Row], columns: Columns) -> WordsWithDefinitions:
        rows = self._rows.with_columns(columns)
        return WordsWithDefinitions(examples, rows, columns["counts"], columns["words"], columns.get("labels"))


def _contexts(
    examples: Sequence[Row], tokenizer: PreTrainedTokenizerFast, length: int
) -> tuple[list[Any], list[NDArray[np.int64]]]:
    """Encodings of the contexts in at most `length` tokens around the word, and the word's tokens in each: 1 in int64
    [L].

    Raises RecipeError where `length` has no room for a word, and DataError for a word without tokens.
    """
    fast = tokenizer.backend_tokenizer
    room = length - fast.num_special_tokens_to_add(False)
    if room < 1:
        raise RecipeError(f"budget.length: {length} tokens have no room besides special tokens; raise it")
    fast.no_padding()
    fast.no_truncation()
    texts = [str(example["context"]) for example in examples]
    spans = [(start := int(example["word_index"]), start + len(example["word"])) for example in examples]
    for index, encoding in enumerate(fast.encode_batch(texts, add_special_tokens=False)):
        if len(encoding) > room:
            # as many tokens before the word as after it, where there are
            tokens = _tokens_of(encoding, *spans[index])
            middle = int(np.flatnonzero(tokens).mean()) if tokens.any() else 0
            first = max(0, min(middle - room // 2, len(encoding) - room))
            begin, end = encoding.offsets[first][0], encoding.offsets[first + room - 1][1]
            texts[index] = texts[index][begin:end]
            spans[index] = spans[index][0] - begin, spans[index][1] - begin
    fast.enable_truncation(length)
    encodings = fast.encode_batch(texts)
    fast.no_truncation()
    words = [_tokens_of(encoding, *span) for encoding, span in zip(encodings, spans, strict=True)]
    for index, tokens in enumerate(words):
        if not tokens.any():
            raise DataError(f"example {number_of(examples, index)}: its word has no tokens; leave it out")
    return encodings, words


def _tokens_of(encoding: Any, begin: int, end: int) -> NDArray[np.int64]:
    """int64 [L]: 1 for tokens with a character from `begin` up to `end`."""
    first, last = np.asarray(encoding.offsets, dtype=np.int64).reshape(-1, 2).T
    text = np.asarray([sequence == 0 for sequence in encoding.sequence_ids], dtype=bool)
    return (text & (last > begin) & (first < end)).astype(np.int64)
