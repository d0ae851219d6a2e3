# shellcheck shell=sh
# Starts the Sentinel beside a server. Its state goes to the volume without passwords, so that the primary is still known
# after all Sentinels have been down. Its identity is that of its pod.

set -eu
umask 077
mkdir -p __RUN__
conf=__RUN__/sentinel.conf
state=__SENTINEL_STATE__
{
  cat __CONFIG__/sentinel.conf
  echo "sentinel announce-ip $SLIPWAY_ADDRESS"
  echo "sentinel myid $(printf %s "$SLIPWAY_ADDRESS" | sha256sum | cut -c1-40)"
  echo "requirepass $SLIPWAY_REPLICATION_PASSWORD"
  echo "sentinel sentinel-pass $SLIPWAY_REPLICATION_PASSWORD"
  if [ -s "$state" ]; then
    grep '^sentinel monitor ' "$state" | sed -E 's/ [0-9]+$/ __QUORUM__/'
  else
    echo "sentinel monitor __GROUP__ ${SLIPWAY_PEERS%% *} __VALKEY_PORT__ __QUORUM__"
  fi
  echo 'sentinel auth-user __GROUP__ __REPLICATION_USER__'
  echo "sentinel auth-pass __GROUP__ $SLIPWAY_REPLICATION_PASSWORD"
  echo 'sentinel down-after-milliseconds __GROUP__ __STARTUP_DOWN_AFTER_MS__'
  echo 'sentinel failover-timeout __GROUP__ __FAILOVER_MS__'
  echo 'sentinel parallel-syncs __GROUP__ 1'
  if [ -s "$state" ]; then grep -v '^sentinel monitor ' "$state" || true; fi
} >"$conf"
keep() {
  grep -E '^sentinel (monitor|(config|leader|current)-epoch|known-(replica|sentinel)) ' "$conf" >"$state.new" &&
    mv "$state.new" "$state"
}
ask_here() {
  VALKEYCLI_AUTH=$SLIPWAY_REPLICATION_PASSWORD valkey-cli --tls --cacert __TLS__/ca.crt \
    -h localhost -p __SENTINEL_PORT__ -t 3 -e SENTINEL "$@" 2>/dev/null
}
seen() {
  ask_here PRIMARY __GROUP__ | awk '
    $0 == "runid" { getline; answered = $0 != "" }
    $0 == "flags" { getline; well = $0 == "master" }
    END { exit !(answered && well) }'
}
knows_all() {
  ask_here PRIMARY __GROUP__ | awk -v others=__OTHERS__ '
    $0 == "num-slaves" || $0 == "num-replicas" { getline; replicas = $0 }
    $0 == "num-other-sentinels" { getline; sentinels = $0 }
    END { exit !(replicas + 0 >= others && sentinels + 0 >= others) }'
}
patient=yes
tuned=
valkey-sentinel "$conf" &
sentinel=$!
trap 'kill "$sentinel"' TERM INT
while kill -0 "$sentinel" 2>/dev/null; do
  case "$tuned" in
    '') if ask_here DEBUG tilt-period __TILT_MS__ info-period __DISCOVERY_PERIOD_MS__ >/dev/null; then tuned=discovering; fi ;;
    discovering) if knows_all && ask_here DEBUG info-period __INFO_PERIOD_MS__ >/dev/null; then tuned=settled; fi ;;
  esac
  if [ -n "$patient" ] && seen && ask_here SET __GROUP__ down-after-milliseconds __DOWN_AFTER_MS__ >/dev/null; then
    patient=
  fi
  # shellcheck disable=SC3013 # The shells of the images (dash, busybox) have `-nt`.
  if [ ! -e "$state" ] || [ "$conf" -nt "$state" ]; then keep || true; fi
  sleep 1
done
keep || true
