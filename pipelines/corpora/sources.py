"""Sources of text as rows: files of the user, files inside installed packages, documentation strings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path

from pipelines.corpora.documentation import documentation
from pipelines.corpora.reading import find_files, read_lines, read_texts
from pipelines.corpora.source_settings import DocumentationSource, FileSource, PackageSource, Source
from pipelines.corpora.tagged_words import tagged_line
from pipelines.errors import DataError
from pipelines.task_families.writing_systems import joined


def texts(sources: Iterable[Source], root: Path) -> Iterator[tuple[str, str]]:
    """`text, source` of some sources, in the order they are named."""
    for source in sources:
        if isinstance(source, DocumentationSource):
            yield from documentation(source.documentation)
        else:
            yield from _read(source, root)


def files_of(source: FileSource | PackageSource, root: Path) -> dict[str, Path]:
    """The files of a source, by the name they have in `source` columns. DataError when there are none."""
    if isinstance(source, PackageSource):
        return {source.package: package_file(source.package)}
    return find_files(source.path, root)


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


def _read(source: FileSource | PackageSource, root: Path) -> Iterator[tuple[str, str]]:
    for name, path in files_of(source, root).items():
        if source.format is None:
            yield from ((text, where) for text, where in read_texts(name, path, source.text) if source.takes(text))
            continue
        for line, where in read_lines(name, path):
            if source.takes(line):
                tagged = source.format == "tagged_words"
                yield joined([word for word, _ in tagged_line(line)]) if tagged else line, where
