import { type BuiltImage, buildImage, type ImageRecipe } from "./build.ts";
import { clickhouse } from "./clickhouse.ts";
import { apiServer, operator } from "./node.ts";
import { postgres } from "./postgres.ts";
import { sampleHttp, sampleJob } from "./samples.ts";
import { valkey } from "./valkey.ts";

export { type BuiltImage, buildImage, type ImageRecipe } from "./build.ts";
export {
  archiveImage,
  importImage,
  type PushedImage,
  pushImage,
  pushWithToken,
  type Registry,
} from "./deliver.ts";
export { aptPackages, imageCache } from "./store.ts";

export interface StackImage {
  /** Key by which `hack/up.ts` refers to it. */
  name:
    | "operator"
    | "apiServer"
    | "ledger"
    | "valkey"
    | "analytics"
    | "sampleHttp"
    | "sampleHttpV2"
    | "sampleJob";
  /** Builds it, or finds it in the cache. */
  build: () => Promise<BuiltImage>;
  /** The platform's own go straight into the node's container runtime; samples are pulled as a tenant's would be. */
  deliver: "import" | "push";
}

/** Every image that a stack needs. */
export const images: StackImage[] = [
  { name: "operator", build: built(operator), deliver: "import" },
  { name: "apiServer", build: built(apiServer), deliver: "import" },
  { name: "ledger", build: built(postgres), deliver: "import" },
  { name: "valkey", build: built(valkey), deliver: "import" },
  { name: "analytics", build: built(clickhouse), deliver: "import" },
  { name: "sampleHttp", build: built(() => sampleHttp("v1")), deliver: "push" },
  { name: "sampleHttpV2", build: built(() => sampleHttp("v2")), deliver: "push" },
  { name: "sampleJob", build: built(sampleJob), deliver: "push" },
];

function built(recipe: () => ImageRecipe | Promise<ImageRecipe>): () => Promise<BuiltImage> {
  return async () => buildImage(await recipe());
}
