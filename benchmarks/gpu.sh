#!/usr/bin/env bash
# Trains and evaluates a whole run on this host's NVIDIA GPU, if its libraries are installed. Then measures the JAX engine and
# compiled PyTorch, all in about 8 minutes. No process loads TensorFlow.
#
#   benchmarks/gpu.sh [options of python -m benchmarks.gpu]        PYTHON: an interpreter with jax[cuda], torch and keras
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
accelerator=gpu
for argument in "$@"; do [ "$argument" = cpu ] && accelerator=cpu; done

[ "$accelerator" = cpu ] || nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader
GAN_RUNTIME_HOME=$(mktemp -d)
export GAN_RUNTIME_HOME
trap 'rm -rf "$GAN_RUNTIME_HOME"' EXIT
echo "== a whole run"
"$python" -m gan_runtime devices || true
time timeout 90 "$python" -m gan_runtime train --preset quick --set engine=jax --set "accelerator=$accelerator" || true
"$python" -m gan_runtime sql "SELECT run_id, status, host->'devices' AS devices, host->'strategy' AS strategy FROM runs" || true
"$python" -m gan_runtime sql "SELECT epoch, seconds, images_per_s FROM epochs ORDER BY epoch" || true
time timeout 60 "$python" -m gan_runtime evaluate quick-0001 quality || true
echo "== the engine and compiled PyTorch"
"$python" -m benchmarks.gpu --seconds 300 "$@"
