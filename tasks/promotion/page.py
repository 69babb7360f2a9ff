"""The presentation of a promotion: Markdown for Prefect's UI, and a page under reports/."""

from __future__ import annotations

from pathlib import Path

from pipelines.judging.gate import CriterionOutcome
from pipelines.lineage.provenance import Provenance
from pipelines.lineage.store import Store
from pipelines.reports.sections.gate import GateSection
from pipelines.safety.markdown import inert
from tasks.datasets.prepared import Prepared
from tasks.decisions.record import Promotion
from tasks.display.artifacts import ARTIFACTS
from tasks.display.page_addresses import page_address
from tasks.models.ancestry import ancestry
from tasks.records.reports import provenance_records

ARTIFACT = "gate"
"""Key of the artifact in Prefect's UI."""


def promotion_markdown(promotion: Promotion, page: Path | None) -> str:
    """The promotion as Markdown: the verdict, the models, and one line per criterion."""
    against = promotion.champion
    opponent = f"the {promotion.alias} {against.label} {against.fingerprint[:8]}" if against else "no champion"
    lines = [
        f"# {promotion.verdict}",
        "",
        f"**{inert(promotion.model)}**: the candidate {inert(promotion.candidate.label)} "
        f"{promotion.candidate.fingerprint[:8]} against {inert(opponent)}, on {inert(promotion.test_examples)}.",
        "",
        # a list: the form's window is too narrow for a table
        *(
            f"- {inert(one.title)} **{one.outcome}**: {inert(one.reason)}"
            for one in sorted(promotion.outcomes, key=_decisive_first)
        ),
        "",
    ]
    if (decided := promotion.decision) is not None:
        lines += [f"**{decided.action}** by {inert(decided.decided_by)} at {decided.at}: {inert(decided.reason)}", ""]
    if page is not None:
        steps = ", ".join(one[:12] for one in promotion.all_evidence)
        root = page.resolve().parents[2]  # reports/<promotion>/<page>
        lines.append(f"[The page of this promotion]({page_address(root, page)}), measured by {steps}")
    return "\n".join(lines)


def show(promotion: Promotion, page: Path | None) -> None:
    """Publish the criteria and their reasons as artifacts of the flow run."""
    ARTIFACTS.text(ARTIFACT, promotion_markdown(promotion, page), promotion.sentence)
    rows = [{"criterion": one.title, "outcome": one.outcome, "reason": one.reason} for one in promotion.outcomes]
    ARTIFACTS.table(f"{ARTIFACT}-criteria", rows, f"{promotion.model}: {promotion.verdict}")


def write_page(root: Path, store: Store, promotion: Promotion, prepared: Prepared) -> Path:
    """Write the promotion's pages, the gate and the report of its judging step, and return the gate's file."""
    from pipelines.reports.report import render_report

    folder = promotion.write(root).parent
    judged = [Provenance.read(store.folder(fingerprint)) for fingerprint in promotion.all_evidence]
    steps = [
        {
            "stage": record.stage,
            "seed": record.seed,
            "kind": record.kind,
            "fingerprint": record.fingerprint,
            "cached": True,
            "seconds": record.environment.seconds,
            "parents": record.parents,
        }
        for record in judged
    ]
    recorded = promotion.model_dump(mode="json")
    execution = {
        "id": promotion.id,
        "recipe": judged[0].recipe,
        "paper": "",
        "dataset": promotion.dataset,
        "started": promotion.began,
        "seconds": sum(record.environment.seconds for record in judged),
        "steps": steps,
        "promotion": recorded,
        "criteria": recorded["outcomes"],
    }
    records = provenance_records(store, [name for record in judged for name in ancestry(store, record.fingerprint)])
    render_report(execution, records, store.root, prepared.summary, prepared.verdict, folder / "report.html")
    return folder / f"{GateSection.name}.html"


def _decisive_first(outcome: CriterionOutcome) -> int:
    """Sort key: outcomes that decide the verdict come first."""
    return ("missed", "undecided", "met", "not asked").index(outcome.outcome)
