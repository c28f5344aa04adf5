"""Time and memory of a run on a TPU, from the TPU's compiler and without a TPU (docs/tpu.md).

plan       the programs that a check compiles
check      the job of a check, and its stored answers
compiling  compiling a program; loads JAX
hlo_cost   the cost of a compiled program, from its text
estimates  the records of an answer, and the chips
"""
