"""Corrects two things of Patroni: how it reads a conflict when it renews or takes the leader lock in Kubernetes, and the priority
of the PostgreSQL that it starts.

A request that timed out may be carried out all the same, once the apiserver answers again. The next one then conflicts with
it (409), and Patroni takes that for a lost lock: it stops the primary, and every session with it, although no other member
ever had the lock. Failsafe mode is not asked.

Here a refused write means a lost lock only when the lock names another member. Otherwise the apiserver counts as unreachable
for this loop: in failsafe mode the primary goes on if every other member agrees; without it, it stops.

PostgreSQL and Patroni share the processor time of their container. Where it does not suffice, as while an application opens many
connections a second, each of a hundred server processes would get as much as Patroni, which has to answer the kubelet's probe and
to renew its lock in time. So the server's processes run at a lower priority than Patroni. It counts within the container alone: all
of it gets as much as before.

Python imports this module by its name when it starts, also in the process by which Patroni starts PostgreSQL. No other module
is changed.
"""

import contextlib
import functools
import importlib.machinery
import os
import sys

LOCK = "patroni.dcs.kubernetes"
START = "patroni.postgresql.postmaster"
NICE = 10  # A tenth of the processor time of a process at 0, in the same container.
METHODS = ("attempt_to_acquire_leader", "update_leader")
READ_TIMEOUT = 2  # seconds


def lock_holder(dcs):
    """Returns the member that the lock names now, past every cache."""
    lock = dcs._api.read_namespaced_kind(dcs.leader_path, dcs._namespace, _request_timeout=READ_TIMEOUT)
    return (lock.metadata.annotations or {}).get(dcs._LEADER)


def corrected(write, unreachable):
    @functools.wraps(write)
    def wrapper(dcs, *args, **kwargs):
        if write(dcs, *args, **kwargs):
            return True
        try:
            holder = lock_holder(dcs)
        except Exception as error:
            raise unreachable("the leader lock could not be read: {0!r}".format(error))
        if holder == dcs._name:
            raise unreachable("the leader lock could not be written, and still names this member")
        return False

    return wrapper


def correct_lock(module):
    for method in METHODS:
        setattr(module.Kubernetes, method, corrected(getattr(module.Kubernetes, method), module.KubernetesError))


def lowered(start):
    # Patroni's child finds it by its name, and there it is this one, too.
    @functools.wraps(start)
    def wrapper(*args, **kwargs):
        with contextlib.suppress(OSError):
            os.nice(NICE)
        return start(*args, **kwargs)

    return wrapper


def correct_start(module):
    module.pg_ctl_start = lowered(module.pg_ctl_start)


CORRECTIONS = {LOCK: correct_lock, START: correct_start}


class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        correct = CORRECTIONS.get(name)
        if correct is None:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None:
            load = spec.loader.exec_module

            def load_corrected(module):
                load(module)
                correct(module)

            spec.loader.exec_module = load_corrected
        return spec


sys.meta_path.insert(0, Finder)
