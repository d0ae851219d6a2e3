# shellcheck shell=sh
# Starts a server. A project's own variables reach it, except those by which it, or what it is linked to, could be turned into
# something else. The server receives only the hash of the administrator's password.

for name in $(env | sed -nE 's/^((CLICKHOUSE_|SLIPWAY_|LD_|MALLOC_|GLIBC_|NODE_|UV_|OPENSSL_|SSL_)[A-Za-z0-9_]*)=.*/\1/p'); do
  case " $SLIPWAY_KEPT " in *" $name "*) ;; *) unset "$name" ;; esac
done
SLIPWAY_ADMIN_SHA256=$(printf %s "$SLIPWAY_ADMIN_PASSWORD" | sha256sum | cut -d ' ' -f 1)
export SLIPWAY_ADMIN_SHA256
unset SLIPWAY_ADMIN_PASSWORD
exec clickhouse-server --config-file=__CONFIG__/config.yaml
