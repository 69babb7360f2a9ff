"""Pages of this checkout on MLflow's server: reports, Data Docs and dataset cards, behind its account.

Their texts come from datasets. The pages escape them; in case one does not, browsers open each page in a sandbox: with
an origin of its own, it can neither run scripts (Data Docs: only such that reach no server) nor use MLflow's API.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pipelines.messages.translation import LANGUAGES, localized
from tasks.display.page_addresses import CARDS, DATA_DOCS, FOLDERS, REPORTS

if TYPE_CHECKING:
    from flask import Flask, Response

_ALWAYS = "sandbox allow-popups allow-popups-to-escape-sandbox allow-downloads"
STILL = f"{_ALWAYS}; default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'none'; base-uri 'none'"
SCRIPTED = f"{_ALWAYS} allow-scripts; connect-src 'none'; form-action 'none'"
POLICIES = {REPORTS: STILL, DATA_DOCS: SCRIPTED, CARDS: STILL}
"""First part of an address → Content-Security-Policy of its pages."""
ONLY = {CARDS: frozenset(localized("card.html", name) for name in LANGUAGES)}
"""First part of an address → the only names that are served there: the folder also has the tables."""


def add_pages(app: Flask, root: Path) -> None:
    """Serve the pages of the checkout at `root`; `app` authenticates every request before it gets here."""
    for name, folder in FOLDERS.items():
        view = partial(_page, root.resolve() / folder, POLICIES[name], ONLY.get(name))
        endpoint = f"cursus-{name}"
        app.add_url_rule(f"/{name}/<path:page>", endpoint, view, methods=["GET"])
        app.add_url_rule(f"/{name}/", endpoint, view, methods=["GET"], defaults={"page": "index.html"})


def _page(folder: Path, policy: str, only: frozenset[str] | None, page: str) -> Response:
    """A file below `folder`; anything else is not found, also a link that leads out of it."""
    from flask import abort, send_from_directory

    try:
        path = (folder / page).resolve()
    except ValueError:  # a null character
        abort(404)
    if not path.is_relative_to(folder.resolve()) or (only is not None and path.name not in only):
        abort(404)
    response = send_from_directory(folder, page, max_age=0)
    response.headers["Content-Security-Policy"] = policy
    response.headers["X-Content-Type-Options"] = "nosniff"
    response.headers["Referrer-Policy"] = "no-referrer"
    return response
