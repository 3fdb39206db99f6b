#!/usr/bin/env bash
# Starts the service with a demo: four projects with four weeks of history, and
# a run that goes on. With --read-only it is restarted in demo mode once the
# history is there, without that run. Data in .demo/; SERVICE_ variables change that.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/steps.sh"

read_only=
arguments=()
for argument in "$@"; do
  if [ "$argument" = --read-only ]; then read_only=yes; else arguments+=("$argument"); fi
done

need_rust
need_node
say "Building the service (the first time takes some minutes) ..."
cargo build --locked --workspace --bins
export SERVICE_DATA_DIR=${SERVICE_DATA_DIR:-.demo} SERVICE_PORT=${SERVICE_PORT:-${PORT:-3000}}
address=http://127.0.0.1:$SERVICE_PORT

# start <variable=value...>: starts the service and waits until it answers.
start() {
  env "$@" "$(target_dir)/debug/callboard" &
  service=$!
  for _ in $(seq 200); do
    kill -0 "$service" 2>/dev/null || die "the service ended while starting"
    node -e 'fetch(process.argv[1] + "/api/health").then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))' "$address" && return
    sleep 0.1
  done
  die "the service did not answer within 20 s"
}

stop() { kill "$service" 2>/dev/null || true; wait "$service" 2>/dev/null || true; }
trap stop EXIT

start SERVICE_DEMO=false
say "Filling $address, this takes a minute; Ctrl+C ends it."
if [ -z "$read_only" ]; then
  CALLBOARD_URL=$address node tests/demo/demo.mjs ${arguments[@]+"${arguments[@]}"}
  exit
fi
CALLBOARD_URL=$address node tests/demo/demo.mjs --once
stop
start SERVICE_DEMO=true
say "$address is a read-only demo now; Ctrl+C ends it."
wait "$service"
