import { byLabel, controllerReference, type KubeClient, Store } from "@slipway/controller-runtime";
import { type Deployment, labels, type ProjectStatus } from "@slipway/crds";
import { expect, test } from "vitest";
import { exampleProject } from "../../../test/kit/operator/projects.ts";
import { FakeClock } from "../../../test/kit/processes/fake-clock.ts";
import type { Job } from "../jobs/runs/cluster.ts";
import type { ProjectContext } from "../projects/kind.ts";
import type { Pod } from "../projects/stores.ts";
import { projectResource } from "../resources.ts";
import { preDeployJobName } from "./desired/pre-deploy-job.ts";
import { PreDeploySteps } from "./pre-deploy-steps.ts";

const ref = { namespace: "slipway-org-alpha", name: "p1" };
const project = exampleProject(ref, { preDeployCommand: ["migrate"] });
project.metadata.uid = "u1";

/** What is recorded of a deployment in this state, and reported, once its Job has this condition. */
async function observe(state: Deployment["status"], condition: "Complete" | "Failed") {
  const indexers = { [labels.preDeploy]: byLabel(labels.preDeploy) };
  const [preDeployJobs, preDeployPods] = [new Store<Job>({ indexers }), new Store<Pod>({ indexers })];
  preDeployJobs.upsert({
    metadata: {
      ...ref,
      name: preDeployJobName("p1", "d0123456789ab"),
      uid: "j1",
      resourceVersion: "1",
      labels: { [labels.preDeploy]: "p1" },
      ownerReferences: [controllerReference(project, projectResource)],
    },
    status: { conditions: [{ type: condition, status: "True" }] },
  });
  const client = { listAll: async () => [] } as Partial<KubeClient> as KubeClient;
  const steps = new PreDeploySteps({
    client,
    clock: new FakeClock(),
    stores: { preDeployJobs, preDeployPods },
  });
  const newest: Deployment = {
    id: "d0123456789ab",
    status: state,
    startedAt: "2026-01-01T00:00:00Z",
    settingsHash: "a",
    updatedImage: false,
    image: { reference: "app" },
    settings: { plan: "basic" },
    preDeploy: { status: "running", commandHash: "c" },
  };
  const status: ProjectStatus = { observedGeneration: 1, deployments: [newest] };
  const events: string[] = [];
  const context: Partial<ProjectContext> = {
    status,
    event: (_, reason) => events.push(reason),
    signal: new AbortController().signal,
  };
  const failure = await steps.observe(project, context as ProjectContext);
  return { failure, events, recorded: status.deployments?.[0]?.preDeploy?.status };
}

test("a command that fails fails its deployment, with an Event", async () => {
  const failure = "The pre-deploy command was stopped before it had ended.";
  expect(await observe("in_progress", "Failed")).toEqual({
    failure,
    events: ["PreDeployFailed"],
    recorded: "failed",
  });
});

test("of one that a pause has stopped an end is recorded only if it has succeeded", async () => {
  expect(await observe("superseded", "Failed")).toEqual({
    failure: undefined,
    events: [],
    recorded: "running",
  });
  expect(await observe("superseded", "Complete")).toEqual({
    failure: undefined,
    events: [],
    recorded: "succeeded",
  });
});
