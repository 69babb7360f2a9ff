"""Artifacts as one file: a tar with a model and everything it was made from, taken in only after every byte is checked.

export(store, fingerprints, Path("model.tar"))
take_in(other, Path("model.tar"))
"""

from __future__ import annotations

import os
import shutil
import tarfile
import tempfile
from collections.abc import Collection
from pathlib import Path, PurePosixPath

from pipelines.errors import StoreError
from pipelines.lineage.disk import one_of_many, written_whole
from pipelines.lineage.fingerprint import fingerprint
from pipelines.lineage.provenance import RECORD, Provenance, is_fingerprint
from pipelines.lineage.store import Store, require_space

READABLE = (".json", ".jsonl", ".onnx", ".parquet", ".safetensors", ".txt")
"""What an artifact consists of. None of it can hold code; a pickle can, whatever it is called."""
LONGEST_RECORD = 16 * 2**20
"""Bytes of a provenance.json; a hundred stages with a thousand files stay far below."""


def export(store: Store, names: Collection[str], destination: Path) -> int:
    """Write the artifacts `names` to a tar file, beside its place first; the number of bytes.

    Equal artifacts give equal bytes. StoreError for an artifact that is damaged, or a file that is there already.
    """
    if destination.exists():
        raise StoreError(f"{destination}: is there already; give another name or delete it")
    for name in names:
        if store.get(name) is None:
            raise StoreError(f"{store.root}: there is no artifact {name}")
    destination.parent.mkdir(parents=True, exist_ok=True)
    with (
        written_whole(destination, one_of_many(destination), flushed=True) as aside,
        tarfile.open(aside, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        for name in sorted(names):
            for path in sorted(path for path in (store.root / name).rglob("*") if path.is_file()):
                tar.add(path, f"{name}/{path.relative_to(store.root / name).as_posix()}", filter=_plain)
    return destination.stat().st_size


def take_in(store: Store, source: Path) -> list[str]:
    """Add the artifacts of a tar file to the store; the fingerprints of those that were not there.

    Nothing of it is trusted: names, kinds of file, digests and identities are checked before the first artifact gets its
    place. Raises StoreError that names the member, and leaves the store as it was.
    """
    store.root.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".incoming-", dir=store.root) as folder:
        try:
            with tarfile.open(source, mode="r:") as tar:
                taken = 0
                for member in tar:
                    _refuse(source, member)
                    taken += member.size
                    require_space(store.root, taken)
                    _write(tar, member, Path(folder))
        except (tarfile.TarError, EOFError, OSError) as error:
            raise StoreError(f"{source}: not a whole tar file of artifacts: {error}") from None
        incoming = Store(Path(folder))
        names = sorted(path.name for path in Path(folder).iterdir())
        records = {name: _verified(incoming, name, source) for name in names}
        for name, record in records.items():
            for role, parent in record.parents.items():
                if parent not in records and not (store.root / parent / RECORD).exists():
                    raise StoreError(
                        f"{source}: {name}: its {role} {parent[:12]} is neither in the file nor in the store"
                    )
        added = [name for name in names if not (store.root / name).exists()]
        for name in added:
            os.replace(Path(folder) / name, store.root / name)
    return added


def _plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Without owner, time and mode of this machine."""
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mtime, member.mode = 0, 0o644
    return member


def _write(tar: tarfile.TarFile, member: tarfile.TarInfo, folder: Path) -> None:
    """The bytes of a member that `_refuse` let through, and nothing else of it: neither its mode nor its owner.

    Not `extract`, whose filter the first releases of Python 3.11 lack.
    """
    content = tar.extractfile(member)
    assert content is not None, "a plain file"
    place = folder / member.name
    place.parent.mkdir(parents=True, exist_ok=True)
    with content, place.open("xb") as file:
        shutil.copyfileobj(content, file)


def _refuse(source: Path, member: tarfile.TarInfo) -> None:
    parts = PurePosixPath(member.name).parts
    if member.issparse():
        raise StoreError(
            f"{source}: {member.name!r}: stands for {member.size:,} bytes that are not in the file; nothing was taken in"
        )
    if parts[-1:] == (RECORD,) and member.size > LONGEST_RECORD:
        raise StoreError(f"{source}: {member.name!r}: a record of {member.size:,} bytes; nothing was taken in")
    if not member.isfile() or len(parts) < 2 or ".." in parts or not is_fingerprint(parts[0]):
        raise StoreError(
            f"{source}: {member.name!r}: not a file of an artifact (<fingerprint>/<file>); nothing was taken in"
        )
    if PurePosixPath(member.name).suffix not in READABLE:
        raise StoreError(
            f"{source}: {member.name!r}: artifacts hold only {', '.join(READABLE)}; other kinds of file may run code when "
            "they are read. Nothing was taken in"
        )


def _verified(incoming: Store, name: str, source: Path) -> Provenance:
    artifact = incoming.get(name) if (incoming.root / name / RECORD).exists() else None
    if artifact is None:
        raise StoreError(f"{source}: {name}: has no {RECORD}; nothing was taken in")
    record = artifact.provenance
    files = {path.relative_to(artifact.folder).as_posix() for path in artifact.folder.rglob("*") if path.is_file()}
    if record.fingerprint != name or fingerprint(record.identity) != name or files != {*record.files, RECORD}:
        raise StoreError(f"{source}: {name}: is not what its record says; nothing was taken in")
    return record
