# shellcheck shell=sh
# Loads a dump from the pipe into a server of its own and counts the keys.

set -u
umask 007
work() {
. ./serve-dump.sh
kill -9 "$server"
return 0
}
. ../run-work.sh
