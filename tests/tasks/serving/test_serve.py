"""`cursus serve`: one real server of a small model, its page, its limits, and `cursus predict` through it."""

from __future__ import annotations

import asyncio
import base64
import http.client
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import psutil
import pytest

from pipelines.errors import DataError
from pipelines.serving.answering.answering_model import AnsweringModel, Prediction
from pipelines.task_families import Row
from tasks.environment import private_state_folder
from tasks.servers.processes import Process
from tasks.serving.batching import Batcher, BatchLimits, QueueFullError
from tasks.serving.protection import LARGEST_REQUEST
from tasks.serving.running import ServingRecord, default_server, state_of, write_record
from tests.steps import ROOT
from tests.tasks.conftest import LABELS, TEXTS
from tests.tasks.servers.conftest import CHROMIUM, NO_CHROMIUM, QUIET

ACCOUNT = "ada:a-password-of-some-length"
PARAMS = "datasets:\n  docs:\n    language: en\n"


class Served(NamedTuple):
    url: str
    root: Path
    model: Path
    environment: dict[str, str]

    def request(
        self, path: str, payload: Any = None, account: str | None = ACCOUNT, **headers: str
    ) -> tuple[int, dict[str, str], bytes]:
        address = urlsplit(self.url)
        connection = http.client.HTTPConnection(str(address.hostname), address.port, timeout=60)
        if account is not None:
            headers["Authorization"] = f"Basic {base64.b64encode(account.encode()).decode()}"
        body = json.dumps(payload) if payload is not None else None
        headers |= {"Content-Type": "application/json"} if body else {}
        connection.request("POST" if body else "GET", path, body, headers)
        response = connection.getresponse()
        answer = response.status, {name.lower(): value for name, value in response.getheaders()}, response.read()
        connection.close()
        return answer

    def predict(self, *inputs: Any) -> list[dict[str, Any]]:
        status, _, body = self.request("/predict", {"inputs": list(inputs)})
        assert status == 200, body
        predictions: list[dict[str, Any]] = json.loads(body)["predictions"]
        return predictions

    def command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "cursus", *arguments], cwd=ROOT, env=self.environment, capture_output=True, text=True
        )


@pytest.fixture(scope="module")
def served(classifier_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    root = tmp_path_factory.mktemp("project")
    (root / "params.yaml").write_text(PARAMS, encoding="utf-8")
    environment = {**os.environ, "CURSUS_ROOT": str(root), "CURSUS_ACCOUNT": ACCOUNT, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "cursus", "serve", str(classifier_folder), "--port", "0", "--threads", "1"]
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = iter(process.stdout.readline, "")
        url = next(line.split()[1] for line in lines if line.startswith("Page"))
        one = Served(url, root, classifier_folder, environment)
        deadline = time.monotonic() + 60
        while True:
            try:
                one.request("/health")
                break
            except OSError:
                assert time.monotonic() < deadline
                time.sleep(0.05)
        yield one
        process.terminate()
        assert process.wait(30) == 0, "stopped in order"
    assert not (root / ".cursus" / "serving.json").exists()


def test_its_predictions_are_those_of_the_model(served: Served) -> None:
    expected = [one.as_json() for one in AnsweringModel(served.model).predict([{"text": text} for text in TEXTS])]
    answers = served.predict(*TEXTS)
    assert answers == served.predict(*({"text": text} for text in TEXTS))
    for answer, right in zip(answers, expected, strict=True):
        assert answer["label"] == right["label"] and set(answer["probabilities"]) == set(LABELS)
        assert answer["probabilities"] == pytest.approx(right["probabilities"], abs=2e-6)


def test_many_at_once_are_answered_in_batches(served: Served) -> None:
    with ThreadPoolExecutor(16) as threads:
        answers = list(threads.map(lambda number: served.predict(TEXTS[number % 3])[0]["label"], range(64)))
    assert answers == [one["label"] for one in served.predict(*TEXTS)] * 21 + answers[:1]
    figures = dict(
        line.rsplit(" ", 1) for line in served.request("/metrics")[2].decode().splitlines() if line[0] != "#"
    )
    assert float(figures["cursus_batch_examples_sum"]) == float(figures["cursus_predictions_total"]) >= 64
    assert float(figures['cursus_requests_total{status="200"}']) >= 64
    assert any(name.startswith("cursus_model_info{") for name in figures)


@pytest.mark.parametrize(
    ("payload", "status", "sentence"),
    [
        ({"inputs": [{"words": "none"}]}, 422, "input 1: the column 'text' is missing"),
        ({"inputs": []}, 422, "at least 1 item"),
        ({"inputs": ["a text"], "more": 1}, 422, "Extra inputs are not permitted"),
        ({"inputs": ["a text"] * 1025}, 422, "at most 1024 items"),
        ({"inputs": ["x" * LARGEST_REQUEST]}, 413, "send the examples in several"),
        ({"inputs": [float("nan")]}, 422, "inputs.0"),
        ({"inputs": ["\ud800"]}, 422, "input 1: "),
        ({"inputs": [{"text": "\ud800"}]}, 422, "input 1: the column 'text'"),
        ({"inputs": ["a text"], "\ud800": 1}, 422, '{"detail":"'),
        ({"more": 1}, 422, '{"detail":"inputs: Field required"}'),
    ],
)
def test_what_it_cannot_read_is_refused_in_a_sentence(served: Served, payload: Any, status: int, sentence: str) -> None:
    answer = served.request("/predict", payload)
    assert answer[0] == status and sentence in answer[2].decode()


def test_it_needs_the_account_and_its_own_origin(served: Served) -> None:
    for path in ("/", "/model", "/metrics", "/openapi.json", "/predict"):
        assert served.request(path, account=None)[0] == 401
        assert served.request(path, account="ada:another-password-12")[0] == 401
    assert served.request("/health", account=None)[::2] == (200, b'{"status":"ok"}')
    assert served.request("/health", Host="a-name.example")[0] == 403
    assert served.request("/model", Origin="http://127.0.0.1:1")[0] == 403


def test_its_page_loads_nothing_from_elsewhere(served: Served) -> None:
    status, headers, body = served.request("/")
    page = body.decode()
    assert status == 200 and "http://" not in page and "https://" not in page and "{{" not in page
    policy = headers["content-security-policy"]
    nonce = policy.partition("script-src 'nonce-")[2].partition("'")[0]
    assert "default-src 'none'" in policy and f'<script nonce="{nonce}">' in page and len(nonce) > 16
    described = json.loads(served.request("/model")[2])
    assert (described["task"], described["labels"]) == ("text_classification", LABELS)
    schema = json.loads(served.request("/openapi.json")[2])
    assert {"/predict", "/model", "/health", "/metrics"} <= set(schema["paths"])


def test_its_page_is_in_the_language_of_the_browser(served: Served) -> None:
    pages = {
        language: served.request("/", **{"Accept-Language": language})[2].decode()
        for language in ("zh-CN,zh;q=0.9,en;q=0.8", "de")
    }
    chinese, english = pages.values()
    assert '<html lang="zh">' in chinese and ">预测</button>" in chinese
    assert '<html lang="en">' in english and ">Predict</button>" in english
    assert served.request("/")[1]["vary"] == "Accept-Language"


@pytest.mark.skipif(CHROMIUM is None, reason=NO_CHROMIUM)
def test_a_person_tries_the_model_on_its_page(served: Served) -> None:
    from playwright.sync_api import sync_playwright

    name, _, password = ACCOUNT.partition(":")
    requests: list[str] = []
    errors: list[str] = []
    text = "<img src=x onerror=alert(1)> Solve a linear system."
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        page = browser.new_page(http_credentials={"username": name, "password": password})
        page.on("request", lambda request: requests.append(request.url))
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(served.url)
        page.get_by_text("text classification").wait_for()
        page.locator("textarea").fill(text)
        page.get_by_role("button", name="Predict").click()
        answer = page.locator("#output h2").text_content()
        rows = page.locator("#output tr").count()
        browser.close()
    assert answer == served.predict(text)[0]["label"] and rows == len(LABELS)
    assert not errors and all(url.startswith(served.url) for url in requests)


def test_predict_asks_the_running_server(served: Served) -> None:
    arguments = ("predict", "--model", str(served.model), "--json", *TEXTS)
    before = time.monotonic()
    done = served.command(*arguments)
    seconds = time.monotonic() - before
    assert done.returncode == 0, done.stderr
    assert [json.loads(line) for line in done.stdout.splitlines()] == served.predict(*TEXTS)
    code = f"import sys; sys.argv = ['cursus', *{arguments!r}]\ntry:\n    from cursus.__main__ import main; main()\n"
    code += "except SystemExit: pass\nprint({'torch', 'transformers'} & set(sys.modules))"
    shown = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=served.environment, capture_output=True, text=True, check=True
    )
    assert shown.stdout.splitlines()[-1] == "set()", "the model was opened by the server already"
    assert seconds < 30, "a generous limit: an idle machine needs less than a second"


def test_the_server_of_the_default_model_is_asked_until_another_may_be_the_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CURSUS_ACCOUNT", ACCOUNT)
    process = Process(pid=os.getpid(), created=psutil.Process().create_time())
    (tmp_path / "params.yaml").write_text(PARAMS)
    private_state_folder(tmp_path)
    record = ServingRecord(
        url="http://127.0.0.1:1", process=process, title="int8", folder=str(tmp_path), task=None, reference=None,
        dataset=None, state=state_of(tmp_path),
    )  # fmt: skip
    write_record(tmp_path, record)
    server = default_server(tmp_path, None, None)
    assert server is not None and server.url == record.url and server.account.line == ACCOUNT
    assert default_server(tmp_path, "docs", None) is None and default_server(tmp_path, None, "pairs") is None
    write_record(tmp_path, record.model_copy(update={"reference": "int8"}))
    assert default_server(tmp_path, None, None) is None, "named otherwise"
    write_record(tmp_path, record)
    (tmp_path / "reports").mkdir()
    assert default_server(tmp_path, None, None) is None, "a run may have ended"
    write_record(tmp_path, record.model_copy(update={"state": state_of(tmp_path)}))
    assert default_server(tmp_path, None, None) is not None
    ended = process.model_copy(update={"created": process.created - 60})
    write_record(tmp_path, record.model_copy(update={"state": state_of(tmp_path), "process": ended}))
    assert default_server(tmp_path, None, None) is None, "the process has ended"


def test_a_mistake_of_one_request_is_not_that_of_its_batch() -> None:
    seen: list[int] = []

    def predict(rows: Sequence[Row]) -> list[Prediction]:
        if any(row["text"] == "bad" for row in rows):
            raise DataError("bad")
        return [Prediction(str(row["text"]).upper()) for row in rows]

    async def together() -> list[Any]:
        async with Batcher(predict, BatchLimits(largest=4, wait_ms=50, most_waiting=6), seen.append) as batcher:
            texts = ["a", "bad", "b", "c"]
            answers = await asyncio.gather(
                *(batcher.predict([{"text": text}]) for text in texts), return_exceptions=True
            )
            with pytest.raises(QueueFullError):
                await batcher.predict([{"text": "x"}] * 7)
            return answers

    first, bad, *others = asyncio.run(together())
    assert [one[0].answer for one in (first, *others)] == ["A", "B", "C"] and isinstance(bad, DataError)
    assert seen == [4, 1, 1, 1, 1]
