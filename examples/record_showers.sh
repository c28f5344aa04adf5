#!/usr/bin/env bash
# Trains the example runs of showers, measures them after each epoch, and bundles them into examples/showers.zip. On an idle machine.
#
#   examples/record_showers.sh HOME_FOLDER
#
# Three runs of the preset, which differ in their seed. A second start skips what HOME_FOLDER has.
set -euo pipefail
home=${1:?usage: examples/record_showers.sh HOME_FOLDER}
cd "$(dirname "$0")/.."
gan() { .venv/bin/python -m gan_runtime "$@" --home "$home"; }
run_of() { grep -lsF "\"showers seed $1\"" "$home"/runs/*/spec.json | tail -1 | xargs -r dirname | xargs -r basename; }

mkdir -p "$home"
for seed in 1 2 3; do
    [ -n "$(run_of "$seed")" ] || gan train --preset showers --set accelerator=cpu --set seed="$seed" --set name="showers seed $seed"
    [ -e "$home/runs/$(run_of "$seed")/journal-evaluations.jsonl" ] || gan physics "$(run_of "$seed")" --checkpoint every
done

.venv/bin/python examples/smaller_showers.py "$home"
gan bundle "$(run_of 1)" "$(run_of 2)" "$(run_of 3)" --to examples/showers.zip --prefix example- --overwrite
.venv/bin/python -m benchmarks.shower_results
