#!/bin/bash
# Imports the images of the control plane, unless this node has them: /kind/images has an archive each, and in `names` a line
# with an image's own reference and another that Kubernetes knows it by.
set -euo pipefail
cd /kind/images

ctr() { command ctr --namespace k8s.io images "$@"; }

present=$(ctr ls --quiet)
for archive in *.tar; do
  own=$(cat "${archive%.tar}.reference")
  grep -qxF "$own" <<<"$present" || ctr import "$archive"
done
while read -r own name; do
  grep -qxF "$name" <<<"$present" || ctr tag "$own" "$name"
done <names
