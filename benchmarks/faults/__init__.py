"""Recovery from faults: seeded scenarios in which real processes of a short run are killed,
stopped, starved and deceived.

    make faults SEED=1 SCENARIOS=200 python -m benchmarks.faults --seed 1 --scenarios 200 [--only
    kill_trainer,disk_full] [--first 17]

`kinds` is the table of faults, `stage` a home with its owner and trainers, `checks` what must hold
after each recovery, `inject` how a fault happens inside a process at one exact file operation.
Most scenarios train with `toy_trainer`: the real worker, launcher, loop, journal and checkpoints
around a network of 64 numbers, which costs half a second where TensorFlow costs eight.
"""
