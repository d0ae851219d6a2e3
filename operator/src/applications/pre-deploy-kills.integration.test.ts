import { type KubernetesObject, resources } from "@slipway/controller-runtime";
import type { Deployment, Project } from "@slipway/crds";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  eventually,
  exists,
  startCluster,
  type TestCluster,
  whileServed,
} from "../../../test/kit/operator/harness.ts";
import { OperatorLives } from "../../../test/kit/operator/operator-lives.ts";
import { makePod, serving } from "../../../test/kit/operator/pods.ts";
import { JobPlayer } from "../../../test/kit/operator/pre-deploy.ts";
import { exampleProject } from "../../../test/kit/operator/projects.ts";
import { projectResource } from "../resources.ts";

/** One operator after the other crashes right after each write that none before it has made, on a real apiserver. */

const namespace = "slipway-org-alpha";
const name = "pkilled";
const ref = { namespace, name };
const image = (tag: string) => ({ url: `registry.example/team/app:${tag}`, isPublic: true });

let cluster: TestCluster;
let player: JobPlayer;
let stopPlaying: () => Promise<void>;
let lives: OperatorLives;

beforeAll(async () => {
  cluster = await startCluster();
  player = new JobPlayer(cluster.client, namespace);
  stopPlaying = player.play();
  lives = await OperatorLives.start(cluster, { listOrganizations: async () => ["alpha"] });
  await eventually(() => exists(cluster.client, resources.namespaces, { name: namespace }));
});
afterAll(async () => {
  await lives?.stop();
  await stopPlaying?.();
  await cluster?.stop();
});

const get = () => cluster.client.get<Project>(projectResource, ref);
const newest = async (): Promise<Deployment | undefined> => (await get()).status?.deployments?.[0];
const patch = (spec: object) => cluster.client.patch(projectResource, ref, { spec });

interface Live extends KubernetesObject {
  spec: { template: { metadata: { annotations: Record<string, string> } } };
}
const templateHash = async () =>
  (await cluster.client.getOrUndefined<Live>(resources.deployments, ref))?.spec.template.metadata.annotations[
    "slipway.dev/settings-hash"
  ];

/** Waits until the newest deployment's template is live, serves, and has succeeded. */
async function serve(tag: string): Promise<void> {
  await eventually(async () => {
    const deployment = await newest();
    return (
      deployment?.settings.image?.url === image(tag).url && (await templateHash()) === deployment.settingsHash
    );
  });
  await makePod(cluster.client, ref, serving(image(tag).url, `sha256:${tag.repeat(64)}`));
  await whileServed(cluster.client, ref, async () => (await newest())?.status === "succeeded");
}

/** The command of the newest deployment runs, and nothing of that changes while operators are killed. */
async function outliveKills(tag: string, begun: number): Promise<void> {
  await eventually(async () => {
    const deployment = await newest();
    return deployment?.settings.image?.url === image(tag).url && deployment.preDeploy?.status === "running";
  });
  const before = await templateHash();
  for (let kills = 0; kills < 3; kills += 1) {
    await lives.kill();
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    expect(await templateHash()).toBe(before);
    expect(player.begun).toHaveLength(begun);
    expect(await player.jobs(name)).toHaveLength(1);
  }
}

// Shows: docs/applications.md#pre-deploy-command: it runs once for each deployment, also when the operator
test("each deployment's command runs once and comes first, though every write is some operator's last", async () => {
  const ends = new Map<string, number>();
  player.end = (reference) => {
    const exitCode = ends.get(reference.replace(/.*:/, ""));
    return exitCode === undefined ? undefined : { exitCode, message: "out of ideas" };
  };
  const spec = { image: image("1"), preDeployCommand: ["migrate"] };
  await cluster.client.create<Project>(projectResource, exampleProject(ref, spec));
  await outliveKills("1", 1);
  ends.set("1", 0);
  await serve("1");

  await patch({ image: image("2") });
  await outliveKills("2", 2);
  ends.set("2", 3);
  await eventually(async () => (await newest())?.status === "failed");
  await lives.kill();
  expect((await newest())?.preDeploy).toMatchObject({
    status: "failed",
    exitCode: 3,
    lastLines: "out of ideas",
  });

  await patch({ image: image("3") });
  await eventually(async () => player.begun.length === 3);
  await patch({ image: image("4") });
  ends.set("4", 0);
  await serve("4");

  expect(player.begun).toHaveLength(4);
  expect(new Set(player.begun).size).toBe(4);
  expect(player.mostConcurrent).toBe(1);
  const { status } = await get();
  expect(status?.deployments?.map((each) => [each.status, each.preDeploy?.status])).toEqual([
    ["succeeded", "succeeded"],
    ["superseded", expect.stringMatching(/pending|running/)],
    ["failed", "failed"],
    ["succeeded", "succeeded"],
  ]);
  expect(await player.jobs(name)).toHaveLength(1);
  expect(lives.count).toBeGreaterThan(20);
}, 300_000);
