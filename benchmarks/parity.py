"""Word vectors beside gensim: words a second in one thread, and what the vectors are worth."""

from __future__ import annotations

import itertools
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from benchmarks.harness.benchmark import Benchmark, Setting, missing
from benchmarks.harness.record import Figure, Goal, Measured, Turn
from benchmarks.harness.turns import Turns, median, rate, ratio, take_turns, timed
from benchmarks.peers.gensim_vectors import GensimVectors
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
from pipelines.parts.estimates import TokenFile, Workspace
from pipelines.parts.estimates.word2vec import Word2Vec
from pipelines.parts.tokenizers.words import Words

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from transformers import PreTrainedTokenizerFast

PEER = "gensim"
FOLDER = "PARITY_FOLDER"
"""Environment variable with a folder of other text: `texts.txt`, a document on each line as words between spaces; any
number of `similarity*.tsv` and `analogies*.tsv`, as the evaluation `word_vectors` reads them; `labelled.tsv`, lines of
part (train or test), label, and words."""
TOKENS, QUICK_TOKENS, WIDTH = 2_000_000, 50_000, 100
ROUNDS = 3
FORMS = {
    "skip-gram, noise": Word2Vec(),
    "skip-gram, tree": Word2Vec(output="tree"),
    "CBOW, noise": Word2Vec(architecture="cbow"),
    "CBOW, tree": Word2Vec(architecture="cbow", output="tree"),
}


class Parity(Benchmark):
    """Both train on the same words from the first to the last step. Reading the text and making gensim's vocabulary are
    not timed; making our tables, and writing each epoch to disk, is. gensim has one worker beside the thread that feeds
    it, and another seed in each round; ours has no seed. Accuracy is that of the same logistic regression on averaged
    vectors of texts."""

    name = "parity"
    what = (
        f"word2vec beside gensim: {TOKENS / 1e6:g} million words of documentation strings, {Word2Vec().epochs} epochs, "
        f"{WIDTH} dimensions, windows of {Word2Vec().window}, {Word2Vec().samples} noise words or a Huffman tree; one "
        f"thread each. `{FOLDER}` names a folder of other text, judgements and labelled texts."
    )
    slow = True
    environment: ClassVar[dict[str, str]] = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    goals: ClassVar[tuple[Goal, ...]] = tuple(
        goal
        for form in FORMS
        for goal in (
            Goal(figure=f"{form}: against {PEER}", at_least=1),
            Goal(figure=f"{form}: accuracy above {PEER}'s lowest seed", at_least=0, unit=""),
        )
    )

    def unavailable(self) -> str | None:
        return missing(PEER, extra="parity")

    def measure(self, setting: Setting) -> Measured:
        text = SharedText.read(setting.work, QUICK_TOKENS if setting.quick else TOKENS, 500 if setting.quick else None)
        figures: list[Figure] = []
        turns: Turns = {}
        for form, estimate in FORMS.items():
            estimate = estimate.tiny() if setting.quick else estimate
            made: dict[str, list[NDArray[np.float32]]] = {"cursus": [], PEER: []}
            seeds = itertools.count(1)

            def ours(estimate: Word2Vec = estimate, made: list[NDArray[np.float32]] = made["cursus"]) -> float:
                made.append(text.estimated(estimate, setting.work / "epochs"))
                return text.words * estimate.epochs

            def peer(
                estimate: Word2Vec = estimate,
                made: list[NDArray[np.float32]] = made[PEER],
                seeds: Iterator[int] = seeds,
            ) -> Turn:
                model = GensimVectors(estimate, text.counts, len(text.sentences), WIDTH, next(seeds))

                def train() -> float:
                    model.train(text.sentences, estimate.epochs)
                    return text.words * estimate.epochs

                turn = timed(train)
                made.append(model.vectors(text.vocabulary))
                return turn

            taken = take_turns({"cursus": partial(timed, ours), PEER: peer}, 1 if setting.quick else ROUNDS)
            turns |= {f"{form}: {name}": one for name, one in taken.items()}
            figures.append(ratio(f"{form}: against {PEER}", taken["cursus"], taken[PEER], PEER))
            figures += [rate(f"{form}: {name}", one, "words/s") for name, one in taken.items()]
            figures += worth(form, text, made)
        return Measured(figures=tuple(figures), turns=turns)


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

    def estimated(self, estimate: Word2Vec, folder: Path) -> NDArray[np.float32]:
        """Our vectors."""
        folder.mkdir()
        space = Workspace(folder, lambda units, home: run_units(units, home, 1))
        config = WordVectorsConfig(vocab_size=len(self.vocabulary), hidden_size=WIDTH)
        try:
            return estimate.weights(self.file, config, space)["embeddings.weight"]
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

    def accuracy(self, vectors: NDArray[np.float32]) -> float:
        """Accuracy of a logistic regression on averaged vectors."""
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        averaged = {
            part: np.stack([vectors[ids].mean(0) if ids else np.zeros(WIDTH) for ids in texts])
            for part, (texts, _) in self.labelled.items()
        }
        model = make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=300))
        model.fit(averaged["train"], self.labelled["train"][1])
        return float(model.score(averaged["test"], self.labelled["test"][1]))

    def intrinsic(self, vectors: NDArray[np.float32]) -> dict[str, float]:
        """Correlation or accuracy by the name of a file in the folder."""
        import torch

        if self.folder is None:
            return {}
        model = WordVectorsModel(WordVectorsConfig(vocab_size=len(vectors), hidden_size=WIDTH))
        model.embeddings.weight.data = torch.from_numpy(vectors)
        saved = self.work / "vectors"
        model.save_pretrained(saved)
        self.tokenizer.save_pretrained(saved)
        table = EmbeddingTable(saved)
        pairs = {one.stem: read_similarity(one) for one in sorted(self.folder.glob("similarity*.tsv"))}
        questions = {one.stem: read_analogies(one) for one in sorted(self.folder.glob("analogies*.tsv"))}
        scores = {name: float(compare_judgements(table, one)["spearman"]) for name, one in pairs.items()}
        return scores | {name: float(answer_analogies(table, one)["accuracy"]) for name, one in questions.items()}


def worth(form: str, text: SharedText, made: Mapping[str, Sequence[NDArray[np.float32]]]) -> list[Figure]:
    """What the vectors of both are worth: ours of the first round, which all rounds repeat, and gensim's over seeds."""
    ours, peers = made["cursus"][0], made[PEER]
    own, peer_scores = text.accuracy(ours), [text.accuracy(one) for one in peers]
    figures = [
        Figure(name=f"{form}: accuracy above {PEER}'s lowest seed", value=own - min(peer_scores), unit=""),
        Figure(name=f"{form}: accuracy, cursus", value=own, unit=""),
        median(f"{form}: accuracy, {PEER}", peer_scores, ""),
    ]
    known = text.intrinsic(ours)
    others = [text.intrinsic(one) for one in peers] if known else []
    for name, value in known.items():
        figures.append(Figure(name=f"{form}: {name}, cursus", value=value, unit=""))
        figures.append(median(f"{form}: {name}, {PEER}", [one[name] for one in others], ""))
    return figures
