# shellcheck shell=sh
# Sends a command to a server or a Sentinel, with a timeout. A Sentinel has no users; `default` is the user that a password
# alone belongs to.

ask() {
  password=$1 user=$2 host=$3 port=$4
  shift 4
  VALKEYCLI_AUTH=$password timeout 3 valkey-cli --tls --cacert __TLS__/ca.crt \
    --user "$user" -h "$host" -p "$port" "$@" 2>/dev/null
}
