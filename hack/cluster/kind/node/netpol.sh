#!/bin/bash
# The enforcer of NetworkPolicies on this node: see hack/cluster/netpol.
set -euo pipefail
address=$(ip -4 -o address show dev eth0 | sed -n 's#.* inet \([0-9.]*\)/.*#\1#p' | head -n 1)
pods=$(sed -n 's/.*podSubnet: *"\{0,1\}\([0-9./]*\).*/\1/p' /kind/kubeadm.conf | head -n 1)
exec netpol --kubeconfig /etc/kubernetes/kubelet.conf --pod-cidr "$pods" --node-ip "$address" --bridge slipway0 --other-nodes
