"""Prefect tasks after the last stage: the report, the registration of models, and their artifacts in the UI."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

from prefect import get_run_logger, task
from prefect.cache_policies import NO_CACHE
from prefect.runtime import flow_run

from pipelines.messages.translation import ENGLISH, in_language
from pipelines.recipe.final_models import final_backbone, final_model, lineage_steps
from pipelines.recipe.plan import Plan
from pipelines.reports.elements.wording import metric_name
from pipelines.safety.redaction import redacted_errors
from tasks.datasets.prepared import Prepared
from tasks.display.artifacts import ARTIFACTS
from tasks.display.page_addresses import page_address
from tasks.environment import MLFLOW_PORT
from tasks.records.headlines import headline_of
from tasks.records.reports import execution_record, score_tables, write_report
from tasks.servers.services import running
from tasks.stages.offer import Offer, offer_of
from tasks.stages.sanity import registration_warning
from tasks.stages.steps import Context


@task(name="report", cache_policy=NO_CACHE)
@redacted_errors()
def publish_report(
    identifier: str,
    plan: Plan,
    prepared: Prepared,
    started: datetime,
    seconds: float,
    parameters: Mapping[str, str],
    context: Context,
    *,
    measurement: bool,
) -> Path:
    """Render the execution's report, log it to MLflow, and link both in Prefect."""
    execution = execution_record(
        identifier,
        plan,
        prepared.name,
        started.isoformat(timespec="seconds"),
        seconds,
        context.seconds,
        context.tracker.run_id,
        str(flow_run.id) if flow_run.id else None,
        parameters,
        headline_of(context.store, lineage_steps(plan)),
        smoke=context.smoke,
        measurement=measurement,
    )
    page = write_report(context.root, execution, context.store, prepared)
    context.tracker.log_report(page)
    ARTIFACTS.link("report", page_address(context.root, page), "report", "The execution's page")
    if (address := _mlflow_page(context)) is not None:
        ARTIFACTS.link("mlflow", address, "MLflow run", "The lineage in MLflow")
    return page


@task(name="register", cache_policy=NO_CACHE)
@redacted_errors()
def register_models(plan: Plan, dataset: str, context: Context) -> dict[str, str]:
    """Register the final models of an execution on `dataset`; returns versions by model name, empty when MLflow does
    not answer.

    One that is not surely above its baselines gets a tag that says so.
    """
    records = {
        step.fingerprint: context.artifacts[step.fingerprint].provenance
        for step in plan.steps
        if step.fingerprint in context.artifacts
    }
    steps = [step for step in lineage_steps(plan) if step.fingerprint in records]
    answering, backbone = (step.fingerprint if step else None for step in (final_model(steps), final_backbone(steps)))
    with in_language(ENGLISH):  # a tag, as every record
        warning = registration_warning(context.store.root, steps)
    if warning is not None:
        get_run_logger().warning(warning)
    offer = Offer({}, "")
    if answering is not None:
        final = records[answering]
        parents = {role: records[name] for role, name in final.parents.items() if name in records}
        offer = offer_of(final, dataset, parents, score_tables(context.store, plan))
    return context.tracker.register(context.store, answering, backbone, offer.scores, warning, offer.description)


@task(name="scores", cache_policy=NO_CACHE)
@redacted_errors()
def show_scores(plan: Plan, context: Context) -> None:
    """Show the score tables in Prefect's UI."""
    for table in score_tables(context.store, plan):
        rows = [
            {
                "model": row.name,
                **{
                    metric_name(metric): f"{row.scores[metric]['mean']:.3f} "
                    f"[{row.scores[metric]['low']:.3f}, {row.scores[metric]['high']:.3f}]"
                    for metric in table.metrics
                    if metric in row.scores
                },
            }
            for row in table.rows
        ]
        key = re.sub("[^a-z0-9]+", "-", f"{table.section}-{table.stage}".lower()).strip("-")
        ARTIFACTS.table(key, rows, f"{table.stage}: scores with 95 % intervals")


def _mlflow_page(context: Context) -> str | None:
    """URL of the execution's page in the MLflow UI of this machine; None when MLflow has no record of it."""
    if context.tracker.page is None:
        return None
    services = running(context.root)
    server = services.mlflow_url if services is not None else f"http://127.0.0.1:{MLFLOW_PORT}"
    return f"{server}/{context.tracker.page}"
