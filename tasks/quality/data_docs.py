"""Runs Great Expectations: results as plain values, and Data Docs with an index that works without a network."""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tasks.quality.questions import QualityQuestion

if TYPE_CHECKING:
    from pandas import DataFrame

ROWS_SHOWN = 5


def run_suites(
    suites: Mapping[str, Sequence[QualityQuestion]], frame: Callable[[str], DataFrame], docs: Path
) -> dict[str, Any]:
    """Validate every table's suite, write the Data Docs into `docs`, and return the results by table.

    `frame` returns the measures of a table; one table is in memory at a time.
    """
    os.environ.setdefault("GX_ANALYTICS_ENABLED", "false")
    logging.getLogger("great_expectations").setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # deprecations inside the library
        import great_expectations as gx
        from great_expectations.data_context.types.base import ProgressBarsConfig

        from tasks.quality import expectations as quality_expectations

        context = gx.get_context(mode="ephemeral")
        context.variables.progress_bars = ProgressBarsConfig(globally=False)
        for name in list(context.get_site_names()):
            context.delete_data_docs_site(name)
        store = {"class_name": "TupleFilesystemStoreBackend", "base_directory": str(docs.resolve())}
        index = {"class_name": "DefaultSiteIndexBuilder"}
        site: Any = {"class_name": "SiteBuilder", "store_backend": store, "site_index_builder": index}
        context.add_data_docs_site(site_name="tables", site_config=site)
        source = context.data_sources.add_pandas("tables")
        results = {}
        for name, questions in suites.items():
            suite = gx.ExpectationSuite(name=name)
            for question in questions:
                ours = getattr(quality_expectations, question.expectation, None)
                kind = ours or getattr(gx.expectations, question.expectation)
                suite.add_expectation(
                    kind(**question.arguments, description=question.meaning, severity=question.severity)
                )
            batch = source.add_dataframe_asset(name).add_batch_definition_whole_dataframe("whole table")
            definition = gx.ValidationDefinition(name=name, data=batch, suite=context.suites.add(suite))
            result = context.validation_definitions.add(definition).run(
                batch_parameters={"dataframe": frame(name)},
                result_format={
                    "result_format": "SUMMARY",
                    "partial_unexpected_count": ROWS_SHOWN,
                    "unexpected_index_column_names": ["stands_at", "text"],
                    "return_unexpected_index_query": False,
                },
            )
            document: dict[str, Any] = result.to_json_dict()  # type: ignore[no-untyped-call]
            results[name] = _plain_result(document, questions)
        context.build_data_docs()
    return results


def _plain_result(result: dict[str, Any], suite: Sequence[QualityQuestion]) -> dict[str, Any]:
    order = {question.meaning: question for question in suite}
    entries = []
    for item in result["results"]:
        config, numbers = item["expectation_config"], item["result"]
        entries.append(
            {
                "expectation": config["type"],
                "meaning": config["description"],
                "column": config["kwargs"].get("column"),
                "success": bool(item["success"]),
                "severity": order[config["description"]].severity,
                "observed": numbers.get(
                    "observed_value", f"{numbers.get('unexpected_percent', 0) or 0:.4g} % unexpected"
                ),
                "unexpected_count": int(numbers.get("unexpected_count", 0) or 0),
                "rows": [
                    {name: _plain(value) for name, value in row.items()}
                    for row in numbers.get("partial_unexpected_index_list") or []
                ],
                "trouble": _exception(item),
            }
        )
    entries.sort(key=lambda entry: suite.index(order[entry["meaning"]]))
    return {"success": not any(map(refuses, entries)), "expectations": entries}


def refuses(entry: Mapping[str, Any]) -> bool:
    """Whether the result of an expectation rejects its table; a failure with severity `warning` does not."""
    return not entry["success"] and entry["severity"] == "critical"


def _plain(value: Any) -> Any:
    """A NumPy scalar as a Python value, rounded to four digits."""
    value = value.item() if hasattr(value, "item") else value
    return round(value, 4) if isinstance(value, float) else value


def _exception(item: dict[str, Any]) -> str | None:
    """Message of the exception that prevented the evaluation of an expectation; None when there was none."""
    info = item.get("exception_info") or {}
    reports = [info] if "raised_exception" in info else list(info.values())
    return next((str(report["exception_message"]) for report in reports if report.get("raised_exception")), None)


def index_page(dataset: str, results: Mapping[str, Any], folder: Path) -> str:
    """An HTML index of the tables' pages: the one of Great Expectations is empty without a network."""
    items = []
    for name, result in results.items():
        # Great Expectations makes a folder of each part of a name
        page = next(folder.glob(f"validations/{name.replace('.', '/')}/**/*.html")).relative_to(folder).as_posix()
        failed = [entry for entry in result["expectations"] if not entry["success"]]
        word = (
            f"{len(failed)} of {len(result['expectations'])} expectations failed" if failed else "all expectations met"
        )
        which = "".join(f"<li>{escape(entry['meaning'])}</li>" for entry in failed)
        items.append(f'<li><a href="{page}">{name}</a>: {word}<ul>{which}</ul></li>')
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{dataset}</title>'
        '<meta name="color-scheme" content="light dark"><style>body{font:16px/1.5 system-ui,sans-serif;'
        "margin:2rem auto;max-width:50rem;padding:0 1rem}</style>"
        f"<h1>{dataset}: results of Great Expectations</h1><ul>{''.join(items)}</ul></html>\n"
    )
