"""Sources of text as rows: files of the user, files inside installed packages, documentation strings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from pipelines.corpora.documentation.docstrings import documentation
from pipelines.corpora.examples.tagged_words import tagged_line
from pipelines.corpora.reading import parts_of, read_texts
from pipelines.corpora.reading.flaws import count_flaws, refuse_and_suggest_skipping
from pipelines.corpora.reading.parts import Part, group_parts
from pipelines.corpora.reading.remote import RemoteFile
from pipelines.corpora.reading.source_files import find, find_files
from pipelines.corpora.settings.sources import DocumentationSource, FileSource, PackageSource, Source
from pipelines.corpora.shards.folders import WriteShards
from pipelines.corpora.shards.tables import TEXTS, Row
from pipelines.corpora.shards.tally import Tally
from pipelines.errors import DataError
from pipelines.task_families.writing_systems import join_words


@dataclass(frozen=True)
class SourceTexts:
    """The texts of some parts of one source, or of all its documentation: `text, source, collection`."""

    source: Source
    parts: tuple[Part, ...] = ()

    def __call__(self, tally: Tally) -> Iterator[Row]:
        named = self.source.collection
        if isinstance(self.source, DocumentationSource):
            found = documentation(self.source.documentation)
        else:
            found = _read(self.source, self.parts, tally)
        return ((text, where, named) for text, where in found)


def units_of(sources: Iterable[Source], root: Path) -> tuple[list[WriteShards], int]:
    """Units of work that read some sources, in the order they are named, and about how many bytes of text they read.

    A large file makes several units, small files make one together. DataError for a source without files.
    """
    units: list[WriteShards] = []
    total = 0
    for source in sources:
        if isinstance(source, DocumentationSource):
            units.append(WriteShards(f"{len(units):05d}", TEXTS, SourceTexts(source)))
            continue
        for group in group_parts(parts_of_source(source, root)):
            units.append(WriteShards(f"{len(units):05d}", TEXTS, SourceTexts(source, group)))
            total += sum(part.weight for part in group)
    return units, total


def parts_of_source(source: FileSource | PackageSource, root: Path) -> Iterator[Part]:
    """The parts of a source's files, which are all on this machine then. DataError as `files_of`."""
    for name, path in files_of(source, root).items():
        yield from parts_of(name, path, source.options)


def files_of(source: FileSource | PackageSource, root: Path) -> dict[str, Path]:
    """The files of a source on this machine, by the name they have in `source` columns. DataError when there are none."""
    if isinstance(source, PackageSource):
        return {source.package: package_file(source.package)}
    return find_files(source.path, root, storage=source.storage)


def named_files(source: FileSource | PackageSource, root: Path) -> dict[str, Path] | dict[str, RemoteFile]:
    """The files of a source where they are: nothing is fetched. DataError as `files_of`."""
    if isinstance(source, PackageSource):
        return {source.package: package_file(source.package)}
    return find(source.path, root, storage=source.storage)


def package_file(name: str) -> Path:
    """The file `name` (`package/path`) of an installed package, which is not imported.

    DataError when the package or the file is not there.
    """
    package, _, path = name.partition("/")
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise DataError(f"{name}: the package {package!r} is not installed here; install it with pip")
    file = Path(next(iter(spec.submodule_search_locations)), path)
    if not file.is_file():
        raise DataError(f"{name}: the installed package {package!r} has no file {path!r}")
    return file


def texts(source: FileSource | PackageSource, root: Path, tally: Tally) -> Iterator[tuple[str, str]]:
    """`text, source` of one source of files.

    DataError for a record that cannot be used, unless the source says to skip such records: then `tally` hears of it.
    """
    return _read(source, parts_of_source(source, root), tally)


def _read(source: FileSource | PackageSource, parts: Iterable[Part], tally: Tally) -> Iterator[tuple[str, str]]:
    flawed = count_flaws(tally.drop) if source.bad_records == "skip" else refuse_and_suggest_skipping
    for part in parts:
        for text, where in read_texts(part, source.options, flawed):
            if source.selects(text):
                tagged = source.format == "tagged_words"
                yield join_words([word for word, _ in tagged_line(text)]) if tagged else text, where
