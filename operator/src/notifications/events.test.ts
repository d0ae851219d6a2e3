import type { Backup, DomainClaim, Project } from "@slipway/crds";
import { eventIdOf } from "@slipway/ledger";
import { expect, test } from "vitest";
import { exampleProject } from "../../../test/kit/operator/projects.ts";
import { eventsOfBackup, eventsOfClaim, eventsOfProject } from "./events.ts";

const AT = "2026-11-21T12:00:00Z";
const LATER = "2026-11-21T12:05:00Z";

function project(status: Project["status"]): Project {
  const made = exampleProject({ namespace: "slipway-org-acme", name: "pshop" });
  return { ...made, metadata: { ...made.metadata, uid: "u1" }, status };
}
const unavailable = (reason: string, since = AT): Project["status"] => ({
  conditions: [
    { type: "WorkloadAvailable", status: "False", reason, message: "It ends.", lastTransitionTime: since },
  ],
});

// Shows: docs/webhooks.md#events: `project.crash_loop` | no instance
test("an application whose instances crash is one event until it was available again", () => {
  const [event, ...others] = eventsOfProject(project(unavailable("ContainerCrashing")));
  expect(others).toEqual([]);
  expect(event).toMatchObject({
    type: "project.crash_loop",
    organizationId: "acme",
    projectId: "pshop",
    occurredAt: new Date(AT),
    quietSeconds: 3_600,
    data: { reason: "ContainerCrashing", message: "It ends." },
  });
  const ids = [
    unavailable("ContainerCrashing"),
    unavailable("OutOfMemory"),
    unavailable("ContainerCrashing", LATER),
  ]
    .flatMap((status) => eventsOfProject(project(status)))
    .map(eventIdOf);
  expect(ids[0]).toBe(ids[1]);
  expect(ids[2]).not.toBe(ids[0]);
});

test("one whose new version crashes while the one before serves is no event", () => {
  const [crashing] = unavailable("ContainerCrashing")?.conditions ?? [];
  const conditions: NonNullable<Project["status"]>["conditions"] = [
    { type: "WorkloadAvailable", status: "True", reason: "Available", message: "", lastTransitionTime: AT },
    { ...crashing, type: "Progressing", status: "True" } as never,
  ];
  expect(eventsOfProject(project({ conditions }))).toEqual([]);
});

test("when it crashed last is not when it began: it occurred as it stopped to serve", () => {
  const lastTermination = { instance: "pshop-1", exitCode: 1, restarts: 9, finishedAt: LATER } as never;
  expect(eventsOfProject(project({ ...unavailable("ContainerCrashing"), lastTermination }))).toMatchObject([
    { occurredAt: new Date(AT), data: { exit_code: 1, restarts: 9 } },
  ]);
});

test("an application that waits, is paused, or serves is no event", () => {
  for (const reason of ["Unavailable", "Paused", "ImagePullFailed"]) {
    expect(eventsOfProject(project(unavailable(reason)))).toEqual([]);
  }
  expect(eventsOfProject(project(undefined))).toEqual([]);
});

// Shows: docs/webhooks.md#events: `run.missed` | occurrences
test("missed occurrences are an event for each reason and count", () => {
  const missed = (count: number) =>
    project({
      job: {
        missedReasons: [
          { reason: "Overlap", count, lastScheduledAt: AT },
          { reason: "Late", count: 1, lastScheduledAt: LATER },
        ],
      },
    });
  const [overlap, late] = eventsOfProject(missed(2));
  expect(overlap).toMatchObject({
    type: "run.missed",
    occurredAt: new Date(AT),
    data: { reason: "Overlap", missed: 2 },
  });
  const [next, same] = eventsOfProject(missed(3));
  expect(next && eventIdOf(next)).not.toBe(overlap && eventIdOf(overlap));
  expect(same && eventIdOf(same)).toBe(late && eventIdOf(late));
});

// Shows: docs/webhooks.md#events: `backup.completed`, `backup.failed` | a backup
test("a backup that has ended is an event, and one that is made is not", () => {
  const backup = (status: Backup["status"]): Backup => ({
    apiVersion: "slipway.dev/v1alpha1",
    kind: "Backup",
    metadata: { namespace: "slipway-org-acme", name: "pdb-b1", uid: "u2" },
    spec: { projectRef: { name: "pdb" }, trigger: "manual", requestedAt: AT },
    status,
  });
  expect(eventsOfBackup(backup({ phase: "running", startedAt: AT }))).toEqual([]);
  expect(eventsOfBackup(backup({ phase: "succeeded", finishedAt: LATER, sizeBytes: 7 }))).toMatchObject([
    { type: "backup.completed", projectId: "pdb", occurredAt: new Date(LATER), data: { size_bytes: 7 } },
  ]);
  const failed = backup({ phase: "failed", finishedAt: LATER, message: "x".repeat(5_000) });
  expect(eventsOfBackup(failed)).toMatchObject([
    { type: "backup.failed", data: { message: "x".repeat(1_024) } },
  ]);
});

// Shows: docs/webhooks.md#events: `certificate.issued` | a custom domain
// Shows: docs/webhooks.md#events: `certificate.failed` | a certificate
test("a certificate of a custom domain is an event once it is in place, and once it could not be issued", () => {
  const claim = (status: "True" | "False", kind: DomainClaim["spec"]["kind"] = "custom") =>
    ({
      metadata: { name: "shop.example.com", uid: "u3" },
      spec: {
        hostname: "shop.example.com",
        organization: "acme",
        projectRef: { namespace: "slipway-org-acme", name: "pshop", uid: "u1" },
        kind,
      },
      status: {
        conditions: [
          {
            type: "CertificateReady",
            status,
            reason: "CertificateIssued",
            message: "",
            lastTransitionTime: AT,
          },
        ],
      },
    }) as DomainClaim;
  expect(eventsOfClaim(claim("False"))).toEqual([]);
  expect(eventsOfClaim(claim("True", "default"))).toEqual([]);
  expect(eventsOfClaim(claim("True"))).toMatchObject([
    { type: "certificate.issued", organizationId: "acme", data: { hostname: "shop.example.com" } },
  ]);
  const failing = (since: string, status: "True" | "False" = "False") => {
    const { status: before, ...rest } = claim(status);
    return {
      ...rest,
      status: { ...before, certificateFailure: { since, message: "at an internal server" } },
    };
  };
  const about = { organizationId: "acme", projectId: "pshop", type: "certificate.failed" };
  const data = { hostname: "shop.example.com", reason: "not_issued", is_renewal: false };
  expect(eventsOfClaim(failing(LATER))).toMatchObject([{ ...about, occurredAt: new Date(LATER), data }]);
  const renewal = eventsOfClaim(failing(LATER, "True"));
  expect(renewal.map(({ type }) => type)).toEqual(["certificate.issued", "certificate.failed"]);
  expect(renewal[1]?.data).toEqual({ ...data, is_renewal: true });
  // Of an issuance that succeeded after it had failed.
  expect(eventsOfClaim(failing("2026-11-21T11:00:00Z", "True"))[1]?.data).toEqual(data);
  const ids = [failing(LATER), failing(LATER), failing(AT)].flatMap(eventsOfClaim).map(eventIdOf);
  expect(ids[0]).toBe(ids[1]);
  expect(ids[2]).not.toBe(ids[0]);
});
