"""Secrets stay in the environment: no message, record, pin or card says one."""

from __future__ import annotations

import io
import json
import logging
import subprocess
import sys
from pathlib import Path

import pytest

from pipelines.corpora.reading.servers import file_system_of
from pipelines.corpora.settings.sources import FileSource
from pipelines.errors import CursusError, DataError, RecipeError
from pipelines.recipe.checkpoint import resolve_checkpoint
from pipelines.recipe.job import Runtime
from pipelines.safety.redaction import redact_logs, redacted
from tasks.display.artifacts import ArtifactPublisher
from tasks.stages.conditions import conditions
from tasks.tracking.stage_parameters import stage_parameters
from tasks.tracking.tracked_values import TrackedStep
from tests.pipelines.corpora.small_dataset import write_small_dataset
from tests.steps import ROOT

WORD = "hunter2-and-more"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"postgresql+psycopg2://me:{WORD}@host:5432/mlflow: no", "postgresql+psycopg2://***@host:5432/mlflow: no"),
        (f"https://me:p@{WORD}@host/a", "https://***@host/a"),
        (f"https://{WORD}@host/a and s3://bucket/b@c", "https://***@host/a and s3://bucket/b@c"),
        (f"https://host/a?x=1&X-Amz-Signature={WORD}&sig={WORD}", "https://host/a?x=1&X-Amz-Signature=***&sig=***"),
        (f"postgresql://me:a/{WORD}@host:5432/b", "postgresql://***@host:5432/b"),
        (f"s3://b/c?AWSAccessKeyId={WORD}&Expires=1", "s3://b/c?AWSAccessKeyId=***&Expires=1"),
        (f"AWSAccessKeyId={WORD}", "AWSAccessKeyId=***"),
        (f"Authorization: Basic {WORD}", "Authorization: Basic ***"),
        ("http://127.0.0.1:4200/flows@1", "http://127.0.0.1:4200/flows@1"),
        ("write to me@host, see https://host/a?page=2", "write to me@host, see https://host/a?page=2"),
    ],
)  # fmt: skip
def test_what_is_secret_in_an_address_is_hidden_and_nothing_else(text: str, shown: str) -> None:
    assert redacted(text) == shown


def test_errors_say_no_secret_wherever_it_came_from(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", WORD)
    monkeypatch.setenv("PREFECT_API_AUTH_STRING", f"admin:{WORD}x")
    monkeypatch.setenv("HARMLESS", "a word of this text")
    for kind in (CursusError, DataError):
        told = str(kind(f"the server said: {WORD}, admin:{WORD}x; a word of this text"))
        assert WORD not in told and "a word of this text" in told
    with pytest.raises(RecipeError) as refused:
        resolve_checkpoint(f"https://me:{WORD}@host/model")
    assert WORD not in str(refused.value) and "https://***@host/model" in str(refused.value)
    with pytest.raises(DataError) as unknown:
        file_system_of(f"gopher://me:{WORD}@host/a", {})
    assert WORD not in str(unknown.value)


def test_addresses_of_notifications_are_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    addresses = f"slack://{WORD}/b/c", f"jsons://host/{WORD}"
    monkeypatch.setenv("CURSUS_NOTIFY", " ".join(addresses))
    assert redacted(f"not sent to {addresses[1]}, nor to {addresses[0]}") == "not sent to ***, nor to ***"


@pytest.mark.parametrize(
    ("name", "hidden"),
    [
        ("CURSUS_ACCOUNT", True),
        ("DB_PASS", True),
        ("SSH_PASSPHRASE", True),
        ("GPGPassphrase", True),
        ("AWSAccessKeyId", True),
        ("PWD", False),
        ("OLDPWD", False),
        ("COMPASS", False),
        ("KEYBOARD", False),
    ],
)
def test_which_variables_are_secret(name: str, hidden: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, f"me:{WORD}")
    shown = redacted(f"me:{WORD} and {WORD}")
    assert shown == ("*** and ***" if hidden else f"me:{WORD} and {WORD}")


def test_paths_are_shown_even_if_a_variable_of_a_secret_name_holds_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PWD", str(tmp_path))
    monkeypatch.setenv("TOKEN_FILE", str(tmp_path))
    assert str(RecipeError(f"{tmp_path}/recipes/tiny.yaml:45")) == f"{tmp_path}/recipes/tiny.yaml:45"


def test_a_log_shows_no_secret_in_a_message_or_a_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker's log, too: whatever handler a tool has installed formats the same records."""
    monkeypatch.setenv("DB_PASS", WORD)
    before, written = logging.getLogRecordFactory(), io.StringIO()
    handler, logger = logging.StreamHandler(written), logging.getLogger("tests.secrets")
    logger.addHandler(handler)
    try:
        redact_logs()
        logger.warning("connecting with %s", WORD)
        try:
            raise ValueError(f"refused: {WORD}")
        except ValueError:
            logger.exception("no connection")
    finally:
        logger.removeHandler(handler)
        logging.setLogRecordFactory(before)
    said = written.getvalue()
    assert WORD not in said and "connecting with ***" in said and "ValueError: refused: ***" in said


def test_parameters_and_artifacts_show_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DB_PASS", WORD)
    settings = {"head": {"name": f"https://me:{WORD}@host/{WORD}"}}
    step = TrackedStep("1" * 64, "small", "classify", "finetune", 0, settings, {}, {}, f"classify {WORD}")
    shown = {one.key: one.value for one in stage_parameters(step)}
    assert shown["head"] == "https://***@host/***" and WORD not in str(shown)
    publisher = ArtifactPublisher()
    monkeypatch.setattr(publisher, "_work", lambda: None)
    publisher.text("card", f"see {WORD}", f"of {WORD}")
    (waiting,) = publisher._waiting.values()
    assert (waiting.data, waiting.description) == ("see ***", r"of \*\*\*")


@pytest.mark.parametrize(
    "storage",
    [
        {"endpoint_url": f"https://me:{WORD}@host"},
        {"client_kwargs": {"proxies": [f"http://me:{WORD}@proxy:3128"]}},
        {"client_kwargs": {"endpoint_url": f"https://host/?token={WORD}"}},
    ],
)
def test_an_address_with_a_password_is_no_setting_of_a_server(storage: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="secrets must not be written here"):
        FileSource.model_validate({"path": "s3://bucket/a", "storage": storage})


def test_a_record_says_nothing_of_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HF_TOKEN", WORD)
    monkeypatch.setenv("ORDINARY_BUT_PRIVATE", WORD)
    assert WORD not in conditions(tmp_path, Runtime()).model_dump_json()


def test_a_password_in_params_reaches_no_file_and_no_message(tmp_path: Path) -> None:
    """The step that pins sources, in its own process, as DVC starts it."""
    write_small_dataset(tmp_path)
    params = tmp_path / "params.yaml"
    params.write_text(params.read_text().replace("texts/train.jsonl", f"https://me:{WORD}@127.0.0.1:9/train.jsonl"))
    program = "from pathlib import Path; from pipelines.corpora.steps.pin import pin; pin('small', Path('.').resolve())"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, env={"PYTHONPATH": str(ROOT)}
    )
    assert done.returncode and "is a secret" in done.stderr
    assert WORD not in done.stdout + done.stderr
    written = [path for path in tmp_path.rglob("*") if path.is_file() and path != params]
    assert written and not [path for path in written if WORD.encode() in path.read_bytes()]
    assert not (tmp_path / "data" / "pins" / "small.json").exists(), json.dumps("refused before it is pinned")
