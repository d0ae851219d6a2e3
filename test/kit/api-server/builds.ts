import type { Build, BuildLogChunk, BuildTrigger, GitDelivery, LeasedDelivery } from "@slipway/ledger";
import type { BuildStore } from "../../../api-server/src/builds/platform.ts";

/** What the ledger keeps of builds, in memory: for tests of what the API makes of it. */
export interface MemoryBuilds extends BuildStore {
  builds: Map<string, Build>;
  /** By build. */
  logs: Map<string, BuildLogChunk[]>;
  /** Builds by trigger; null of what was noted. */
  triggers: Map<string, string | null>;
  /** Deliveries that are not worked off. */
  waiting: () => number;
}

const triggerKey = ({ projectUid, trigger, ref, commitSha }: BuildTrigger): string =>
  [projectUid, trigger, ref, commitSha].join(" ");
const deliveryKey = ({ organizationId, connectionId, deliveryId }: GitDelivery): string =>
  [organizationId, connectionId, deliveryId].join(" ");

export function memoryBuilds(): MemoryBuilds {
  const builds = new Map<string, Build>();
  const logs = new Map<string, BuildLogChunk[]>();
  const triggers = new Map<string, string | null>();
  const done = new Set<string>();
  const queue: { held: LeasedDelivery; dueAt: number; isHeld: boolean }[] = [];
  const remove = (held: LeasedDelivery): void => {
    const at = queue.findIndex(({ held: { sequence } }) => sequence === held.sequence);
    if (at >= 0) {
      queue.splice(at, 1);
    }
  };
  let sequence = 0;
  const key = (projectUid: string, id: string): string => `${projectUid}/${id}`;
  return {
    builds,
    logs,
    triggers,
    waiting: () => queue.length,
    record: async (row) => {
      const at = key(row.project_uid, row.id);
      const before = builds.get(at);
      if (before !== undefined && before.status !== "pending") {
        return before.status === row.status;
      }
      builds.set(at, { log_truncated: false, ...row, updated_at: row.created_at } as Build);
      return true;
    },
    find: async ({ projectUid, id }) => builds.get(key(projectUid, id)),
    list: async ({ projectUid, branch, status, offset, limit }) => {
      const found = [...builds.values()]
        .filter((build) => build.project_uid === projectUid)
        .filter((build) => branch === undefined || build.branch === branch)
        .filter((build) => status === undefined || build.status === status)
        .sort((a, b) => b.created_at.getTime() - a.created_at.getTime());
      return { total: found.length, builds: found.slice(offset, offset + limit) };
    },
    readLog: async ({ id }, { cursor, limit }) =>
      (logs.get(id) ?? []).filter(({ sequence }) => sequence > cursor).slice(0, limit),
    claim: async (trigger, buildId) => {
      const at = triggerKey(trigger);
      if (!triggers.has(at)) {
        triggers.set(at, buildId);
      }
      return triggers.get(at) ?? null;
    },
    recordTriggers: async (noted) => {
      for (const trigger of noted) {
        if (!triggers.has(triggerKey(trigger))) {
          triggers.set(triggerKey(trigger), null);
        }
      }
    },
    deliveries: {
      queue: async (delivery, event) => {
        const known = deliveryKey(delivery);
        if (done.has(known) || queue.some(({ held }) => deliveryKey(held) === known)) {
          return "duplicate";
        }
        const held = {
          ...delivery,
          event: JSON.stringify(event),
          attempts: 0,
          sequence: String(++sequence),
        };
        queue.push({ held, dueAt: 0, isHeld: false });
        return "queued";
      },
      lease: async ({ most }) => {
        const due = queue.filter(({ dueAt, isHeld }) => !isHeld && dueAt <= Date.now()).slice(0, most);
        for (const one of due) {
          one.isHeld = true;
        }
        return due.map((one) => (one.held = { ...one.held, attempts: one.held.attempts + 1 }));
      },
      finish: async (held) => {
        done.add(deliveryKey(held));
        remove(held);
      },
      drop: async (held) => remove(held),
      postpone: async (held, afterMs) => {
        const found = queue.find(({ held: { sequence: known } }) => known === held.sequence);
        if (found) {
          Object.assign(found, { isHeld: false, dueAt: Date.now() + afterMs });
        }
      },
    },
  };
}
