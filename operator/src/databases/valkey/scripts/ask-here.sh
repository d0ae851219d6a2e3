# shellcheck shell=sh
# Sends a command to the server of the same pod. The kubelet has a timeout of its own, and `timeout` of busybox leaves a process
# behind that process 1, the server, would never reap.

ask() {
  VALKEYCLI_AUTH=$SLIPWAY_MONITOR_PASSWORD valkey-cli --tls --cacert __TLS__/ca.crt \
    --user __MONITOR_USER__ -h localhost -p __VALKEY_PORT__ -t 3 "$@" 2>/dev/null
}
