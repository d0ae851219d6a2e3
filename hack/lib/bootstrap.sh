# shellcheck shell=bash
# Sourced by hack/*.sh: what has to be there before TypeScript can run. Bash, in the repository's root.

fail() { # SCRIPT MESSAGE
  echo "$1: $2" >&2
  exit 1
}

# Checks for Node, and installs the dependencies when package-lock.json names others than are installed.
ensure_node() { # SCRIPT
  # A release's bundle comes with Node.
  command -v node >/dev/null || PATH=$PATH:$PWD/node_modules/.bin
  command -v node >/dev/null || fail "$1" "there is no node in PATH; Node 20 or later is needed"
  local major
  major=$(node -p 'process.versions.node.split(".")[0]')
  [ "$major" -ge 20 ] || fail "$1" "Node 20 or later is needed, and this is $(node --version)"
  if ! node hack/lib/dependencies-current.mjs; then
    echo "==> npm ci"
    local log=.slipway/logs/npm.log start=$SECONDS
    mkdir -p .slipway/logs
    npm ci --no-audit --no-fund >"$log" 2>&1 || fail "$1" "npm ci failed; see $PWD/$log"
    echo "    done in $((SECONDS - start)) s"
  fi
}
