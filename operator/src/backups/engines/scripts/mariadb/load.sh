# shellcheck shell=sh
# Loads a dump from the pipe into the database.

set -u
umask 007
work() {
__CLIENT__ <__DATA__ || return

. ./count-rows.sh
}
. ../run-work.sh
