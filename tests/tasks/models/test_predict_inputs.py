"""Inputs of `cursus predict`: arguments, standard input, files; and what is refused as one."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from flows.cli.app import app
from flows.cli.predict import BLOCK
from tests.tasks.conftest import LABELS, TEXTS

Predict = Callable[..., Result]


@pytest.fixture
def predict(classifier_folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Predict:
    monkeypatch.setenv("CURSUS_ROOT", str(tmp_path))

    def run(*arguments: str, given: bytes | None = None) -> Result:
        return CliRunner().invoke(app, ["predict", "--model", str(classifier_folder), *arguments], input=given)

    return run


def test_arguments_standard_input_and_files_have_the_same_answers(predict: Predict, tmp_path: Path) -> None:
    texts, objects = tmp_path / "texts.txt", tmp_path / "texts.jsonl"
    texts.write_text("\r\n".join(TEXTS) + "\r\n", encoding="utf-8")
    objects.write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS), encoding="utf-8")
    shown = predict(*TEXTS).output
    assert len(shown.splitlines()) == len(TEXTS) and all(line.split()[0] in LABELS for line in shown.splitlines())
    assert predict("--file", str(texts)).output == shown == predict(given=texts.read_bytes()).output
    answers = predict("--json", *TEXTS).output
    assert predict("--file", str(objects)).output == answers, "the name says that it holds JSON"
    assert predict("--json", given=objects.read_bytes()).output == answers


def test_a_long_file_is_answered_in_blocks(predict: Predict, tmp_path: Path) -> None:
    file = tmp_path / "long.txt"
    file.write_text("a text\n" * (BLOCK + 1), encoding="utf-8")
    lines = predict("--file", str(file)).output.splitlines()
    assert len(lines) == BLOCK + 1 and len(set(lines)) == 1


def test_what_is_no_input_is_one_sentence(predict: Predict, tmp_path: Path) -> None:
    texts, broken, other = tmp_path / "texts.txt", tmp_path / "broken.jsonl", tmp_path / "latin.txt"
    texts.write_text("a text\n", encoding="utf-8")
    broken.write_text('{"text": "one"}\n{"text": \n', encoding="utf-8")
    other.write_bytes("süß".encode("latin-1"))
    refused = {
        f"@{texts} names a file, and would be read as a text; write --file {texts}": [f"@{texts}"],
        "two inputs": ["--file", str(texts), "another"],
        f"{tmp_path / 'missing'}: cannot be read": ["--file", str(tmp_path / "missing")],
        f"{broken}:2: not JSON": ["--file", str(broken)],
        f"{other}: not UTF-8": ["--file", str(other)],
        "no input: ": [],
        "text 2 is not UTF-8": ["one", "\udcff"],
    }
    for sentence, arguments in refused.items():
        done = predict(*arguments, given=b"")
        assert done.exit_code == 2 and sentence in done.stderr, done.output
        assert len(done.stderr.splitlines()) == 1


def test_a_mention_is_a_text(predict: Predict) -> None:
    assert predict("@alice is here").exit_code == 0
    assert predict("@alice " + "writes " * 60).exit_code == 0, "longer than the name of a file"


def test_standard_input_is_utf_8_in_every_locale(predict: Predict, classifier_folder: Path) -> None:
    shown = predict(given="\ufeffsüß\n".encode())
    assert shown.exit_code == 0 and shown.output == predict("süß").output, "without the mark of its encoding"
    arguments = ["predict", "--model", str(classifier_folder)]
    done = CliRunner(charset="latin-1").invoke(app, arguments, input="süß".encode("latin-1"))
    assert done.exit_code == 2 and "standard input: not UTF-8" in done.stderr


def test_a_file_begins_with_its_first_text(predict: Predict, tmp_path: Path) -> None:
    plain, marked = tmp_path / "plain.jsonl", tmp_path / "marked.jsonl"
    plain.write_text(json.dumps({"text": TEXTS[0]}), encoding="utf-8")
    marked.write_text(json.dumps({"text": TEXTS[0]}), encoding="utf-8-sig")
    assert predict("--file", str(marked)).output == predict("--file", str(plain)).output != ""


def test_a_text_cannot_command_the_terminal(predict: Predict) -> None:
    shown = predict("\x1b]0;title\x07 Solve\x9b2J\na linear system.").output
    assert len(shown.splitlines()) == 1 and "linear system" in shown
    assert not {"\x1b", "\x07", "\x9b"} & set(shown)


def test_no_standard_input_at_all_is_no_input(predict: Predict, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)  # what Python has where the descriptor is closed
    with pytest.raises(SystemExit) as ended:
        app(["predict"])
    assert ended.value.code == 2
