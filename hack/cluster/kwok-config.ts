import { tmpdir } from "node:os";
import { stringify } from "yaml";

/**
 * What a fake node reports of a pod, chosen by the words in `args` of its first container, so that a test can choose it through
 * whatever creates the pod. Times are whole seconds, as the kubelet's are.
 *
 * | word | meaning | without it |
 * |---|---|---|
 * | `wait=N` | the container starts N s after the pod was created: its image is being pulled | immediately |
 * | `run=N` | it ends N s after its start | 1 |
 * | `exit=N` | with this code | 0 |
 * | `oom` | it is killed for memory: 137, `OOMKilled` | |
 * | `grace=N` | it ends N s after SIGTERM, or when the pod's grace is over, with 137 | 0, with 143 |
 * | `stopped=N` | with this code after SIGTERM | 143 |
 * | `stuck` | its image cannot be pulled: it never starts | |
 * | `unstartable` | the runtime cannot start it: 128, `StartError`, never started | |
 */
export interface Script {
  wait?: number;
  run?: number;
  exit?: number;
  oom?: boolean;
  grace?: number;
  stopped?: number;
  stuck?: boolean;
  unstartable?: boolean;
}

/** The words of a script. */
export function scriptArgs(script: Script): string[] {
  return Object.entries(script).flatMap(([word, value]) =>
    value === true ? [word] : value === false || value === undefined ? [] : [`${word}=${value}`],
  );
}

/** A number among the words, in jq; `fallback` is jq as well. */
const number = (word: string, fallback: number | string) =>
  `((.spec.containers[0].args // []) | map(select(startswith("${word}=")) | ltrimstr("${word}=") | tonumber) | first) // ${fallback}`;
const hasWord = (word: string) => `(.spec.containers[0].args // []) | map(select(. == "${word}")) | first`;

/** The same in a stage's template. */
const templateNumber = (variable: string, word: string, fallback: number) =>
  `{{ $${variable} := ${fallback} }}{{ range (index .spec.containers 0).args }}{{ if hasPrefix "${word}=" . }}{{ $${variable} = trimPrefix "${word}=" . }}{{ end }}{{ end }}\n`;
const templateHasWord = (variable: string, word: string) =>
  `{{ $${variable} := has "${word}" ((index .spec.containers 0).args | default list) }}\n`;

interface Expression {
  key: string;
  operator: "In" | "NotIn" | "Exists" | "DoesNotExist";
  values?: string[];
}
const exists = (key: string): Expression => ({ key, operator: "Exists" });
const absent = (key: string): Expression => ({ key, operator: "DoesNotExist" });
const is = (key: string, ...values: string[]): Expression => ({ key, operator: "In", values });

const started = ".status.containerStatuses[0].state.running.startedAt";
const live = absent(".metadata.deletionTimestamp");
const deleted = exists(".metadata.deletionTimestamp");

/** Moments are absolute, since each change of a pod restarts its stage's delay. */
const at = (moment: string) => ({ delay: { durationFrom: { expressionFrom: `(${moment}) | todate` } } });

function stage(name: string, matchExpressions: Expression[], next: object, delay: object = {}): object {
  return {
    apiVersion: "kwok.x-k8s.io/v1alpha1",
    kind: "Stage",
    metadata: { name },
    spec: { resourceRef: { apiGroup: "v1", kind: "Pod" }, selector: { matchExpressions }, ...delay, next },
  };
}

/**
 * A status for the pod as it was read, and for no other. So an attempt whose answer was lost with its apiserver is not repeated
 * with the time of the next one: a kubelet reports the runtime's time, once.
 */
const statusOnce = (statusTemplate: string) => ({
  patches: [
    {
      subresource: "status",
      template: `metadata: { resourceVersion: {{ .metadata.resourceVersion | Quote }} }
status:
${statusTemplate.replace(/^(?=.)/gm, "  ")}`,
    },
  ],
});

const prelude = "{{ $now := Now }}\n";
/** A moment some seconds after another: a container's times are its own, however late its node reports them. */
const after = (moment: string, seconds: string) =>
  `(dateInZone "2006-01-02T15:04:05Z07:00" (${moment} | toDate "2006-01-02T15:04:05Z07:00" | dateModify (printf "%vs" ${seconds})) "UTC")`;
const placed = `hostIP: {{ NodeIPWith .spec.nodeName | Quote }}
podIP: {{ or .status.podIP ( PodIPWith .spec.nodeName ( or .spec.hostNetwork false ) ( or .metadata.uid "" ) ( or .metadata.name "" ) ( or .metadata.namespace "" ) ) | Quote }}
startTime: {{ or .status.startTime $now | Quote }}
`;

const conditions = (ready: boolean, reason: string) =>
  ["Initialized", "Ready", "ContainersReady"]
    .map((type) => {
      const status = type === "Initialized" || ready ? "True" : "False";
      const why = status === "True" ? "" : `, reason: ${reason}`;
      return `- { type: ${type}, status: "${status}", lastTransitionTime: {{ $now | Quote }}${why} }`;
    })
    .join("\n");

const containers = (state: string, flags = "ready: false, started: false") => `containerStatuses:
{{ range .spec.containers }}
- { name: {{ .name | Quote }}, image: {{ .image | Quote }}, imageID: "", restartCount: 0, ${flags}, state: ${state} }
{{ end }}
`;

const waiting = (reason: string) =>
  statusOnce(
    `${prelude}phase: Pending\n${placed}conditions:\n${conditions(false, "ContainersNotReady")}\n${containers(
      `{ waiting: { reason: ${reason} } }`,
    )}`,
  );

/** The end of a container that ran, in a phase and with a reason that follow from its code; never before its start. */
const ended = (code: string, finishedAt: string) =>
  statusOnce(`${prelude}{{ $startedAt := (index .status.containerStatuses 0).state.running.startedAt }}
${code}{{ $finishedAt := ${finishedAt} }}{{ if lt $finishedAt $startedAt }}{{ $finishedAt = $startedAt }}{{ end }}
{{ $reason := "Error" }}{{ if eq (toString $code) "0" }}{{ $reason = "Completed" }}{{ end }}{{ if $oom }}{{ $reason = "OOMKilled" }}{{ end }}
phase: {{ if eq (toString $code) "0" }}Succeeded{{ else }}Failed{{ end }}
conditions:
${conditions(false, '{{ if eq (toString $code) "0" }}PodCompleted{{ else }}PodFailed{{ end }}')}
${containers(
  "{ terminated: { exitCode: {{ $code }}, reason: {{ $reason }}, startedAt: {{ $startedAt | Quote }}, finishedAt: {{ $finishedAt | Quote }} }, running: null, waiting: null }",
)}`);

/** The end of a container that never ran, whose times are not known. */
const neverRan = (code: number, reason: string) =>
  statusOnce(
    `${prelude}phase: Failed\n${placed}conditions:\n${conditions(false, "PodFailed")}\n${containers(
      `{ terminated: { exitCode: ${code}, reason: ${reason} }, running: null, waiting: null }`,
    )}`,
  );

const grace = `[(${number("grace", 0)}), (.metadata.deletionGracePeriodSeconds // 30)] | min`;
/** `deletionTimestamp` lies the grace period after the request. */
const stopAt = `(.metadata.deletionTimestamp | fromdate) - (.metadata.deletionGracePeriodSeconds // 30) + (${grace})`;

/** The life of a pod on a fake node. */
const podStages: object[] = [
  stage("pod-stuck", [live, absent(".status.podIP"), exists(hasWord("stuck"))], waiting("ImagePullBackOff")),
  stage(
    "pod-pull",
    [live, absent(".status.podIP"), absent(hasWord("stuck")), exists(`${number("wait", "null")}`)],
    waiting("ContainerCreating"),
  ),
  stage(
    "pod-run",
    [
      live,
      is(".status.phase", "Pending"),
      absent(hasWord("stuck")),
      absent(hasWord("unstartable")),
      // With a wait, the pod is shown as pulling first.
      exists(`if (${number("wait", "null")}) == null or .status.podIP != null then true else null end`),
    ],
    statusOnce(
      `${prelude}phase: Running\n${placed}conditions:\n${conditions(true, "")}\n${containers(
        "{ running: { startedAt: {{ $now | Quote }} }, waiting: null }",
        "ready: true, started: true",
      )}`,
    ),
    at(`(.metadata.creationTimestamp | fromdate) + (${number("wait", 0)})`),
  ),
  stage(
    "pod-unstartable",
    [live, is(".status.phase", "Pending"), exists(hasWord("unstartable"))],
    neverRan(128, "StartError"),
  ),
  stage(
    "pod-end",
    [live, is(".status.phase", "Running"), exists(started)],
    ended(
      `${templateHasWord("oom", "oom")}${templateNumber("code", "exit", 0)}${templateNumber("run", "run", 1)}{{ if $oom }}{{ $code = 137 }}{{ end }}\n`,
      after("$startedAt", "$run"),
    ),
    at(`(${started} | fromdate) + (${number("run", 1)})`),
  ),
  stage(
    "pod-stop",
    [deleted, is(".status.phase", "Running"), exists(started)],
    ended(
      `${templateNumber("stopped", "stopped", 143)}${templateNumber("grace", "grace", 0)}{{ $oom := false }}{{ $code := $stopped }}{{ $given := int .metadata.deletionGracePeriodSeconds }}{{ if gt (int $grace) $given }}{{ $code = 137 }}{{ end }}\n`,
      after(".metadata.deletionTimestamp", "(sub (min (int $grace) $given) $given)"),
    ),
    at(stopAt),
  ),
  stage(
    "pod-stop-unstarted",
    [deleted, is(".status.phase", "Pending")],
    neverRan(137, "ContainerStatusUnknown"),
  ),
  // With a grace of 0 the apiserver removes the pod once its last finalizer is removed.
  stage(
    "pod-removed",
    [
      deleted,
      is(".status.phase", "Succeeded", "Failed"),
      exists("if .metadata.deletionGracePeriodSeconds > 0 then true else null end"),
    ],
    { delete: true },
  ),
  // Does nothing, but replaces a stage that waits for its time: kwok would play it on a pod that has ended otherwise.
  stage("pod-over", [live, is(".status.phase", "Succeeded", "Failed")], {}),
];

/** Nodes are made with all of their status; a stage must exist, or kwok uses its own. */
const nodeStage = {
  apiVersion: "kwok.x-k8s.io/v1alpha1",
  kind: "Stage",
  metadata: { name: "node-untouched" },
  spec: {
    resourceRef: { apiGroup: "v1", kind: "Node" },
    selector: { matchExpressions: [is(".metadata.name", "none")] },
    next: {},
  },
};

/**
 * kwok's configuration.
 * @param logFile what every container has written, for `pods/log`
 * @param runsCommands whether `pods/exec` runs its command, on this machine and as this user; it is refused otherwise
 */
export function kwokConfig(logFile: string, runsCommands = false): string {
  const options = {
    apiVersion: "config.kwok.x-k8s.io/v1alpha1",
    kind: "KwokConfiguration",
    options: { manageAllNodes: true, cidr: "10.64.0.1/16", podPlayStageParallelism: 16 },
  };
  const logs = {
    apiVersion: "kwok.x-k8s.io/v1alpha1",
    kind: "ClusterLogs",
    metadata: { name: "all" },
    spec: { logs: [{ logsFile: logFile }] },
  };
  const commands = {
    apiVersion: "kwok.x-k8s.io/v1alpha1",
    kind: "ClusterExec",
    metadata: { name: "all" },
    spec: { execs: [{ local: { workDir: tmpdir() } }] },
  };
  const documents = [options, logs, ...(runsCommands ? [commands] : []), nodeStage, ...podStages];
  return documents.map((document) => stringify(document)).join("---\n");
}
