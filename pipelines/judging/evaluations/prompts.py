"""Prompts for a language model: what is asked, behind which answered examples, and how likely each answer is."""

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
"""Tokens read at once."""
SEPARATOR = "\n\n"
"""Between an answered example and the next."""


@dataclass(frozen=True)
class PromptedExample:
    """An example and its possible answers."""

    filled: list[Row]
    """The example with each of them."""
    text: list[int]
    """Its tokens without an answer."""
    answers: list[list[int]]
    """The tokens of each answer."""


class Prompts:
    """What a model with `tokenizer` is shown of a task."""

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
        # a language model has read each document behind the end of another
        end = tokenizer.sep_token_id if tokenizer.sep_token_id is not None else tokenizer.eos_token_id
        self.start = [int(end)]

    def question(self, row: Row) -> PromptedExample:
        """`row` and its possible answers: the labels, or its own choices where the family has no labels.

        Raises DataError when the tokenizer cannot tell two answers apart.
        """
        row = self._shown(row)
        (target,) = self._family.target
        filled: list[Row] = [{**row, target: value} for value in self._labels or range(len(row["choices"]))]
        texts = [self._family.answer_text(one) for one in filled]
        answers = [self._ids(f" {text}") for text in texts]
        known: dict[tuple[int, ...], str] = {}
        for text, ids in zip(texts, answers, strict=True):
            if not ids or known.setdefault(tuple(ids), text) != text:
                raise DataError(
                    f"the answer {text!r} is {f'the same tokens as {known[tuple(ids)]!r}' if ids else 'no token'} to the "
                    "model's tokenizer, so they cannot be told apart; train it on text in which they occur"
                )
        return PromptedExample(filled, self._ids(self._family.source(row, self._labels)), answers)

    def saying_nothing(self, row: Row, text: str) -> PromptedExample:
        """`row` with `text` in place of each of its texts."""
        return self.question({**row, **dict.fromkeys(self._texts, text)})

    def shots(self, place: int, count: int) -> list[list[int]]:
        """`count` answered training examples for the example at `place`, as tokens; a larger count begins with the same."""
        random = np.random.default_rng([self._seed, 6, place])
        shots = []
        for index in random.permutation(len(self._train))[:count]:
            row = self._shown(self._train[index])
            answered = f"{self._family.source(row, self._labels)} {self._family.answer_text(row)}{SEPARATOR}"
            shots.append(self._ids(answered))
        return shots

    def _shown(self, row: Row) -> Row:
        texts = {name: self._cut(row[name] or "") for name in self._texts}
        return {**row, **texts, **{name: [self._cut(text) for text in row[name]] for name in self._lists}}

    def _cut(self, text: str) -> str:
        if self._tokens is None:
            return text
        offsets = self._tokenizer.backend_tokenizer.encode(text, add_special_tokens=False).offsets
        return text if len(offsets) <= self._tokens else text[: offsets[self._tokens - 1][1]]

    def _ids(self, text: str) -> list[int]:
        return list(self._tokenizer.backend_tokenizer.encode(text, add_special_tokens=False).ids)


def open_language_model(folder: Path) -> OpenedModel:
    """The model in `folder`, whose tokenizer neither cuts nor pads. RecipeError when it does not read from left to right."""
    opened = open_model(folder, "cpu")
    if Signal.NEXT_LOGITS not in opened.record.head.provides:
        raise RecipeError(
            f"{folder}: trained under the head {opened.record.head.name}, which does not say what comes next, so it cannot be "
            "prompted; judge a stage with the head causal_lm"
        )
    opened.tokenizer.backend_tokenizer.no_truncation()
    opened.tokenizer.backend_tokenizer.no_padding()
    return opened


def check_prompt_lengths(
    questions: Sequence[PromptedExample],
    shots: Sequence[Sequence[Sequence[int]]],
    counts: Sequence[int],
    config: Any,
    stage: str,
) -> None:
    """Raise RecipeError when a prompt of as many shots as the largest of `counts` is longer than the body of `config` reads.

    `shots` are those of each of `questions`, as many as the largest count.
    """
    limit = int(getattr(config, "max_position_embeddings", 0) or 0)
    if limit <= 0:
        return
    # the last token of an answer is predicted and never read; the first of a row is its start
    bare = np.asarray([len(one.text) + max(map(len, one.answers)) for one in questions])
    added = np.asarray([[0, *(len(shot) for shot in some)] for some in shots])
    longest = (bare[:, None] + np.cumsum(added, axis=1)).max(axis=0)
    most = min(max(counts), len(longest) - 1)
    if longest[most] <= limit:
        return
    fits = int((longest <= limit).sum()) - 1
    advice = f"at most {fits} shots fit" if fits >= 0 else "not even a prompt without examples fits"
    raise RecipeError(
        f"evaluation prompting: {most} shots make prompts of up to {longest[most]} tokens, and stage {stage!r} reads at most "
        f"{limit}; {advice}. Lower `shots`, keep fewer `tokens` of each text, or pre-train with more positions"
    )


def log_likelihoods(
    opened: OpenedModel, prompts: Sequence[tuple[list[int], list[list[int]]]]
) -> list[NDArray[np.float64]]:
    """For each prompt (its tokens, those of each answer): the mean log-probability of an answer's tokens, [answers]."""
    import torch

    rows: list[list[int]] = []
    asked: list[tuple[int, int, int, list[int]]] = []  # prompt, row, first position, tokens of an answer
    for number, (prompt, answers) in enumerate(prompts):
        begun: dict[tuple[int, ...], int] = {}
        for answer in sorted(answers, key=len, reverse=True):
            read = tuple(answer[:-1])
            # answers that begin alike share a row, those of one token all of them
            row = next((at for other, at in begun.items() if other[: len(read)] == read), None)
            if row is None:
                row = begun[read] = len(rows)
                rows.append([*prompt, *read])
            asked.append((number, row, len(prompt) - 1, answer))
    by_row: dict[int, list[tuple[int, int, list[int]]]] = {}
    for number, row, first, answer in asked:
        by_row.setdefault(row, []).append((number, first, answer))
    heard: dict[tuple[int, tuple[int, ...]], float] = {}
    with torch.inference_mode():
        for chosen in _batches([len(row) for row in rows]):
            width = max(len(rows[row]) for row in chosen)
            ids = torch.full((len(chosen), width), opened.tokenizer.pad_token_id)
            mask = torch.zeros_like(ids)
            for place, row in enumerate(chosen):
                ids[place, : len(rows[row])] = torch.tensor(rows[row])
                mask[place, : len(rows[row])] = 1
            batch = {Field.INPUT_IDS: ids, Field.ATTENTION_MASK: mask}
            said = opened.record.head.signals(opened.network, batch, frozenset({Signal.NEXT_LOGITS}))[
                Signal.NEXT_LOGITS
            ]
            for place, row in enumerate(chosen):
                for number, first, answer in by_row[row]:
                    chances = said[place, first : first + len(answer)].double().log_softmax(-1)
                    heard[number, tuple(answer)] = float(chances.gather(1, torch.tensor(answer)[:, None]).mean())
    return [
        np.asarray([heard[number, tuple(answer)] for answer in answers]) for number, (_, answers) in enumerate(prompts)
    ]


def _batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Rows of like length, about BATCH_TOKENS at once."""
    batch: list[int] = []
    for row in sorted(range(len(lengths)), key=lengths.__getitem__):
        if batch and (len(batch) + 1) * lengths[row] > BATCH_TOKENS:
            yield batch
            batch = []
        batch.append(row)
    if batch:
        yield batch
