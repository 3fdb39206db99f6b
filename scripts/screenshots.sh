#!/usr/bin/env bash
# Fills a fresh service with the demo and writes a picture of every page, those of
# an empty service and of accounts too, in both themes and on two widths to
# target/screenshots/.
#   screenshots.sh [page ...]   only these pages
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/steps.sh"

need_rust
scripts/prerequisites.sh browser
scripts/prerequisites.sh npm reporter
npm --prefix reporter run build
scripts/prerequisites.sh npm tests/e2e
cargo build --locked --workspace --bins

folder=$(mktemp -d)
trap 'stop_services; rm -rf "$folder"' EXIT
start_service "$folder/empty"
empty=$address
secret=$(node -e 'process.stdout.write(crypto.randomBytes(32).toString("hex"))')
start_service "$folder/accounts" SERVICE_AUTH_ENABLED=true SERVICE_AUTH_SECRET="$secret"
accounts=$address
start_service "$folder/demo"
CALLBOARD_URL=$address node tests/demo/demo.mjs --once
# Playwright starts the whole browser without partitioned storage, and Debian's then lets frames of other origins keep
# nothing, which the trace viewer needs: its headless shell does.
if [ -z "${CHROMIUM_PATH:-}" ] && [ -x /usr/bin/chromium-headless-shell ]; then
  export CHROMIUM_PATH=/usr/bin/chromium-headless-shell
fi
CALLBOARD_URL=$address CALLBOARD_EMPTY_URL=$empty CALLBOARD_ACCOUNTS_URL=$accounts node tests/e2e/screenshots.mjs "$@"
