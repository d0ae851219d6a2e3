/** A release that tests have in place of a real one. */
import type { BundledImage, ReleaseManifest } from "../../../hack/releases/bundle/manifest.ts";

const image = (name: string, tag = "1"): BundledImage => ({
  name,
  tag,
  reference: `slipway.local/${name}:${tag}`,
  digest: `sha256:${"a".repeat(64)}`,
});

export const exampleRelease: ReleaseManifest = {
  format: 1,
  version: "0.2.0",
  commit: "b".repeat(40),
  images: {
    operator: image("slipway/operator"),
    apiServer: image("slipway/api-server"),
    ledger: image("slipway/postgres"),
    valkey: image("slipway/valkey"),
    analytics: image("slipway/clickhouse"),
    sampleHttp: image("slipway/sample-http", "v1"),
    sampleHttpV2: image("slipway/sample-http", "v2"),
    sampleJob: image("slipway/sample-job"),
  },
  databases: [
    {
      engine: "valkey",
      version: "9.1.1",
      isDefault: true,
      uid: 999,
      gid: 999,
      image: image("slipway/valkey"),
    },
    {
      engine: "postgresql",
      version: "17",
      isDefault: true,
      uid: 999,
      gid: 999,
      image: image("slipway/postgresql"),
    },
  ],
  builder: image("slipway/builder"),
  bases: [
    { tag: "24", image: image("base/node", "24-abc") },
    { tag: "1.25", image: image("base/go", "1.25-abc") },
  ],
};
