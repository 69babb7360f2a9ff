"""Evidence that needs no model: the leakage ledger of the dataset, and the lineage of the candidate."""

from __future__ import annotations

from collections import Counter

from pipelines.corpora.leaks.leaked_rows import leaked_rows
from pipelines.corpora.leaks.ledger import LEDGER, totals
from pipelines.corpora.shards.tables import read_rows
from pipelines.errors import DataError, StoreError
from pipelines.judging.gate.evidence import LeakageEvidence, LineageEvidence
from pipelines.lineage.fingerprint import fingerprint as identified_by
from pipelines.lineage.provenance import Provenance
from pipelines.lineage.store import Store
from tasks.datasets.prepared import Prepared
from tasks.models.ancestry import label
from tasks.reproduction.record import proof


def leakage_evidence(prepared: Prepared, lineage: dict[str, Provenance], test: str) -> LeakageEvidence:
    """The overlaps in the leakage ledger of a prepared dataset, and those inside its table `test`.

    Raises DataError when there is no ledger.
    """
    from pyarrow import parquet

    path = prepared.folder / "decontaminated" / LEDGER
    if not path.is_file():
        raise DataError(f"{path}: the leakage ledger is missing; run `cursus data {prepared.name}`")
    left_in: Counter[str] = Counter()
    removed = 0
    for each in totals(read_rows(path)):
        # overlaps that a published dataset keeps are counted from its test examples, below
        if each["action"] == "drop":
            removed += each["texts"]
        elif each["action"] == "warn":
            left_in[f"{each['table']}/{each['part']} ({each['kind']})"] += each["texts"]
    read = {
        table: source.digest
        for record in lineage.values()
        for table, source in record.data.items()
        if (prepared.folder.name == source.dataset)
    }
    return LeakageEvidence(
        dataset=prepared.name,
        left_in=dict(left_in),
        removed=removed,
        leaked=len(leaked_rows(prepared.tables[test])),
        tested=parquet.read_metadata(prepared.tables[test]).num_rows,
        trained_on_this=all(prepared.digests.get(table) == digest for table, digest in read.items()),
    )


def lineage_evidence(store: Store, model: str) -> LineageEvidence:
    """Verify the lineage of an artifact: every file of every ancestor is compared with its published digest."""
    flaws: list[str] = []
    commits: dict[str, str | None] = {}
    queue, visited = [model], set[str]()
    while queue:
        name = queue.pop()
        if name in visited:
            continue
        visited.add(name)
        try:
            artifact = store.get(name)
        except StoreError as flaw:
            flaws.append(str(flaw))
            continue
        if artifact is None:
            flaws.append(f"the ancestor {name[:12]} is not in the store")
            continue
        record = artifact.provenance
        if record.fingerprint != name or identified_by(record.identity) != name:
            flaws.append(f"{artifact.folder}: the record is that of another artifact")
            continue
        commits[label(record)] = record.environment.commit
        queue += record.parents.values()
    reproduction = proof(store, model)
    return LineageEvidence(
        steps=len(visited),
        flaws=tuple(flaws),
        commits=commits,
        identical=reproduction.identical if reproduction else None,
        reproduction=reproduction.sentence.rstrip(".") if reproduction else "",
    )
