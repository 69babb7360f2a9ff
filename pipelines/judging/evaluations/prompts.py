"""Prompts for a language model: answered examples, a test example, and the likelihood of each of its possible
answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pipelines.errors import DataError, RecipeError
from pipelines.models.opening import OpenedModel, open_model
from pipelines.vocabulary import Field, Signal

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from transformers import PreTrainedTokenizerFast

    from pipelines.task_families import Row, TaskFamily

BATCH_TOKENS = 4096
"""Tokens of a batch, approximately."""
SEPARATOR = "\n\n"
"""Text between an answered example and the next."""


@dataclass(frozen=True)
class PromptedExample:
    """A tokenised example with its possible answers."""

    filled: list[Row]
    """The example with each possible answer."""
    text: list[int]
    """Token ids of the example without an answer."""
    answers: list[list[int]]
    """Token ids of each answer."""


class Prompts:
    """The examples of a task as prompts, in the tokens of `tokenizer`."""

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerFast,
        family: TaskFamily,
        train: Sequence[Row],
        tokens: int | None,
        seed: int,
    ) -> None:
        self._tokenizer, self._family, self._train = tokenizer, family, train
        self._tokens, self._seed = tokens, seed
        self._labels = family.labels(train)
        shown = {name: kind for name, kind in family.columns.items() if name not in family.target}
        self._texts = [name for name, kind in shown.items() if kind == "string"]
        self._lists = [name for name, kind in shown.items() if kind == "list<string>"]
        # in pre-training, each document follows the end-of-document token of another
        end = tokenizer.sep_token_id if tokenizer.sep_token_id is not None else tokenizer.eos_token_id
        self.start = [int(end)]

    def prompted_example(self, row: Row) -> PromptedExample:
        """`row` with its possible answers: the labels, or its own choices if the family has no labels.

        Raises DataError when two answers have the same tokens, or one has none.
        """
        row = self._truncated(row)
        (target,) = self._family.target
        filled: list[Row] = [{**row, target: value} for value in self._labels or range(len(row["choices"]))]
        texts = [self._family.answer_text(one) for one in filled]
        answers = [self._ids(f" {text}") for text in texts]
        known: dict[tuple[int, ...], str] = {}
        for text, ids in zip(texts, answers, strict=True):
            if not ids or known.setdefault(tuple(ids), text) != text:
                raise DataError(
                    f"the model's tokenizer gives the answer {text!r} "
                    f"{f'the same tokens as {known[tuple(ids)]!r}' if ids else 'no token'}, so they cannot be "
                    "distinguished; train it on text in which they occur"
                )
        return PromptedExample(filled, self._ids(self._family.source(row, self._labels)), answers)

    def content_free(self, row: Row, text: str) -> PromptedExample:
        """`row` with each of its texts replaced by `text`."""
        return self.prompted_example({**row, **dict.fromkeys(self._texts, text)})

    def shots(self, index: int, count: int) -> list[list[int]]:
        """Token ids of `count` answered training examples for test example `index`; a larger count begins with the same
        ones."""
        random = np.random.default_rng([self._seed, 6, index])
        shots = []
        for chosen in random.permutation(len(self._train))[:count]:
            row = self._truncated(self._train[chosen])
            answered = f"{self._family.source(row, self._labels)} {self._family.answer_text(row)}{SEPARATOR}"
            shots.append(self._ids(answered))
        return shots

    def _truncated(self, row: Row) -> Row:
        texts = {name: self._first_tokens(row[name] or "") for name in self._texts}
        return {**row, **texts, **{name: [self._first_tokens(text) for text in row[name]] for name in self._lists}}

    def _first_tokens(self, text: str) -> str:
        if self._tokens is None:
            return text
        offsets = self._tokenizer.backend_tokenizer.encode(text, add_special_tokens=False).offsets
        return text if len(offsets) <= self._tokens else text[: offsets[self._tokens - 1][1]]

    def _ids(self, text: str) -> list[int]:
        return list(self._tokenizer.backend_tokenizer.encode(text, add_special_tokens=False).ids)


def open_language_model(folder: Path) -> OpenedModel:
    """The model in `folder`, its tokenizer without truncation and padding. Raises RecipeError if it is not
    autoregressive."""
    opened = open_model(folder, "cpu")
    if Signal.NEXT_LOGITS not in opened.record.head.provides:
        raise RecipeError(
            f"{folder}: trained with the head {opened.record.head.name}, which does not predict next tokens, so it "
            "cannot be prompted; name a stage with the head causal_lm"
        )
    opened.tokenizer.backend_tokenizer.no_truncation()
    opened.tokenizer.backend_tokenizer.no_padding()
    return opened


def check_prompt_lengths(
    examples: Sequence[PromptedExample],
    shots: Sequence[Sequence[Sequence[int]]],
    counts: Sequence[int],
    config: Any,
    stage: str,
) -> None:
    """Raise RecipeError when a prompt with the largest of `counts` shots exceeds the context length of `config`.

    `shots` has, for each of `examples`, as many shots as the largest count.
    """
    limit = int(getattr(config, "max_position_embeddings", 0) or 0)
    if limit <= 0:
        return
    # the last token of an answer is predicted, never read; the first token of a row is its start token
    bare = np.asarray([len(one.text) + max(map(len, one.answers)) for one in examples])
    added = np.asarray([[0, *(len(shot) for shot in own)] for own in shots])
    longest = (bare[:, None] + np.cumsum(added, axis=1)).max(axis=0)
    most = min(max(counts), len(longest) - 1)
    if longest[most] <= limit:
        return
    fits = int((longest <= limit).sum()) - 1
    advice = f"at most {fits} shots fit" if fits >= 0 else "even a prompt without examples does not fit"
    raise RecipeError(
        f"evaluation prompting: {most} shots make prompts of up to {longest[most]} tokens, and stage {stage!r} reads "
        f"at most {limit}; {advice}. Lower `shots`, keep fewer `tokens` of each text, or pre-train with more positions"
    )


def log_likelihoods(
    opened: OpenedModel, prompts: Sequence[tuple[list[int], list[list[int]]]]
) -> list[NDArray[np.float64]]:
    """Mean log-probability [answers] of the tokens of each answer, for each prompt (its token ids, those of each
    answer)."""
    import torch

    rows: list[list[int]] = []
    targets: list[tuple[int, int, int, list[int]]] = []  # prompt, row, first position, tokens of an answer
    for index, (prompt, answers) in enumerate(prompts):
        rows_of_prefixes: dict[tuple[int, ...], int] = {}
        for answer in sorted(answers, key=len, reverse=True):
            read = tuple(answer[:-1])
            # answers with a common prefix share a row; all answers of one token do
            row = next((known for other, known in rows_of_prefixes.items() if other[: len(read)] == read), None)
            if row is None:
                row = rows_of_prefixes[read] = len(rows)
                rows.append([*prompt, *read])
            targets.append((index, row, len(prompt) - 1, answer))
    by_row: dict[int, list[tuple[int, int, list[int]]]] = {}
    for index, row, first, answer in targets:
        by_row.setdefault(row, []).append((index, first, answer))
    means: dict[tuple[int, tuple[int, ...]], float] = {}
    with torch.inference_mode():
        for chosen in _batches([len(row) for row in rows]):
            width = max(len(rows[row]) for row in chosen)
            ids = torch.full((len(chosen), width), opened.tokenizer.pad_token_id)
            mask = torch.zeros_like(ids)
            for line, row in enumerate(chosen):
                ids[line, : len(rows[row])] = torch.tensor(rows[row])
                mask[line, : len(rows[row])] = 1
            batch = {Field.INPUT_IDS: ids, Field.ATTENTION_MASK: mask}
            logits = opened.record.head.signals(opened.network, batch, frozenset({Signal.NEXT_LOGITS}))[
                Signal.NEXT_LOGITS
            ]
            for line, row in enumerate(chosen):
                for index, first, answer in by_row[row]:
                    log_probabilities = logits[line, first : first + len(answer)].double().log_softmax(-1)
                    own = log_probabilities.gather(1, torch.tensor(answer)[:, None])
                    means[index, tuple(answer)] = float(own.mean())
    return [
        np.asarray([means[index, tuple(answer)] for answer in answers]) for index, (_, answers) in enumerate(prompts)
    ]


def _batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Indices of rows of similar length, about BATCH_TOKENS tokens per batch."""
    batch: list[int] = []
    for row in sorted(range(len(lengths)), key=lengths.__getitem__):
        if batch and (len(batch) + 1) * lengths[row] > BATCH_TOKENS:
            yield batch
            batch = []
        batch.append(row)
    if batch:
        yield batch
