"""Prefect flows: order, nothing else. Side effects are in `tasks`, the machine learning in `pipelines`."""
