/** The controllers of backups: what they need, what wakes them, what they may do. */

import {
  customSource,
  ignoreStatusUpdates,
  type Manager,
  refKey,
  type Store,
  tracedIn,
  watchLabelled,
  watchMapped,
  watchObjects,
} from "@slipway/controller-runtime";
import { type Backup, isDatabaseType, labels, type Project } from "@slipway/crds";
import type { DatabaseImages } from "../databases/settings.ts";
import type { PolicyRule } from "../rbac.ts";
import { backupResource } from "../resources.ts";
import { createBackupMetrics, registerBackupGauges } from "./metrics.ts";
import { backupReconciler } from "./reconciler.ts";
import { Restorer } from "./restore.ts";
import { BY_PROJECT, projectKey } from "./runner.ts";
import { NoBucket, S3, type S3Credentials } from "./s3.ts";
import { s3Store } from "./s3-store.ts";
import { policyOf, scheduleReconciler } from "./scheduler.ts";
import type { BackupSettings } from "./settings.ts";
import type { BackupStore } from "./store.ts";
import { volumeStore } from "./volume-store.ts";
import { BackupWork, createWorkStores, type WorkStores } from "./work.ts";

const WATCH = ["list", "watch"] as const;
const READ = ["get", ...WATCH] as const;

/** Permissions of the controllers; the chart's ClusterRole is generated from them. */
export const rules: PolicyRule[] = [
  { apiGroups: ["slipway.dev"], resources: ["backups"], verbs: [...WATCH, "patch", "delete"] },
  { apiGroups: ["slipway.dev"], resources: ["backups/status"], verbs: ["update"] },
  // Owner references that block their owner's deletion need it.
  { apiGroups: ["slipway.dev"], resources: ["backups/finalizers"], verbs: ["update"] },
  { apiGroups: ["slipway.dev"], resources: ["projects"], verbs: [...READ, "patch"] },
  { apiGroups: ["batch"], resources: ["jobs"], verbs: WATCH },
  { apiGroups: [""], resources: ["pods"], verbs: WATCH },
];

/** In organizations' namespaces alone. */
export const organizationRules: PolicyRule[] = [
  { apiGroups: ["slipway.dev"], resources: ["backups"], verbs: ["create"] },
  { apiGroups: ["batch"], resources: ["jobs"], verbs: ["get", "create", "delete"] },
  { apiGroups: [""], resources: ["pods"], verbs: ["get", "delete"] },
  { apiGroups: [""], resources: ["persistentvolumeclaims"], verbs: ["get", "create"] },
  { apiGroups: ["networking.k8s.io"], resources: ["networkpolicies"], verbs: ["create", "patch"] },
  // URLs of a store, for one Job each.
  { apiGroups: [""], resources: ["secrets"], verbs: ["get", "create", "delete"] },
];

export interface BackupOptions {
  projects: Store<Project>;
  images: () => DatabaseImages;
  /** Undefined while backups are switched off. */
  settings: () => BackupSettings | undefined;
  /** Keys of the bucket, as they are now; undefined where none are given. */
  s3Credentials: () => S3Credentials | undefined;
  onSettingsChange: (listener: () => void) => () => void;
}

/** What the parts of backups share. Made before the projects' controller, which restores with it. */
export interface BackupParts {
  backups: Store<Backup>;
  restorer: Restorer;
  /** Adds the controllers. */
  add(): void;
}

export function createBackups(manager: Manager, options: BackupOptions): BackupParts {
  const { client, trustedClock: clock, log, recorder, registry } = manager;
  const { projects, images, settings } = options;
  const backups = manager.store<Backup>(backupResource, {
    indexers: { [BY_PROJECT]: (backup) => [projectKey(backup)] },
  });
  const stores = createWorkStores(manager);
  const current = (): BackupSettings => {
    const value = settings();
    if (!value) {
      throw new Error("backups are switched off");
    }
    return value;
  };
  const onVolume = volumeStore(client, current);
  const inBucket = s3Store(client, current, ({ endpoint, region, name, forcePathStyle }) => {
    const credentials = options.s3Credentials();
    if (!credentials) {
      throw new NoBucket();
    }
    const ca = current().s3?.ca ?? "";
    return new S3({ endpoint, region, bucket: name, forcePathStyle, ca }, credentials);
  });
  // One that is made already stays where it is, whatever the settings say by now.
  const store = ({ status }: Backup): BackupStore => {
    const isInBucket = status?.location ? status.location.startsWith("s3:") : current().store === "s3";
    return isInBucket ? inBucket : onVolume;
  };
  const work = new BackupWork({ client, clock, stores, store, settings });
  const metrics = createBackupMetrics(registry);
  const shared = {
    client,
    clock,
    log,
    recorder,
    projects,
    backups,
    stores,
    images,
    settings,
    store,
    work,
    metrics,
  };
  return {
    backups,
    restorer: new Restorer(shared),
    add: () => addControllers(manager, options, shared),
  };
}

function addControllers(
  manager: Manager,
  { onSettingsChange }: BackupOptions,
  shared: Parameters<typeof backupReconciler>[0] & { stores: WorkStores },
): void {
  const { backups, projects, settings, stores } = shared;
  const now = () => manager.clock.now();
  registerBackupGauges(
    manager.registry,
    shared,
    (project) => policyOf(project, settings())?.schedule !== undefined,
    now,
  );
  manager.addController({
    name: "backup",
    reconcile: backupReconciler(shared),
    sources: [
      watchObjects(backups, ignoreStatusUpdates),
      watchLabelled(stores.jobs, labels.backup),
      watchLabelled(stores.pods, labels.backup),
    ],
    workers: 4,
    traced: tracedIn(backups),
  });
  const ofDatabase = (project: Project) => (isDatabaseType(project.spec.type) ? [keyRef(project)] : []);
  manager.addController({
    name: "backup-schedule",
    reconcile: scheduleReconciler(shared),
    sources: [
      watchMapped(projects, ofDatabase, ignoreStatusUpdates),
      customSource((enqueue) =>
        onSettingsChange(() => {
          for (const project of projects.list().filter(({ spec }) => isDatabaseType(spec.type))) {
            enqueue(refKey(keyRef(project)));
          }
        }),
      ),
    ],
    workers: 2,
  });
}

const keyRef = ({ metadata: { namespace, name } }: Project) => ({ namespace, name });
