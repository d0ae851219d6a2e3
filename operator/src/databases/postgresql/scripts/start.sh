# shellcheck shell=sh
# Starts Patroni. A project's own variables reach the server, except those of Patroni, libpq, Python and the linker, by which
# it could turn either into something else.

for name in $(env | sed -nE 's/^((PATRONI_|PG|PYTHON|LD_)[A-Za-z0-9_]*)=.*/\1/p'); do
  case " $SLIPWAY_KEPT " in *" $name "*) ;; *) unset "$name" ;; esac
done
exec patroni __PATRONI__/patroni.yml
