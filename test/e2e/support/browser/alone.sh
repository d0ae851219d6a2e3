#!/bin/sh
# Chromium in a network namespace of its own, where 127.0.0.1:$SLIPWAY_BROWSER_PORT leads out through a Unix socket.
# Chromium drops all its requests whenever an interface of the machine comes or goes, and a cluster's pods come and go;
# and nothing of a page can reach anything else from there. Arguments are Chromium's.
set -eu
if [ "${SLIPWAY_BROWSER_ALONE:-}" != yes ]; then
  SLIPWAY_BROWSER_ALONE=yes exec unshare --net "$0" "$@"
fi
ip link set lo up
# Not the pipes over which Chromium is driven: it would be waited for.
"$SLIPWAY_BROWSER_NODE" "$(dirname "$0")/forward.ts" </dev/null >/dev/null 2>&1 3>&- 4>&- &
forwarder=$!
status=0
/usr/bin/chromium "$@" || status=$?
kill "$forwarder"
exit "$status"
