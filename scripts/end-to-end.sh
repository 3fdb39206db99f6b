#!/usr/bin/env bash
# Starts the built service on a free port with fresh data and drives it from
# outside: a real Playwright run, the pages in a browser, the official MCP client.
#   end-to-end.sh sqlite | postgres
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/steps.sh"

engine=${1:-}
runner=$(target_dir)/debug/callboard
databases=$(target_dir)/debug/callboard-test-database
if [ ! -x "$runner" ] || [ ! -x "$databases" ]; then
  die "$runner is missing: build it first with cargo build --workspace --bins"
fi

folder=$(mktemp -d)
service=
database_url=
clean_up() {
  if [ -n "$service" ]; then
    kill "$service" 2>/dev/null || true
    wait "$service" 2>/dev/null || true
  fi
  case "$database_url" in postgres*) "$databases" drop "$database_url" || true ;; esac
  rm -rf "$folder"
}
trap clean_up EXIT

case "$engine" in
  sqlite) database_url=sqlite://$folder/callboard.db ;;
  postgres) database_url=$("$databases" create) ;;
  *) die "usage: end-to-end.sh sqlite | postgres" ;;
esac

# Port 0 takes a free port; the log says which.
without_settings env SERVICE_PORT=0 SERVICE_DATA_DIR="$folder/data" SERVICE_DATABASE_URL="$database_url" \
  "$runner" >"$folder/log" 2>&1 </dev/null &
service=$!

address=
for _ in $(seq 200); do
  address=$(grep -oE 'http://(localhost|127\.0\.0\.1):[0-9]+' "$folder/log" | head -n 1 || true)
  if [ -n "$address" ] && node -e 'fetch(process.argv[1] + "/api/health").then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))' "$address"; then
    break
  fi
  kill -0 "$service" 2>/dev/null || { cat "$folder/log" >&2; die "the service ended while starting, its log is above"; }
  address=
  sleep 0.1
done
[ -n "$address" ] || { cat "$folder/log" >&2; die "the service did not answer /api/health within 20 s, its log is above"; }

say "Service with $engine on $address"
code=0
(cd tests/e2e && CALLBOARD_URL=$address node --test --test-reporter=spec --test-concurrency=1 check.mjs isolation.mjs pages.mjs) || code=$?
(cd tests/mcp && CALLBOARD_URL=$address node --test --test-reporter=spec check.mjs) || code=$?
if [ "$code" -ne 0 ]; then
  say "The last lines of the service's log:"
  tail -n 40 "$folder/log"
fi
exit "$code"
