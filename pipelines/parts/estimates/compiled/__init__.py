"""Loops of estimates that Numba compiles. They are imported when they are called: Numba takes a second to import."""
