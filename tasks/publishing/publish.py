"""Publish a model: a folder with its files, a card made of its records, and the records; or that folder on a hub."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pipelines.errors import CursusError
from pipelines.lineage.disk import write_text_atomically
from pipelines.lineage.provenance import RECORD
from pipelines.lineage.results import METRICS, RESULT, SCRATCH
from pipelines.lineage.store import Store
from pipelines.messages.translation import message
from pipelines.models.extracting import extract_task
from pipelines.models.untrusted import refuse_unsafe
from pipelines.safety.markdown import inert
from tasks.datasets.planning import store_folder
from tasks.models.ancestry import ancestry
from tasks.models.reference import NamedModel
from tasks.publishing.facts import licence_of_data, model_facts
from tasks.publishing.plain import PlainOpening, opens_in_transformers

CARD = "README.md"
LINEAGE = "lineage.json"
TEMPLATE = "model_card.md"
NOT_PUBLISHED = (RECORD, METRICS, RESULT, SCRATCH)
"""Files of an artifact that are no part of the model; the records of all ancestors are in `lineage.json`."""


@dataclass(frozen=True)
class Publication:
    """What the person who publishes states, and no record knows."""

    title: str
    licence: str = "other"
    """Identifier of the model's licence, as the Hugging Face Hub spells it."""
    intended_use: str | None = None
    """None: stated from the task and its data alone."""


def publish(
    root: Path, named: NamedModel, task: str | None, target: Path, publication: Publication
) -> PlainOpening | None:
    """Write the model, its card and its lineage into the new folder `target`; returns how plain transformers opens it.

    The folder appears completely or not at all. Raises CursusError for a folder that is no artifact, and a target that
    exists.
    """
    if named.fingerprint is None:
        raise CursusError(f"{named.folder}: a folder has no record to make a card of; name a model of the store")
    if target.exists():
        raise CursusError(f"{target}: exists already; name a new folder, or remove it")
    store = Store(store_folder(root))
    target.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=f".{target.name}.publishing-", dir=target.parent) as temporary:
        work = Path(temporary) / "model"
        source = extract_task(named.folder, task, Path(temporary) / "task")
        shutil.copytree(source, work, ignore=shutil.ignore_patterns(*NOT_PUBLISHED), copy_function=shutil.copyfile)
        refuse_unsafe(work)
        plain = opens_in_transformers(work)
        facts = model_facts(root, store, named.fingerprint, work, plain)
        write_text_atomically(work / CARD, _card(facts, publication))
        records = [record.model_dump(mode="json") for record in ancestry(store, named.fingerprint).values()]
        write_text_atomically(work / LINEAGE, json.dumps(records, indent=1, ensure_ascii=False) + "\n")
        os.replace(work, target)
    return plain


def _card(facts: dict[str, Any], publication: Publication) -> str:
    from jinja2 import Environment, StrictUndefined

    # Markdown: the filter `cell` makes texts of datasets inert
    pages = Environment(
        autoescape=False, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )
    pages.filters["cell"] = inert
    template = files(__package__).joinpath(TEMPLATE).read_text(encoding="utf-8")
    names = " and ".join(one["name"] for one in facts["datasets"])
    default = (
        f"{facts['task'].capitalize()} of texts like those of {names}, in their language. Nothing is known of other "
        "texts: measure before it is used on them. Not for decisions about people that nobody reviews."
    )
    return pages.from_string(template).render(
        **facts,
        title=publication.title,
        licence=publication.licence,
        intended_use=publication.intended_use or default,
        languages=sorted({str(one["language"]) for one in facts["datasets"] if one["language"]}),
        data_licences=licence_of_data(facts["datasets"]),
        own_scores=[score for score in facts["scores"] if score["own"]],
    )


def require_token() -> None:
    """Raise CursusError where this user has no token of the Hugging Face Hub."""
    from huggingface_hub import get_token

    if get_token() is None:
        raise CursusError("the hub needs a token: set HF_TOKEN, or run `hf auth login`")


def upload(folder: Path, repository: str, notify: Callable[[str], None]) -> str:
    """Upload a published folder to the repository `owner/name` of the Hugging Face Hub, and return its address. One
    that does not exist is made, and is private; one that exists stays as visible as it is.

    Raises CursusError without a token, for what the hub refuses, and where it is not reached.
    """
    from huggingface_hub import HfApi

    require_token()
    notify(message("uploading to {repository} …", repository=repository))
    api = HfApi()
    try:
        api.create_repo(repository, private=True, exist_ok=True)
        api.upload_folder(repo_id=repository, folder_path=folder, commit_message="Published by Cursus")
    except Exception as error:  # without a network, the client's transport raises errors of a library of its own
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise CursusError(f"the hub did not take {repository}: {reason}") from None
    return f"{api.endpoint}/{repository}"
