"""`prepare` on a real checkout with real DVC: what runs, what does not run again, what is refused and how."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from hashlib import md5
from pathlib import Path

import pytest

from pipelines.corpora.shards.digests import dvc_digest
from pipelines.errors import DataError, QualityError, RecipeError
from tasks.datasets.dvc_lock import keep_copy, locked_stages, restore_torn
from tasks.datasets.dvc_process import OCCUPIED, repro
from tasks.datasets.lock import data_in_use, prepare_in_turn
from tasks.datasets.prepared import KEPT, Prepared, collected_pin, open_prepared, prepare

SHELL = {**os.environ, "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])}
"""A shell in which the environment is activated."""
AFTER_CLEAN = ["clean", "deduplicate", "decontaminate", "select", "split", "validate", "card"]
PREPARE = """
import json, sys
from pathlib import Path
from pipelines.corpora.shards.digests import dvc_digest
from tasks.datasets.prepared import prepare
ran = []
prepare("small", Path.cwd(), ran.append)
heavy = sorted({"pandas", "great_expectations", "prefect", "torch", "mlflow", "dvc"} & set(sys.modules))
print(json.dumps([ran, heavy]))
"""


def ran(checkout: Path) -> list[str]:
    """The steps a new process of the checkout's own code runs to bring the dataset up to date."""
    done = subprocess.run(
        [sys.executable, "-c", PREPARE], cwd=checkout, text=True, capture_output=True, check=True, env=dict(os.environ)
    )
    steps, heavy = json.loads(done.stdout.splitlines()[-1])
    assert heavy == []
    return [step for step in steps if step != "pin" and ":" not in step]  # without lines of progress


def test_digests_are_the_md5_of_the_tables(checkout: Path) -> None:
    small = open_prepared("small", checkout)
    assert small.digests == {name: dvc_digest(path) for name, path in small.tables.items()}
    assert small.digests["test"] == md5(small.tables["test"].read_bytes()).hexdigest()
    assert small.labels == ["asyncio", "email", "unittest"] and small.verdict["success"]


def test_sources_that_were_collected_are_not_looked_at_again(checkout: Path) -> None:
    """Otherwise every cached run would read them for a while."""
    pinned = json.loads((checkout / "data/pins/small.json").read_text())
    assert collected_pin("small", checkout) == pinned["steps"]["collect"]


def test_what_is_up_to_date_is_not_run_again_and_a_plain_dvc_repro_agrees(checkout: Path) -> None:
    assert ran(checkout) == []
    done = subprocess.run(
        [sys.executable, "-m", "dvc", "repro"], cwd=checkout, text=True, capture_output=True, check=True, env=SHELL
    )
    assert set(re.findall(r"Running stage '(.*)'", done.stdout)) <= {"wait_for_runs", "pin@small"}


def test_a_path_that_another_dvc_uses_is_waited_for_and_what_a_killed_one_left_is_not(checkout: Path) -> None:
    table = checkout / ".dvc" / "tmp" / "rwlock"
    said: list[str] = []
    with subprocess.Popen(["dvc", "600"], executable=shutil.which("sleep")) as other:

        def hear(line: str) -> None:
            said.append(line)
            other.kill()
            other.wait()

        for pid, heard in ((other.pid, [OCCUPIED]), (os.getpid(), [])):
            said.clear()
            owner = {"pid": pid, "cmd": "dvc push"}
            table.write_text(json.dumps({"write": {str(checkout / "data/prepared/small/cleaned"): owner}, "read": {}}))
            prepare("small", checkout, hear)
            assert said == heard


@pytest.mark.parametrize("torn", [b"", b'{"write": {"/a', b"\xff\x00"])
def test_a_table_of_locks_that_a_killed_dvc_left_torn_is_in_nobodys_way(
    checkout: Path, tmp_path: Path, torn: bytes
) -> None:
    (checkout / ".dvc" / "tmp" / "rwlock").write_bytes(torn)
    status, output = repro("small", checkout, tmp_path / "log", lambda _: None, lambda: None)
    assert status == 0, output


@pytest.mark.parametrize("end", ["", "    md5", "\n"])
def test_a_dvc_lock_that_a_killed_dvc_left_torn_costs_nothing(checkout: Path, end: str) -> None:
    assert ran(checkout) == []  # which keeps a copy
    lock = checkout / "dvc.lock"
    whole = lock.read_text()
    try:
        lock.write_text(whole[: whole.index(end, len(whole) // 2) + len(end)] if end else "")
        assert ran(checkout) == []
        # what is read as a whole one, DVC completes from its cache of runs
        assert lock.read_text() == whole or end == "\n"
    finally:
        lock.write_text(whole)


def test_a_clone_has_a_dvc_lock_and_no_state_folder(tmp_path: Path) -> None:
    lock = tmp_path / "dvc.lock"
    lock.write_text("stages: {}\n")
    keep_copy(tmp_path)
    lock.write_text("stages:")
    restore_torn(tmp_path)
    assert lock.read_text() == "stages: {}\n"
    assert not (tmp_path / ".cursus").stat().st_mode & 0o077


@pytest.mark.parametrize(
    ("text", "reason"), [("stages:\n<<<<<<< HEAD\n  a: {}\n", "has conflicts of git"), ("", "is not whole")]
)
def test_a_dvc_lock_that_only_its_user_can_repair_is_one_sentence(tmp_path: Path, text: str, reason: str) -> None:
    (tmp_path / "dvc.lock").write_text(text)
    restore_torn(tmp_path)
    with pytest.raises(DataError, match=f"dvc.lock {reason}: .*git checkout dvc.lock.*delete it"):
        locked_stages(tmp_path)
    assert (tmp_path / "dvc.lock").read_text() == text


def test_a_comment_runs_nothing_and_a_changed_rule_runs_what_follows(checkout: Path) -> None:
    module = checkout / "pipelines/corpora/steps/tidy.py"
    source = module.read_text()
    before = open_prepared("small", checkout).digests
    try:
        module.write_text(source + "\n# a remark\n")
        assert ran(checkout) == []
        module.write_text(source.replace(r"\n{3,}", r"\n{4,}"))
        assert ran(checkout)[:1] == ["clean"]
    finally:
        module.write_text(source)
    ran(checkout)
    assert open_prepared("small", checkout).digests == before


def test_a_setting_runs_only_the_steps_that_read_it(checkout: Path) -> None:
    params = checkout / "params.yaml"
    whole = params.read_text()
    try:
        params.write_text(whole + "    quality: {max_label_share: 0.5}\n    budget: {general: {tokens: 5}}\n")
        assert ran(checkout) == ["validate", "card"]
        params.write_text(whole + "    clean: {min_characters: 120}\n")
        assert ran(checkout) == AFTER_CLEAN
    finally:
        params.write_text(whole)


def test_a_dataset_in_use_changes_only_when_its_user_has_ended(checkout: Path) -> None:
    params = checkout / "params.yaml"
    whole = params.read_text()
    said: list[str] = []
    found: list[Prepared] = []

    def change() -> None:
        found.append(prepare_in_turn("small", checkout, lambda step: None, said.append))

    waiting = threading.Thread(target=change)
    try:
        with data_in_use("small", checkout, lambda: prepare("small", checkout), said.append) as mine:
            with data_in_use("small", checkout, lambda: prepare("small", checkout), said.append) as beside:
                assert beside.digests == mine.digests and said == []
            params.write_text(whole + "    clean: {min_characters: 120}\n")
            waiting.start()
            deadline = time.monotonic() + 120
            while not said and time.monotonic() < deadline:
                time.sleep(0.1)
            assert said == [
                "small: has changed, and another run is training on its previous state; waiting for that run to end"
            ]
            assert open_prepared("small", checkout).digests == mine.digests
        waiting.join(240)
        assert found[0].digests["general"] != mine.digests["general"]
    finally:
        params.write_text(whole)
    assert prepare("small", checkout).digests == mine.digests


def test_a_step_s_mistake_arrives_as_the_error_it_was(checkout: Path) -> None:
    params, texts = checkout / "params.yaml", checkout / "texts/general/one.txt"
    whole, text = params.read_text(), texts.read_bytes()
    try:
        texts.write_bytes(text + b"caf\xe9")
        with pytest.raises(DataError, match=rf"one\.txt:\d+: byte {len(text) + 3} is not UTF-8"):
            prepare("small", checkout)
        texts.write_bytes(text)
        params.write_text(whole + "    quality: {max_label_share: 0.1}\n")
        with pytest.raises(QualityError, match="the table 'train' failed .*share_of_label") as refused:
            prepare("small", checkout)
        assert len(str(refused.value).splitlines()) >= 7 and str(refused.value).endswith(KEPT)
        assert open_prepared("small", checkout).verdict["success"], "the version before stays"
        assert not json.loads((checkout / "data/docs/small/verdict.json").read_text())["success"]
    finally:
        params.write_text(whole)
        texts.write_bytes(text)
    assert prepare("small", checkout).verdict["success"]


def test_a_changed_version_replaces_nothing_until_it_is_accepted(checkout: Path) -> None:
    params = checkout / "params.yaml"
    whole, before = params.read_text(), open_prepared("small", checkout).digests
    try:
        params.write_text(whole + "    clean: {min_characters: 400}\n    quality: {drift: 0.01}\n")
        with pytest.raises(QualityError, match="expect_no_drift") as refused:
            prepare("small", checkout)
        assert "cursus data small --accept" in str(refused.value) and str(refused.value).endswith(KEPT)
        kept = open_prepared("small", checkout)
        assert kept.digests == before == {name: dvc_digest(path) for name, path in kept.tables.items()}
        accepted = prepare("small", checkout, accept=True).digests
        assert accepted["general"] != before["general"]
        assert ran(checkout) == []
    finally:
        params.write_text(whole)
    assert prepare("small", checkout, accept=True).digests == before


def test_what_was_never_prepared_or_was_edited_is_not_opened(checkout: Path) -> None:
    with pytest.raises(RecipeError, match="no dataset is called 'smell'. Did you mean 'small'?"):
        open_prepared("smell", checkout)
    table = checkout / "data/prepared/small/train.parquet"
    whole = table.read_bytes()
    table.unlink()
    with pytest.raises(DataError, match=r"train\.parquet is missing; run 'cursus data small'"):
        open_prepared("small", checkout)
    table.write_bytes(whole + b" ")
    with pytest.raises(DataError, match="has changed since it was prepared"):
        open_prepared("small", checkout)
    table.unlink()
    assert prepare("small", checkout).tables["train"].read_bytes() == whole
