"""The machine learning of Cursus: text in, models out.

Nothing below this package imports Prefect, MLflow, DVC or Great Expectations; `tasks` holds those side effects and
`flows` their order (import contracts in pyproject.toml say so, and fail the build when broken).

    recipe ─▶ plan ─▶ run(step) ─▶ artifact in the store
    corpora ─▶ tokenizer ─▶ corruption ─▶ batch (Fields) ─▶ network (Signals) ─▶ objective ─▶ losses
"""
