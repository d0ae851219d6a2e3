#!/usr/bin/env bash
# Publishes what .ci/bundle.sh made as a release of GitHub; see --help.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

usage='usage: .ci/publish.sh TAG FOLDER

Publishes the files of FOLDER that .ci/bundle.sh made as the release of a tag, which has to exist. Needs gh, and a token
in GH_TOKEN that may write contents.'

[ "${1:-}" != --help ] || { echo "$usage"; exit 0; }
if [ $# != 2 ]; then
  echo "publish: $usage" >&2
  exit 1
fi

# No release without a signature, however the files came here.
[ -s "$2/SHA256SUMS.sig" ] || { echo "publish: $2 has no SHA256SUMS.sig" >&2; exit 1; }
gh release create "$1" --verify-tag --title "Slipway ${1#v}" \
  --notes "What changed: CHANGELOG.md. How to check and install it: docs/releases/README.md." \
  "$2/SHA256SUMS" "$2/SHA256SUMS.sig" "$2"/slipway-*.tar.*
