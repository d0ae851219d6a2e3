# shellcheck shell=sh
# A member is ready only in a group that has a majority; one that gives a copy keeps serving. When it returns from a group
# without a majority, another member may run the scheduled events, so it waits until the operator orders it to.

set -u
patience=4
. ./local-client.sh
status=$(local_client -e "__SHOW_STATUS__" | tr '\t\n' '= ') || exit 1
case "$status" in
  *wsrep_cluster_status=Primary*) ;;
  *wsrep_cluster_status=*)
    local_client -e '__REST__'
    exit 1
    ;;
  *) exit 1 ;;
esac
case "$status" in *'wsrep_local_state=4 '* | *'wsrep_local_state=2 '*) ;; *) exit 1 ;; esac
case "$status" in *wsrep_ready=ON*) touch __RUN__/answered ;; *) exit 1 ;; esac
