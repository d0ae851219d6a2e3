# shellcheck shell=sh
# Makes the pipe, runs `work` and reports the exit code with which it has ended, whatever it is.

mkfifo __DATA__ || exit 1
work
code=$?
echo "$code" >__EXIT__.new && mv __EXIT__.new __EXIT__
exit "$code"
