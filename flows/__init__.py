"""Prefect flows: only the order of steps. Side effects are in `tasks`, the machine learning in `pipelines`."""
