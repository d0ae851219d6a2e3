import { describe, expect, test } from "vitest";
import { isKubeletMessage, withoutKubeletMessage } from "./kubelet-messages.ts";

const ID = "d689083f5f1c1c2f5d2f1e0a9b8c7d6e5f4a3b2c1d0e9f8a7b6c5d4e3f2a1b0c";
const FILE = `/var/log/pods/slipway-org-a_p1-29000000-x2x2x_0b1c/app/0.log`;
const GONE = `rpc error: code = NotFound desc = an error occurred when try to find container "${ID}": not found`;

/** Word for word as kubelets and their runtimes say it. */
const instead = [
  `unable to retrieve container logs for containerd://${ID}`,
  `unable to retrieve container logs for cri-o://${ID}`,
  "container status is nil",
  `failed to try resolving symlinks in path "${FILE}": lstat ${FILE}: no such file or directory`,
  'failed to get parse function: unsupported log format: "\\x00\\x00\\n"',
];
const behind = [
  GONE,
  `rpc error: code = NotFound desc = could not find container "${ID}": container with ID starting with ${ID} not found: ID does not exist`,
  `rpc error: code = Unknown desc = Error: No such container: ${ID}`,
  `failed to open log file "${FILE}": open ${FILE}: no such file or directory`,
  `failed to tail 512 lines of log file "${FILE}": read ${FILE}: input/output error`,
  `failed to seek 12 in log file "${FILE}": seek ${FILE}: invalid argument`,
  `failed to read log file "${FILE}": read ${FILE}: input/output error`,
  `failed to reset seek in log file "${FILE}": seek ${FILE}: invalid argument`,
  "failed to create fsnotify watcher: too many open files",
  `failed to watch directory "/var/log/pods/slipway-org-a_p1/app": no space left on device`,
];

describe("an answer", () => {
  test.each([...instead, ...behind])(
    "that is nothing but a kubelet's message is none of a log: %s",
    (text) => {
      expect(isKubeletMessage(text)).toBe(true);
      expect(withoutKubeletMessage(text)).toBe("");
    },
  );

  test.each([
    "",
    "up\n",
    `${instead[0]}\n`,
    `up\n${instead[0]}`,
    `${instead[0]} ...`,
    "unable to retrieve container logs for the report",
    "rpc error: code = NotFound desc = no such customer",
    'failed to open log file "report.log": permission denied',
  ])("that an application may have written is its log: %j", (text) => {
    expect(isKubeletMessage(text)).toBe(false);
    expect(withoutKubeletMessage(text)).toBe(text);
  });
});

describe("a followed log", () => {
  test.each(behind)("ends before the kubelet's message about its end: %s", (text) => {
    expect(withoutKubeletMessage(`up\nbye\n${text}`)).toBe("up\nbye\n");
    // The last line of an application need not have ended.
    expect(withoutKubeletMessage(`up\n99 %${text}`)).toBe("up\n99 %");
  });

  test("keeps what its application wrote of such things", () => {
    const text = `asked for ${ID}\n${GONE}\nrpc error: code = NotFound desc = no such customer`;
    expect(withoutKubeletMessage(text)).toBe(text);
  });
});
