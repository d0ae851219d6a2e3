#!/usr/bin/env bash
# Passes the whole test suite, from a fresh clone on: see 'hack/test.sh --help'.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source hack/lib/bootstrap.sh

ensure_node test
export PATH="$PWD/node_modules/.bin:$PATH"
exec node hack/test.ts "$@"
