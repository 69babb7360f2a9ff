"""A run that needs no computing is answered from a record: always with what planning prints, never with old news."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from rich.console import Console

from flows.cli.complete_run import show_complete_run
from pipelines.lineage.file_states import digest_of, states_of
from pipelines.lineage.store import Store
from tasks.environment import STORE
from tasks.records.complete_runs import RecordedRun, RunArguments, _seal, read_complete_run, record_of
from tasks.tracking.recorded import journals_folder
from tests.flows.conftest import users_shell
from tests.flows.recorded_project import CHANGES, Project, answer_of, artifact_of, flipped, rename, rewrite, write

UNTRUSTED_SECONDS = 2.5
"""How long a file must be unchanged before a command begins, for what it finds to be recorded."""


@pytest.fixture(scope="module")
def project(recorded_checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Project:
    packages = tmp_path_factory.mktemp("packages")
    (packages / "example-1.0.dist-info").mkdir()
    (packages / "example-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: example\nVersion: 1.0\n")
    environment = users_shell(recorded_checkout) | {"PYTHONPATH": str(packages)}
    project = Project(recorded_checkout, environment, packages)
    assert project.run().status == 0, "the run that computed it reported to a server that was given"
    return recorded_anew(project)


def recorded_anew(project: Project) -> Project:
    """The project, after a run whose answer is recorded."""
    time.sleep(UNTRUSTED_SECONDS)
    answer = project.run()
    assert answer.status == 0 and "everything is in the store" in answer.output, answer
    known = read_complete_run(project.record)
    assert known is not None and known.is_current()
    return project


@pytest.fixture
def recorded(project: Project) -> RecordedRun:
    """The project's record, as if it had been written now."""
    known = read_complete_run(project.record)
    assert known is not None
    return replace(known, states=digest_of(states_of(known.paths)))


@pytest.mark.parametrize("arguments", [(), ("--language", "zh")])
@pytest.mark.parametrize("columns", ["200", "60"])
def test_a_record_prints_what_planning_prints(project: Project, arguments: tuple[str, ...], columns: str) -> None:
    another = {"ANOTHER_CIRCUMSTANCE": f"{arguments} {columns}"}
    answers = [answer_of(project.start(*arguments, "run", COLUMNS=columns, **some)) for some in ({}, another)]
    assert [answer.planned for answer in answers] == [False, True]
    assert answers[0][:3] == answers[1][:3] and answers[0].status == 0


def test_other_arguments_and_circumstances_have_records_of_their_own(
    project: Project, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(project.root)
    monkeypatch.setattr(os, "environ", {"HOME": "home"})
    usual = RunArguments("regime", "small", ("hour",), smoke=False, until=None)
    records = [record_of(project.root, usual)]
    others = ({"recipe": None}, {"dataset": None}, {"variants": ()}, {"smoke": True}, {"until": "general"})
    records += [record_of(project.root, usual._replace(**other)) for other in others]
    for name, value in (("DB_PASS", "one"), ("DB_PASS", "other"), ("CUDA_VISIBLE_DEVICES", "")):
        monkeypatch.setattr(os, "environ", {"HOME": "home", name: value})
        records.append(record_of(project.root, usual))
    monkeypatch.setattr(os, "environ", {"HOME": "home"})
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    records.append(record_of(project.root, usual))
    (tmp_path / ".cache").mkdir()
    assert record_of(project.root, usual) == records[-1]
    (tmp_path / "torch").mkdir()
    records.append(record_of(project.root, usual))
    assert len(set(records)) == len(records) == 11
    monkeypatch.undo()
    monkeypatch.chdir(project.root)
    monkeypatch.setattr(os, "environ", {"HOME": "home", "COLUMNS": "60", "LANG": "zh_CN.UTF-8"})
    assert record_of(project.root, usual) == records[0], "they are shown in another form"


@pytest.mark.parametrize("change", list(CHANGES))
def test_a_record_is_out_of_date_after(project: Project, recorded: RecordedRun, change: str) -> None:
    assert recorded.is_current()
    changed = CHANGES[change](project)
    next(changed)
    try:
        assert not recorded.is_current()
    finally:
        next(changed, None)


def test_what_does_not_matter_does_not_count(project: Project, recorded: RecordedRun) -> None:
    for path in ("README.md", "pipelines/__pycache__/new.pyc", "data/store/.tokens/new", "data/prepared/other/new"):
        written = write(project.root / path)
        next(written)
        assert recorded.is_current(), path
        next(written, None)


def test_a_comment_is_planned_again_and_then_recorded(project: Project) -> None:
    code = project.root / "pipelines" / "words.py"
    with code.open("a") as file:
        file.write("# a comment changes no result\n")
    soon = project.run()
    assert soon.planned and "everything is in the store" in soon.output
    known = read_complete_run(project.record)
    assert known is not None and not known.is_current(), "what has just been written is not trusted"
    recorded_anew(project)
    assert not project.run().planned


def test_a_damaged_artifact_is_reported(project: Project) -> None:
    changed = rewrite(artifact_of(project) / "model.safetensors", flipped)
    next(changed)
    try:
        answer = project.run()
    finally:
        next(changed, None)
    assert answer.status == 2 and "differs from what was published" in answer.messages
    recorded_anew(project)


def test_what_mlflow_or_the_report_lacks_is_left_to_planning(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    def is_shown() -> bool:
        return show_complete_run(project.root, project.root / STORE, project.record, Console(), smoke=False)

    (report,) = (project.root / "reports").glob("*/report.html")
    note = journals_folder(project.root) / f"{report.parent.name}.told"
    for path in (report, report.with_name("execution.json"), note):
        missing = rename(path, project.root / "elsewhere")
        next(missing)
        assert not is_shown(), path
        next(missing, None)
    pending = write(journals_folder(project.root) / "another.jsonl")
    next(pending)
    assert not is_shown()
    next(pending, None)
    assert not capsys.readouterr().out
    assert is_shown() and str(report.parent.name) in "".join(capsys.readouterr().out.split())


def _hostile(record: Path, recorded: RecordedRun) -> Iterator[None]:
    """Write what is no record in its place, one after the other."""
    text = record.read_text()
    content = json.dumps(asdict(recorded) | {"paths": None})
    for other in (text[: len(text) // 2], "", "[]", "\0" * 100, f"{_seal('[1]')}\n[1]", f"{_seal(content)}\n{content}"):
        record.write_text(other)
        yield
    record.unlink()
    os.mkfifo(record)
    yield
    record.unlink()
    record.mkdir()
    yield
    record.rmdir()
    (record.parent / "target").write_text(text)
    record.symlink_to("target")
    yield
    record.unlink()
    (record.parent / "target").unlink()
    record.write_text(text)


def test_what_is_no_record_is_ignored(project: Project, recorded: RecordedRun) -> None:
    for number, _ in enumerate(_hostile(project.record, recorded)):
        assert read_complete_run(project.record) is None, number
    project.record.write_text(project.record.read_text()[:1000])
    answer = project.run()
    assert answer.planned and "everything is in the store" in answer.output
    assert not project.run().planned, "it was replaced"


def test_two_at_once(project: Project) -> None:
    for planned in (True, False):
        if planned:
            project.record.unlink()
        processes = [project.start("run") for _ in range(2)]
        answers = [answer_of(process) for process in processes]
        assert [answer.planned for answer in answers] == [planned, planned]
        assert answers[0].status == 0 and answers[0].output == answers[1].output


def test_nothing_is_printed_while_artifacts_are_removed(project: Project) -> None:
    with Store(project.root / "data" / "store").exclusive(print):
        process = project.start("run")
        assert process.stderr is not None
        lines = [process.stderr.readline() for _ in range(2)]
        assert "artifacts are being removed" in lines[1], lines
    assert answer_of(process).planned
