"""Mutation tests of the training core with cosmic-ray: one small change at a time, and whether a
test fails.

make mutants                      60 changes drawn with SEED=1 (MUTANTS=60); then docs/mutants.md.
An interrupted run continues.

`cosmic-ray.toml` says what is changed, how, and which tests are about it; `draw` leaves a sample of
the changes, `trial` is the command that cosmic-ray runs for each, `page` the outcome.
"""
