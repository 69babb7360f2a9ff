"""Exports of a store, sound and hostile: artifacts to export, and tar files that somebody made to do harm."""

from __future__ import annotations

import io
import os
import pickle
import tarfile
import time
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from safetensors.numpy import save_file

from pipelines.lineage.fingerprint import fingerprint
from pipelines.lineage.provenance import RECORD, Environment, Provenance
from pipelines.lineage.store import Store
from pipelines.lineage.transfer import export_artifacts

DAY = 24 * 60 * 60.0
NAME = "ab" * 32
"""A name that a fingerprint could have."""
END = bytes(2 * tarfile.BLOCKSIZE)
"""Of a tar file."""


def publish(store: Store, stage: str, age_in_days: float = 0, config: str = "{}", **parents: str) -> str:
    """An artifact with weights and a configuration; its fingerprint."""
    identity = {"stage": stage, "parents": parents}
    name = fingerprint(identity)
    weights = np.frombuffer(stage.encode() * 100, dtype=np.uint8)
    save_file({"weights": weights}, store.workspace(name) / "model.safetensors")
    (store.workspace(name) / "config.json").write_text(config)
    store.publish(
        Provenance(
            fingerprint=name, recipe="regime", stage=stage, kind="pretrain", seed=0, identity=identity, parents=parents,
            data={}, files={}, result={},
            environment=Environment(python="3", platform="", packages={}, commit=None, started="2026-01-01", seconds=1),
        )
    )  # fmt: skip
    born = time.time() - age_in_days * DAY
    os.utime(store.root / name / RECORD, (born, born))
    return name


def members_of(path: Path) -> dict[str, bytes]:
    """Name → content of the plain files in a tar file."""
    contents = {}
    with tarfile.open(path) as tar:
        for member in tar:
            file = tar.extractfile(member)
            assert file is not None, f"{member.name}: not a plain file"
            contents[member.name] = file.read()
    return contents


@cache
def sound_export() -> Mapping[str, bytes]:
    """Name → content of the files of a sound export: two artifacts, the second of which started from the first."""
    with TemporaryDirectory() as folder:
        store = Store(Path(folder) / "store")
        general = publish(store, "general")
        names = [general, publish(store, "classify", config='{"id2label": {"0": "a"}}', start=general)]
        export_artifacts(store, names, Path(folder) / "sound.tar")
        return members_of(Path(folder) / "sound.tar")


class Harmful:
    """What unpickling runs."""

    def __reduce__(self) -> tuple[Callable[..., object], tuple[str]]:
        return (os.system, ("touch harmed",))


def tar_of(files: Mapping[str, bytes], kind: bytes = tarfile.REGTYPE) -> bytes:
    """A tar file of members of one kind; the links among them lead to /etc/passwd."""
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size, member.type, member.linkname = len(content), kind, "/etc/passwd"
            tar.addfile(member, io.BytesIO(content))
    return written.getvalue()


def _sparse(size: int) -> bytes:
    """A sparse file of `size` bytes, which is one block of a tar file."""
    block = bytearray(tarfile.TarInfo(f"{NAME}/config.json").tobuf(tarfile.GNU_FORMAT))
    block[156:157] = tarfile.GNUTYPE_SPARSE
    # GNU's old sparse header: where a piece stands and how long it is, and the size of the whole
    whole, start = (tarfile.itn(one, 12, tarfile.GNU_FORMAT) for one in (size, 0))  # type: ignore[attr-defined]
    block[386:410] = whole + start
    block[483:495] = whole
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block[:512])
    return bytes(block) + END


def _long_record(size: int) -> bytes:
    """A record of `size` bytes, none of which are in the file."""
    member = tarfile.TarInfo(f"{NAME}/{RECORD}")
    member.size = size
    return member.tobuf() + END


HOSTILE: Mapping[str, tuple[bytes, str]] = {
    "pickle": (tar_of({f"{NAME}/pytorch_model.bin": pickle.dumps(Harmful())}), "may run code when they are read"),
    "beside": (tar_of({"../escaped.json": b"{}"}), "not a file of an artifact"),
    "outside": (tar_of({f"{NAME}/../../escaped.json": b"{}"}), "not a file of an artifact"),
    "absolute": (tar_of({"/tmp/escaped.json": b"{}"}), "not a file of an artifact"),
    "link": (tar_of({f"{NAME}/config.json": b""}, tarfile.SYMTYPE), "not a file of an artifact"),
    "no record": (tar_of({f"{NAME}/config.json": b"{}"}), f"has no {RECORD}"),
    "empty record": (tar_of({f"{NAME}/{RECORD}": b"{}"}), "damaged record"),
    "sparse": (_sparse(2**40), "is sparse, with 1,099,511,627,776 bytes that are not in the file"),
    "long record": (_long_record(2**34), "a record of 17,179,869,184 bytes"),
}
"""Name → a tar file that is no export, and what its refusal says."""
