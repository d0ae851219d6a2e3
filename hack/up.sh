#!/usr/bin/env bash
# Installs Slipway on a cluster of its own, or on an existing one; see --help and docs/stack.md.
# This part only gets Node and the dependencies ready; hack/up.ts does the rest.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source hack/lib/bootstrap.sh

case " $* " in
*" --context"* | *" --cluster kind "* | *" --cluster=kind "* | *" --help "* | *" -h "*) ;;
*)
  if ! timeout 5 docker info >/dev/null 2>&1; then
    [ "$(uname -s)" = Linux ] || fail up "the embedded cluster needs Linux; elsewhere, start Docker for kind"
    [ "$(id -u)" = 0 ] || fail up "the embedded cluster needs root: run hack/up.sh as root"
  fi
  ;;
esac
ensure_node up
exec node_modules/.bin/node hack/up.ts "$@"
