"""Mistakes by the thousand: whatever is written in a recipe, in params.yaml, in a file of texts, in a model's folder or
in an export of a store is accepted, or refused in one sentence within two seconds of computing; never a traceback.

The suite makes the same few hundred each time; `make fuzz` makes as many others as it is told to.
"""
