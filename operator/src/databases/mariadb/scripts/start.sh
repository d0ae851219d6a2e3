# shellcheck shell=sh
# Starts the server and decides what becomes of it. A member never decides on its own: it joins a group that serves, or waits
# until the operator, which has queried all members, orders it to initialize or bootstrap. First it removes variables of the
# project's by which the server, or the programs that copy its data, could be turned into something else. The state of this run
# is in files:
#
# - `run`: an id that changes each time the member reads its data again, so that it follows no order about earlier data
# - `phase`: `recovering`, `waiting`, `initializing`, `bootstrapping`, `joining`
# - `position`: what data it has, and up to which transaction
# - `order`: what the operator has ordered
# - `answered`: the server has served in this run

set -u
umask 077
run=__RUN__
data=__DATA__
for name in $(env | sed -nE 's/^((LD_|MYSQL|MARIADB|WSREP|GALERA|INNODB|DBUG|BASH|SHELLOPTS|IFS|TMPDIR|UMASK|SOCAT|OPENSSL|SSL_|GLIBC|MALLOC)[A-Za-z0-9_]*)=.*/\1/p'); do
  case " $SLIPWAY_KEPT " in *" $name "*) ;; *) unset "$name" ;; esac
done
mkdir -p "$run"
rm -f "$run"/order "$run"/answered "$run"/position "$run"/mysqld.sock
phase() { echo "$1" >"$run/phase"; }
phase recovering
case "$SLIPWAY_ADDRESS" in *:*) address="[$SLIPWAY_ADDRESS]" ;; *) address=$SLIPWAY_ADDRESS ;; esac
member=$(printf %s "$SLIPWAY_MEMBER" | tail -c 31)
sed -e "s/@ADDRESS@/$address/g" -e "s/@MEMBER@/$member/g" -e "s/@USER@/$(id -un)/g" \
  __CONFIG__/server.cnf >"$run/my.cnf"
{
  echo '[client]'
  echo 'user=__MONITOR_USER__'
  echo "password=\"$SLIPWAY_MONITOR_PASSWORD\""
  echo 'ssl-ca=__TLS__/ca.crt'
  echo 'ssl-verify-server-cert'
  echo 'connect-timeout=4'
} >"$run/monitor.cnf"
unset SLIPWAY_MONITOR_PASSWORD

# shellcheck disable=SC1007 # Several variables are assigned, some of them the empty string.
server= stopping=
stop() {
  stopping=1
  if [ -n "$server" ]; then kill -TERM "$server" 2>/dev/null; else exit 0; fi
}
trap stop TERM INT

# What this member has. Data that a copy was interrupted over are worth nothing.
field() { sed -n "s/^$1: *//p" "$data/grastate.dat" 2>/dev/null; }
position() {
  phase recovering
  turn_id=$(cat /proc/sys/kernel/random/uuid)
  rm -f "$run/order"
  echo "$turn_id" >"$run/run"
  # shellcheck disable=SC1007 # Several variables are assigned, some of them the empty string.
  have=none uuid= seqno=-1 safe=0
  rm -rf "$data.new"
  if [ -e "$data/sst_in_progress" ]; then
    have=incomplete
  elif [ -d "$data/mysql" ]; then
    have=whole uuid=$(field uuid) seqno=$(field seqno) safe=$(field safe_to_bootstrap)
    case "$seqno" in
      '' | -1)
        mariadbd --defaults-file="$run/my.cnf" --wsrep-cluster-address=gcomm:// --wsrep-recover >"$run/recovery" 2>&1 &
        server=$!
        finish
        recovered=$(sed -n 's/.*Recovered position: *\([0-9a-f-]*:-\{0,1\}[0-9]*\).*/\1/p' "$run/recovery" | tail -n 1)
        uuid=${recovered%:*} seqno=${recovered##*:}
        if [ -z "$recovered" ]; then
          cat "$run/recovery" >&2
          have=broken
        fi
        ;;
    esac
    case "$uuid" in 00000000-*) have=unborn ;; esac
  fi
  printf 'data=%s\nuuid=%s\nseqno=%s\nsafe=%s\n' "$have" "$uuid" "$seqno" "${safe:-0}" >"$run/position"
  echo "position: $have $uuid:$seqno"
}

# Waits for the process to end; a signal that is passed on to it only interrupts the wait.
finish() {
  code=0
  while kill -0 "$server" 2>/dev/null; do
    wait "$server"
    code=$?
  done
  server=
  if [ -n "$stopping" ]; then exit 0; fi
}
serve() {
  mariadbd --defaults-file="$run/my.cnf" "$@" &
  server=$!
  finish
  echo "the server has ended with $code"
  rm -f "$run/mysqld.sock"
  # One that has served is restarted by the kubelet, which reports it.
  if [ "$code" != 0 ] && [ -e "$run/answered" ]; then exit "$code"; fi
  rm -f "$run/answered"
}

peer_status() {
  timeout 6 mariadb --defaults-file="$run/monitor.cnf" --host="$1" --batch --skip-column-names \
    -e "__SHOW_STATUS__" 2>/dev/null
}
# Observes the other members: somebody serves (group), may give a copy (donor), lower ones are there (turn).
observe_peers() {
  # shellcheck disable=SC1007 # Several variables are assigned, some of them the empty string.
  group= donor= turn=1 before=1
  for peer in $SLIPWAY_PEERS; do
    if [ "$peer" = "$SLIPWAY_SELF" ]; then
      before=
      continue
    fi
    status=$(peer_status "$peer" | tr '\t\n' '= ')
    case "$status" in
      *wsrep_cluster_status=Primary*)
        group=1
        case "$status" in
          *'wsrep_local_state=4 '*) donor=$peer ;;
          *) turn= ;;
        esac
        ;;
      *) if [ -n "$before" ]; then turn=; fi ;;
    esac
  done
}

position
waited=0 failures=0
while :; do
  phase waiting
  observe_peers
  # One at a time, for a copy takes all of a donor; but nobody waits for one that never comes.
  if [ -n "$donor" ] && { [ -n "$turn" ] || [ "$waited" -ge 30 ]; }; then
    phase joining
    rm -f "$run/order"
    if [ "$have" = broken ]; then rm -f "$data/grastate.dat"; fi
    set -- --wsrep-cluster-address="gcomm://$donor"
    if [ "$have" = whole ]; then set -- "$@" --wsrep-start-position="$uuid:$seqno"; fi
    mkdir -p "$data"
    echo "joining the group of $donor"
    serve "$@"
  elif [ -z "$group" ] && [ -e "$run/order" ]; then
    order=$(cat "$run/order")
    case "$order" in *" $turn_id") order=${order%% *} ;; *) order=stale ;; esac
    if [ "$order" = initialize ] && [ "$have" = none ]; then
      phase initializing
      # Whole or not at all.
      mariadb-install-db --defaults-file="$run/my.cnf" --datadir="$data.new" --wsrep-on=OFF --skip-test-db --skip-name-resolve \
        --auth-root-authentication-method=socket --auth-root-socket-user="$(id -un)" >"$run/initialization" 2>&1 &
      server=$!
      finish
      if [ "$code" != 0 ]; then cat "$run/initialization" >&2; exit "$code"; fi
      rm -rf "$data"
      mv "$data.new" "$data"
      have=unborn
    elif [ "$order" != bootstrap ] || { [ "$have" != whole ] && [ "$have" != unborn ]; }; then
      echo "an order to $order is none for what is here: $have"
      rm -f "$run/order"
      continue
    fi
    phase bootstrapping
    rm -f "$run/order"
    set -- --wsrep-cluster-address=gcomm:// --wsrep-new-cluster
    if [ "$have" = whole ]; then set -- "$@" --wsrep-start-position="$uuid:$seqno"; fi
    if [ -e "$data/grastate.dat" ]; then
      sed 's/^safe_to_bootstrap:.*/safe_to_bootstrap: 1/' "$data/grastate.dat" >"$data/grastate.new"
      mv "$data/grastate.new" "$data/grastate.dat"
    fi
    echo "beginning a group at $uuid:$seqno"
    serve "$@"
  else
    waited=$((waited + 1))
    sleep 1
    continue
  fi
  failures=$((failures + 1))
  if [ "$failures" -ge 5 ]; then exit 1; fi
  waited=0
  position
  sleep 2
done
