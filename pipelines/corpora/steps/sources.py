"""Read sources of text as rows: user files, files inside installed packages, documentation strings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow as pa

from pipelines.corpora.documentation.docstrings import documentation
from pipelines.corpora.documentation.pages import pages
from pipelines.corpora.documentation.parses import parses
from pipelines.corpora.documentation.sessions import sessions
from pipelines.corpora.documentation.transcription import aligned_translations, transcribed, translations
from pipelines.corpora.examples.tagged_words import tagged_line
from pipelines.corpora.reading import parts_of, read_text_records
from pipelines.corpora.reading.flaws import count_flaws, refuse_and_suggest_skipping
from pipelines.corpora.reading.parts import Part, group_parts
from pipelines.corpora.reading.remote import RemoteFile
from pipelines.corpora.reading.source_files import find, find_files
from pipelines.corpora.settings.sources import DocumentationSource, FileSource, PackageSource, Source
from pipelines.corpora.shards.folders import WriteShards
from pipelines.corpora.shards.tables import TEXTS, Row
from pipelines.corpora.shards.tally import Tally
from pipelines.corpora.steps.declared_columns import flaw_at, read_values
from pipelines.errors import DataError
from pipelines.task_families.writing_systems import join_words


@dataclass(frozen=True)
class SourceTexts:
    """Rows `text, source, collection` and declared columns of some parts of one source, or of all its documentation."""

    source: Source
    parts: tuple[Part, ...] = ()
    columns: tuple[tuple[str, str], ...] = ()
    """Declared columns and their types."""

    def __call__(self, tally: Tally) -> Iterator[Row]:
        collection = self.source.collection
        if isinstance(self.source, DocumentationSource):
            names = [name for name, _ in self.columns]
            return (
                (text, where, collection, *(values[name] for name in names))
                for text, where, values in documented(self.source)
            )
        rows = _read(self.source, self.parts, tally, dict(self.columns))
        return ((text, where, collection, *values) for text, where, values in rows)


def units_of(
    sources: Iterable[Source], root: Path, schema: pa.Schema = TEXTS, columns: Mapping[str, str] | None = None
) -> tuple[list[WriteShards], int]:
    """Units of work that read sources, in the given order, and approximately how many bytes of text they read.

    `schema` is that of the table, `columns` are the declared ones and their types. A large file gives several units,
    small files share one. Raises DataError for a source without files.
    """
    units: list[WriteShards] = []
    total = 0
    for source in sources:
        if isinstance(source, DocumentationSource):
            texts_of_source = SourceTexts(source, columns=tuple((columns or {}).items()))
            units.append(WriteShards(f"{len(units):05d}", schema, texts_of_source))
            continue
        for group in group_parts(parts_of_source(source, root)):
            unit = SourceTexts(source, group, tuple((columns or {}).items()))
            units.append(WriteShards(f"{len(units):05d}", schema, unit))
            total += sum(part.weight for part in group)
    return units, total


def documented(source: DocumentationSource) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Yield `text, source` and the values of `source.columns` of the documentation, in the form of the source."""
    for text, where in documentation(source.documentation):
        for number, (part, values) in enumerate(_FORMS[source.form](text), 1):
            yield part, f"{where}#{number}" if source.columns else where, values


def _pages(text: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    return ((page.text, page.columns()) for page in pages(text))


def _translations(text: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    return ((part, {"translation": translation}) for part, translation in translations(text))


def _aligned(text: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for part, translation, alignment in aligned_translations(text):
        yield part, {"translation": translation, "alignment": alignment}


def _parses(text: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    return ((part, {"parse": parse}) for part, parse in parses(text))


_FORMS: dict[str, Callable[[str], Iterable[tuple[str, Mapping[str, Any]]]]] = {
    "texts": lambda text: [(text, {})],
    "transcribed": lambda text: [(transcribed(text), {})],
    "pages": _pages,
    "sessions": lambda text: ((one, {}) for one in sessions(text)),
    "translations": _translations,
    "aligned": _aligned,
    "parses": _parses,
}
"""Form of documentation → what it makes of a documentation string: texts, and the values of their columns."""


def parts_of_source(source: FileSource | PackageSource, root: Path) -> Iterator[Part]:
    """Yield the parts of a source's files, which are downloaded first. Raises DataError like `files_of`."""
    for name, path in files_of(source, root).items():
        yield from parts_of(name, path, source.options)


def files_of(source: FileSource | PackageSource, root: Path) -> dict[str, Path]:
    """Name in `source` columns → local file, for the files of a source. Raises DataError when there are none."""
    if isinstance(source, PackageSource):
        return {source.package: package_file(source.package)}
    return find_files(source.path, root, storage=source.storage)


def named_files(source: FileSource | PackageSource, root: Path) -> dict[str, Path] | dict[str, RemoteFile]:
    """Files of a source where they are, local or remote: nothing is downloaded. Raises DataError like `files_of`."""
    if isinstance(source, PackageSource):
        return {source.package: package_file(source.package)}
    return find(source.path, root, storage=source.storage)


def package_file(name: str) -> Path:
    """File `name` (`package/path`) of an installed package, which is not imported.

    Raises DataError when the package or the file does not exist.
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
    """Yield `text, source` of one source of files.

    Raises DataError for an invalid record, unless the source says to skip such records: then they are counted in
    `tally`.
    """
    return ((text, where) for text, where, _ in _read(source, parts_of_source(source, root), tally, {}))


def _read(
    source: FileSource | PackageSource, parts: Iterable[Part], tally: Tally, columns: Mapping[str, str]
) -> Iterator[tuple[str, str, list[Any]]]:
    """Yield texts, their locations, and the values of the declared columns."""
    flawed = count_flaws(tally.drop) if source.bad_records == "skip" else refuse_and_suggest_skipping
    requested = tuple(name for name in columns if name not in source.values)
    options = replace(source.options, columns=(*source.options.columns, *requested))
    for part in parts:
        for text, where, record in read_text_records(part, options, flawed):
            if not source.selects(text):
                continue
            flaw = flaw_at(part.name, part.path, where)
            values = read_values({**record, **source.values}, columns, flaw, flawed) if columns else []
            if values is not None:
                tagged = source.format == "tagged_words"
                yield join_words([word for word, _ in tagged_line(text)]) if tagged else text, where, values
