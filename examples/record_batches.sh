#!/usr/bin/env bash
# Trains parts of the study of large batches (docs/quality.md) and bundles them into examples/batches.zip.
#
#   GAN_DATA_DIR=~/mnist-t10k examples/record_batches.sh HOME_FOLDER PART…
#
# `python -m benchmarks.batch_study list` names the parts. Ctrl-C saves; the same command continues. The bundle has all finished
# runs of HOME_FOLDER.
set -euo pipefail
: "${GAN_DATA_DIR:?set it to a folder that holds t10k-images-idx3-ubyte.gz and no training images}"
home=${1:?usage: examples/record_batches.sh HOME_FOLDER PART…}
cd "$(dirname "$0")/.."
for part in "${@:2}"; do .venv/bin/python -m benchmarks.batch_study run "$part" "$home"; done

mapfile -t runs < <(.venv/bin/python -m gan_runtime sql "SELECT run_id FROM runs WHERE status = 'finished' ORDER BY run_id" \
    --json --home "$home" | .venv/bin/python -c 'import json, sys; print(*(row["run_id"] for row in json.load(sys.stdin)), sep="\n")')
small=$(mktemp -d)
trap 'rm -rf "$small"' EXIT
.venv/bin/python -m examples.smaller_runs "$home" "${runs[@]}" "$small"
.venv/bin/python -m gan_runtime bundle "${runs[@]}" --to examples/batches.zip --prefix batches- --overwrite --home "$small"
