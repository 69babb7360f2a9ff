"""The language of what the command line prints."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

from flows.cli.app import app
from flows.cli.display import show_left_out
from pipelines.messages.translation import LANGUAGE_VARIABLE, LOCALE_VARIABLES, in_language, language
from tests.steps import ROOT


@pytest.fixture(autouse=True)
def english(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in (*LOCALE_VARIABLES, LANGUAGE_VARIABLE):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "params.yaml").write_text("datasets: {}\n", encoding="utf-8")
    (tmp_path / "recipes").mkdir()
    monkeypatch.setenv("CURSUS_ROOT", str(tmp_path))


def refused(*arguments: str) -> str:
    done = CliRunner().invoke(app, [*arguments, "recipes", "no_such_recipe"])
    assert done.exit_code == 2
    return str(done.stderr)


def test_a_mistake_is_announced_in_the_language_that_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    assert refused().startswith("error: there is no recipe 'no_such_recipe'")
    assert refused("--language", "zh").startswith("错误：there is no recipe 'no_such_recipe'")
    monkeypatch.setenv("LANG", "zh_CN.UTF-8")
    assert refused().startswith("错误：")
    assert refused("--language", "en").startswith("error: ")
    assert language() == "en", "the language of a command ends with it"


def test_an_unknown_language_is_refused_with_those_that_there_are() -> None:
    assert "'fr' is none of: en, zh" in " ".join(refused("--language", "fr").split())


def test_help_is_in_the_language_of_the_locale_or_of_the_option(monkeypatch: pytest.MonkeyPatch) -> None:
    def help_of(*arguments: str) -> str:
        return CliRunner().invoke(app, [*arguments, "--help"], env={"COLUMNS": "80"}).stdout

    assert "Train a recipe through all its stages." in help_of("run") and "Options" in help_of()
    chinese = [help_of("--language", "zh", *command) for command in ((), ("run",), ("store",))]
    monkeypatch.setenv("LANG", "zh_CN.UTF-8")
    assert [help_of(*command) for command in ((), ("run",), ("store",))] == chinese
    for text, title in zip(chinese, ("训练", "参数", "命令"), strict=True):
        assert f"─ {title} ─" in text and "Options" not in text and "Commands" not in text
    assert "Options" in help_of("--language", "en", "run")


@pytest.mark.parametrize("command", [one.name or one.callback.__name__ for one in app.registered_commands])
def test_no_line_of_chinese_help_is_cut(command: str) -> None:
    text = CliRunner().invoke(app, ["--language", "zh", command, "--help"], env={"COLUMNS": "80"}).stdout
    assert "选项" in text and "… │" not in text


def test_examples_that_were_dropped_are_printed_in_chinese() -> None:
    class Dataset:
        summary: dict[str, Any] = {  # noqa: RUF012
            "tables": {"test": {"documents": 46}},
            "steps": [{"step": "clean", "tables": {"task": {"documents": 46, "dropped": {"test: overlap": 14}}}}],
        }

    output = io.StringIO()
    with in_language("zh"):
        show_left_out(Console(file=output, width=200), Dataset())  # type: ignore[arg-type]
    assert output.getvalue().strip() == "舍弃  测试集：60 条中的 14 条（重叠 14 条）"


def test_the_state_of_the_machine_is_described_in_chinese() -> None:
    done = CliRunner().invoke(app, ["--language", "zh", "doctor"])
    assert "错误" not in done.output and "params.yaml" in done.output, "the settings of this project are empty"
    states = [line.split()[0] for line in done.output.splitlines() if line.strip()]
    assert set(states) <= {"正常", "注意", "问题"} and states[0] == "正常"
    assert " 磁盘 " in done.output and "可用空间" in done.output


def test_a_published_system_is_described_in_chinese(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CURSUS_ROOT", str(ROOT))
    done = CliRunner().invoke(app, ["--language", "zh", "systems", "electra"])
    heads = [line.split()[0] for line in done.output.splitlines()[1:]]
    assert done.exit_code == 0 and heads[:4] == ["题目", "论文", "类别", "应证明"] and "阶段" in done.output
    listed = CliRunner().invoke(app, ["--language", "zh", "systems"]).output.splitlines()
    assert listed[0] == "A. 预训练之前的语言模型" and "个已有配方" in listed[-1]
