# shellcheck shell=bash
# Sourced by the other scripts: sections, timed steps and their sum, and the
# sentences a script ends with when something is missing. Runs from the root of
# the repository.

cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1

PASSED=0
FAILED=0
FAILED_STEPS=()

# say <sentence>: one line about what is going on.
say() { printf '%s\n' "$*"; }

# die <sentence>: ends the script; the sentence names what is missing.
die() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

# need <command> <what to do>: ends the script when a command is missing.
need() { command -v "$1" >/dev/null 2>&1 || die "$1 is missing: $2"; }

need_rust() {
  need cargo "install Rust 1.95 or newer, see https://rustup.rs"
  need cc "install a C compiler, on Debian: apt-get install build-essential"
}

need_node() {
  need node "install Node.js 20 or newer, see https://nodejs.org"
  need npm "install npm, it comes with Node.js"
}

# step <name> <command...>: runs a command under a heading and counts how it ended.
# The command has to be a program or script: in a function `set -e` would not hold.
step() {
  local name=$1 started=$SECONDS code=0
  shift
  printf '\n=== %s\n' "$name"
  "$@" || code=$?
  if [ "$code" -eq 0 ]; then
    PASSED=$((PASSED + 1))
    printf -- '--- %s: passed in %d s\n' "$name" "$((SECONDS - started))"
  else
    fail_step "$name" "failed after $((SECONDS - started)) s with exit code $code"
    return 1
  fi
}

ASIDE_NAMES=()
ASIDE_PIDS=()
ASIDE_FILES=()

# aside <name> <command...>: a step that runs beside those that follow, until collect.
aside() {
  local name=$1 file
  shift
  file=$(mktemp)
  say "Meanwhile: $name"
  (
    started=$SECONDS code=0
    "$@" || code=$?
    printf -- '--- %s: after %d s\n' "$name" "$((SECONDS - started))"
    exit "$code"
  ) >"$file" 2>&1 </dev/null &
  ASIDE_NAMES+=("$name")
  ASIDE_PIDS+=("$!")
  ASIDE_FILES+=("$file")
}

PASSED_ASIDE=()

# collect: waits for the steps aside, prints what they printed and counts how they ended; passed_aside <name> tells.
collect() {
  local index code
  for index in ${ASIDE_PIDS[@]+"${!ASIDE_PIDS[@]}"}; do
    code=0
    wait "${ASIDE_PIDS[$index]}" || code=$?
    printf '\n=== %s\n' "${ASIDE_NAMES[$index]}"
    cat "${ASIDE_FILES[$index]}"
    rm -f "${ASIDE_FILES[$index]}"
    if [ "$code" -eq 0 ]; then
      PASSED=$((PASSED + 1))
      PASSED_ASIDE+=("${ASIDE_NAMES[$index]}")
    else
      fail_step "${ASIDE_NAMES[$index]}" "failed with exit code $code"
    fi
  done
  ASIDE_NAMES=() ASIDE_PIDS=() ASIDE_FILES=()
}

# passed_aside <name>: whether a step aside was collected and passed.
passed_aside() {
  local name
  for name in ${PASSED_ASIDE[@]+"${PASSED_ASIDE[@]}"}; do
    if [ "$name" = "$1" ]; then return; fi
  done
  return 1
}

# fail_step <name> <reason>: counts a step that failed, or could not run.
fail_step() {
  FAILED=$((FAILED + 1))
  FAILED_STEPS+=("$1")
  printf -- '--- %s: %s\n' "$1" "$2"
}

# sum_up: prints the sum and ends the script with it.
sum_up() {
  printf '\n=== All steps after %d min %02d s\n' "$((SECONDS / 60))" "$((SECONDS % 60))"
  local name
  for name in ${FAILED_STEPS[@]+"${FAILED_STEPS[@]}"}; do printf 'failed: %s\n' "$name"; done
  printf '%d passed, %d failed\n' "$PASSED" "$FAILED"
  [ "$FAILED" -eq 0 ] || exit 1
  exit 0
}

# as_root <command...>: through sudo where this is not root already.
as_root() {
  if [ "$(id -u)" -eq 0 ]; then "$@"; else
    need sudo "run this as root, or install sudo, so that packages can be installed"
    sudo "$@"
  fi
}

# apt_install <package...>: Debian packages, from a fresh index. Steps that run side by side take turns.
apt_install() {
  need apt-get "install these packages in the way of this system, then try again: $*"
  say "Installing from the system's packages: $*"
  (
    flock 9
    as_root apt-get update -qq </dev/null
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" </dev/null >/dev/null
  ) 9>>"${TMPDIR:-/tmp}/callboard-apt.lock"
}

# without_settings <command...>: without the SERVICE_ and AWS_ settings of whoever runs this. For the background
# only: the command takes the place of the shell, so that $! is the process to end.
without_settings() {
  local unset_flags=() name
  while read -r name; do unset_flags+=(-u "$name"); done < <(compgen -e | grep -E '^(SERVICE_|AWS_)|^PORT$' || true)
  exec env ${unset_flags[@]+"${unset_flags[@]}"} "$@"
}

# end_processes <pid...>: asks all of them to end, and ends those that take longer than ten seconds.
end_processes() {
  local guard
  [ $# -gt 0 ] || return 0
  kill "$@" 2>/dev/null || true
  (sleep 10 && kill -9 "$@") >/dev/null 2>&1 &
  guard=$!
  wait "$@" 2>/dev/null || true
  kill "$guard" 2>/dev/null || true
}

# Where cargo puts what it builds.
target_dir() { printf '%s\n' "${CARGO_TARGET_DIR:-target}"; }

SERVICES=()

# start_service <folder> <variable=value...>: starts the built service with fresh data in a
# folder, on a free port; its address is in $address. stop_services ends all of them.
start_service() {
  local folder=$1 service
  shift
  mkdir -p "$folder"
  # Port 0 takes a free port; the log says which.
  without_settings env SERVICE_PORT=0 SERVICE_DATA_DIR="$folder/data" "$@" "$(target_dir)/debug/callboard" >"$folder/log" 2>&1 </dev/null &
  service=$!
  SERVICES+=("$service")
  for _ in $(seq 200); do
    address=$(grep -oE 'http://(localhost|127\.0\.0\.1):[0-9]+' "$folder/log" | head -n 1 || true)
    [ -n "$address" ] && return
    kill -0 "$service" 2>/dev/null || { cat "$folder/log" >&2; die "the service ended while starting, its log is above"; }
    sleep 0.1
  done
  die "the service did not start within 20 s"
}

stop_services() { end_processes ${SERVICES[@]+"${SERVICES[@]}"}; }
