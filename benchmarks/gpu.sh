#!/usr/bin/env bash
# Trains and evaluates a whole run on this host's NVIDIA GPU, if its libraries are installed. Then measures the JAX engine and
# compiled PyTorch, all in about 8 minutes. No process loads TensorFlow. A failed command does not stop the others; the script
# lists it at the end and exits with 1.
#
#   benchmarks/gpu.sh [--set NAME=VALUE …] [options of python -m benchmarks.gpu]
#       --set: options of the run, after those of preset quick        PYTHON: an interpreter with jax[cuda], torch and keras
#       LIMIT: seconds after which the run, and then its evaluation, is stopped
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
limit=${LIMIT:-90}
settings=()
while [ "${1:-}" = --set ]; do
    settings+=("$1" "$2")
    shift 2
done
accelerator=gpu
for argument in "$@"; do [ "$argument" = cpu ] && accelerator=cpu; done

failed=()
attempt() { # runs a command, and notes it if it fails
    local status=0
    "$@" || status=$?
    [ "$status" = 0 ] || failed+=("$* (exit code $status)")
}

[ "$accelerator" = cpu ] || attempt nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader
GAN_RUNTIME_HOME=$(mktemp -d)
export GAN_RUNTIME_HOME
trap 'rm -rf "$GAN_RUNTIME_HOME"' EXIT
echo "== a whole run"
attempt "$python" -m gan_runtime devices
time attempt timeout "$limit" "$python" -m gan_runtime train --preset quick --set engine=jax --set "accelerator=$accelerator" \
    "${settings[@]}"
attempt "$python" -m gan_runtime sql "SELECT run_id, status, host->'devices' AS devices, host->'strategy' AS strategy FROM runs"
attempt "$python" -m gan_runtime sql "SELECT epoch, seconds, images_per_s FROM epochs ORDER BY epoch"
time attempt timeout "$limit" "$python" -m gan_runtime evaluate quick-0001 quality
echo "== the engine and compiled PyTorch"
attempt "$python" -m benchmarks.gpu --seconds 300 "$@"
attempt "$python" -m benchmarks.gpu --table "$@"

if [ "${#failed[@]}" -gt 0 ]; then
    printf 'failed: %s\n' "${failed[@]}" >&2
    exit 1
fi
