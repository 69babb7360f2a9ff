"""Triples of a knowledge graph, injected where their subjects occur (Liu et al. 2019, K-BERT §3.2)."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Self

from pydantic import Field as Option

from pipelines.errors import DataError
from pipelines.parts.knowledge import Knowledge
from pipelines.parts.knowledge.sentence_trees import Graph, inject
from pipelines.shipped import own_or_shipped
from pipelines.task_families.encoding import FieldArrays

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast


class Triples(Knowledge, name="triples"):
    """A file of triples: subject, predicate and object, separated by tabs, one triple a line, UTF-8; `.gz` is unpacked.

    A subject is found in a row as its tokens, the longest first, from left to right, at the boundaries of words. What
    is injected is the predicate and the object.
    """

    paper = "arXiv:1909.07606"

    file: Path
    """The file, relative to the current directory, or else to what is shipped; or absolute."""
    triples_per_entity: int = Option(2, ge=1)
    """Number of triples that are injected for an occurrence of a subject: its first ones in the file."""
    tokens: int = Option(64, ge=1)
    """Number of tokens that are injected into a row at most."""
    characters: int = Option(2, ge=1)
    """Characters of the shortest subject that is looked for."""
    predicate: bool = True
    """Whether the predicate is injected before the object."""

    @property
    def source(self) -> Path:
        """Where the file is."""
        return own_or_shipped(self.file)

    @property
    def reads_files(self) -> tuple[Path, ...]:
        return (self.source,)

    @property
    def missing(self) -> str | None:
        if not self.source.is_file():
            return f"there is no file {self.file}; give a path relative to the current directory, or an absolute one"
        try:
            next(self.read(), None)
        except DataError as error:
            return str(error)
        return None

    def read(self) -> Iterator[tuple[str, str, str]]:
        """Subject, predicate and object of each line. Raises DataError naming the file and the line."""
        opened = gzip.open if self.file.suffix == ".gz" else open
        try:
            with opened(self.source, "rt", encoding="utf-8") as lines:
                for number, line in enumerate(lines, 1):
                    if not line.strip():
                        continue
                    parts = [part.strip() for part in line.rstrip("\n").split("\t")]
                    if len(parts) != 3 or not all(parts):
                        raise DataError(
                            f"{self.file}:{number}: expected subject, predicate and object, separated by tabs, got "
                            f"{line.strip()[:60]!r}"
                        )
                    yield parts[0], parts[1], parts[2]
        except (OSError, UnicodeDecodeError) as error:
            raise DataError(f"{self.file}: cannot be read as triples ({error})") from None

    def injection(self, tokenizer: PreTrainedTokenizerFast, length: int) -> Callable[[FieldArrays], FieldArrays]:
        facts: dict[str, list[str]] = {}
        for subject, predicate, about in self.read():
            if len(subject) >= self.characters:
                known = facts.setdefault(subject, [])
                if len(known) < self.triples_per_entity:
                    known.append(f"{predicate} {about}" if self.predicate else about)
        if not facts:
            raise DataError(f"{self.file}: no triple has a subject of {self.characters} characters or more")
        graph = Graph.of(facts, tokenizer)
        return lambda batch: inject(batch, graph, self.tokens, length)

    def save(self, folder: Path) -> Self:
        # two lines of a stage may have a file each
        content = self.source.read_bytes()
        copy = Path(f"triples-{sha256(content).hexdigest()[:12]}.tsv{'.gz' if self.file.suffix == '.gz' else ''}")
        (folder / copy).write_bytes(content)
        return self.model_copy(update={"file": copy})

    def within(self, folder: Path) -> Self:
        # a model of another origin names no file outside its folder
        return self.model_copy(update={"file": folder / self.file.name})
