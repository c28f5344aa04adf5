#!/usr/bin/env bash
# setup.sh VENV REQUIREMENTS: creates the virtual environment and installs pinned packages if the list has changed.
# Versions come from locks/REQUIREMENTS, written by scripts/lock.sh; pip refuses a file with a different hash.
set -euo pipefail
venv=$1
requirements=$2
stamp="$venv/.installed-$(basename "$requirements")"
# -gpu includes requirements.txt, so both decide whether anything changed.
installed=(--require-hashes --requirement "locks/$requirements")
[ -e "locks/$requirements" ] || installed=(--requirement "$requirements") # a user's list without a lock
digest=$(cat requirements.txt "$requirements" "${installed[-1]}" | sha256sum)

if [ -x "$venv/bin/python" ] && [ "$(cat "$stamp" 2>/dev/null)" = "$digest" ]; then
    exit 0
fi

# tensorflow-tpu and tensorflow install the same files, so they cannot share an environment.
exclusive=requirements-tpu-tensorflow.txt
for stamp_of_other in "$venv"/.installed-*; do
    other=${stamp_of_other##*.installed-}
    if [ -e "$stamp_of_other" ] && [ "$other" != "$requirements" ] && [ "$requirements" != requirements-dev.txt ] &&
        [ "$other" != requirements-dev.txt ] && { [ "$other" = "$exclusive" ] || [ "$requirements" = "$exclusive" ]; }; then
        echo "$venv has packages of $other, but this host needs $requirements: run make clean, then make setup." >&2
        exit 1
    fi
done

find_python() {
    local candidate
    for candidate in ${PYTHON3:-} python3 python3.13 python3.12 python3.11; do
        if "$candidate" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null; then
            echo "$candidate"
            return
        fi
    done
    echo "Python 3.11, 3.12 or 3.13 is missing: install one, or name it with PYTHON3=/path/to/python make setup." >&2
    exit 1
}

if [ ! -x "$venv/bin/python" ]; then
    python=$(find_python)
    echo "Creating $venv with $("$python" --version)"
    if ! "$python" -m venv "$venv"; then
        rm -rf "$venv"
        echo "The virtual environment cannot be created: on Debian and Ubuntu install the package python3-venv." >&2
        exit 1
    fi
fi
echo "Installing $requirements (a few minutes the first time)"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check "${installed[@]}"
echo "$digest" >"$stamp"
