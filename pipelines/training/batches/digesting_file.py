"""Files of arrays that are written with their digest, for a manifest that proves them whole."""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from numpy.typing import NDArray


class DigestingFile:
    """A file that computes the digest of the bytes written to it, and is flushed to the disk when it is closed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._digest, self._bytes = sha256(), 0

    def __enter__(self) -> Self:
        self._file = self.path.open("wb")
        return self

    def __exit__(self, *_: object) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()

    def write(self, values: NDArray[Any]) -> None:
        """Append the bytes of an array."""
        data = values.tobytes()
        self._file.write(data)
        self._digest.update(data)
        self._bytes += len(data)

    def record(self) -> dict[str, Any]:
        """The file's entry in the manifest."""
        return {"bytes": self._bytes, "sha256": self._digest.hexdigest()}
