#!/usr/bin/env bash
# Builds every function with link-time optimisation into
# target/functions/<name>/bootstrap, the name the provided runtime starts.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/steps.sh"

need_rust
scripts/assets.sh || say "note: without the trace viewer, which could not be fetched"
# Told by /api/version.
CALLBOARD_BUILD_SHA=$(git rev-parse HEAD 2>/dev/null || true)
if [ -n "$CALLBOARD_BUILD_SHA" ]; then export CALLBOARD_BUILD_SHA; fi
# provided.al2023 brings this version of the C library.
newest_libc=2.34
target=${FUNCTION_TARGET:-}
# The functions alone, with the features the whole workspace gives them.
what=(--locked --profile function --workspace)
for folder in functions/*/; do what+=(--bin "callboard-$(basename "$folder")"); done

if [ -n "$target" ] || cargo zigbuild --version >/dev/null 2>&1; then
  target=${target:-$(rustc -vV | sed -n 's/^host: //p')}
  say "Building for $target with the C library $newest_libc (cargo-zigbuild) ..."
  cargo zigbuild "${what[@]}" --target "$target.$newest_libc"
  built=$(target_dir)/$target/function
else
  say "Building for this machine ..."
  cargo build "${what[@]}"
  built=$(target_dir)/function
fi

for folder in functions/*/; do
  name=$(basename "$folder")
  [ -x "$built/callboard-$name" ] || die "$built/callboard-$name was not built"
  install -D -m 0755 "$built/callboard-$name" "$(target_dir)/functions/$name/bootstrap"
  printf '%-10s %8d bytes  %s\n' "$name" "$(stat -c %s "$built/callboard-$name")" "$(target_dir)/functions/$name/bootstrap"
done

# A newer C library than the runtime's lets a function fail at its first start.
if command -v objdump >/dev/null 2>&1; then
  wanted=$(objdump -T "$(target_dir)"/functions/*/bootstrap | grep -oE 'GLIBC_[0-9.]+' | sed 's/GLIBC_//' | sort -uV | tail -n 1)
  if [ "$(printf '%s\n%s\n' "$wanted" "$newest_libc" | sort -V | tail -n 1)" != "$newest_libc" ]; then
    say "note: these binaries want the C library $wanted, provided.al2023 has $newest_libc: install cargo-zigbuild (pip install cargo-zigbuild) and run this again, or deploy the functions as container images."
  fi
fi
