/**
 * How a release was made, as SLSA provenance in an in-toto statement: https://slsa.dev/spec/v1.0/provenance. Without times: the same sources
 * give the same statement. Pure.
 */
import { BUNDLE, imagesOf, type ReleaseManifest } from "./manifest.ts";

/** @param files SHA-256 of the bundle's files by path */
export function provenanceOf(release: ReleaseManifest, files: ReadonlyMap<string, string>): object {
  const artifacts = [...files].filter(([path]) => !path.startsWith(`${BUNDLE.images}/`));
  return {
    _type: "https://in-toto.io/Statement/v1",
    subject: [
      ...artifacts.map(([name, sha256]) => ({ name, digest: { sha256 } })),
      ...imagesOf(release).map(({ name, digest }) => ({
        name,
        digest: { sha256: digest.replace("sha256:", "") },
      })),
    ],
    predicateType: "https://slsa.dev/provenance/v1",
    predicate: {
      buildDefinition: {
        buildType: "https://slipway.dev/release/v1",
        externalParameters: { version: release.version, revision: release.commit },
        resolvedDependencies: [{ uri: "git+slipway", digest: { gitCommit: release.commit } }],
      },
      runDetails: { builder: { id: "https://slipway.dev/hack/release.sh" } },
    },
  };
}
