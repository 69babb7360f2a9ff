"""A text that a library and Cursus read as the same words, with what their vectors are judged by."""

from __future__ import annotations

import itertools
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pipelines.corpora.documentation.docstrings import documentation, task_rows
from pipelines.corpora.engines.work import run_units
from pipelines.corpora.settings.task import DocumentationTask
from pipelines.judging.evaluations.word_vectors import (
    EmbeddingTable,
    answer_analogies,
    compare_judgements,
    read_analogies,
    read_similarity,
)
from pipelines.networks.word_vectors import WordVectorsConfig, WordVectorsModel
from pipelines.parts.estimates import Estimation, TokenFile, Workspace
from pipelines.parts.tokenizers.words import Words

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from transformers import PretrainedConfig, PreTrainedTokenizerFast

FOLDER = "PARITY_FOLDER"
"""Environment variable with a folder of other text: `texts.txt`, a document on each line as words between spaces; any
number of `similarity*.tsv` and `analogies*.tsv`, as the evaluation `word_vectors` reads them; `labelled.tsv`, lines of
part (train or test), label, and words."""


@dataclass(frozen=True)
class SharedText:
    """A text as both read it."""

    file: TokenFile
    tokenizer: PreTrainedTokenizerFast
    folder: Path | None
    """Folder of judgements and labelled texts; None for documentation strings."""
    work: Path

    @classmethod
    def read(cls, work: Path, most: int, documents: int | None) -> SharedText:
        """Up to about `most` tokens of the first `documents`, or of all."""
        folder = Path(os.environ[FOLDER]) if FOLDER in os.environ else None
        if folder is None:
            texts = [text for text, _ in itertools.islice(documentation("general"), documents)]
            tokenizer = Words(vocab_size=20_000, min_count=3).train(texts)
        else:
            texts = (folder / "texts.txt").read_text(encoding="utf-8").splitlines()[:documents]
            tokenizer = Words(vocab_size=30_000, min_count=5, split_chinese=False, split="spaces").train(texts)
        end = int(tokenizer.eos_token_id)
        ids: list[int] = []
        for first in range(0, len(texts), 1000):
            for row in tokenizer(texts[first : first + 1000], add_special_tokens=False)["input_ids"]:
                ids += [*row, end]
            if len(ids) >= most:
                break
        path = work / "tokens.bin"
        np.asarray(ids, dtype=np.uint16).tofile(path)
        counts = np.bincount(ids, minlength=len(tokenizer)).tolist()
        special = tuple(sorted(tokenizer.all_special_ids))
        return cls(TokenFile(path, "uint16", tuple(counts), end, special), tokenizer, folder, work)

    @cached_property
    def vocabulary(self) -> list[str]:
        """The word of each id."""
        return [str(word) for word in self.tokenizer.convert_ids_to_tokens(list(range(len(self.tokenizer))))]

    @cached_property
    def counts(self) -> Mapping[str, int]:
        """Occurrences of each word; special tokens are none."""
        known = enumerate(zip(self.vocabulary, self.file.counts, strict=True))
        return {word: count for number, (word, count) in known if count and number not in self.file.special}

    @cached_property
    def sentences(self) -> Sequence[Sequence[str]]:
        """Documents as words, without unknown ones."""
        rows: list[list[str]] = [[]]
        for token in self.file.tokens.tolist():
            if token == self.file.end:
                rows.append([])
            elif token not in self.file.special:
                rows[-1].append(self.vocabulary[token])
        return [row for row in rows if row]

    @property
    def words(self) -> int:
        """Number of words."""
        return sum(self.counts.values())

    def weights(
        self, estimate: Estimation, config: PretrainedConfig, folder: Path, seed: int
    ) -> dict[str, NDArray[Any]]:
        """Our weights, estimated in a folder that is removed."""
        folder.mkdir()
        space = Workspace(folder, lambda units, home: run_units(units, home, 1), seed)
        try:
            return estimate.weights(self.file, config, space)
        finally:
            shutil.rmtree(folder)

    @cached_property
    def labelled(self) -> Mapping[str, tuple[list[list[int]], list[str]]]:
        """Ids and labels of the parts train and test."""
        if self.folder is None:
            rows = [(part, label, text) for text, label, _, part in task_rows(DocumentationTask(documentation="scipy"))]
        else:
            lines = (self.folder / "labelled.tsv").read_text(encoding="utf-8").splitlines()
            rows = [(part, label, text) for part, label, text in (line.split("\t", 2) for line in lines)]
        parts: dict[str, tuple[list[list[int]], list[str]]] = {"train": ([], []), "test": ([], [])}
        for part, label, text in rows:
            if part in parts:
                ids = self.tokenizer(text, add_special_tokens=False)["input_ids"]
                parts[part][0].append([token for token in ids if token not in self.file.special])
                parts[part][1].append(label)
        return parts

    def accuracy(self, features: Callable[[list[list[int]]], NDArray[np.float32]]) -> float:
        """Accuracy of a logistic regression on the `features` [T, H] of texts."""
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        read = {part: features(texts) for part, (texts, _) in self.labelled.items()}
        model = make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=300))
        model.fit(read["train"], self.labelled["train"][1])
        return float(model.score(read["test"], self.labelled["test"][1]))

    def intrinsic(self, vectors: NDArray[np.float32]) -> dict[str, float]:
        """Correlation or accuracy by the name of a file in the folder."""
        import torch

        if self.folder is None:
            return {}
        model = WordVectorsModel(WordVectorsConfig(vocab_size=len(vectors), hidden_size=vectors.shape[1]))
        model.embeddings.weight.data = torch.from_numpy(vectors)
        saved = self.work / "vectors"
        model.save_pretrained(saved)
        self.tokenizer.save_pretrained(saved)
        table = EmbeddingTable(saved)
        pairs = {one.stem: read_similarity(one) for one in sorted(self.folder.glob("similarity*.tsv"))}
        questions = {one.stem: read_analogies(one) for one in sorted(self.folder.glob("analogies*.tsv"))}
        scores = {name: float(compare_judgements(table, one)["spearman"]) for name, one in pairs.items()}
        return scores | {name: float(answer_analogies(table, one)["accuracy"]) for name, one in questions.items()}
