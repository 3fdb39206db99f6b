#!/usr/bin/env bash
# Starts the service with a demo: four projects with four weeks of history, and
# a run that goes on. Data in .demo/; SERVICE_ variables change that.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/steps.sh"

need_rust
need_node
say "Building the service (the first time takes some minutes) ..."
cargo build --locked --workspace --bins
export SERVICE_DATA_DIR=${SERVICE_DATA_DIR:-.demo} SERVICE_PORT=${SERVICE_PORT:-${PORT:-3000}}
address=http://127.0.0.1:$SERVICE_PORT

"$(target_dir)/debug/callboard" &
service=$!
trap 'kill "$service" 2>/dev/null || true; wait "$service" 2>/dev/null || true' EXIT
for _ in $(seq 200); do
  kill -0 "$service" 2>/dev/null || die "the service ended while starting"
  node -e 'fetch(process.argv[1] + "/api/health").then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))' "$address" && break
  sleep 0.1
done
say "Filling $address, this takes a minute; Ctrl+C ends it."
CALLBOARD_URL=$address node tests/demo/demo.mjs "$@"
