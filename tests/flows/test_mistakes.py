"""A user's mistake is one line, exit code 2, told before anything is computed or written."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.flows.conftest import Cursus, command_line
from tests.pipelines.corpora.small_dataset import write_small_dataset

MISTAKES = {
    "recipe": (["run", "regmie"], ("there is no recipe 'regmie'", "Did you mean 'regime'?")),
    "dataset": (["run", "--data", "smal"], ("no dataset is called 'smal'", "Did you mean 'small'?", "params.yaml")),
    "variant": (["run", "--variant", "no-such"], ("there is no variant 'no-such'", "Known:", "regime.yaml")),
    "stage": (["run", "--until", "genral"], ("recipe regime has no stage 'genral'", "Did you mean 'general'?")),
    "claim": (["claim", "crf/entitys"], ("recipe crf has no claim 'entitys'", "Did you mean 'entities'?")),
    "data of a claim": (["claim", "crf/entities", "--data", "smal"], ("'smal'", "Did you mean 'small'?")),
    "schedule": (["schedule", "regime", "--cron", "0 2 * * *"], ("the servers do not run", "`cursus up`")),
    "data": (["data", "smal"], ("no dataset is called 'smal'", "Did you mean 'small'?")),
    "listing": (["recipes", "regmie"], ("Did you mean 'regime'?",)),
    "model folder": (["predict", "--model", "flows", "a text"], ("flows", "missing")),
}


@pytest.mark.parametrize(("arguments", "says"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_told_in_one_line(
    arguments: list[str], says: tuple[str, ...], cursus: Cursus, checkout: Path
) -> None:
    before = set((checkout / "data").rglob("*"))
    done = cursus(*arguments, timeout=60)
    assert done.returncode == 2 and done.stdout == ""
    (line,) = [line for line in done.stderr.splitlines() if not line.startswith("imported:")]
    assert line.startswith("error: ") and all(part in line for part in says)
    assert "Traceback" not in done.stderr and "torch" not in done.stderr
    assert set((checkout / "data").rglob("*")) == before


def appended(name: str, line: bytes) -> Callable[[Path], None]:
    def append(texts: Path) -> None:
        (texts / name).write_bytes((texts / name).read_bytes() + line)

    return append


def as_tsv(*lines: str) -> Callable[[Path], None]:
    """Test examples in a file that has no header."""

    def write(texts: Path) -> None:
        (texts / "test.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
        params = texts.parent / "params.yaml"
        params.write_text(params.read_text().replace("texts/test.jsonl", "texts/test.tsv"), encoding="utf-8")

    return write


IN_FILES: dict[str, tuple[Callable[[Path], None], tuple[str, ...]]] = {
    "a missing file": (lambda texts: (texts / "test.jsonl").unlink(), ("test.jsonl", "no such file or folder")),
    "an encoding": (appended("general/one.txt", b"\n\ncaf\xe9 cr\xe8me\n"), ("one.txt:", "is not UTF-8")),
    "a missing column": (appended("train.jsonl", b'{"topic": "email"}\n'), ("train.jsonl:73", "no column 'sentence'")),
    "no rows": (lambda texts: (texts / "test.jsonl").write_bytes(b""), ("test.jsonl", "the file is empty")),
    "a label": (appended("test.jsonl", b'{"sentence": "a", "topic": "art"}\n'), ("'art' (1 examples)", "'asyncio'")),
    "fields": (appended("domain.csv", b'"a","b"\n'), ("domain.csv:", "fields")),
    "a header": (as_tsv("sentence\ttopic", "a\temail"), ("test.tsv:1", "names of columns", "has no header")),
}


@pytest.mark.parametrize("command", [("data", "small"), ("run", "--data", "small")], ids=lambda one: one[0])
@pytest.mark.parametrize(("mistake", "says"), IN_FILES.values(), ids=IN_FILES)
def test_a_mistake_in_a_user_s_files_is_told_before_anything_starts(
    mistake: Callable[[Path], None],
    says: tuple[str, ...],
    command: tuple[str, ...],
    checkout: Path,
    environment: dict[str, str],
    tmp_path: Path,
) -> None:
    write_small_dataset(tmp_path)
    mistake(tmp_path / "texts")
    done = command_line(checkout, {**environment, "CURSUS_ROOT": str(tmp_path)})(*command, timeout=60)
    assert done.returncode == 2 and done.stdout == ""
    line, imported = done.stderr.splitlines()
    assert line.startswith("error: ") and all(part in line for part in says)
    assert imported == "imported:", "neither torch nor Prefect"
    assert not (tmp_path / "data").exists() and not (tmp_path / ".cursus" / "logs").exists(), "no step of DVC ran"


def test_an_unknown_option_is_refused_and_help_teaches(cursus: Cursus) -> None:
    done = cursus("run", "--smke")
    assert done.returncode == 2 and "--smoke" in done.stderr
    shown = cursus("--help")
    assert shown.returncode == 0
    for word in ("run", "data", "lineage", "recipes", "predict", "up", "down"):
        assert word in shown.stdout
    assert "--dry-run" in cursus("run", "--help").stdout


def test_recipes_are_listed_and_shown(cursus: Cursus) -> None:
    listed = cursus("recipes")
    assert listed.returncode == 0 and "regime" in listed.stdout and "arXiv:2004.10964" in listed.stdout
    shown = cursus("recipes", "regime")
    assert all(word in shown.stdout for word in ("general", "adapt_domain", "classify", "report"))
    long_names = cursus("recipes", "roberta_changes").stdout
    assert re.search(r"^full_rows_classify +finetune +cross_entropy", long_names, re.MULTILINE)
