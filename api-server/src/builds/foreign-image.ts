import { isForeignBuild } from "@slipway/crds";
import { failures } from "../errors/catalog.ts";
import type { BuildPlatform } from "./platform.ts";

/**
 * Refuses an image that was built for another organization; the operator would refuse to run it.
 * @param field how the operation's body calls the image
 * @throws Failure 400 that names the field
 */
export function refuseForeignImage(
  image: string | undefined,
  field: string,
  organizationId: string,
  { builds }: { builds: Pick<BuildPlatform, "registryHost"> },
): void {
  if (image === undefined || !isForeignBuild(image, organizationId, builds.registryHost())) {
    return;
  }
  const message = "is in the platform's registry of builds and not this organization's";
  throw failures.validation([{ field, message }]);
}
