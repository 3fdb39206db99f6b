#!/usr/bin/env bash
# A day of CI through the deployed functions: all of them under an emulated Lambda runtime behind a gateway, with
# PostgreSQL and a bucket. A real Playwright run in four shards, its pages, the official MCP client, the schedule; what
# is stored is compared with the local runner. Needs the built workspace, the built reporter, the packages of tests/e2e
# and tests/mcp, and TEST_DATABASE_URL where no server of this machine can be used.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/steps.sh"

# A day that fails is tried once more with a new gateway. One that passes then is named as flaky, as with the other tests.
if [ -z "${CALLBOARD_DAY:-}" ]; then
  if CALLBOARD_DAY=first scripts/day.sh; then exit 0; fi
  say "The day failed; it is tried once more."
  CALLBOARD_DAY=second scripts/day.sh
  say "FLAKY day"
  exit 0
fi

gateway=$(target_dir)/debug/callboard-test-gateway
[ -x "$gateway" ] || die "$gateway is missing: build it first with cargo build --workspace --bins"
if [ -z "${CHROMIUM_PATH:-}" ] && [ -x /usr/bin/chromium-headless-shell ]; then CHROMIUM_PATH=/usr/bin/chromium-headless-shell; fi
export CHROMIUM_PATH=${CHROMIUM_PATH:-/usr/bin/chromium}

folder=$(mktemp -d)
# A copy of the checks inside the repository, where the reporter finds the commit and nothing else writes.
copy=$(target_dir)/end-to-end/functions
rm -rf "$copy"
mkdir -p "$copy"
copy=$(cd "$copy" && pwd)
for checks in e2e mcp; do
  tar -C tests --exclude=node_modules --exclude=test-results --exclude=playwright-report -cf - "$checks" | tar -C "$copy" -xf -
  ln -s "$PWD/tests/$checks/node_modules" "$copy/$checks/node_modules"
done

mkfifo "$folder/commands"
without_settings "$gateway" <"$folder/commands" >"$folder/said" 2>"$folder/log" &
front=$!
# The gateway ends with its input.
exec 3>"$folder/commands"
clean_up() {
  exec 3>&-
  wait "$front" 2>/dev/null || true
  rm -rf "$folder"
}
trap clean_up EXIT
for _ in $(seq 600); do
  [ -s "$folder/said" ] && break
  kill -0 "$front" 2>/dev/null || { cat "$folder/log" >&2; die "the gateway ended while starting, its log is above"; }
  sleep 0.1
done
addresses=$(head -n 1 "$folder/said")
[ -n "$addresses" ] || die "the gateway did not start within a minute"
say "Functions and runner: $addresses"

code=0
# check <folder> <file> <variable=value...>
check() {
  local checks=$1 file=$2
  shift 2
  (cd "$copy/$checks" && env "$@" CALLBOARD_GATEWAY="$addresses" CALLBOARD_GATEWAY_COMMANDS="$folder/commands" \
    node --test --test-timeout=600000 --test-reporter=spec "$file") || code=1
}
# What the functions were asked so far; their clients are counted with what they wait for.
tally() {
  local lines
  lines=$(wc -l <"$folder/said")
  printf 'tally\n' >&3
  for _ in $(seq 50); do
    [ "$(wc -l <"$folder/said")" -gt "$lines" ] && break
    sleep 0.1
  done
  say "Invocations and milliseconds of each function so far: $(tail -n 1 "$folder/said")"
}

check e2e functions.mjs
tally
url=$(node -p 'JSON.parse(process.argv[1]).functions' "$addresses")
key=$(cd "$copy/e2e" && node --input-type=module -e "import { firstAdministrator } from './support/first-administrator.mjs'; process.stdout.write((await firstAdministrator(process.argv[1])).apiKey)" "$url")
check mcp check.mjs CALLBOARD_URL="$url" CALLBOARD_API_KEY="$key"

tally
if [ -s "$folder/log" ]; then
  say "The gateway said:"
  tail -n 20 "$folder/log"
fi
exit "$code"
