# shellcheck shell=sh
# Any answer will do, also that the server is still reading its files.

. ./ask-here.sh
ask PING
