#!/bin/bash
# Runs a program of the node's own once the node may read the cluster: kubeadm has made the kubelet's account, and its roles
# are there.
set -euo pipefail
export KUBECONFIG=/etc/kubernetes/kubelet.conf
until [ -f "$KUBECONFIG" ] && kubectl auth can-i list networkpolicies --all-namespaces >/dev/null 2>&1; do
  sleep 1
done
exec "$@"
