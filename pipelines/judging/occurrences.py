"""Occurrences of words in sentences, their hidden states, and how alike these are."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pipelines.errors import DataError, RecipeError
from pipelines.task_families.encoding import attention_masks, pad_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

BATCH = 64
"""Sentences per batch."""
_SPACED = re.compile(r"[0-9A-Za-z\u00c0-\u024f\u0370-\u03ff\u0400-\u052f]")
"""Letters of scripts that write spaces between words."""


@dataclass(frozen=True)
class Occurrence:
    """A word in a sentence."""

    word: str
    text: str
    start: int
    """First character of the word in `text`."""
    end: int
    """The character after its last one."""
    sense: str = ""
    """The meaning of the word here; empty if unknown."""


def word_spans(word: str, text: str) -> list[tuple[int, int]]:
    """Where `word` stands in `text`, (start, end) in characters, whatever its case.

    In scripts with spaces it must be a whole word: `play` is not in "player". Elsewhere any substring counts.
    """
    before, after = (r"(?<!\w)" if _SPACED.match(word[0]) else "", r"(?!\w)" if _SPACED.match(word[-1]) else "")
    return [match.span() for match in re.finditer(f"{before}{re.escape(word)}{after}", text, re.IGNORECASE)]


def read_senses(path: Path) -> list[Occurrence]:
    """The occurrences that the lines `word, sense, sentence` of a tab-separated file describe; `#` begins a comment.

    Raises DataError, which names the file and the line: for a line of other fields, a sentence that does not hold its
    word exactly once, a sense with a single sentence, a word with a single sense.
    """
    if not path.is_file():
        raise DataError(f"{path}: no such file; give a path, absolute or relative to the project")
    occurrences: list[Occurrence] = []
    lines: dict[tuple[str, str], list[int]] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        fields = [field.strip() for field in line.split("\t")]
        if len(fields) != 3 or not all(fields):
            raise DataError(f"{path}, line {number}: expected word, sense and sentence, separated by tabs")
        word, sense, text = fields
        spans = word_spans(word, text)
        if len(spans) != 1:
            raise DataError(
                f"{path}, line {number}: {word!r} stands {len(spans)} times in the sentence; it must stand there once"
            )
        occurrences.append(Occurrence(word, text, *spans[0], sense))
        lines.setdefault((word, sense), []).append(number)
    if not occurrences:
        raise DataError(f"{path}: no sentences; write lines of word, sense and sentence, separated by tabs")
    for (word, sense), numbers in lines.items():
        if len(numbers) == 1:
            raise DataError(
                f"{path}, line {numbers[0]}: {word!r} has one sentence in the sense {sense!r}; it needs two"
            )
        if sum(other == word for other, _ in lines) == 1:
            raise DataError(f"{path}, line {numbers[0]}: {word!r} has sentences in one sense only; it needs two")
    return occurrences


def occurrence_states(
    backbone: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, occurrences: Sequence[Occurrence]
) -> list[NDArray[np.float32]]:
    """States of the words in their sentences after each layer, the embeddings first: float32 [N, H] each.

    The state of a word is the mean over its pieces. A word without a token, and one beyond the longest row of the
    backbone, has a state of zeros. Raises RecipeError for a backbone that returns no hidden states.
    """
    import torch

    backend = tokenizer.backend_tokenizer
    backend.no_padding()
    longest = getattr(backbone.config, "max_position_embeddings", None)
    if longest is not None and longest > 0:
        backend.enable_truncation(min(longest, tokenizer.model_max_length))
    encodings = backend.encode_batch([one.text for one in occurrences])
    backend.no_truncation()
    states: list[NDArray[np.float32]] = []
    for chosen in _by_length([len(one.ids) for one in encodings]):
        ids = [np.asarray(encodings[row].ids, dtype=np.int64) for row in chosen]
        tokens = pad_rows(ids, int(tokenizer.pad_token_id or 0))
        with torch.inference_mode():
            outputs: Any = backbone(
                input_ids=torch.from_numpy(tokens),
                attention_mask=torch.from_numpy(attention_masks(ids, tokens.shape[1])),
                output_hidden_states=True,
            )
        layers = getattr(outputs, "hidden_states", None)
        if not layers:
            raise RecipeError("the model returns no hidden states; name another")
        values = [layer.float().numpy() for layer in layers]
        states = states or [np.zeros((len(occurrences), layer.shape[-1]), np.float32) for layer in values]
        for line, row in enumerate(chosen):
            if pieces := _pieces(encodings[row], occurrences[row]):
                for state, layer in zip(states, values, strict=True):
                    state[row] = layer[line, pieces].mean(0)
    return states


def cosines(states: NDArray[np.float32], others: NDArray[np.float32]) -> NDArray[np.float32]:
    """Cosine [N, M] of `states` [N, H] and `others` [M, H]; 0 for a state of zeros."""
    unit, other = (one / np.maximum(np.linalg.norm(one, axis=1, keepdims=True), 1e-12) for one in (states, others))
    result: NDArray[np.float32] = unit @ other.T
    return result


def _by_length(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Indices of the non-empty rows of each batch, of similar length."""
    order = sorted((row for row, length in enumerate(lengths) if length), key=lambda row: lengths[row])
    for first in range(0, len(order), BATCH):
        yield order[first : first + BATCH]


def _pieces(encoding: Any, occurrence: Occurrence) -> list[int]:
    """Indices of the tokens that share a character with the word."""
    return [
        index
        for index, ((start, end), special) in enumerate(
            zip(encoding.offsets, encoding.special_tokens_mask, strict=True)
        )
        if not special and start < occurrence.end and end > occurrence.start
    ]
