#!/usr/bin/env bash
# Passes the whole test suite, from a fresh clone on: see 'hack/test.sh --help'.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

command -v npm >/dev/null || { echo "test: npm was not found; install Node.js 20 or later (apt-get install nodejs npm)" >&2; exit 1; }
if [ ! -d node_modules ] || [ package-lock.json -nt node_modules/.package-lock.json ]; then
  echo "test: installing dependencies (npm ci)"
  npm ci --no-audit --no-fund --loglevel=error
fi
export PATH="$PWD/node_modules/.bin:$PATH"
exec node hack/test.ts "$@"
