/** Where the profile is, seen from the kubelet's folder of profiles: `localhostProfile` of build pods. */
export const builderSeccompProfile = "slipway/builder.json";

/** What no build has a use for: the kernel's modules, clock, swap, tracing and the like, all behind rights of root. */
const denied = [
  "acct",
  "bpf",
  "clock_adjtime",
  "clock_settime",
  "create_module",
  "delete_module",
  "fanotify_init",
  "finit_module",
  "init_module",
  "io_uring_enter",
  "io_uring_register",
  "io_uring_setup",
  "ioperm",
  "iopl",
  "kcmp",
  "kexec_file_load",
  "kexec_load",
  "lookup_dcookie",
  "mbind",
  "migrate_pages",
  "move_pages",
  "nfsservctl",
  "open_by_handle_at",
  "perf_event_open",
  "process_vm_readv",
  "process_vm_writev",
  "quotactl",
  "quotactl_fd",
  "reboot",
  "set_mempolicy",
  "settimeofday",
  "swapoff",
  "swapon",
  "syslog",
  "uselib",
  "userfaultfd",
  "ustat",
  "vhangup",
];

/**
 * The seccomp profile of build pods. A builder without rights makes user namespaces and mounts in them, which the runtime's
 * own profile, the default of every pod here, refuses; Pod Security `baseline` takes a profile of the node, but none at all
 * only where the kubelet has no default.
 * @param more calls that are refused besides
 */
export function builderSeccomp(more: readonly string[] = []): object {
  return {
    defaultAction: "SCMP_ACT_ALLOW",
    syscalls: [{ names: [...denied, ...more], action: "SCMP_ACT_ERRNO", errnoRet: 1 }],
  };
}
