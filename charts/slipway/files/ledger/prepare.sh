# shellcheck shell=sh
# prepare DATA: gives the data of a stopped ledger what a member of two needs beside them, the accounts of Patroni and of its
# replication. Run again, it changes nothing. The passwords are letters and digits.

PREPARED=slipway.prepared

# ask DATA DATABASE: runs the statements of its input, each of which ends with a semicolon and an empty line. A server in this mode
# listens nowhere, recovers first what a killed one left, and exits with 0 whatever a statement did. A standby never takes fewer
# connections than the data say that there were before: not the default of a server without settings.
ask() {
  postgres --single -j -D "$1" -c max_connections="$CONNECTIONS" -c log_min_error_statement=panic -c log_statement=none "$2"
}

prepare() {
  ask "$1" postgres >/dev/null <<SQL
DO \$do\$ DECLARE account text; BEGIN
  FOREACH account IN ARRAY ARRAY['postgres', 'slipway_replication', 'slipway_rewind'] LOOP
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = account) THEN
      EXECUTE format('CREATE ROLE %I', account);
    END IF;
  END LOOP;
END \$do\$;

ALTER ROLE postgres LOGIN SUPERUSER PASSWORD '$SUPERUSER_PASSWORD';

ALTER ROLE slipway_replication LOGIN REPLICATION PASSWORD '$REPLICATION_PASSWORD';

ALTER ROLE slipway_rewind LOGIN PASSWORD '$REPLICATION_PASSWORD';

GRANT EXECUTE ON FUNCTION pg_ls_dir(text, boolean, boolean), pg_stat_file(text, boolean), pg_read_binary_file(text), pg_read_binary_file(text, bigint, bigint, boolean) TO slipway_rewind;

ALTER ROLE slipway LOGIN SUPERUSER PASSWORD '$(cat "${LEDGER_PASSWORD_FILE:-/etc/slipway/ledger/password}")';

SQL
  case $(printf 'SELECT datname FROM pg_database;\n\n' | ask "$1" postgres) in
    *'datname = "ledger"'*) ;;
    *) printf 'CREATE DATABASE ledger OWNER slipway;\n\n' | ask "$1" postgres >/dev/null ;;
  esac
  found=$(printf "SELECT count(*) AS accounts FROM pg_authid WHERE rolpassword LIKE 'SCRAM%%' AND rolcanlogin AND rolname IN ('postgres', 'slipway', 'slipway_replication', 'slipway_rewind');\n\n" | ask "$1" ledger) || :
  case $found in
    *'accounts = "4"'*) : >"$1/$PREPARED" ;;
    *)
      echo "the ledger's data could not be prepared for two instances" >&2
      return 1
      ;;
  esac
}
