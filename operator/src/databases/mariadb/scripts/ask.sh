# shellcheck shell=sh
# Prints all that the operator needs to know of a member: the state of start.sh, and of the server once it answers.

set -u
. ./local-client.sh
for name in run phase; do printf '%s=%s\n' "$name" "$(cat __RUN__/$name 2>/dev/null)"; done
cat __RUN__/position 2>/dev/null
if [ -S __SOCKET__ ]; then
  local_client -e "__SHOW_STATUS__; SHOW GLOBAL VARIABLES WHERE Variable_name IN ('version','event_scheduler')" 2>/dev/null
fi
exit 0
