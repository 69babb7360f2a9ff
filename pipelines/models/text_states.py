"""The states of texts in a finished model, for annotations that read one.

annotations/3f1c…/     in a saved model: each model that its annotations read
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from pipelines.parts.annotations import Annotation, ModelAnnotation
from pipelines.task_families.writing_systems import join_words

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from transformers import PreTrainedModel

    from pipelines.models.opening import OpenedModel
    from pipelines.task_families.tokenized import TokenizedText

FOLDER = "annotations"
"""Subfolder of a model folder with the models that its annotations read."""
LONGEST = 4096
"""Tokens in the longest row of a network that reads rows of any length."""


@dataclass(frozen=True)
class TextStates:
    """The model in `folder`, which `open_folder` opens when a text is read: a value that other processes can be
    given."""

    folder: Path
    open_folder: Callable[[Path, str], OpenedModel]

    @property
    def network(self) -> PreTrainedModel:
        return self._opened.network

    @property
    def _opened(self) -> OpenedModel:
        return _opened(self.folder, self.open_folder)

    @property
    def files(self) -> tuple[Path, ...]:
        return self.folder / "model.safetensors", self.folder / "tokenizer.json"

    def states(self, text: TokenizedText) -> NDArray[np.float32]:
        written, spans = _characters(text)
        states, offsets = _read(self._opened, written)
        first = np.searchsorted(offsets[:, 1], spans[:, 0], side="right")
        end = np.maximum(np.searchsorted(offsets[:, 0], spans[:, 1], side="left"), first)
        sums = np.concatenate([np.zeros((1, states.shape[1])), np.cumsum(states, axis=0, dtype=np.float64)])
        means: NDArray[np.float64] = (sums[end] - sums[first]) / np.maximum(end - first, 1)[:, None]
        return means.astype(np.float32)

    def save(self, folder: Path) -> None:
        """Write the model into `folder`."""
        self.network.save_pretrained(folder)
        self._opened.tokenizer.save_pretrained(folder)


def located(annotation: Annotation, folder: Path, open_folder: Callable[[Path, str], OpenedModel]) -> Annotation:
    """An annotation of the model in `folder`, with the model that it reads."""
    if not isinstance(annotation, ModelAnnotation):
        return annotation
    # of a pattern that leads nowhere else
    return annotation.reading(TextStates(folder / FOLDER / annotation.folder, open_folder), annotation.folder)


def copy_models(annotations: Iterable[Annotation], source: Path, out: Path) -> None:
    """Copy the models that `annotations` of the model in `source` read into the model folder `out`."""
    for one in annotations:
        if isinstance(one, ModelAnnotation):
            shutil.copytree(source / FOLDER / one.folder, out / FOLDER / one.folder, dirs_exist_ok=True)


@lru_cache(maxsize=4)
def _opened(folder: Path, open_folder: Callable[[Path, str], OpenedModel]) -> OpenedModel:
    return open_folder(folder, "cpu")


def _characters(text: TokenizedText) -> tuple[str, NDArray[np.int64]]:
    """A text as one string, and the characters int64 [T, 2] of its tokens there."""
    if isinstance(text.text, str):
        return text.text, text.spans
    assert text.words is not None
    words = list(text.text)
    begins = [len(join_words(words[: number + 1])) - len(word) for number, word in enumerate(words)]
    return join_words(words), text.spans + np.asarray(begins, dtype=np.int64)[text.words][:, None]


def _read(opened: OpenedModel, text: str) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """The top states [S, H] of the tokens of `text` without special ones, and their characters [S, 2]."""
    import torch

    backend = opened.tokenizer.backend_tokenizer
    backend.no_padding()
    backend.enable_truncation(min(int(opened.tokenizer.model_max_length), LONGEST))
    encoding = backend.encode(text)
    states, offsets = [], []
    with torch.inference_mode(), _one_thread():
        for window in (encoding, *encoding.overflowing):
            ids = torch.tensor([window.ids], dtype=torch.long)
            top = opened.network.base_model(ids, output_hidden_states=True).hidden_states[-1][0]
            inside = np.asarray(window.special_tokens_mask) == 0
            states.append(top.float().numpy()[inside])
            offsets.append(np.asarray(window.offsets, dtype=np.int64).reshape(-1, 2)[inside])
    return np.concatenate(states), np.concatenate(offsets)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Compute with one thread: sums of several depend on their number, and the values of a channel with them."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
