import { projectPhases } from "@slipway/crds";
import { expect, test } from "vitest";
import { type PhaseInput, phaseOf } from "./status-fields.ts";

/** Conditions as `Type=Status/Reason`, as `kubectl` prints them. */
function conditions(...texts: string[]): PhaseInput["conditions"] {
  return texts.map((text) => {
    const [, type = "", status = "", reason = ""] = /^(\w+)=(\w+)\/(\w+)$/.exec(text) ?? [];
    return { type, status, reason };
  });
}

const fresh = { paused: false, served: false };
const live = { paused: false, served: true };

const rows: [string, Omit<PhaseInput, "conditions">, string[], string][] = [
  ["a project without any condition is being created", fresh, [], "creating"],
  // Shows: docs/applications.md#states: `creating` | new, and nothing is wrong
  ["a new project whose instances start is being created", fresh, ["Progressing=True/Creating"], "creating"],
  // Shows: docs/applications.md#states: `downloading` | an image is fetched
  [
    "a new project that fetches its image is downloading",
    fresh,
    ["Progressing=True/PullingImage"],
    "downloading",
  ],
  [
    "a new project that waits for its domain is being created",
    fresh,
    ["DomainReady=False/DomainPending"],
    "creating",
  ],
  [
    "a new project that waits for a Secret is being created",
    fresh,
    ["Accepted=False/SecretNotFound"],
    "creating",
  ],
  [
    "a new project whose quota cannot be reserved is being created",
    fresh,
    ["Accepted=False/LedgerUnavailable"],
    "creating",
  ],
  ["a new project without quota has failed", fresh, ["Accepted=False/FreeLimitReached"], "failed"],
  ["a live project without quota is failing", live, ["Accepted=False/PlanCapacityReached"], "failing"],
  ["a new project on an unknown plan has failed", fresh, ["Accepted=False/UnknownPlan"], "failed"],
  ["a type that is not supported yet has failed", fresh, ["Accepted=False/TypeNotSupported"], "failed"],
  ["a new project whose domain is claimed has failed", fresh, ["DomainReady=False/DomainTaken"], "failed"],
  [
    "a job whose schedule rests is stopped, whether it is paused",
    { paused: true, served: true },
    ["Accepted=True/Accepted", "Progressing=False/Paused", "Ready=False/Paused"],
    "stopped",
  ],
  [
    "or closed",
    { paused: true, served: true },
    ["Accepted=True/Accepted", "Progressing=False/ScheduleClosed", "Ready=False/ScheduleClosed"],
    "stopped",
  ],
  [
    "a new project that crashes is failing while it is tried",
    fresh,
    ["Progressing=True/ContainerCrashing"],
    "failing",
  ],
  [
    "a new project without its image is failing while it is tried",
    fresh,
    ["Progressing=True/ImagePullFailed"],
    "failing",
  ],
  // Shows: docs/applications.md#states: `failed` | it never served and does not start; the reason is
  [
    "a first rollout past its deadline has failed",
    fresh,
    ["Progressing=True/ContainerCrashing", "RolloutFailed=True/DeadlineExceeded"],
    "failed",
  ],
  ["a new project whose name is in use has failed", fresh, ["Ready=False/ChildConflict"], "failed"],
  ["a live project that the apiserver refuses to change fails", live, ["Ready=False/ApiRefused"], "failing"],
  [
    "a project that waits for room on a node is being created",
    fresh,
    ["Progressing=True/Unschedulable"],
    "creating",
  ],
  // Shows: docs/applications.md#states: `running` | it serves: a public project answers through the
  ["a project that is Ready runs", live, ["Ready=True/Ready", "Progressing=False/Settled"], "running"],
  // Shows: docs/applications.md#states: `deploying` | a deployment or a pause is in progress
  ["a rollout of a live project deploys", live, ["Progressing=True/RollingOut"], "deploying"],
  [
    "a live project that fetches a new image is downloading",
    live,
    ["Progressing=True/PullingImage"],
    "downloading",
  ],
  [
    "a live project runs on while instances are added",
    live,
    [
      "Progressing=True/Scaling",
      "WorkloadAvailable=False/PartlyAvailable",
      "DomainReady=True/DomainAssigned",
    ],
    "running",
  ],
  [
    "a live project runs on while instances are removed",
    live,
    ["Progressing=True/Scaling", "WorkloadAvailable=True/Available"],
    "running",
  ],
  [
    "a live project whose last instance is replaced does not run",
    live,
    ["Progressing=True/Scaling", "WorkloadAvailable=False/Unavailable"],
    "deploying",
  ],
  [
    "a live project that scales before its domain is ready does not run",
    live,
    ["Progressing=True/Scaling", "WorkloadAvailable=True/Available", "DomainReady=False/DomainPending"],
    "deploying",
  ],
  [
    "instances that cannot be added in time are a failure",
    live,
    ["RolloutFailed=True/DeadlineExceeded", "Progressing=True/Unschedulable"],
    "failing",
  ],
  // Shows: docs/applications.md#states: `failing` | something is wrong, and it is retried or the old
  [
    "a rollout past its deadline next to the old version is failing",
    live,
    ["WorkloadAvailable=True/Available", "RolloutFailed=True/DeadlineExceeded"],
    "failing",
  ],
  ["a live project that crashes is failing", live, ["Progressing=True/ContainerCrashing"], "failing"],
  ["a live project that no longer answers is failing", live, ["Progressing=True/ProbeFailing"], "failing"],
  ["a live project whose plan vanished is failing", live, ["Accepted=False/UnknownPlan"], "failing"],
  [
    "a live project that wants a claimed domain is failing",
    live,
    ["DomainReady=False/DomainTaken"],
    "failing",
  ],
  [
    "a paused project whose instances still end deploys",
    { ...live, paused: true },
    ["Progressing=True/Pausing"],
    "deploying",
  ],
  // Shows: docs/applications.md#states: `stopped` | paused, without an instance
  [
    "a paused project without instances is stopped",
    { ...live, paused: true },
    ["Progressing=False/Paused"],
    "stopped",
  ],
  [
    "a paused project whose instances were not observed yet deploys",
    { ...live, paused: true },
    ["Accepted=False/SecretNotFound", "Progressing=False/Settled", "WorkloadAvailable=True/Available"],
    "deploying",
  ],
  [
    "a paused project that waits for a Secret is stopped once no instance is left",
    { ...live, paused: true },
    ["Accepted=False/SecretNotFound", "Progressing=False/Paused"],
    "stopped",
  ],
  [
    "a project created paused is stopped",
    { ...fresh, paused: true },
    ["Progressing=False/Paused"],
    "stopped",
  ],
  // Shows: docs/applications.md#states: `resuming` | started again after a pause
  [
    "a stopped project that starts again is resuming",
    { ...live, previous: "stopped" },
    ["Progressing=True/Resuming"],
    "resuming",
  ],
  [
    "a resuming project that fetches its image is still resuming",
    { ...live, previous: "resuming" },
    ["Progressing=True/PullingImage"],
    "resuming",
  ],
  [
    "a resuming project that crashes is failing",
    { ...live, previous: "resuming" },
    ["Progressing=True/OutOfMemory"],
    "failing",
  ],
  [
    "a resuming project that is Ready runs",
    { ...live, previous: "resuming" },
    ["Ready=True/Ready"],
    "running",
  ],
];

test.each(rows)("%s", (_, input, texts, phase) => {
  expect(phaseOf({ ...input, conditions: conditions(...texts) })).toBe(phase);
});

// Shows: docs/applications.md#states: all eight | are derived by one function from the conditions
test("every phase of the specification is reached by some row", () => {
  expect(new Set(rows.map(([, , , phase]) => phase))).toEqual(new Set(projectPhases));
});
