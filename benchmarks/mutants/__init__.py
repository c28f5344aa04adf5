"""Mutation tests of the training core: one small change at a time, and whether a test notices.

make mutants                      changes drawn with SEED=1, MUTANTS=60 of them, and every named one; then docs/mutants.md
make mutants ONLY=survivors       those that no test noticed the last time once more; ONLY=named, ONLY=drawn: a part
"""
