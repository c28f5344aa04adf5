#!/usr/bin/env bash
# lock.sh: resolves every requirements file into locks/, with all dependencies and the hashes of their files.
# Run it after a change of a requirements file. Needs a network. uv resolves for all systems and Pythons at once; pip cannot.
set -euo pipefail
cd "$(dirname "$0")/.."
tools=$(mktemp -d)
trap 'rm -rf "$tools"' EXIT
python3 -m venv "$tools/venv"
"$tools/venv/bin/python" -m pip install --quiet --disable-pip-version-check uv==0.13.9

lock() { # lock REQUIREMENTS [OPTION…]; retains locked versions where the list allows
    "$tools/venv/bin/uv" pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
        "${@:2}" --output-file "locks/$1" "$1" >/dev/null
}

lock requirements.txt
# The other lists are installed with or instead of this one, so shared packages have the same versions.
grep -E '^[A-Za-z0-9]' locks/requirements.txt | sed 's/ \\$//' >"$tools/shared.txt"
for list in requirements-dev.txt requirements-gpu.txt requirements-tpu.txt requirements-mutants.txt requirements-docs.txt; do
    lock "$list" --constraints "$tools/shared.txt"
done
lock requirements-tpu-tensorflow.txt
lock requirements-gpu-compiler.txt --no-deps
