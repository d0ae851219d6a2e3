"""Runs before a member that has the leader lock is promoted; Patroni promotes it when this exits with 0. Its argument is the
name of the ConfigMap in which Patroni keeps the synchronous state: the former primary, and the members of the quorum.

A former primary whose Patroni is frozen loses the lock, and its server goes on: a write is acknowledged as soon as any other
member of the quorum has it. So as long as one of them still follows the former primary, writes may be acknowledged that this
member will never have.

Here it waits until every other member of the quorum follows this one, and has no more than this one has. From then on the
former primary gets acknowledgements from this member alone, and when it is promoted from nobody.
https://patroni.readthedocs.io/en/latest/yaml_configuration.html, "pre_promote"
"""

import json
import os
import socket
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request

WITHIN = 10  # seconds
INTERVAL = 0.05
TIMEOUT = 2
PATRONI = "http://127.0.0.1:8008"
ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount/"
OWN_POSITION = "greatest(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn()) - '0/0'"
FOLLOWERS = "SELECT application_name FROM pg_stat_replication WHERE state = 'streaming'"


def read(url, headers={}, context=None):
    request = urllib.request.Request(url, headers=headers)
    with urllib.request.urlopen(request, timeout=TIMEOUT, context=context) as response:
        return json.load(response)


def content(name):
    with open(ACCOUNT + name, encoding="ascii") as file:
        return file.read().strip()


def synchronous_state(config_map):
    """Returns the former primary and the names of the members of its quorum; neither where replication is not synchronous."""
    url = "https://{0}:{1}/api/v1/namespaces/{2}/configmaps/{3}".format(
        os.environ["KUBERNETES_SERVICE_HOST"], os.environ["KUBERNETES_SERVICE_PORT"], content("namespace"), config_map
    )
    headers = {"Authorization": "Bearer " + content("token")}
    context = ssl.create_default_context(cafile=ACCOUNT + "ca.crt")
    try:
        state = read(url, headers, context)["metadata"].get("annotations") or {}
    except urllib.error.HTTPError as error:
        # Patroni creates it when replication becomes synchronous.
        if error.code != 404:
            raise
        state = {}
    return state.get("leader"), [name for name in (state.get("sync_standby") or "").split(",") if name]


def select(query):
    command = ["psql", "-XAt", "-U", "postgres", "-d", "postgres", "-c", query]
    return subprocess.check_output(command, text=True, timeout=TIMEOUT).split()


def position_of(member):
    wal = read(member["api_url"])["xlog"]
    return max(wal.get("received_location") or 0, wal.get("replayed_location") or 0)


def obstacle(config_map, own):
    """Returns what speaks against a promotion now, or None."""
    former, quorum = synchronous_state(config_map)
    others = [name for name in quorum if name != own]
    # A primary that starts again has all that it acknowledged.
    if former is None or former == own or not others:
        return None
    followers = select(FOLLOWERS)
    for name in others:
        if name not in followers:
            return "{0} does not follow this member yet".format(name)
    members = read(PATRONI + "/cluster")["members"]
    for member in members:
        if member["name"] in others and position_of(member) > int(select("SELECT " + OWN_POSITION)[0]):
            return "{0} has more than this member".format(member["name"])
    return None


def main(config_map, own):
    end = time.monotonic() + WITHIN
    while True:
        try:
            found = obstacle(config_map, own)
        except Exception as error:
            found = repr(error)
        if found is None:
            return 0
        if time.monotonic() > end:
            print("not promoted: " + found, file=sys.stderr)
            return 1
        time.sleep(INTERVAL)


if __name__ == "__main__":
    # A member has the name of its pod. Patroni removes its own variables from the environment.
    sys.exit(main(sys.argv[1], socket.gethostname()))
