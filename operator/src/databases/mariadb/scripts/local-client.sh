# shellcheck shell=sh
# How the operator and the kubelet connect: by the socket, as the container's own user, who has every right.

local_client() {
  timeout "${patience:-8}" mariadb --no-defaults --socket=__SOCKET__ --user="$(id -un)" --batch --skip-column-names "$@"
}
