#!/bin/bash
# First program of a node's container: prepares what systemd and the kubelet expect of a machine, then becomes systemd.
set -euo pipefail

# Of pods' volumes and of mounts in them, which the kubelet makes after the containers that are to see them have started.
mount --make-rshared /
# A writable /sys is a machine's own for systemd, which would start its device manager.
mount -o remount,ro /sys

# Every node is made from one image.
rm -f /etc/machine-id
systemd-machine-id-setup

# Devices that the kernel adds later do not appear in a container: volumes are loop devices.
for ((number = 0; number < 512; number++)); do
  [ -e "/dev/loop$number" ] || mknod -m 0660 "/dev/loop$number" b 7 "$number"
done

if [ ! -f /sys/fs/cgroup/cgroup.controllers ]; then
  # kind configures the kubelet with this group as its root, and waits for this line (on version 2, for systemd's own).
  echo "detected cgroup v1"
  mount --make-rprivate /sys/fs/cgroup
  while IFS= read -r controller; do
    group=$controller/kubelet
    mkdir -p "$group"
    if [ "${controller##*/}" = cpuset ]; then
      # A group without processors and memory nodes takes no process.
      cat "$controller/cpuset.cpus" >"$group/cpuset.cpus"
      cat "$controller/cpuset.mems" >"$group/cpuset.mems"
    fi
    # systemd removes groups that are empty and none of its own, but not mount points.
    mount --bind "$group" "$group"
  done < <(findmnt --list --noheadings --output TARGET --types cgroup)
fi

exec "$@"
