"""Addresses of this checkout's pages: the MLflow server of `cursus up` serves them over http, so that links to them
open from Prefect's and MLflow's pages, which browsers forbid to link to files.

    http://127.0.0.1:5000/reports/<execution>/report.html     executions and promotions
    http://127.0.0.1:5000/data-docs/<dataset>/index.html      Great Expectations' Data Docs
    http://127.0.0.1:5000/cards/<dataset>/card.html           dataset cards
"""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import quote

from tasks.environment import MLFLOW_PORT, state_folder

REPORTS, DATA_DOCS, CARDS = "reports", "data-docs", "cards"
FOLDERS = {REPORTS: Path("reports"), DATA_DOCS: Path("data/docs"), CARDS: Path("data/prepared")}
"""First part of an address → the folder below the root of the checkout."""


def page_address(root: Path, page: Path) -> str:
    """The address of a page in one of `FOLDERS`, at the running server or where the next one starts by default."""
    return f"{_server(root)}/{page_path(root, page)}"


def page_path(root: Path, page: Path) -> str:
    """The same, relative to the server's address. Raises ValueError for a page that is not served."""
    inside = page.resolve().relative_to(root.resolve())
    for name, folder in FOLDERS.items():
        if inside.is_relative_to(folder):
            return quote(f"{name}/{inside.relative_to(folder).as_posix()}")
    raise ValueError(f"{page} is in no folder that is served")


def _server(root: Path) -> str:
    try:
        recorded = json.loads((state_folder(root) / "services.json").read_text(encoding="utf-8"))
        return str(recorded["mlflow_url"])
    except (OSError, ValueError, KeyError):
        return f"http://127.0.0.1:{MLFLOW_PORT}"
