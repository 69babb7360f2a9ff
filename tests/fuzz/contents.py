"""Mistakes in the bytes of a file: cut, repeated, of another encoding, packed, renamed."""

from __future__ import annotations

import gzip
import io
import tarfile
import zipfile

import pyarrow as pa
import zstandard
from hypothesis import strategies as st

ODD_BYTES = [
    b"\0", b"\xff\xfe", b"\xef\xbb\xbf", b"\xc3", b"\r", b"\n\n", b"\t", b'"', b"{", b"]", b"\\ud800", b"\x1f\x8b",
    b"PK\x03\x04", b"\x89PNG\r\n", b"\x80\x04\x95", b"NaN", b"1e999", b"null", b"9" * 5000, b"[" * 5000,
    b"\n" * 200_000,    "\u2028".encode(), "\u202e".encode(), "\U0001f600".encode(), b"\x1a", b"\x7f", b" " * 5000,
]  # fmt: skip
ENCODINGS = ["utf-16", "utf-8-sig", "latin-1", "gb18030", "utf-32"]


@st.composite
def damaged(draw: st.DrawFn, content: bytes) -> bytes:
    """`content` with one to three mistakes."""
    for _ in range(draw(st.integers(1, 3))):
        begin = draw(st.integers(0, len(content)))
        end = draw(st.integers(begin, min(len(content), begin + 200)))
        match draw(st.sampled_from(["put in", "put in", "cut", "drop", "repeat", "encode", "bytes", "lines"])):
            case "put in":
                content = content[:begin] + draw(st.sampled_from(ODD_BYTES)) + content[begin:]
            case "cut":
                content = content[:begin]
            case "drop":
                content = content[:begin] + content[end:]
            case "repeat":
                content = content[:end] + content[begin:end] * draw(st.integers(1, 50)) + content[end:]
            case "encode":
                text = content.decode("utf-8", "replace")
                content = text.encode(draw(st.sampled_from(ENCODINGS)), "replace")
            case "bytes":
                content = content[:begin] + draw(st.binary(max_size=20)) + content[end:]
            case _:  # lines in another order, each of them kept
                lines = content.splitlines(keepends=True)
                content = b"".join(draw(st.permutations(lines[:20]))) + b"".join(lines[20:])
    return content


def packings(content: bytes) -> dict[str, bytes]:
    """How a file of `content` may be packed: extension → bytes."""
    zipped, tarred = io.BytesIO(), io.BytesIO()
    with zipfile.ZipFile(zipped, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.txt", content)
    with tarfile.open(fileobj=tarred, mode="w:gz") as tar:
        member = tarfile.TarInfo("../a.txt")
        member.size = len(content)
        tar.addfile(member, io.BytesIO(content))
    lz4 = pa.BufferOutputStream()
    with pa.CompressedOutputStream(lz4, "lz4") as stream:
        stream.write(content)
    return {
        "": content,
        ".gz": gzip.compress(content, mtime=0),
        ".zst": zstandard.ZstdCompressor().compress(content),
        ".zip": zipped.getvalue(),
        ".tar.gz": tarred.getvalue(),
        ".lz4": lz4.getvalue().to_pybytes(),
    }
