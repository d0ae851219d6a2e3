import { type KubeClient, KubeError, resources } from "@slipway/controller-runtime";
import type { Project, ProjectSpec } from "@slipway/crds";
import { failures } from "../errors/catalog.ts";
import { type ApiProject, applicationTypes, requireType } from "./api-project.ts";
import { awsRegistryOf, isImageOf, registryOf } from "./creation/secrets.ts";
import type { StoredSecret } from "./read-envs.ts";

/**
 * The spec with another image, no longer pinned. The same image is deployed again: its tag may resolve to another digest by now.
 * @param now RFC 3339
 * @throws Failure 400 for a project that does not run an image
 */
export function withImage(spec: ProjectSpec, url: string, now: string): ProjectSpec {
  if (!spec.image) {
    throw builtFromGit(spec);
  }
  const { digest: _, ...image } = spec.image;
  const again = url === image.url ? { restartedAt: now } : {};
  return { ...spec, image: { ...image, url }, ...again };
}

/** @throws Failure 400 for a project that has no image to change */
export function requireImage(project: ApiProject): void {
  requireType(project, applicationTypes);
  if (!project.resource.spec.image) {
    throw builtFromGit(project.resource.spec);
  }
}

const builtFromGit = ({ type }: ProjectSpec) =>
  failures.projectTypeMismatch(
    `${type} built from Git`,
    applicationTypes.map((one) => `${one} from an image`),
  );

/**
 * Credentials of a private image belong to a registry: the new image must come from one that they are for.
 * @throws Failure 400 that names the image, 503
 */
export async function requireCredentialsFor(kube: KubeClient, wanted: Project, live: Project): Promise<void> {
  const image = wanted.spec.image;
  const before = live.spec.image;
  if (!image || !before || registryOf(image.url) === registryOf(before.url)) {
    return;
  }
  const ref = image.pullSecretRef ?? image.awsCredentialsRef;
  if (ref === undefined) {
    return;
  }
  const secret = await readSecret(kube, live, ref.name);
  const text = (key: string) => Buffer.from(secret?.data?.[key] ?? "", "base64").toString("utf8");
  const fits = image.pullSecretRef
    ? registriesOf(text(".dockerconfigjson")).includes(registryOf(image.url))
    : isImageOf(image.url, awsRegistryOf({ region: text("region"), accountId: text("accountId") }));
  if (!fits) {
    const message = `the project's credentials are for the registry of ${before.url}, and not for this one`;
    throw failures.validation([{ field: "image", message }]);
  }
}

async function readSecret(
  kube: KubeClient,
  { metadata }: Project,
  name: string,
): Promise<StoredSecret | undefined> {
  try {
    return await kube.getOrUndefined<StoredSecret>(resources.secrets, {
      namespace: metadata.namespace,
      name,
    });
  } catch (error) {
    throw error instanceof KubeError ? failures.clusterUnavailable(error) : error;
  }
}

/** The registries that a Docker configuration has credentials for. */
function registriesOf(dockerConfigJson: string): string[] {
  try {
    const { auths } = JSON.parse(dockerConfigJson) as { auths?: Record<string, unknown> };
    return Object.keys(auths ?? {});
  } catch {
    return [];
  }
}
