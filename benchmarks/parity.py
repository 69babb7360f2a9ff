"""Vectors of words and paragraphs beside gensim: words a second in one thread, and what the vectors are worth."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Protocol

import numpy as np

from benchmarks.harness.benchmark import Benchmark, Setting, missing
from benchmarks.harness.record import Figure, Goal, Measured, Turn
from benchmarks.harness.turns import Turns, median, rate, ratio, take_turns, timed
from benchmarks.peers.gensim_vectors import GensimParagraphs, GensimWords
from benchmarks.peers.shared_text import FOLDER, SharedText
from pipelines.networks.paragraph_vectors import ParagraphVectorsConfig, ParagraphVectorsModel
from pipelines.networks.word_vectors import WordVectorsConfig
from pipelines.parts.estimates.paragraph_vectors import ParagraphVectors
from pipelines.parts.estimates.word2vec import Word2Vec

if TYPE_CHECKING:
    from numpy.typing import NDArray

PEER = "gensim"
TOKENS, QUICK_TOKENS, WIDTH = 2_000_000, 50_000, 100
ROUNDS = 3
INFERRED = 64
"""Texts whose vectors are inferred at once."""


class Form(Protocol):
    """A kind of vectors that both train."""

    @property
    def epochs(self) -> int:
        """Passes over the text."""

    def tiny(self) -> Form:
        """The same with the fewest passes."""

    def ours(self, text: SharedText, folder: Path, seed: int) -> Trained:
        """Train ours; intermediate results are in a folder that is made and removed."""

    def peer(self, text: SharedText, seed: int) -> tuple[Callable[[], None], Callable[[], Trained]]:
        """Functions that train gensim's, and that read them afterwards."""


@dataclass(frozen=True)
class Trained:
    """Vectors that were trained."""

    features: Callable[[list[list[int]]], NDArray[np.float32]]
    """Features [T, H] of texts."""
    words: NDArray[np.float32] | None = None
    """[V, H], where words have vectors that can be compared."""

    @classmethod
    def of_words(cls, vectors: NDArray[np.float32]) -> Trained:
        """A text's features are the mean of its words' vectors [V, H]."""
        nothing = np.zeros(vectors.shape[1], dtype=np.float32)
        return cls(lambda texts: np.stack([vectors[ids].mean(0) if ids else nothing for ids in texts]), vectors)


@dataclass(frozen=True)
class WordForm:
    """Word vectors."""

    estimate: Word2Vec

    @property
    def epochs(self) -> int:
        return self.estimate.epochs

    def tiny(self) -> WordForm:
        return WordForm(self.estimate.tiny())

    def ours(self, text: SharedText, folder: Path, seed: int) -> Trained:
        config = WordVectorsConfig(vocab_size=len(text.vocabulary), hidden_size=WIDTH)
        return Trained.of_words(text.weights(self.estimate, config, folder, seed)["embeddings.weight"])

    def peer(self, text: SharedText, seed: int) -> tuple[Callable[[], None], Callable[[], Trained]]:
        model = GensimWords(self.estimate, text, WIDTH, seed)
        return model.train, lambda: Trained.of_words(model.vectors)


@dataclass(frozen=True)
class ParagraphForm:
    """Vectors of paragraphs; a text's features are inferred with the words frozen."""

    architecture: str
    estimate: ParagraphVectors = field(default_factory=ParagraphVectors)

    @property
    def epochs(self) -> int:
        return self.estimate.epochs

    def tiny(self) -> ParagraphForm:
        return ParagraphForm(self.architecture, self.estimate.tiny())

    def ours(self, text: SharedText, folder: Path, seed: int) -> Trained:
        config = ParagraphVectorsConfig(
            vocab_size=len(text.vocabulary),
            hidden_size=WIDTH,
            paragraph_architecture=self.architecture,
            special_ids=list(text.file.special),
            pad_token_id=text.file.end,
        )
        weights = text.weights(self.estimate, config, folder, seed)
        network = ParagraphVectorsModel(config)
        self.estimate.set_weights(network, weights)
        return Trained(lambda texts: _inferred(network, texts))

    def peer(self, text: SharedText, seed: int) -> tuple[Callable[[], None], Callable[[], Trained]]:
        model = GensimParagraphs(self.estimate, text, self.architecture, WIDTH, seed)
        return model.train, lambda: Trained(model.features)


FORMS: dict[str, Form] = {
    "skip-gram, noise": WordForm(Word2Vec()),
    "skip-gram, tree": WordForm(Word2Vec(output="tree")),
    "CBOW, noise": WordForm(Word2Vec(architecture="cbow")),
    "CBOW, tree": WordForm(Word2Vec(architecture="cbow", output="tree")),
    "paragraphs, PV-DM": ParagraphForm("dm"),
    "paragraphs, PV-DBOW": ParagraphForm("dbow"),
}


class Parity(Benchmark):
    """Both train on the same words from the first to the last step. Reading the text and making gensim's vocabulary are
    not timed; making our tables, and writing each epoch to disk, is. gensim has one worker beside the thread that feeds
    it; each round has another seed on both sides. Accuracy is that of the same logistic regression on averaged vectors
    of a text's words, or on the text's inferred vector; ours is the median over the seeds."""

    name = "parity"
    what = (
        f"word2vec and paragraph vectors beside gensim: {TOKENS / 1e6:g} million words of documentation strings, "
        f"{Word2Vec().epochs} epochs ({ParagraphVectors().epochs} of paragraphs), {WIDTH} dimensions, windows of "
        f"{Word2Vec().window}, {Word2Vec().samples} noise words or a Huffman tree; one thread each. `{FOLDER}` names a "
        "folder of other text, judgements and labelled texts."
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
        for name, form in FORMS.items():
            form = form.tiny() if setting.quick else form
            form.tiny().ours(text, setting.work / "compiled", 0)  # machine code is made once on a machine, and kept
            taken, made = alternated(form, text, setting.work / "epochs", 1 if setting.quick else ROUNDS)
            turns |= {f"{name}: {who}": one for who, one in taken.items()}
            figures.append(ratio(f"{name}: against {PEER}", taken["cursus"], taken[PEER], PEER))
            figures += [rate(f"{name}: {who}", one, "words/s") for who, one in taken.items()]
            figures += worth(name, text, made)
        return Measured(figures=tuple(figures), turns=turns)


def alternated(
    form: Form, text: SharedText, folder: Path, rounds: int
) -> tuple[Turns, Mapping[str, Sequence[Trained]]]:
    """Turns of both, and what they trained."""
    made: dict[str, list[Trained]] = {"cursus": [], PEER: []}
    words = text.words * form.epochs

    def ours() -> Turn:
        def train() -> float:
            made["cursus"].append(form.ours(text, folder, len(made["cursus"]) + 1))
            return words

        return timed(train)

    def peer() -> Turn:
        training, read = form.peer(text, len(made[PEER]) + 1)

        def train() -> float:
            training()
            return words

        turn = timed(train)
        made[PEER].append(read())
        return turn

    return take_turns({"cursus": ours, PEER: peer}, rounds), made


def worth(form: str, text: SharedText, made: Mapping[str, Sequence[Trained]]) -> list[Figure]:
    """What the vectors of both are worth, over seeds."""
    scores = {who: [text.accuracy(one.features) for one in trained] for who, trained in made.items()}
    own = median(f"{form}: accuracy, cursus", scores["cursus"], "")
    figures = [
        Figure(name=f"{form}: accuracy above {PEER}'s lowest seed", value=own.value - min(scores[PEER]), unit=""),
        own,
        median(f"{form}: accuracy, {PEER}", scores[PEER], ""),
    ]
    for who, trained in made.items():
        known = [text.intrinsic(one.words) for one in trained if one.words is not None]
        for name in known[0] if known else ():
            figures.append(median(f"{form}: {name}, {who}", [one[name] for one in known], ""))
    return figures


def _inferred(network: ParagraphVectorsModel, texts: list[list[int]]) -> NDArray[np.float32]:
    """float32 [T, H]: the vectors of texts."""
    import torch

    vectors = []
    for first in range(0, len(texts), INFERRED):
        rows = [torch.tensor(text, dtype=torch.int64) for text in texts[first : first + INFERRED]]
        ids = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=network.config.pad_token_id)
        vectors.append(network.infer(ids).numpy())
    return np.concatenate(vectors)
