"""Settings under `clean:` in params.yaml, and the identity of their result.

clean:
  repairs: [unicode, markup]
  filters: [{name: language, least: 0.65}, gopher]
  masks: [email, phone]
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import file_digest
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, SerializeAsAny

from pipelines.corpora.cleaning import Cleaner, Filter, Mask, Repair
from pipelines.corpora.settings.sources import StrictSettings
from pipelines.errors import DataError
from pipelines.lineage.source import source_hash

_KEYS: dict[type[Cleaner], str] = {Repair: "repairs", Filter: "filters", Mask: "masks"}


def _of_kind(kind: type[Cleaner]) -> BeforeValidator:
    def build(value: Any) -> Cleaner:
        cleaner = Cleaner.model_validate(value)
        if not isinstance(cleaner, kind):
            key = next(key for other, key in _KEYS.items() if isinstance(cleaner, other))
            raise ValueError(f"{cleaner.name!r} belongs under {key!r}, not under {_KEYS[kind]!r}")
        return cleaner

    return BeforeValidator(build)


class CleanSettings(StrictSettings):
    """Cleaners in the order of application; `filters` apply to unlabelled text only.

    Unlabelled texts shorter than `min_characters` are dropped; texts longer than `max_characters` are split or
    truncated.
    """

    repairs: tuple[SerializeAsAny[Annotated[Repair, _of_kind(Repair)]], ...] = Field(
        default=("unicode",), validate_default=True
    )
    filters: tuple[SerializeAsAny[Annotated[Filter, _of_kind(Filter)]], ...] = ()
    masks: tuple[SerializeAsAny[Annotated[Mask, _of_kind(Mask)]], ...] = ()
    min_characters: int = Field(default=10, ge=1)
    max_characters: int = Field(default=50_000, ge=100)

    def cleaners(self) -> Iterator[Cleaner]:
        """All cleaners, in the order of application."""
        yield from self.repairs
        yield from self.filters
        yield from self.masks

    def problem(self, language: str) -> str | None:
        """The first cleaner that does not support a language, and why; None when all do."""
        for cleaner in self.cleaners():
            if problem := cleaner.problem(language):
                return f"{cleaner.name}: {problem}"
        return None

    def identity(self, language: str, root: Path) -> dict[str, Any]:
        """Everything that cleaned texts depend on: settings, language, the cleaners' code, their libraries and files.

        DataError when a file that a cleaner reads is missing.
        """
        # members of a family are discovered by name, so that their code is not reached through imports
        code = source_hash(type(cleaner).__module__ for cleaner in self.cleaners())
        libraries = sorted({library for cleaner in self.cleaners() for library in cleaner.libraries})
        files = sorted({file for cleaner in self.cleaners() for file in cleaner.files})
        return self.model_dump(mode="json") | {
            "language": language,
            "code": code,
            "libraries": {library: version(library) for library in libraries},
            "files": {file: _digest(root / file) for file in files},
        }


def _digest(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise DataError(f"{path}: a file named under 'clean:' cannot be read: {error.strerror}") from None
