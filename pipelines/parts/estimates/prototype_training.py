"""Base class of estimates of prototypes: vectors of words, a clustering of their occurrences, vectors of words and
clusters (Huang, Socher, Manning & Ng 2012, §3)."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from pydantic import Field, PositiveInt

from pipelines.errors import DataError
from pipelines.parts.estimates import CountingUnit, Estimation, TokenFile, Workspace
from pipelines.parts.estimates.context_clusters import CLUSTERS, LABELS, informativeness
from pipelines.parts.estimates.ranking_epoch import RankingEpoch, RankingOptions
from pipelines.parts.estimates.skip_gram_epoch import TABLES, SkipGramEpoch, SkipGramOptions
from pipelines.parts.estimates.weighted_neighbours import require_words
from pipelines.parts.estimates.word_frequencies import STATE
from pipelines.vocabulary import Ability

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from transformers import PretrainedConfig

BEGIN = "begin.npz"


class PrototypeEstimation(Estimation):
    """Trains vectors of words, has their occurrences named after clusters, and trains vectors on the text with these
    names, beginning with the words' own.

    Both times by AdaGrad, and by skip-gram with negative samples, whose noise a batch shares, or by a scorer of windows
    and documents. Vectors and the order of the text are random by the seed of the stage.
    """

    needs_abilities: ClassVar[frozenset[Ability]] = frozenset({Ability.PROTOTYPES})
    draws: ClassVar[bool] = True

    fewest: PositiveInt = 200
    """Fewest occurrences of a word with several prototypes."""
    words: PositiveInt = 6000
    """Most words that have several, the most frequent ones."""
    epochs: int = Field(3, ge=1, le=1000)
    """Passes over the text, before and after clustering."""
    learned_by: Literal["skip_gram", "windows", "windows_and_documents"] = "skip_gram"
    """Words predict their neighbours (Mikolov et al. 2013); or the true last word of a window of twice the backbone's
    `window` is to be scored above a random one, by the window, or by it and the mean of its document (Huang et al.
    2012, §2)."""
    hidden: int = Field(100, ge=1)
    """Hidden units of each scorer of windows and documents."""
    samples: float = Field(5.0, gt=0)
    """Negatives of each neighbour of skip-gram, in expectation."""
    power: float = Field(0.75, ge=0)
    """Exponent of counts in the distribution of negatives and of random words; the scorer of Huang et al. has 0."""
    threshold: float = Field(1e-3, ge=0)
    """Subsampling threshold of frequent words in skip-gram, as in `context_windows`; 0 keeps all."""
    lr: float = Field(0.05, gt=0)
    """Rate of AdaGrad."""
    batch_words: int = Field(4096, ge=2)
    """Tokens of a step, before subsampling."""

    @abstractmethod
    def clustering(self, text: TokenFile, vectors: Path, clustered: tuple[int, ...], window: int) -> CountingUnit:
        """The unit of work that writes CLUSTERS and LABELS, of the words `clustered`, by `vectors` in a file."""

    @abstractmethod
    def clustered(self, text: TokenFile) -> tuple[int, ...]:
        """The words that may get several prototypes, the most frequent first. Raises DataError where there are none."""

    def weights(self, text: TokenFile, config: PretrainedConfig, workspace: Workspace) -> dict[str, NDArray[Any]]:
        require_words(text, self.name)
        clustered = self.clustered(text)
        size, width, window = text.vocabulary_size, int(config.hidden_size), int(config.window)
        begin = workspace.folder / BEGIN
        drawn = np.random.default_rng(workspace.seed).random((size, width), dtype=np.float32)
        informative = informativeness(text)
        first = (drawn - np.float32(0.5)) / width
        np.savez(begin, vectors=first, outputs=np.zeros_like(drawn), informative=informative)
        learned = self._train("words", text, begin, window, workspace)
        (folder,) = workspace.run([self.clustering(text, learned, clustered, window)], workspace.folder)
        with np.load(folder / CLUSTERS) as stored, np.load(learned) as words:
            entries = dict(stored)
            vectors = words["vectors"]
            owners = entries.pop("owners")
            named = workspace.folder / f"named-{BEGIN}"
            tables = {name: words[name][owners] for name in TABLES if name in words}
            np.savez(named, informative=informative[owners], **tables)
        names = np.memmap(folder / LABELS, dtype=np.uint32, mode="r")
        counts = tuple(np.bincount(names, minlength=len(owners)).tolist())
        renamed = replace(text, path=folder / LABELS, kind="uint32", counts=counts, texts=())
        with np.load(self._train("prototypes", renamed, named, window, workspace)) as stored:
            prototypes = stored["vectors"]
        config.prototypes, config.most_prototypes = len(owners), int(entries["others"].max()) + 1
        return {"embeddings.weight": vectors, "prototypes.weight": prototypes, **entries}

    def frequent(self, text: TokenFile, purpose: str) -> tuple[int, ...]:
        """The words that occur `fewest` times or more, the most frequent first, at most `words` of them.

        Raises DataError, which names the `purpose`, where there are none.
        """
        counts = np.asarray(text.counts)
        counts[list(text.special)] = 0
        order = np.argsort(-counts, kind="stable")
        if (most := int(counts[order[0]])) < self.fewest:
            raise DataError(
                f"{text.path}: the most frequent word occurs {most} time{'' if most == 1 else 's'}, and {self.name} "
                f"{purpose}; give the stage more text, or lower estimate.fewest"
            )
        return tuple(order[: self.words][counts[order[: self.words]] >= self.fewest].tolist())

    def _train(self, phase: str, text: TokenFile, begin: Path, window: int, workspace: Workspace) -> Path:
        """File with the vectors after the passes of a phase."""
        for epoch in range(self.epochs):
            unit = self._epoch(phase, epoch, text, begin, window, workspace)
            (finished,) = workspace.run([unit], workspace.folder)
        return finished / STATE

    def _epoch(
        self, phase: str, epoch: int, text: TokenFile, begin: Path, window: int, workspace: Workspace
    ) -> SkipGramEpoch | RankingEpoch:
        home, seed, power, rate, batch = workspace.folder, workspace.seed, self.power, self.lr, self.batch_words
        if self.learned_by == "skip_gram":
            skip_gram = SkipGramOptions(window, self.samples, power, self.threshold, rate, batch, seed)
            return SkipGramEpoch(home, phase, epoch, text, skip_gram, begin)
        document = self.learned_by == "windows_and_documents"
        ranking = RankingOptions(2 * window - 1, self.hidden, document, power, rate, batch, seed)
        return RankingEpoch(home, phase, epoch, text, ranking, begin)
