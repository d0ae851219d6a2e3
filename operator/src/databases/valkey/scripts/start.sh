# shellcheck shell=sh
# Starts the server. Its accounts are written from the Secret as it is now, as hashes. The other pods' Sentinels say which
# instance is the primary; the newest configuration epoch wins. The instance that they name starts as the primary when it has
# data, or no instance has any; otherwise, and while they are replacing it, it waits until another one has taken its place: an
# empty primary would empty all others, and writes that it accepts meanwhile would be lost. For the same reason Sentinels may
# not promote a replica without data (priority 0) until it has synchronized once: the operator gives it a priority then.

set -eu
umask 077
. ./ask.sh
digest() { printf %s "$1" | sha256sum | cut -c1-64; }
account() { printf 'user %s on #%s %s\n' "$1" "$(digest "$2")" "$3"; }
for name in $(env | sed -nE 's/^(LD_[A-Za-z0-9_]*)=.*/\1/p'); do unset "$name"; done
mkdir -p __DATA__ __RUN__
{
  echo 'user default off resetpass -@all'
  account __ADMIN_USER__ "$SLIPWAY_ADMIN_PASSWORD" '__ADMIN_RULES__'
  account __REPLICATION_USER__ "$SLIPWAY_REPLICATION_PASSWORD" '__REPLICATION_RULES__'
  account __MONITOR_USER__ "$SLIPWAY_MONITOR_PASSWORD" '__MONITOR_RULES__'
  case "$SLIPWAY_USERNAME" in
    '' | default | slipway_* | *[!A-Za-z0-9_-]*) ;;
    *) account "$SLIPWAY_USERNAME" "$SLIPWAY_PASSWORD" '__PROJECT_RULES__' ;;
  esac
} >__RUN__/users.acl
{
  echo 'include __CONFIG__/valkey.conf'
  echo 'masteruser __REPLICATION_USER__'
  echo "masterauth $SLIPWAY_REPLICATION_PASSWORD"
} >__RUN__/valkey.conf

# Of each Sentinel its epoch, the address of its primary, and whether it is being replaced.
reports_of_sentinels() {
  for peer in $SLIPWAY_PEERS; do
    ask "$SLIPWAY_REPLICATION_PASSWORD" default "$peer" __SENTINEL_PORT__ -e SENTINEL PRIMARY __GROUP__ |
      awk -v peer="$peer" '
        $0 == "ip" { getline; host = $0 }
        $0 == "flags" { getline; flags = $0 }
        $0 == "config-epoch" { getline; print $0, host, peer, (flags ~ /failover_in_progress/ ? "moving" : "still") }' || true
  done
}
nobody_has_data() {
  for peer in $SLIPWAY_PEERS; do
    [ "$peer" != "$SLIPWAY_ADDRESS" ] || continue
    size=$(ask "$SLIPWAY_MONITOR_PASSWORD" __MONITOR_USER__ "$peer" __VALKEY_PORT__ -e DBSIZE) || return 1
    [ "$size" = 0 ] || return 1
  done
}
if [ -n "$SLIPWAY_PEERS" ]; then
  echo "replica-announce-ip $SLIPWAY_ADDRESS" >>__RUN__/valkey.conf
  echo 'replica-announce-port __VALKEY_PORT__' >>__RUN__/valkey.conf
  trap 'exit 0' TERM
  while :; do
    all=$(reports_of_sentinels)
    # The Sentinel of this pod has only begun: it knows what it knew long ago.
    primary=$(echo "$all" | grep -v " $SLIPWAY_ADDRESS [a-z]*$" | sort -n | tail -n 1 | cut -d ' ' -f 2)
    if [ "$primary" = "$SLIPWAY_ADDRESS" ]; then
      moving=$(echo "$all" | grep ' moving$' || true)
      if [ -z "$moving" ] && { [ -d __DATA__/appendonlydir ] || nobody_has_data; }; then break; fi
      echo 'waiting for another instance to take over'
    elif [ -n "$primary" ]; then
      echo "replicaof $primary __VALKEY_PORT__" >>__RUN__/valkey.conf
      if [ ! -e __SYNCHRONIZED__ ] || [ ! -d __DATA__/appendonlydir ]; then
        echo 'replica-priority 0' >>__RUN__/valkey.conf
      fi
      break
    else
      echo 'waiting for a Sentinel that knows the primary'
    fi
    sleep 1
  done
fi
trap - TERM
exec valkey-server __RUN__/valkey.conf
