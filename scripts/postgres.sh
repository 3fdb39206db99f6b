#!/usr/bin/env bash
# A PostgreSQL server of our own for one test run, in a temporary folder.
#   postgres.sh start <folder>   starts it; writes its address to <folder>/url
#   postgres.sh stop <folder>    stops it and removes the folder
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/steps.sh"

# initdb refuses to run as root: the account of Debian's package does it then.
as_server_account() {
  if [ "$(id -u)" -eq 0 ]; then runuser -u postgres -- "$@"; else "$@"; fi
}

# The folder with initdb and pg_ctl, newest version first; fails when there is none.
programs() {
  local folder
  folder=$(find /usr/lib/postgresql -mindepth 2 -maxdepth 2 -name bin 2>/dev/null | sort -V | tail -n 1)
  if [ -z "$folder" ] && command -v initdb >/dev/null 2>&1; then folder=$(dirname "$(command -v initdb)"); fi
  [ -x "$folder/initdb" ] && [ -x "$folder/pg_ctl" ] && printf '%s\n' "$folder"
}

free_port() {
  node -e 'const s = require("net").createServer().listen(0, "127.0.0.1", () => { console.log(s.address().port); s.close(); })'
}

start() {
  local folder=$1 bin port
  programs >/dev/null || apt_install postgresql
  bin=$(programs) || die "initdb and pg_ctl are missing: install PostgreSQL, or name a server with TEST_DATABASE_URL"
  need_node
  port=$(free_port)
  chmod 0755 "$folder"
  mkdir "$folder/server"
  if [ "$(id -u)" -eq 0 ]; then chown postgres "$folder/server"; fi
  say "Starting PostgreSQL from $bin in $folder/server on port $port"
  # The folder is thrown away after the tests: nothing has to reach the disk.
  cd "$folder/server"
  as_server_account "$bin/initdb" --pgdata="$folder/server/data" --username=postgres --auth=trust \
    --encoding=UTF8 --locale=C.UTF-8 --no-sync >/dev/null
  as_server_account "$bin/pg_ctl" --pgdata="$folder/server/data" --log="$folder/server/log" --wait --silent start \
    --options="-p $port -k $folder/server -c listen_addresses=127.0.0.1 -c fsync=off -c synchronous_commit=off -c full_page_writes=off -c max_connections=200" ||
    { cat "$folder/server/log" >&2; die "PostgreSQL did not start, its log is above"; }
  printf 'postgres://postgres@127.0.0.1:%s/postgres\n' "$port" >"$folder/url"
}

stop() {
  local folder=$1 bin
  if [ -d "$folder/server/data" ] && bin=$(programs); then
    cd "$folder/server"
    as_server_account "$bin/pg_ctl" --pgdata="$folder/server/data" --mode=immediate --silent stop || true
    cd /
  fi
  rm -rf "$folder"
}

case "${1:-}" in
  start | stop) [ -d "${2:-}" ] || die "usage: postgres.sh start|stop <folder>"; "$1" "$2" ;;
  *) die "usage: postgres.sh start|stop <folder>" ;;
esac
