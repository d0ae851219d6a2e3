/**
 * What a kubelet says itself in the answer to a request for a log. It begins every such answer with 200 before it searches for
 * the log, so that every later failure is in the text: as all of it, or after what was read so far, without
 * an end of line either way. Pure.
 *
 * Sources: kubernetes 1.34, `Server.getContainerLogs` (pkg/kubelet/server/server.go: `response.WriteError` after a write of
 * zero bytes in `Kubelet.GetKubeletContainerLogs`), `kubeGenericRuntimeManager.GetContainerLogs` (pkg/kubelet/kuberuntime),
 * and `ReadLogs`, `isContainerRunning` (k8s.io/cri-client/pkg/logs/logs.go).
 */

/** A container's id, as runtimes make it. */
const ID = "[0-9a-f]{64}";
const FILE = '"/[^"\\n]*"';

/** The runtime does not know the container any more, in its own words, as it answers the kubelet. */
const NO_CONTAINER = `rpc error: code = \\w+ desc = [^\\n]*\\b${ID}\\b[^\\n]*`;

/** Messages instead of a log. */
const INSTEAD = [
  `unable to retrieve container logs for [a-z0-9.+-]+://${ID}`,
  "container status is nil",
  `failed to try resolving symlinks in path ${FILE}: [^\\n]*`,
  'failed to get parse function: unsupported log format: "[^\\n]*"',
];

/** Messages that may also follow what was read. */
const BEHIND = [
  NO_CONTAINER,
  `failed to open log file ${FILE}: [^\\n]*`,
  `failed to tail \\d+ lines of log file ${FILE}: [^\\n]*`,
  `failed to seek \\d+ in log file ${FILE}: [^\\n]*`,
  `failed to read log file ${FILE}: [^\\n]*`,
  `failed to reset seek in log file ${FILE}: [^\\n]*`,
  "failed to create fsnotify watcher: [^\\n]*",
  `failed to watch directory ${FILE}: [^\\n]*`,
];

const whole = new RegExp(`^(?:${[...INSTEAD, ...BEHIND].join("|")})$`);
const last = new RegExp(`(?:${BEHIND.join("|")})$`);

/** Whether an answer is nothing but the kubelet's message that there is no log. */
export function isKubeletMessage(text: string): boolean {
  return whole.test(text);
}

/** No message is longer. What an application wrote is searched no further, for it may be made to take long. */
const LONGEST = 1_024;

/** A followed log without the kubelet's message about its end. */
export function withoutKubeletMessage(text: string): string {
  if (isKubeletMessage(text)) {
    return "";
  }
  const start = Math.max(text.lastIndexOf("\n") + 1, text.length - LONGEST);
  return text.slice(0, start) + text.slice(start).replace(last, "");
}
