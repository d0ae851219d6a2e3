# shellcheck shell=sh
# Carries out an order of the operator's: its name, and the run that it is meant for.

set -u
. ./local-client.sh
# From 11.3 on each option of Galera's is a variable of its own.
provider() {
  local_client -e "SET GLOBAL wsrep_provider_$(echo "$1" | tr . _) = ON" 2>/dev/null ||
    local_client -e "SET GLOBAL wsrep_provider_options = '$1=true'"
}
[ "$(cat __RUN__/run)" = "$2" ] || exit 3
case "$1" in
  initialize | bootstrap)
    # One order is enough: it reads orders once a second, and removes one only in another phase.
    [ "$(cat __RUN__/order 2>/dev/null)" != "$1 $2" ] || exit 4
    [ "$(cat __RUN__/phase)" = waiting ] || exit 4
    echo "$1 $2" >__RUN__/order.new
    mv __RUN__/order.new __RUN__/order
    ;;
  revive) provider pc.bootstrap ;;
  restart) kill -TERM "$(cat __RUN__/mysqld.pid)" ;;
  settle) local_client -e 'SET SESSION wsrep_sync_wait = 1; SELECT 1' ;;
  note) local_client -e 'CALL __OWN_SCHEMA__.note_events()' ;;
  lead) local_client <__CONFIG__/lead.sql ;;
  rest) local_client -e '__REST__' ;;
  reload) local_client -e "FLUSH SSL" && provider socket.ssl_reload ;;
  *) exit 5 ;;
esac
