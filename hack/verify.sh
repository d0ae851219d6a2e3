#!/usr/bin/env bash
# Everything that needs no cluster and no test runner: generated files are current, format, lint, types, shell scripts,
# workflows, and a tree that stayed clean. Each step prints its time; the first failure stops and says what to run.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export PATH="$PWD/node_modules/.bin:$PATH"

step() { # name, hint, command...
  local name=$1 hint=$2 start=$SECONDS
  shift 2
  if ! "$@"; then
    printf 'verify: %s failed after %ss. %s\n' "$name" "$((SECONDS - start))" "$hint" >&2
    exit 1
  fi
  printf 'verify: %-10s ok  %ss\n' "$name" "$((SECONDS - start))"
}

clean_tree() {
  local changed
  changed=$(git status --porcelain)
  [ "$changed" = "$before" ] && return 0
  printf 'verify changed the tree:\n%s\n' "$changed" >&2
  return 1
}

shell_scripts() {
  if ! command -v shellcheck >/dev/null; then
    if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
      echo "shellcheck is missing; install it, on Debian with 'apt-get install shellcheck'" >&2
      return 1
    fi
    { apt-get update -q && apt-get install -y -q --no-install-recommends shellcheck; } >/dev/null || return 1
  fi
  git ls-files -z '*.sh' .ci/run | xargs -0 shellcheck
}

workflows() {
  local actionlint
  actionlint=$(node hack/cluster/build.ts actionlint | tail -n 1) || return 1
  # Which has shellcheck read the commands of their steps, too.
  "$actionlint" -no-color -oneline -pyflakes=
}

before=$(git status --porcelain)
step generate "Run 'npm run generate' and commit what it wrote." node hack/generate.ts --check
step format+lint "Run 'npm run format'." biome ci --colors=off --error-on-warnings .
step types "Run 'npm run typecheck'." tsc --noEmit -p .
step console "Run 'npm run typecheck'." tsc --noEmit -p api-server/console
step scripts "shellcheck found something in a shell script." shell_scripts
step workflows "actionlint found something in .github/workflows." workflows
step tree "Something above wrote into the tree." clean_tree
