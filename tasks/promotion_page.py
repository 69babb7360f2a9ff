"""A promotion as people see it: Markdown for Prefect's UI, and a page of its own under reports/."""

from __future__ import annotations

from pathlib import Path

from pipelines.lineage.store import Store
from tasks.promotion_record import Promotion
from tasks.showing import SHOWING

ARTIFACT = "gate"


def described(promotion: Promotion, page: Path | None) -> str:
    """The evidence as Markdown: who, the verdict, a line a criterion."""
    against = promotion.champion
    held = f"the {promotion.alias} {against.label} {against.fingerprint[:8]}" if against else "no champion, alone"
    lines = [
        f"# {promotion.verdict}",
        "",
        f"**{promotion.model}**: the candidate {promotion.candidate.label} {promotion.candidate.fingerprint[:8]} against "
        f"{held}, on the {promotion.examples} test examples of {promotion.dataset}.",
        "",
        "| criterion | outcome | reason |",
        "|---|---|---|",
        *(f"| {one.criterion} | **{one.outcome}** | {_cell(one.reason)} |" for one in promotion.outcomes),
        "",
    ]
    if (decided := promotion.decision) is not None:
        lines += [f"**{decided.action}** by {decided.decided_by} at {decided.at}: {decided.reason}", ""]
    if page is not None:
        lines.append(f"[The page of this promotion]({page.resolve().as_uri()}), measured by {promotion.evidence[:12]}")
    return "\n".join(lines)


def show(promotion: Promotion, page: Path | None) -> None:
    """The criteria and their reasons as artifacts of the flow run."""
    SHOWING.text(ARTIFACT, described(promotion, page), promotion.sentence)
    rows = [{"criterion": one.criterion, "outcome": one.outcome, "reason": one.reason} for one in promotion.outcomes]
    SHOWING.table(f"{ARTIFACT}-criteria", rows, f"{promotion.model}: {promotion.verdict}")


def write_page(root: Path, store: Store, promotion: Promotion) -> Path:
    """Write the promotion's page; the file."""
    path = promotion.write(root).with_name("report.md")
    path.write_text(described(promotion, None) + "\n", encoding="utf-8")
    return path


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
