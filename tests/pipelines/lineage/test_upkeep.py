"""Keeping the store: flaws are found, what is needed stays, and a file from outside is not trusted."""

from __future__ import annotations

import json
import os
from hashlib import sha256
from pathlib import Path

import pytest

from pipelines.errors import StoreError
from pipelines.lineage.provenance import RECORD
from pipelines.lineage.store import Store
from pipelines.lineage.transfer import export_artifacts, import_artifacts
from pipelines.lineage.upkeep import flaws, lineage_of, remove, unneeded
from tests.pipelines.lineage.exports import DAY, HOSTILE, members_of, publish, tar_of


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


@pytest.fixture
def family(store: Store) -> dict[str, str]:
    """general → domain → classify, and general → other; all old."""
    general = publish(store, "general", 30)
    domain = publish(store, "domain", 30, start=general)
    return {
        "general": general,
        "domain": domain,
        "classify": publish(store, "classify", 30, start=domain),
        "other": publish(store, "other", 30, start=general),
    }


def test_a_whole_store_has_no_flaws_and_every_other_one_is_told(store: Store, family: dict[str, str]) -> None:
    assert list(flaws(store)) == []
    (store.root / family["domain"] / "model.safetensors").write_bytes(b"domaim" * 100)
    (store.root / family["other"] / "notes.txt").write_text("mine")
    (store.root / family["general"]).rename(store.root / ("0" * 64))
    found = "\n".join(flaws(store))
    assert f"{family['domain']}/model.safetensors: differs from what was published" in found
    assert f"{family['other']}/notes.txt: was added after" in found
    assert f"{'0' * 64}: the record is that of another artifact" in found
    assert f"its start {family['general'][:12]} is not in the store" in found


def test_what_a_registered_model_needs_is_never_removed(store: Store, family: dict[str, str]) -> None:
    young = publish(store, "young", 1, start=family["other"])
    gone = {one.fingerprint: one.what for one in unneeded(store, {family["domain"]}, 7 * DAY)}
    assert gone == {family["classify"]: "regime classify@0"}, "the young one needs `other`"
    found = unneeded(store, {family["domain"], "f" * 64}, 0.5 * DAY)
    assert {one.fingerprint for one in found} == {family["classify"], family["other"], young}
    assert all(one.bytes > 100 for one in found)
    remove(store, found)
    assert {record.fingerprint for record in store.all()} == lineage_of(store, {family["domain"]})
    assert list(flaws(store)) == [] and not (store.root / ".removed").exists()


def test_unfinished_work_goes_when_nothing_touched_it(store: Store) -> None:
    work = store.workspace("a" * 64)
    (work / "metrics.jsonl").write_text("{}\n")
    assert unneeded(store, (), DAY) == []
    for path in (work / "metrics.jsonl", *work.iterdir(), work):
        os.utime(path, (0, 0))
    (only,) = unneeded(store, (), DAY)
    assert (only.what, only.folder) == ("unfinished", work)
    remove(store, [only])
    assert not work.exists()


def test_a_model_travels_with_all_it_was_made_from(store: Store, family: dict[str, str], tmp_path: Path) -> None:
    names = lineage_of(store, {family["classify"]})
    export_artifacts(store, names, tmp_path / "one.tar")
    export_artifacts(store, names, tmp_path / "two.tar")
    assert (tmp_path / "one.tar").read_bytes() == (tmp_path / "two.tar").read_bytes()
    with pytest.raises(StoreError, match="already exists"):
        export_artifacts(store, names, tmp_path / "one.tar")
    other = Store(tmp_path / "other")
    assert import_artifacts(other, tmp_path / "one.tar") == sorted(names)
    assert list(flaws(other)) == [] and import_artifacts(other, tmp_path / "one.tar") == []
    taken, own = other.get(family["classify"]), store.get(family["classify"])
    assert taken is not None and own is not None and taken.provenance == own.provenance
    export_artifacts(store, [family["classify"]], tmp_path / "alone.tar")
    with pytest.raises(StoreError, match=r"its start \w{12} is neither in the file nor in the store"):
        import_artifacts(Store(tmp_path / "third"), tmp_path / "alone.tar")


def test_a_model_that_no_machine_holds_is_not_imported(store: Store, tmp_path: Path) -> None:
    large = publish(store, "large", config='{"hidden_size": 1000000000}')
    export_artifacts(store, [large], tmp_path / "large.tar")
    with pytest.raises(StoreError, match=rf"{large}/config.json: hidden_size is 1,000,000,000.*nothing was imported"):
        import_artifacts(Store(tmp_path / "other"), tmp_path / "large.tar")
    assert list((tmp_path / "other").iterdir()) == []


@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_no_export_is_refused_and_nothing_is_taken_in(tmp_path: Path, name: str) -> None:
    content, says = HOSTILE[name]
    (tmp_path / "bad.tar").write_bytes(content)
    store = Store(tmp_path / "store")
    with pytest.raises(StoreError, match=says):
        import_artifacts(store, tmp_path / "bad.tar")
    assert list(store.root.iterdir()) == [] and {path.name for path in tmp_path.iterdir()} == {"store", "bad.tar"}


@pytest.mark.parametrize("name", ["../../etc", "/etc", "", "a", "A" * 64, "a" * 63 + "/", f"{'a' * 64}/.."])
def test_no_name_but_a_fingerprint_becomes_a_path(store: Store, family: dict[str, str], name: str) -> None:
    for asked in (store.get, store.workspace, store.folder, lambda name: lineage_of(store, [name])):
        with pytest.raises(StoreError, match="is no fingerprint"):
            asked(name)
    path = store.root / family["domain"] / RECORD
    record = json.loads(path.read_bytes())
    for tampered in ({"parents": {"start": name}}, {"files": {f"../{name}": {"sha256": "0", "bytes": 0}}}):
        path.write_text(json.dumps(record | tampered))
        with pytest.raises(StoreError, match="damaged record"):
            store.get(family["domain"])


def test_a_record_that_is_not_of_its_name_is_refused(store: Store, family: dict[str, str], tmp_path: Path) -> None:
    export_artifacts(store, [family["general"]], tmp_path / "one.tar")
    files = members_of(tmp_path / "one.tar")
    record = json.loads(files[f"{family['general']}/{RECORD}"])
    weights = b"other weights"
    record["identity"]["stage"], record["seal"] = "mine", ""
    record["files"]["model.safetensors"] = {"sha256": sha256(weights).hexdigest(), "bytes": len(weights)}
    files |= {
        f"{family['general']}/{RECORD}": json.dumps(record).encode(),
        f"{family['general']}/model.safetensors": weights,
    }
    (tmp_path / "forged.tar").write_bytes(tar_of(files))
    with pytest.raises(StoreError, match="is not what its record says"):
        import_artifacts(Store(tmp_path / "other"), tmp_path / "forged.tar")
    (tmp_path / "cut.tar").write_bytes((tmp_path / "one.tar").read_bytes()[:2000])
    with pytest.raises(StoreError, match="not a whole tar file of artifacts"):
        import_artifacts(Store(tmp_path / "other"), tmp_path / "cut.tar")
