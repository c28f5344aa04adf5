#!/usr/bin/env bash
# Trains the example runs of the Kármán street, runs rollouts of each, and bundles them into examples/karman.zip. On an idle machine.
#
#   examples/record_karman.sh HOME_FOLDER         trains what HOME_FOLDER does not have
#   examples/record_karman.sh HOME_FOLDER RUN…    bundles these runs, which have rollouts
#
# Three runs of the preset with different seeds, and rollouts of all held-out flows of each. The first flow comes last, since the newest rollout has the film.
set -euo pipefail
home=${1:?usage: examples/record_karman.sh HOME_FOLDER [RUN…]}
cd "$(dirname "$0")/.."
gan() { .venv/bin/python -m gan_runtime "$@" --home "$home"; }
run_of() { grep -lsF "\"karman seed $1\"" "$home"/runs/*/spec.json | tail -1 | xargs -r dirname | xargs -r basename; }

runs=("${@:2}")
if [ ${#runs[@]} = 0 ]; then
    mkdir -p "$home"
    for seed in 1 2 3; do
        [ -n "$(run_of "$seed")" ] || gan train --preset karman --set accelerator=cpu --set seed="$seed" --set name="karman seed $seed"
        runs+=("$(run_of "$seed")")
        [ -e "$home/runs/${runs[-1]}/journal-evaluations.jsonl" ] || {
            for trajectory in 4 3 2 1; do gan flow "${runs[-1]}" --trajectory "$trajectory" --cores 2; done
            gan flow "${runs[-1]}" --trajectory 0 --way map_reduce --way whole --way naive --cores 2
        }
    done
fi

small=$(mktemp -d)
trap 'rm -rf "$small"' EXIT
.venv/bin/python -m examples.smaller_runs "$home" "${runs[@]}" "$small"
.venv/bin/python -m gan_runtime bundle "${runs[@]}" --to examples/karman.zip --prefix example- --overwrite --home "$small"
du --total --bytes examples/*.zip
.venv/bin/python -m benchmarks.flow_results
