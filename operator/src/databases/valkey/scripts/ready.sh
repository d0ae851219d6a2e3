# shellcheck shell=sh
# A primary is ready when it has read its files, a replica when it follows. From then on its volume has the data.

set -eu
. ./ask-here.sh
info=$(ask -e INFO replication persistence)
case "$info" in *[!_]loading:0*) ;; *) exit 1 ;; esac
case "$info" in *role:master* | *master_link_status:up*) ;; *) exit 1 ;; esac
[ -e __SYNCHRONIZED__ ] || : >__SYNCHRONIZED__ || true
