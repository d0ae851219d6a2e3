#!/usr/bin/env bash
# Makes the bundle of a release and packs it for upload; see --help.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

usage='usage: .ci/bundle.sh VERSION|TAG

Makes the bundle of HEAD in dist/slipway-VERSION, and beside it the files that are uploaded: its checksums, their
signature, and the bundle itself in parts, for a public host limits the size of a file:
  cat slipway-VERSION.tar.* | tar -x

environment:
  RELEASE_KEY   private P-256 key (PEM) that signs it; only 0.0.0, which is for tests, can do without'

fail() { # MESSAGE
  echo "bundle: $1" >&2
  exit 1
}

[ "${1:-}" != --help ] || { echo "$usage"; exit 0; }
[ $# = 1 ] || fail "$usage"
version=${1#v}
out=dist/slipway-$version

sign=()
if [ -n "${RELEASE_KEY:-}" ]; then
  secrets=$(mktemp -d)
  trap 'rm -rf "$secrets"' EXIT
  (umask 077 && printf '%s\n' "$RELEASE_KEY" >"$secrets/release.key")
  sign=(--key "$secrets/release.key")
elif [ "$version" != 0.0.0 ]; then
  fail "RELEASE_KEY is empty, and a release is signed"
fi
# Nothing that is started from here on finds the key in its environment.
unset RELEASE_KEY

hack/release.sh "$version" --commit HEAD --out "$out" "${sign[@]}"
cp "$out"/SHA256SUMS* dist/
# Below the 2 GiB that GitHub takes.
tar -C dist -c "slipway-$version" | split -b 1900M -d - "$out.tar."
