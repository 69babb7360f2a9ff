"""Recipes: one YAML file per published system, read, checked and planned before anything computes.

recipe_file.py   YAML → plain values, with the line of every key
load.py          values → Recipe, errors with file and line; variants and `base:` are overlays
schema.py        Recipe, Stage, Budget, Claim: strict values (with kinds.py, starts.py, strict.py)
check.py         whether the parts of a stage fit together, demand ⊆ supply (with judging.py, probing.py,
                 tokenizing.py, checkpoint.py; problems.py words the refusals)
profiles.py      pure functions Recipe → Recipe (smoke); claims.py and lattice.py are such functions too plan.py
Recipe → ordered steps with fingerprints; entries.py: kind of stage → function; job.py: the job of a step
final_models.py  which models an execution ends in
systems.py       the published systems of recipes/systems.yaml, and which recipe is each
catalogue.py     docs/catalogue.md: every component with its keys
"""
