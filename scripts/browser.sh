#!/usr/bin/env bash
# browser.sh PYTHON: ensures that the browser tests have a Chromium: the system's, else Playwright's.
set -euo pipefail
python=$1
for name in chromium chromium-browser google-chrome google-chrome-stable; do
    command -v "$name" >/dev/null && exit 0
done
if "$python" -c 'import pathlib, sys; from playwright.sync_api import sync_playwright as p
with p() as playwright: sys.exit(not pathlib.Path(playwright.chromium.executable_path).exists())'; then
    exit 0
fi
echo "No Chromium on this system; downloading Playwright's"
if ! "$python" -m playwright install chromium; then
    echo "The browser tests need Chromium, and Playwright could not download it: install the package chromium (Debian: apt-get install chromium)." >&2
    exit 1
fi
