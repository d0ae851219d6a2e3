# shellcheck shell=sh
# A server that has answered must keep answering; before that it may recover, wait or receive a copy for as long as it needs.

set -u
. ./local-client.sh
[ -e __RUN__/answered ] || exit 0
patience=14
local_client -e 'SHOW GLOBAL STATUS LIKE "uptime"' >/dev/null 2>&1 || [ ! -e __RUN__/answered ]
