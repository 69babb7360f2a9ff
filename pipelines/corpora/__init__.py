"""Preparation of datasets: from sources to validated tables of text.

Every step is a DVC stage, `python -m pipelines.corpora.steps.<step> <dataset>`:

    params.yaml ─▶ pin ─▶ collect ─▶ clean ─▶ deduplicate ─▶ decontaminate ─▶ select ─▶ split ─▶ validate ─▶ card

    pin             everything that the other steps depend on: sources, settings, code, library versions
    collect         read the sources; assign the parts of the task
    clean           repair, filter and mask texts
    deduplicate     drop copies, near-duplicates and repeated paragraphs
    decontaminate   drop texts that overlap validation or test; write the ledger
    select          domain texts for task adaptation
    split           draw labels, mix sources, shuffle; the final tables
    validate        Great Expectations (tasks.quality)
    card            the page of the dataset (pipelines.reports.cards)

    settings/      the sections of params.yaml for a dataset
    reading/       files, servers and formats of sources ─▶ records
    documentation/ docstrings of installed packages as sources
    examples/      records ─▶ examples of a task family
    cleaning/      family of repairs, filters and masks
    duplicates/    shingles, MinHash, overlap
    leaks/         index of evaluation texts, ledger of overlaps
    selections/    family of selections of domain texts; vectors/: family of text embeddings
    shards/        tables as folders of Parquet shards, and the tally of what was dropped
    engines/       family of engines that compute units of work
    evidence/      measures of a prepared dataset, for its validation
    steps/         the steps; step.py is their common frame

A step divides its work into units (engines/work.py) over tables of shards, so that memory is bounded, several processes
can share the work, and a killed process loses only unfinished units. Dropped texts are counted by reason
(shards/tally.py).

`general`, `domain` and `task_text` are folders of shards with `text, source, collection`; `train`, `validation` and
`test` are files with `text`, the columns of the task, and `source`. The same sources, code and library versions give
the same bytes.
"""
