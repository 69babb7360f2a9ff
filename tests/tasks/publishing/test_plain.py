"""The process that opens a published folder in plain transformers: without the network, and not for ever."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tasks.publishing import plain

SLOW = "#!/bin/sh\nprintenv HF_HUB_OFFLINE >> offline\nexec sleep 60\n"


def test_a_folder_that_is_not_opened_in_time_is_published_without_plain_transformers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, folder = tmp_path / "python", tmp_path / "model"
    program.write_text(SLOW, encoding="utf-8")
    program.chmod(0o755)
    folder.mkdir()
    (folder / "model.safetensors").touch()
    (folder / "config.json").write_text('{"architectures": ["BertForMaskedLM"]}', encoding="utf-8")
    monkeypatch.setattr(sys, "executable", str(program))
    monkeypatch.setattr(plain, "PATIENCE", 1)
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")  # as `cursus publish MODEL hub:…` sets it
    assert plain.opens_in_transformers(folder) is None
    assert (folder / "offline").read_text(encoding="utf-8").splitlines() == ["1", "1"], "with its head, and without"
