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

# What keeps uploaded pages away from the dashboard is checked in the browser that people have, the rest in its
# headless shell, as Playwright does unless it is told otherwise.
browser=${CHROMIUM_PATH:-/usr/bin/chromium}
if [ -z "${CHROMIUM_PATH:-}" ] && [ -x /usr/bin/chromium-headless-shell ]; then
  CHROMIUM_PATH=/usr/bin/chromium-headless-shell
fi
export CHROMIUM_PATH=${CHROMIUM_PATH:-$browser}

folder=$(mktemp -d)
# Each engine has its own copy of the checks, so that what their runs write does not mix when both run at once. It
# lies inside the repository, where the reporter finds the commit.
copy=$(target_dir)/end-to-end/$engine
rm -rf "$copy"
mkdir -p "$copy"
copy=$(cd "$copy" && pwd)
for checks in e2e mcp demo; do
  tar -C tests --exclude=node_modules --exclude=test-results --exclude=playwright-report -cf - "$checks" | tar -C "$copy" -xf -
done
ln -s "$PWD/tests/data" "$copy/data"
for checks in e2e mcp; do ln -s "$PWD/tests/$checks/node_modules" "$copy/$checks/node_modules"; done
services=()
database_urls=()
clean_up() {
  local url
  end_processes ${services[@]+"${services[@]}"}
  for url in ${database_urls[@]+"${database_urls[@]}"}; do
    case "$url" in postgres*) "$databases" drop "$url" || true ;; esac
  done
  rm -rf "$folder"
}
trap clean_up EXIT

# start <name> <variable=value...>: starts a service with fresh data; its address is in $address.
start() {
  local name=$1 database_url service
  shift
  case "$engine" in
    sqlite) database_url=sqlite://$folder/$name.db ;;
    postgres) database_url=$("$databases" create) ;;
    *) die "usage: end-to-end.sh sqlite | postgres" ;;
  esac
  database_urls+=("$database_url")
  # Port 0 takes a free port; the log says which. A dozen services share one server, which takes a hundred connections.
  without_settings env SERVICE_PORT=0 SERVICE_DATA_DIR="$folder/$name" SERVICE_DATABASE_URL="$database_url" \
    SERVICE_DATABASE_CONNECTIONS=4 "$@" \
    "$runner" >"$folder/$name.log" 2>&1 </dev/null &
  service=$!
  services+=("$service")
  for _ in $(seq 200); do
    address=$(grep -oE 'http://(localhost|127\.0\.0\.1):[0-9]+' "$folder/$name.log" | head -n 1 || true)
    if [ -n "$address" ] && node -e 'fetch(process.argv[1] + "/api/health").then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))' "$address"; then
      return
    fi
    kill -0 "$service" 2>/dev/null || { cat "$folder/$name.log" >&2; die "the service ended while starting, its log is above"; }
    address=
    sleep 0.1
  done
  cat "$folder/$name.log" >&2
  die "the service did not answer /api/health within 20 s, its log is above"
}

address=
secret=$(node -e 'process.stdout.write(crypto.randomBytes(32).toString("hex"))')
signed_in=(SERVICE_AUTH_ENABLED=true SERVICE_AUTH_SECRET="$secret")
free_port() { node -e "require('net').createServer().listen(0, function () { console.log(this.address().port); this.close(); })"; }

# Milliseconds after which a file of checks that does not end has failed; the longest takes five minutes.
longest_check=1200000
code=0
# drive <checks> "<variable=value> ..." <file...>: runs checks one after another. A file of
# them that fails is tried once more: when it passes then, it is named as flaky at the end and holds up nothing, as
# with the Rust tests; when it does not, the failure is remembered. With `anew`, the name of a service and its
# settings, each try has a service of its own, which answers at what the variables call {address}.
anew=()
drive() {
  local checks=$1 variables=$2 own='' file attempt began
  shift 2
  for file in "$@"; do
    for attempt in first second; do
      if [ ${#anew[@]} -gt 0 ]; then
        # A service of an earlier try may hold the port that this one is told to take.
        end_processes ${own:+"$own"}
        start "${anew[0]}-$attempt" "${anew[@]:1}"
        own=${services[${#services[@]} - 1]}
      fi
      began=$SECONDS
      # shellcheck disable=SC2086 # one or several variables
      if (cd "$copy/$checks" && exec env ${variables//\{address\}/$address} node --test --test-timeout="$longest_check" --test-reporter=spec "$file") |
        tee "$folder/said"; then
        say "$checks/$file passed after $((SECONDS - began)) s"
        if [ "$attempt" = second ]; then printf 'FLAKY %s\n' "$checks/$file" >>"$folder/flaky"; fi
        break
      fi
      say "$checks/$file failed after $((SECONDS - began)) s, at its $attempt try"
      printf '%s, at its %s try:\n' "$checks/$file" "$attempt" >>"$folder/failures"
      sed -n '/failing tests:/,$p' "$folder/said" >>"$folder/failures"
      if [ "$attempt" = second ]; then code=1; fi
    done
  done
}

# drive_anew <name> "<setting=value> ..." <what drive takes...>: for checks that begin with the first account of a
# service, which they can make once only.
drive_anew() {
  # shellcheck disable=SC2206 # one or several settings
  local anew=("$1" $2)
  shift 2
  drive "$@"
}

# A run by the real reporter, a page that fills in and the tools of agents, with each engine.
start open
open=$address
# Agents ask faster here than one address may where callers do not sign in.
start protocol SERVICE_RATE_LIMITS=off
protocol=$address
say "Service with $engine on $open"
drive e2e CALLBOARD_URL="$open" check.mjs streaming.mjs
# The reporters that others publish, the older with one engine and the newer with the other.
case "$engine" in sqlite) published=published-reporter-0.23 ;; *) published=@piwitests/reporter ;; esac
drive_anew published "${signed_in[*]} SERVICE_RATE_LIMITS=off" \
  e2e "CALLBOARD_URL=$open CALLBOARD_ACCOUNTS_URL={address} PUBLISHED_REPORTER=$published" published.mjs

# What a browser, a line or a protocol makes of an answer is the same whichever database gave it, and the answers are
# compared over HTTP with both: each of these runs with one, so that both engines are done at the same time.
provider() {
  (cd "$copy/e2e" && exec node support/provider.mjs "$folder/provider") >"$folder/provider.log" 2>&1 </dev/null &
  services+=("$!")
  for _ in $(seq 200); do
    [ -s "$folder/provider" ] && return
    sleep 0.1
  done
  cat "$folder/provider.log" >&2
  die "the provider did not start within 20 s, its log is above"
}
case "$engine" in
  sqlite)
    drive e2e CALLBOARD_URL="$open" live.mjs
    drive mcp CALLBOARD_URL="$protocol" check.mjs stateless.mjs
    drive e2e CALLBOARD_URL="$open" faults.mjs capture.mjs pages.mjs
    drive_anew retention "" e2e "CALLBOARD_URL={address}" retention.mjs
    drive_anew notifications "SERVICE_SECRET_KEY=$secret SERVICE_EGRESS_ALLOW=127.0.0.0/8" \
      e2e "CALLBOARD_URL={address}" notifications.mjs
    drive_anew source-control "SERVICE_SECRET_KEY=$secret SERVICE_EGRESS_ALLOW=127.0.0.0/8" \
      e2e "CALLBOARD_URL={address}" source-control.mjs
    drive_anew bell "${signed_in[*]} SERVICE_RATE_LIMITS=off" e2e "CALLBOARD_ACCOUNTS_URL={address}" notifications.mjs
    drive_anew demo SERVICE_DEMO=true e2e "CALLBOARD_URL={address}" demo.mjs
    drive_anew bidi "${signed_in[*]} SERVICE_RATE_LIMITS=off" e2e "CALLBOARD_ACCOUNTS_URL={address}" bidi.mjs
    drive e2e "CALLBOARD_URL=$open CHROMIUM_PATH=$browser" isolation.mjs
    # Where uploaded pages have a host of their own, and where they have none and there are sessions to steal.
    port=$(free_port)
    drive_anew apart "SERVICE_PORT=$port SERVICE_SANDBOX_ORIGIN=http://files.localhost:$port" \
      e2e "CALLBOARD_URL={address} CHROMIUM_PATH=$browser" isolation.mjs
    drive_anew together "SERVICE_HOST=0.0.0.0 ${signed_in[*]}" \
      e2e "CALLBOARD_URL={address} CHROMIUM_PATH=$browser" isolation.mjs
    ;;
  postgres)
    drive_anew agents "${signed_in[*]} SERVICE_RATE_LIMITS=off" mcp "CALLBOARD_ACCOUNTS_URL={address}" roles.mjs
    drive_anew impatient "SERVICE_RUN_STALE_MS=30000 SERVICE_SHARD_WAIT_MS=30000 SERVICE_SETUP_STALE_MS=60000" \
      e2e "CALLBOARD_URL={address} PUBLISHED_REPORTER=$published" published-protocol.mjs
    drive mcp CALLBOARD_URL="$protocol" repair.mjs
    drive e2e "CALLBOARD_URL=$open CHROMIUM_PATH=$browser" viewer.mjs
    drive_anew viewed "${signed_in[*]}" e2e "CALLBOARD_URL={address} CHROMIUM_PATH=$browser" viewer.mjs
    drive_anew journeys "" e2e "CALLBOARD_URL={address}" journeys.mjs
    drive_anew accounts "${signed_in[*]}" e2e "CALLBOARD_ACCOUNTS_URL={address}" accounts.mjs
    # Where people can also sign in at a provider.
    provider
    guarded="${signed_in[*]} SERVICE_OAUTH_IDP_ISSUER=$(cat "$folder/provider") \
      SERVICE_OAUTH_IDP_CLIENT_ID=callboard SERVICE_OAUTH_IDP_CLIENT_SECRET=a-secret-of-the-client"
    drive_anew guarded "$guarded" e2e "CALLBOARD_URL={address} CHROMIUM_PATH=$browser" isolation.mjs
    drive_anew provided "$guarded" e2e "CALLBOARD_URL={address}" oauth.mjs
    # Passwords are tried by many processes of one address.
    drive_anew pipelines "${signed_in[*]} SERVICE_RATE_LIMITS=off" e2e "CALLBOARD_ACCOUNTS_URL={address}" credentials.mjs
    drive mcp CALLBOARD_URL="$protocol" conformance.mjs
    ;;
esac
if [ "$code" -ne 0 ]; then
  say "The last lines of the services' logs:"
  tail -n 5 "$folder"/*.log
fi
if [ -e "$folder/failures" ]; then
  say "What failed:"
  cat "$folder/failures"
fi
if [ -e "$folder/flaky" ]; then cat "$folder/flaky"; fi
exit "$code"
