#!/usr/bin/env bash
# Fills a fresh service with the demo and measures its pages as people meet them:
# bytes, jumps while they load, and the time from a key to the next picture.
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
start_service "$folder/demo"
CALLBOARD_URL=$address node tests/demo/demo.mjs --once
CALLBOARD_URL=$address node tests/e2e/weight.mjs
