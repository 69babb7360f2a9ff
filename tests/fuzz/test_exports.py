"""Exports of a store with mistakes in them: imported whole, or refused with the file's name; nothing is left of one."""

from __future__ import annotations

import gzip
import json
import tarfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given

from pipelines.lineage.provenance import RECORD
from pipelines.lineage.store import Store
from pipelines.lineage.transfer import import_artifacts
from pipelines.lineage.upkeep import flaws
from pipelines.safety.model_folders import check_model_folder
from tests.fuzz.archives import ESCAPED, Member, exports, sound_members, with_content, written
from tests.fuzz.effort import effort, refusal_of, with_findings
from tests.pipelines.lineage.exports import HOSTILE, NAME, members_of, publish

FILE = "export.tar"


def with_file(suffix: str, content: bytes) -> bytes:
    """The sound export with `content` in its files that end in `suffix`; the records agree."""
    members = sound_members()
    for name in [one.name for one in members if one.name.endswith(suffix)]:
        members = with_content(members, name, content)
    return written(members)


def with_record(**changes: object) -> bytes:
    """The sound export with changes of its records, which keep their seal unless it is changed."""
    return written(
        [
            Member(one.name, json.dumps(json.loads(one.content) | changes).encode())
            if one.name.endswith(RECORD)
            else one
            for one in sound_members()
        ]
    )


FINDINGS = [
    *(content for content, _ in HOSTILE.values()),
    written(sound_members()),
    written([*sound_members(), Member(sound_members()[0].name.replace("config", "added"), b"{}")]),
    with_file("config.json", b"[" * 10**6),
    with_file("config.json", b'{"hidden_size": 1000000000}'),
    with_file("model.safetensors", (2**62).to_bytes(8, "little") + b"{}"),
    written([Member(f"{NAME}/{number}.json") for number in range(2000)]),
    written([Member(f"{NAME}/{'a/' * 400}x.json", b"{}")]),
    gzip.compress(bytes(2**25)),
]
"""Bombs, and what an attacker would send."""


def content_of(folder: Path) -> dict[Path, bytes | None]:
    """Every path in `folder` with the bytes of the file; None for a folder."""
    return {path: path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


@with_findings(FINDINGS)
@given(exports())
@effort(100)
def test_an_export_is_imported_whole_or_refused(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    root = tmp_path_factory.mktemp("export")
    store, path = Store(root / "inner" / "store"), root / "inner" / FILE
    publish(store, "present")
    path.write_bytes(content)
    before, added = content_of(root), []

    def take() -> None:
        added.extend(import_artifacts(store, path))

    message = refusal_of(take)
    after = content_of(root)
    assert not ESCAPED.exists() and not Path("harmed").exists()
    if message is not None:
        assert after == before
        assert FILE in message, message
        return
    assert list(flaws(store)) == []
    for name in added:
        check_model_folder(store.root / name)
    files = {store.root / name: inside for name, inside in members_of(path).items()}
    folders = {parent: None for file in files for parent in file.parents if parent.is_relative_to(store.root)}
    assert after == before | folders | files, "what is in the store is not what is in the file"
    assert {file.relative_to(store.root).parts[0] for file in files} == {*added}


def extended(key: str, value: str) -> bytes:
    """A header of the POSIX format, with one value for the member that follows."""
    record = f" {key}={value}\n".encode()
    length = len(record)
    while len(f"{length}") + len(record) != length:
        length = len(f"{length}") + len(record)
    return Member("header", f"{length}".encode() + record, tarfile.XHDTYPE).written()


def long_name(size: int) -> bytes:
    """A header of GNU's format, by which the name of the next member has `size` bytes."""
    member = tarfile.TarInfo("header")
    member.type, member.size = tarfile.GNUTYPE_LONGNAME, size
    return member.tobuf(tarfile.GNU_FORMAT)


CONFIG = written([Member(f"{NAME}/config.json", b"{}")])
FLAWS: Mapping[str, bytes] = {
    "name with a null byte": extended("path", f"{NAME}/a\0.json") + CONFIG,
    "size of a sparse file that is no number": extended("GNU.sparse.size", "abc") + CONFIG,
    "folders in folders": written([Member(f"{NAME}/{'a/' * 1500}x.json", b"{}")]),
    "headers of headers": extended("comment", "a") * 3000 + CONFIG,
    "a name of an exabyte": long_name(2**60) + CONFIG,
    "a name that is longer than any file": long_name(2**80) + CONFIG,
    "a file of an exabyte": written([Member(f"{NAME}/config.json", b"{}", size=2**60)]),
    "record that is no number": with_record(result={"accuracy": float("nan")}),
    "identity that is no number": with_record(identity={"stage": float("nan")}, seal=""),
    "record of a name too long": with_record(files={"x" * 300: {"sha256": "", "bytes": 0}}, seal=""),
    "damaged record": with_record(seed="none"),
    "damaged file": written([Member(one.name, one.content[:-1] + b" ") for one in sound_members()]),
}
"""Name → a file that was refused without its name, or ended in a traceback."""


@pytest.mark.parametrize("name", FLAWS)
def test_a_refusal_names_the_file(tmp_path: Path, name: str) -> None:
    (tmp_path / FILE).write_bytes(FLAWS[name])
    message = refusal_of(lambda: import_artifacts(Store(tmp_path / "store"), tmp_path / FILE))
    assert message is not None and FILE in message
