# shellcheck shell=sh
# Runs before the processes of a pod are ended. A primary has a replica take its place, which receives all writes before that.
# Sentinels would miss it only after seconds, and one that has started again by then accepts writes while another is promoted. The
# Sentinel of this pod is ending, so another one does it. Where all pods end, the others have ended, too, and the
# primary remains the primary.

set -eu
. ./ask.sh
is_primary() {
  ask "$SLIPWAY_MONITOR_PASSWORD" __MONITOR_USER__ localhost __VALKEY_PORT__ -e INFO replication | grep -q '^role:master'
}
hand_over() {
  for peer in $SLIPWAY_PEERS; do
    [ "$peer" != "$SLIPWAY_ADDRESS" ] || continue
    case $(ask "$SLIPWAY_REPLICATION_PASSWORD" default "$peer" __SENTINEL_PORT__ SENTINEL FAILOVER __GROUP__ COORDINATED) in
      OK* | *INPROG*) return 0 ;;
    esac
  done
  return 1
}
is_primary && hand_over || exit 0
left=__HAND_OVER_SECONDS__
while [ "$left" -gt 0 ] && is_primary; do
  sleep 1
  left=$((left - 1))
done
