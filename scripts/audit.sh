#!/usr/bin/env bash
# audit.sh PYTHON: checks the pinned packages for known vulnerabilities with pip-audit. Exits with 1 if there is one.
set -euo pipefail
python=$1
report=$(mktemp)
trap 'rm -f "$report"' EXIT
for list in locks/requirements.txt locks/requirements-dev.txt; do
    packages=$(grep -c '^[A-Za-z0-9].*==' "$list")
    if "$python" -m pip_audit --require-hashes --disable-pip --progress-spinner off --requirement "$list" >"$report" 2>&1; then
        # pip-audit exits with 0 even if it could not check some packages.
        skipped=$(grep -c 'could not be audited' "$report" || true)
        if [ "$skipped" = 0 ]; then
            echo "No known vulnerabilities in $list."
        else
            echo "NOT AUDITED: the vulnerability database could not be queried for $skipped of $packages packages of $list." >&2
        fi
    elif grep -qE 'ConnectionError|Max retries|ServiceError|Could not connect|ProxyError|Timeout' "$report"; then
        echo "NOT AUDITED: the vulnerability database is unreachable, so $packages packages of $list were not checked." >&2
    else
        cat "$report" >&2
        exit 1
    fi
done
