#!/usr/bin/env bash
# Asks the built service whatever its OpenAPI document allows and some of what
# it forbids: no answer may blame us (5xx) or be one that the document does not
# describe. Once where callers need not sign in, once as an administrator where
# they do. The seed is fixed; EXAMPLES and SEED ask for more, or for others.
#   contract.sh [schemathesis options]
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/steps.sh"

runner=$(target_dir)/debug/callboard
fuzzer=$(target_dir)/python/bin/st
[ -x "$runner" ] || die "$runner is missing: build it first with cargo build --workspace --bins"
[ -x "$fuzzer" ] || die "$fuzzer is missing: install it with scripts/prerequisites.sh python tests/contract"

folder=$(mktemp -d)
services=()
clean_up() {
  end_processes ${services[@]+"${services[@]}"}
  rm -rf "$folder"
}
trap clean_up EXIT

# start <name> <variable=value...>: starts a service with fresh data; its address is in $address.
start() {
  local name=$1 service
  shift
  # Streams end after a second, and nobody is slowed down.
  without_settings env SERVICE_PORT=0 SERVICE_DATA_DIR="$folder/$name" SERVICE_RATE_LIMITS=off SERVICE_SSE_MAX_SECONDS=1 \
    SERVICE_AUTH_SECRET="$secret" SERVICE_SECRET_KEY="$secret" "$@" "$runner" >"$folder/$name.log" 2>&1 </dev/null &
  service=$!
  services+=("$service")
  for _ in $(seq 200); do
    address=$(grep -oE 'http://(localhost|127\.0\.0\.1):[0-9]+' "$folder/$name.log" | head -n 1 || true)
    if [ -n "$address" ] && node -e 'fetch(process.argv[1] + "/api/health").then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))' "$address"; then
      return
    fi
    kill -0 "$service" 2>/dev/null || { cat "$folder/$name.log" >&2; die "the service ended while starting, its log is above"; }
    sleep 0.1
  done
  die "the service did not answer /api/health within 20 s"
}

# ask <what> <address> <options...>: one run of the fuzzer, in a folder of its own.
ask() {
  local what=$1 own
  own=$(mktemp -d -p "$folder")
  say "--- $what"
  (cd "$own" && "$fuzzer" --config-file "$settings" run "$2/api/openapi.json" --seed "${SEED:-1}" --phases examples,coverage,fuzzing \
    --max-examples "${EXAMPLES:-10}" --no-color "${@:3}") || code=1
}

settings=$PWD/tests/contract/schemathesis.toml
fuzzer=$(cd "$(dirname "$fuzzer")" && pwd)/st
secret=$(node -e 'process.stdout.write(crypto.randomBytes(32).toString("hex"))')
code=0

start open
node tests/contract/seed.mjs "$address"
open=$address
start guarded SERVICE_AUTH_ENABLED=true
key=$(node tests/contract/seed.mjs "$address" accounts)

# Each asks one question at a time, so both services are asked at once. Reading first: afterwards some of what there was
# is gone.
without_accounts() {
  # Where nobody signs in, wrong credentials do not count.
  ask "reading, without accounts" "$open" --include-method GET --exclude-checks ignored_auth "$@"
  ask "writing, without accounts" "$open" --exclude-method GET --exclude-checks ignored_auth "$@"
  return "$code"
}
with_accounts() {
  ask "reading, as an administrator" "$address" --include-method GET --header "Authorization: Bearer $key" "$@"
  ask "writing, as an administrator" "$address" --exclude-method GET --header "Authorization: Bearer $key" "$@"
  return "$code"
}
without_accounts "$@" >"$folder/said" 2>&1 &
other=$!
with_accounts "$@" || code=1
wait "$other" || code=1
cat "$folder/said"
if grep -h "request failed" "$folder"/*.log; then code=1; fi
exit "$code"
