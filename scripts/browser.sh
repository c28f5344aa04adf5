#!/usr/bin/env bash
# browser.sh PYTHON: makes sure that a Chromium is there for the browser tests: the system's, else Playwright's own.
set -euo pipefail
python=$1
for name in chromium chromium-browser google-chrome google-chrome-stable; do
    command -v "$name" >/dev/null && exit 0
done
if "$python" -c 'import pathlib, sys; from playwright.sync_api import sync_playwright as p
with p() as playwright: sys.exit(not pathlib.Path(playwright.chromium.executable_path).exists())'; then
    exit 0
fi
echo "No Chromium on this system; trying Playwright's own download"
if ! "$python" -m playwright install chromium; then
    echo "The browser tests need a Chromium, and Playwright could not download its own: install the package chromium (Debian: apt-get install chromium)." >&2
    exit 1
fi
