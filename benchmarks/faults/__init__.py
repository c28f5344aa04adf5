"""Recovery from faults: seeded scenarios kill, stop, starve and deceive real processes.

    make faults SEED=1 SCENARIOS=200
    python -m benchmarks.faults --seed 1 --scenarios 200 [--only kill_trainer,fill_disk]

`kinds` is the table of faults, `stage` a home with its owner and trainers, `checks` what must hold
after each recovery. `tests/support/inject.py` triggers a fault at one exact file operation.
Most scenarios train with `toy_trainer`: the real worker, launcher, loop, journal and checkpoints
around a network of 64 numbers. It takes half a second where TensorFlow takes eight.
"""
