"""What the card of a published model states, collected from records: nothing is computed or read again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pipelines.corpora.settings.dataset import FILE, load_settings
from pipelines.corpora.settings.licences import UNSTATED
from pipelines.corpora.shards.writing import read_json
from pipelines.errors import CursusError
from pipelines.lineage.provenance import Provenance
from pipelines.lineage.store import Store
from pipelines.reports.cards.facts import LEDGER, licensed_sources, overlaps
from pipelines.reports.elements.wording import metric_name
from pipelines.reports.score_tables import read_evaluations, score_tables
from pipelines.serving.answering.examples import family_of, input_columns
from pipelines.shipped import shipped_folder
from tasks.models.ancestry import ancestry, key_figure, label
from tasks.publishing.plain import PlainOpening
from tasks.records import claims
from tasks.records.measurements import read_records

SHORT = 12
"""Digits shown of a fingerprint or a digest."""


def model_facts(root: Path, store: Store, fingerprint: str, folder: Path, plain: PlainOpening | None) -> dict[str, Any]:
    """The values that the template of the card shows of an artifact, whose published files are in `folder`."""
    records = ancestry(store, fingerprint)
    record = records[fingerprint]
    family = family_of(folder)
    datasets = list(dict.fromkeys(source.dataset for one in records.values() for source in one.data.values()))
    config = read_json(folder / "config.json")
    return {
        "stage": label(record),
        "recipe": record.recipe,
        "fingerprint": fingerprint,
        "commit": record.environment.commit,
        "task": family.name.replace("_", " "),
        "category": family.hub_category,
        "single_text": family.is_single_text,
        "columns": input_columns(family),
        "labels": _labels(config),
        "datasets": [_dataset(root, name) for name in datasets],
        "tables": [
            {"name": f"{source.dataset}/{table}", "digest": source.digest}
            for table, source in {key: one for step in records.values() for key, one in step.data.items()}.items()
        ],
        "steps": [_step(one) for one in records.values()],
        "scores": list(_scores(store, record)),
        "claims": _claims(root, {one.recipe for one in records.values()}),
        "plain": asdict(plain) if plain is not None else None,
        "bytes": sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()),
        "parameters": int(record.result.get("parameters", 0)),
    }


def _labels(config: Mapping[str, Any]) -> list[str]:
    named = config.get("id2label") or {}
    return [str(named[key]) for key in sorted(named, key=int)]


def _step(record: Provenance) -> dict[str, Any]:
    return {
        "label": label(record),
        "kind": record.kind,
        "fingerprint": record.fingerprint,
        "reads": ", ".join(record.data) or "–",
        "tokens": int(record.result.get("tokens", 0)),
        "figure": key_figure(record.result.get("metrics", {}), record.identity.get("family")),
    }


def _dataset(root: Path, name: str) -> dict[str, Any]:
    """Language, sources with licences, overlaps with the test table, and whether the expectations were met, as far as
    they are still on record."""
    home = root / "data" / "prepared" / name
    known: dict[str, Any] = {"name": name, "language": None, "sources": [], "overlaps": None, "success": None}
    try:
        if (home / "summary.json").is_file():
            known["language"] = read_json(home / "summary.json")["language"]
        if (home / "verdict.json").is_file():
            known["success"] = read_json(home / "verdict.json")["success"]
        known["overlaps"] = overlaps(home / LEDGER, {})
        pin = root / "data" / "pins" / f"{name}.json"
        if (root / FILE).is_file() and pin.is_file() and name in (settings := load_settings(root)):
            known["language"] = known["language"] or settings[name].language
            known["sources"] = list(licensed_sources(settings[name], read_json(pin)["sources"]))
    except CursusError:
        pass  # settings that have become invalid since say nothing of this model
    return known


def licence_of_data(datasets: list[dict[str, Any]]) -> list[str]:
    """The licences of all sources, sorted; those that are not stated among them."""
    stated = {str(source["licence"]) for one in datasets for source in one["sources"]}
    return sorted(stated) or [UNSTATED]


def _scores(store: Store, record: Provenance) -> Iterator[dict[str, Any]]:
    """The scores of the model's stage in every evaluation of it, with their 95 % intervals, the newest first."""
    judged = [one for one in store.all() if one.kind == "evaluate" and record.fingerprint in one.parents.values()]
    for one in sorted(judged, key=lambda step: step.environment.started, reverse=True):
        for table in score_tables(read_evaluations(store.root, [(one.stage, one.fingerprint)])):
            rows = [row for row in table.rows if row.name == record.stage or row.baseline]
            for row in rows if any(row.name == record.stage for row in rows) else ():
                for metric, score in row.scores.items():
                    yield {
                        "evaluation": f"{one.recipe}/{one.stage}",
                        "model": row.name,
                        "own": row.name == record.stage,
                        "seeds": row.seeds,
                        "metric": metric,
                        "called": metric_name(metric),
                        "examples": table.record.get("examples"),
                        "dataset": next((source.dataset for source in one.data.values()), ""),
                        **{key: float(score[key]) for key in ("mean", "low", "high")},
                    }


def _claims(root: Path, recipes: set[str]) -> list[dict[str, str]]:
    """What was measured of the claims of the recipes that the model was made by."""
    folders = dict.fromkeys([root / claims.RECORDS, shipped_folder() / claims.RECORDS])
    records = [record for folder in folders for record in read_records(folder)]
    return [
        {"name": f"{one['recipe']}/{one['claim']}", "statement": one["says"], "verdict": one["verdict"]}
        for one in records
        if one["recipe"] in recipes
    ]
