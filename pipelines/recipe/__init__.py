"""Recipes: one YAML file a published system; read, checked and planned before anything computes.

load.py      YAML → Recipe, with file and line for whatever is wrong; variants and `base:` are overlays
schema.py    Recipe, Stage, Budget, Optimizer: strict values
check.py     do the parts of a stage meet? (demand ⊆ supply)
profiles.py  pure functions Recipe → Recipe (smoke)
plan.py      Recipe → ordered steps with fingerprints
"""
