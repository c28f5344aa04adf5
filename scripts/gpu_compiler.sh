#!/usr/bin/env bash
# gpu_compiler.sh VENV: installs XLA's compiler for GPUs into VENV/gpu-compiler. It stays outside of the packages, since JAX would
# otherwise look for a GPU in every process.
set -euo pipefail
venv=$1
lock=locks/requirements-gpu-compiler.txt
folder="$venv/gpu-compiler"
digest=$(sha256sum <"$lock")

if [ "$(cat "$folder/.installed" 2>/dev/null)" = "$digest" ]; then
    exit 0
fi
echo "Installing requirements-gpu-compiler.txt (0.6 GB)"
rm -rf "$folder" "$folder.new"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes --target "$folder.new" \
    --requirement "$lock"
echo "$digest" >"$folder.new/.installed"
mv "$folder.new" "$folder"
