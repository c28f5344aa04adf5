"""Mutation tests of the training core with cosmic-ray: does a test fail for one small change?

    make mutants [SEED=1] [MUTANTS=60]    tries a sample of mutants and writes docs/mutants.md

An interrupted run resumes. `cosmic-ray.toml` lists the mutated files, the operators, and the tests
of each file. `draw` selects the sample, `trial` is the command that cosmic-ray runs for each
mutant, `page` writes the results.
"""
