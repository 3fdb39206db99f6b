#!/usr/bin/env bash
# Fails when the compiler, or clippy in its place, warned of anything in the last build, which cargo remembers.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/steps.sh"

said=$(cargo build --locked --workspace --all-targets --quiet --color never 2>&1) || { printf '%s\n' "$said"; exit 1; }
if [ -n "$said" ]; then
  printf '%s\n' "$said"
  die "the build warns, see above"
fi
