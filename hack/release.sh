#!/usr/bin/env bash
# Makes the bundle of a release; see --help and docs/releases/README.md.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source hack/lib/bootstrap.sh
ensure_node release
exec node_modules/.bin/node hack/release.ts "$@"
