#!/usr/bin/env bash
# End to end on kind; see --help.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

usage='usage: .ci/kind.sh VERSION [FOLDER]

Starts a stack on kind with this version of Kubernetes, and runs the end-to-end tests that need nothing but the API, the
ingress and kube-apiserver. Needs a Docker engine, and root for the image cache.

  FOLDER   has the parts of a bundle, as .ci/bundle.sh makes them, that is installed in place of these sources: a
           machine with another system than Debian cannot build images'

[ "${1:-}" != --help ] || { echo "$usage"; exit 0; }
if [ $# -lt 1 ] || [ $# -gt 2 ]; then
  echo "kind: $usage" >&2
  exit 1
fi

# Others reach into the embedded cluster, its volumes or its Git server, or replace parts of the platform.
tests=(
  test/e2e/api-surface.e2e.test.ts
  test/e2e/applications-first.e2e.test.ts
  test/e2e/applications-kubectl.e2e.test.ts
  test/e2e/applications-rollouts.e2e.test.ts
  test/e2e/applications-settings.e2e.test.ts
  test/e2e/databases-kubectl.e2e.test.ts
  test/e2e/jobs.e2e.test.ts
  test/e2e/jobs-kubectl.e2e.test.ts
  test/e2e/jobs-runs.e2e.test.ts
  test/e2e/organizations-isolation.e2e.test.ts
  test/e2e/organizations-limits.e2e.test.ts
  test/e2e/references.e2e.test.ts
  test/e2e/workers.e2e.test.ts
)

bundle=()
if [ $# = 2 ]; then
  unpacked=$(mktemp -d)
  trap 'rm -rf "$unpacked"' EXIT
  cat "$2"/slipway-*.tar.* | tar -x -C "$unpacked"
  bundle=(--bundle "$(echo "$unpacked"/slipway-*)")
fi

# As for the stage e2e of hack/test.sh.
export SLIPWAY_RATE_LIMIT_SCALE=100 SLIPWAY_VALUES=$PWD/test/e2e/values.yaml
hack/up.sh --cluster kind --kubernetes "$1" "${bundle[@]}"
export PATH="$PWD/node_modules/.bin:$PATH"
vitest run --project e2e "${tests[@]}"
