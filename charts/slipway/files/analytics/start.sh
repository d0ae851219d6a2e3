#!/bin/sh
# start.sh DATA COMMAND...: starts the embedded analytics store, a single server, after a repair of what a killed one may leave.
#
# Before a table has a part that is inserted, the server notes the part's block in the table's log of deduplication. Killed between
# the two, it would take the block for a duplicate when it comes again, and have it never. Such a block is among the last ones of
# the log, as many as there were concurrent inserts: it is noted as dropped.

LAST=32

data=$1
shift

# has_block TABLE PARTITION NUMBER: whether a part of the table has the block. Parts are named PARTITION_FIRST_LAST_LEVEL.
has_block() {
  for part in "$1/$2"_*; do
    blocks=${part#"$1/$2"_}
    first=${blocks%%_*}
    blocks=${blocks#*_}
    last=${blocks%%_*}
    if [ "$first" -le "$3" ] && [ "$3" -le "$last" ]; then
      return 0
    fi
  done 2>/dev/null
  return 1
}

find "$data" -maxdepth 5 -type d -name deduplication_logs | while read -r logs; do
  # A log is begun anew when it is long: the newest may have no record yet.
  log=
  for number in $(find "$logs" -name 'deduplication_log_*.txt' -size +0 | sed -n 's/.*_\([0-9]*\)\.txt$/\1/p' | sort -n); do
    log=$logs/deduplication_log_$number.txt
  done
  [ -n "$log" ] || continue
  # A record is 1 (the block was added) or 2 (dropped), the part and the block.
  tail -n "$LAST" "$log" | while read -r operation part block; do
    partition=${part%%_*}
    number=${part#*_}
    number=${number%%_*}
    # One that was dropped and came again has a later record.
    newest=$(grep -F "$block" "$log" | tail -n 1 | cut -f 1,2)
    if [ "$operation" = 1 ] && [ "$newest" = "$(printf '1\t%s' "$part")" ] && ! has_block "${logs%/*}" "$partition" "$number"; then
      echo "start: $part of ${logs%/*} was noted, but not stored: it is taken when it comes again"
      printf '2\t%s\t%s\n' "$part" "$block" >>"$log"
    fi
  done
done

exec "$@"
