#!/usr/bin/env bash
# Fills a fresh service with the demo and writes a picture of every page in
# both themes and on two widths to target/screenshots/.
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
service=
clean_up() {
  if [ -n "$service" ]; then
    kill "$service" 2>/dev/null || true
    wait "$service" 2>/dev/null || true
  fi
  rm -rf "$folder"
}
trap clean_up EXIT

# Port 0 takes a free port; the log says which.
without_settings env SERVICE_PORT=0 SERVICE_DATA_DIR="$folder/data" "$(target_dir)/debug/callboard" >"$folder/log" 2>&1 </dev/null &
service=$!
address=
for _ in $(seq 200); do
  address=$(grep -oE 'http://(localhost|127\.0\.0\.1):[0-9]+' "$folder/log" | head -n 1 || true)
  [ -n "$address" ] && break
  kill -0 "$service" 2>/dev/null || { cat "$folder/log" >&2; die "the service ended while starting, its log is above"; }
  sleep 0.1
done
[ -n "$address" ] || die "the service did not start within 20 s"
CALLBOARD_URL=$address node tests/demo/demo.mjs --once
CALLBOARD_URL=$address node tests/e2e/screenshots.mjs "$@"
