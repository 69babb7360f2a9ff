"""The fault-injection campaign: a small regime is disturbed in many ways, and must end with the same results as
undisturbed.

    template ──copy──▶ checkout ──▶ cursus run … fault … ──▶ run again until done ──▶ judge ──▶ one record per case
    undisturbed run ─────────────────────── digests of every artifact ──────────────────┘

A case is one fault at a random moment, seeded by the case's number. Four counts are recorded, and all must be 0:

lost      finished work that is computed again: a published step, a result that was not yet published, a checkpoint
wrong     an artifact that differs from an undisturbed run's in any byte; a false file, record or MLflow run
hangs     60 seconds without output, writes or computation
unclear   an exit that is neither success nor one sentence that says what to do

`python -m benchmarks.faults` continues an interrupted campaign: a case with a record is not run again.
"""
