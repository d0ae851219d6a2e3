import { type Deployment, nextSourceRevision, type Project, type ProjectSpec } from "@slipway/crds";
import { expect, test } from "vitest";
import { withoutSource, withRevision } from "./change-source.ts";

const from = (branch: string): ProjectSpec => ({
  type: "http",
  name: "shop",
  plan: "basic",
  paymentMode: "hourly",
  source: { connectionId: "g1", repositoryId: "r1", branch, autoDeploy: false },
  build: {},
});
const live = (spec: ProjectSpec): Pick<Project, "metadata" | "spec"> => ({ metadata: { name: "p1" }, spec });
const recorded = (branch: string, number: number): ProjectSpec => {
  const spec = from(branch);
  return { ...spec, sourceRevision: { ...nextSourceRevision(spec, live(spec)), number } };
};

test("each change of the source has a greater revision", () => {
  const changed = withRevision(from("next"), live(recorded("main", 2)));
  expect(changed.sourceRevision).toMatchObject({ number: 3 });
});

test("a source that others changed, and /v1 changes back, has a greater revision than both", () => {
  const { sourceRevision } = recorded("main", 2);
  const byOthers = live({ ...from("next"), sourceRevision });
  const back = withRevision({ ...from("main"), sourceRevision }, byOthers);
  expect(back.sourceRevision).toMatchObject({ number: 4 });
});

test("what changes nothing else does not change the revision either", () => {
  const unrecorded = live(from("main"));
  expect(withRevision(from("main"), unrecorded)).toEqual(from("main"));
});

test("without its source a project keeps what serves: the image, and its command of before the source", () => {
  const image = { url: "registry.example.com/shop:1", isPublic: true };
  const serving = (command?: string[]): Deployment => ({
    id: "d1",
    status: "succeeded",
    startedAt: "2026-01-01T00:00:00Z",
    settingsHash: "0123456789abcdef",
    updatedImage: true,
    image: { reference: image.url },
    settings: { image, command, plan: "basic" },
  });
  const without = (command?: string[]) =>
    withoutSource(from("main"), { status: { deployments: [serving(command)] } });
  expect(without(["node", "worker.js"])).toMatchObject({ image, command: ["node", "worker.js"] });
  expect(without()).not.toHaveProperty("command");
  expect(without()).toMatchObject({ image });
});
