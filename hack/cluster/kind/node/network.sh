#!/bin/bash
# The pods' network of a node: a bridge for its own pods, routes to those of other nodes, and its own address for what pods
# send elsewhere. Follows the list of nodes until it ends, and is started again.
set -euo pipefail

export KUBECONFIG=/etc/kubernetes/kubelet.conf
config=/etc/cni/net.d/10-slipway.conflist
name=$(hostname)
pods=$(sed -n 's/.*podSubnet: *"\{0,1\}\([0-9./]*\).*/\1/p' /kind/kubeadm.conf | head -n 1)
[ -n "$pods" ] || {
  echo "/kind/kubeadm.conf names no podSubnet" >&2
  exit 1
}

# Pods keep their address towards each other, on whatever node: policies mean it.
nft -f - <<RULES
table ip slipway_kind
delete table ip slipway_kind
table ip slipway_kind {
  chain postrouting {
    type nat hook postrouting priority srcnat;
    ip saddr $pods ip daddr != $pods masquerade
  }
}
RULES
sysctl -q -w net.ipv4.ip_forward=1

# With this file pods get a network, so not before there are rules: the enforcer's first ones close all that it does not know.
configure() {
  [ ! -f "$config" ] || return 0
  until nft list table inet slipway_netpol >/dev/null 2>&1; do sleep 0.2; done
  sed "s#POD_CIDR#$1#" /kind/cni.json >"$config.draft"
  mv "$config.draft" "$config"
}

fields='{.metadata.name} {.spec.podCIDR} {.status.addresses[?(@.type=="InternalIP")].address}{"\n"}'
kubectl get nodes --watch --output "jsonpath=$fields" | while read -r node cidr address; do
  if [ -z "$address" ]; then
    continue
  elif [ "$node" = "$name" ]; then
    configure "$cidr"
  else
    ip route replace "$cidr" via "$address"
  fi
done
