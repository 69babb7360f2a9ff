"""Mistakes in an export of a store: in its records and files, in the names and kinds of its members, in its bytes."""

from __future__ import annotations

import gzip
import json
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from tempfile import gettempdir
from typing import Any

from hypothesis import strategies as st

from pipelines.lineage.fingerprint import fingerprint
from pipelines.lineage.provenance import RECORD
from tests.fuzz.contents import damaged
from tests.fuzz.structure import mistaken
from tests.pipelines.lineage.exports import END, NAME, sound_export

ESCAPED = Path(gettempdir()) / "cursus-escaped.json"
"""A file outside of every store, which no import may write."""
NAMES = st.sampled_from(
    [
        "", ".", "/", "..", NAME, f"{NAME}/", f"{NAME}/config.json", f"{NAME}/{RECORD}", f"./{NAME}/config.json",
        f"{NAME}//config.json", f"{NAME.upper()}/config.json", f"{NAME}/a\nb.json", f"{NAME}/ä.json",
        f"{NAME}/a\udcff.json", f"{NAME}/{'x' * 300}.json", f"{NAME}/{'a/' * 40}x.json", f"{NAME}\\config.json",
        f"{NAME}/{RECORD}/config.json", f"{NAME}/../{NAME}/config.json", "../escaped.json", "../../escaped.json",
        f"{NAME}/../../../escaped.json", str(ESCAPED), f".work/{NAME}/config.json", ".lock", f"{NAME}/a.pkl", "a.json",
    ]
)  # fmt: skip
KINDS = st.sampled_from(
    [
        tarfile.LNKTYPE, tarfile.SYMTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.DIRTYPE, tarfile.FIFOTYPE,
        tarfile.CONTTYPE, tarfile.AREGTYPE, tarfile.GNUTYPE_SPARSE, tarfile.GNUTYPE_LONGNAME, b"V", b"Z",
    ]
)  # fmt: skip
LINKS = st.sampled_from(["/etc/passwd", "/dev/zero", "/proc/self/environ", "..", "config.json", str(ESCAPED), ""])
HEADERS = st.sampled_from(
    [
        ("path", f"{NAME}/config.json"), ("path", "../escaped.json"), ("path", str(ESCAPED)), ("path", ""),
        ("linkpath", "/etc/passwd"), ("size", "0"), ("size", "1"), ("size", "-5"), ("size", "abc"), ("mtime", "nan"),
        ("uid", "-1"), ("hdrcharset", "BINARY"), ("comment", "x" * 5000), ("GNU.sparse.name", "../escaped.json"),
        ("GNU.sparse.size", "9" * 12), ("GNU.sparse.realsize", "9" * 12), ("GNU.sparse.map", "0,9"),
    ]
)  # fmt: skip


@dataclass(frozen=True)
class Member:
    """A member of a tar file, as it states itself."""

    name: str
    content: bytes = b""
    kind: bytes = tarfile.REGTYPE
    link: str = ""
    size: int | None = None
    """Bytes that it states to have; None: as many as it has."""
    headers: Mapping[str, str] = field(default_factory=dict)

    def written(self) -> bytes:
        member = tarfile.TarInfo(self.name)
        member.type, member.linkname, member.pax_headers = self.kind, self.link, dict(self.headers)
        member.size = len(self.content) if self.size is None else self.size
        blocks = self.content + bytes(-len(self.content) % tarfile.BLOCKSIZE)
        return member.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape") + blocks


def written(members: Sequence[Member]) -> bytes:
    """A tar file."""
    return b"".join(member.written() for member in members) + END


def sound_members() -> list[Member]:
    return [Member(name, content) for name, content in sound_export().items()]


def with_content(members: Sequence[Member], name: str, content: bytes) -> list[Member]:
    """`members` with another content of the file `name` of an artifact, whose record agrees and has no seal."""
    folder, _, file = name.partition("/")
    changed = []
    for one in members:
        if one.name == name:
            one = replace(one, content=content)
        elif one.name == f"{folder}/{RECORD}":
            record = json.loads(one.content)
            record["files"][file] = {"sha256": sha256(content).hexdigest(), "bytes": len(content)}
            one = replace(one, content=json.dumps(record | {"seal": ""}).encode())
        changed.append(one)
    return changed


def with_identity(members: Sequence[Member], name: str, identity: dict[str, Any]) -> list[Member]:
    """`members` with another identity of the artifact `name`, whose fingerprint, record and folder agree."""
    new = fingerprint(identity)
    changed = []
    for one in members:
        folder, _, file = one.name.partition("/")
        if folder == name:
            one = replace(one, name=f"{new}/{file}")
            if file == RECORD:
                record = json.loads(one.content) | {"fingerprint": new, "identity": identity, "seal": ""}
                one = replace(one, content=json.dumps(record).encode())
        changed.append(one)
    return changed


@st.composite
def mistaken_members(draw: st.DrawFn) -> list[Member]:
    """The members of a sound export with up to three mistakes."""
    members = sound_members()
    for _ in range(draw(st.integers(0, 3))):
        members = draw(_changed(members)) if members else members
    return members


@st.composite
def _changed(draw: st.DrawFn, members: list[Member]) -> list[Member]:
    """`members` with one mistake."""
    number = draw(st.integers(0, len(members) - 1))
    before, one, after = members[:number], members[number], members[number + 1 :]
    sound = members == sound_members()
    match draw(st.sampled_from(["record", "record", "content", "identity", "name", "kind", "size", "header", "order"])):
        case "record" if one.name.endswith(RECORD):
            record = draw(_mistaken_json(one.content))
            if isinstance(record, dict) and draw(st.booleans()):
                record["seal"] = ""
            return [*before, replace(one, content=json.dumps(record).encode()), *after]
        case "content":
            content = draw(damaged(one.content))
            if sound and not one.name.endswith(RECORD) and draw(st.booleans()):
                return with_content(members, one.name, content)
            return [*before, replace(one, content=content), *after]
        case "identity" if sound:
            return with_identity(members, one.name.partition("/")[0], {"stage": draw(st.text(max_size=3))})
        case "name":
            folder = draw(st.sampled_from([NAME, one.name.partition("/")[0]]))
            named = replace(one, name=draw(NAMES).replace(NAME, folder))
            return draw(st.sampled_from([[*before, named, *after], [*members, named]]))
        case "kind":
            return [*before, replace(one, kind=draw(KINDS), link=draw(LINKS)), *after]
        case "size":
            return [*before, replace(one, size=draw(st.integers(0, 2**40))), *after]
        case "header":
            return [*before, replace(one, headers=dict([draw(HEADERS)])), *after]
        case _:
            return draw(st.sampled_from([[*before, *after], [*members, one], [*after, one, *before]]))


def _mistaken_json(content: bytes) -> st.SearchStrategy[Any]:
    try:
        return mistaken(json.loads(content))
    except ValueError:  # damaged by the mistake before
        return st.none()


@st.composite
def exports(draw: st.DrawFn) -> bytes:
    """A tar file with mistakes in its members, in its bytes, or in both."""
    content = written(draw(mistaken_members()))
    match draw(st.sampled_from(["members", "members", "members", "bit", "cut", "bytes", "twice", "packed"])):
        case "bit":
            number, bit = divmod(draw(st.integers(0, 8 * len(content) - 1)), 8)
            return content[:number] + bytes([content[number] ^ 1 << bit]) + content[number + 1 :]
        case "cut":
            return content[: draw(st.integers(0, len(content)))]
        case "bytes":
            return draw(damaged(content))
        case "twice":
            return content + written(draw(mistaken_members()))
        case "packed":
            return gzip.compress(content, mtime=0)
        case _:
            return content
