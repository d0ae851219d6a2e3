# shellcheck shell=sh
# Starts a Keeper. `server_id` is a number from 1 on.

SLIPWAY_KEEPER_ID=$(( ${SLIPWAY_POD##*-} + 1 ))
export SLIPWAY_KEEPER_ID
exec clickhouse keeper --config-file=__KEEPER_CONFIG__/keeper_config.yaml
