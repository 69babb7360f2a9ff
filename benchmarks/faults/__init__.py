"""The fault campaign: a small regime is disturbed in every way a machine knows, and must end as if nothing had happened.

    template ──copy──▶ checkout ──▶ cursus run … struck by a fault … ──▶ run again until done ──▶ judge ──▶ a record a case
    undisturbed run ─────────────────────────── digests of every artifact ──────────────────────────┘

A case is one strike at a random moment, which its number seeds. Four things are counted of it, and all must be 0:

lost      finished work that is computed again: a published step, a result that was not yet published, a checkpoint
wrong     an artifact that is not, byte for byte, what an undisturbed run makes; a file, record or MLflow run that lies
hangs     60 seconds in which nothing is said, written or computed
unclear   an end that is neither success nor one sentence that names what to do

`python -m benchmarks.faults` goes on where it was stopped: a case that has its record is not run again.
"""
