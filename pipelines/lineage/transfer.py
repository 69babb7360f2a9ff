"""Artifacts as one tar file, with everything a model was made from; imported only after every byte is verified.

export_artifacts(store, fingerprints, Path("model.tar"))
import_artifacts(other, Path("model.tar"))
"""

from __future__ import annotations

import os
import shutil
import tarfile
import tempfile
from collections.abc import Collection
from pathlib import Path, PurePosixPath

from pipelines.errors import StoreError
from pipelines.lineage.disk import atomic_write, unique_temporary_path
from pipelines.lineage.fingerprint import fingerprint
from pipelines.lineage.provenance import RECORD, Provenance, is_fingerprint
from pipelines.lineage.store import Store, require_space
from pipelines.safety.model_folders import UnsafeFolderError, check_model_folder

READABLE = (".json", ".jsonl", ".onnx", ".parquet", ".safetensors", ".txt")
"""Suffixes of the files in an artifact. None of these formats can hold code; a pickle can, under any name."""
LONGEST_RECORD = 16 * 2**20
"""Maximum bytes of a provenance.json; a hundred stages with a thousand files stay far below."""


def export_artifacts(store: Store, names: Collection[str], destination: Path) -> int:
    """Write the artifacts `names` atomically to a tar file; returns its size in bytes.

    Equal artifacts give equal bytes. Raises StoreError for a damaged artifact, or if `destination` exists.
    """
    if destination.exists():
        raise StoreError(f"{destination}: already exists; give another name or delete it")
    for name in names:
        if store.get(name) is None:
            raise StoreError(f"{store.root}: there is no artifact {name}")
    destination.parent.mkdir(parents=True, exist_ok=True)
    with (
        atomic_write(destination, unique_temporary_path(destination), flushed=True) as temporary,
        tarfile.open(temporary, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        for name in sorted(names):
            for path in sorted(path for path in (store.root / name).rglob("*") if path.is_file()):
                tar.add(path, f"{name}/{path.relative_to(store.root / name).as_posix()}", filter=_plain)
    return destination.stat().st_size


def import_artifacts(store: Store, source: Path) -> list[str]:
    """Add the artifacts of a tar file to the store; returns the fingerprints of those that were not there before.

    The file is not trusted: names, file types, digests and identities are checked before the first artifact is moved
    into the store. Raises a StoreError that names the member, and leaves the store as it was.
    """
    store.root.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".incoming-", dir=store.root) as folder:
        try:
            with tarfile.open(source, mode="r:") as tar:
                taken = 0
                for member in tar:
                    _refuse(source, member)
                    taken += member.size
                    if taken > source.stat().st_size:
                        raise StoreError(f"{source}: {member.name!r}: states more bytes than are in the file")
                    require_space(store.root, taken)
                    _write(tar, member, Path(folder))
        except (tarfile.TarError, EOFError, OSError, ArithmeticError, ValueError, MemoryError, RecursionError) as error:
            # the last four for headers that tarfile does not expect: numbers that are none, sizes of exabytes, chains
            reason = str(error) or type(error).__name__
            raise StoreError(f"{source}: not a whole tar file of artifacts: {reason}") from None
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
    """Clear the owner, time and mode of a member."""
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mtime, member.mode = 0, 0o644
    return member


def _write(tar: tarfile.TarFile, member: tarfile.TarInfo, folder: Path) -> None:
    """Write the bytes of a member that passed `_refuse`, but neither its mode nor its owner.

    `TarFile.extract` is not used: the first releases of Python 3.11 lack its filter.
    """
    content = tar.extractfile(member)
    assert content is not None, "a plain file"
    path = folder / member.name
    path.parent.mkdir(parents=True, exist_ok=True)
    with content, path.open("xb") as file:
        shutil.copyfileobj(content, file)


def _refuse(source: Path, member: tarfile.TarInfo) -> None:
    """Raise StoreError for a member that cannot be a file of an artifact."""
    parts = PurePosixPath(member.name).parts
    if member.issparse():
        raise StoreError(
            f"{source}: {member.name!r}: is sparse, with {member.size:,} bytes that are not in the file; nothing was "
            "imported"
        )
    if parts[-1:] == (RECORD,) and member.size > LONGEST_RECORD:
        raise StoreError(f"{source}: {member.name!r}: a record of {member.size:,} bytes; nothing was imported")
    if not member.isfile() or len(parts) < 2 or ".." in parts or not is_fingerprint(parts[0]):
        raise StoreError(
            f"{source}: {member.name!r}: not a file of an artifact (<fingerprint>/<file>); nothing was imported"
        )
    if PurePosixPath(member.name).suffix not in READABLE:
        raise StoreError(
            f"{source}: {member.name!r}: artifacts hold only {', '.join(READABLE)}; other kinds of file may run code "
            "when they are read. Nothing was imported"
        )


def _verified(incoming: Store, name: str, source: Path) -> Provenance:
    try:
        artifact = incoming.get(name) if (incoming.root / name / RECORD).exists() else None
        named = artifact is not None and fingerprint(artifact.provenance.identity) == name
    except StoreError as error:
        # without the advice to delete a folder, which is the temporary one
        reason = str(error).removeprefix(f"{incoming.root}/").partition("; delete ")[0]
        raise StoreError(f"{source}: {reason}; nothing was imported") from None
    except (OSError, ValueError) as error:  # a file name that no disk has, a number that JSON has not
        raise StoreError(f"{source}: {name}: damaged record ({error}); nothing was imported") from None
    if artifact is None:
        raise StoreError(f"{source}: {name}: has no {RECORD}; nothing was imported")
    record = artifact.provenance
    files = {path.relative_to(artifact.folder).as_posix() for path in artifact.folder.rglob("*") if path.is_file()}
    if record.fingerprint != name or not named or files != {*record.files, RECORD}:
        raise StoreError(f"{source}: {name}: is not what its record says; nothing was imported")
    try:
        check_model_folder(artifact.folder)
    except UnsafeFolderError as error:
        reason = str(error).removeprefix(f"{incoming.root}/")
        raise StoreError(f"{source}: {reason}; nothing was imported") from None
    return record
