"""From sources to validated tables of text; every step is a DVC stage, `python -m pipelines.corpora.<step> <dataset>`.

    params.yaml ─▶ pin ─▶ collect ─▶ clean ─▶ deduplicate ─▶ decontaminate ─▶ split ─▶ validate (tasks.quality)
                   │       read        repair   same text       n-grams of      draw      Great Expectations
                   │       and hold    and cut  once, the       validation      labels,
                   └ what  out                  evaluation      and test go     write
                     everything depends on      keeps it

Tables are Parquet. `general`, `domain` and `task_text` hold `text, source`; `train`, `validation` and `test` hold
`text, label, source`. The same sources, code and library versions give the same bytes.
"""
