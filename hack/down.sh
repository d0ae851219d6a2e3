#!/usr/bin/env bash
# Takes down what hack/up.sh brought up; --purge removes its data too. See --help and docs/stack.md.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source hack/lib/bootstrap.sh

ensure_node down
exec node_modules/.bin/node hack/down.ts "$@"
