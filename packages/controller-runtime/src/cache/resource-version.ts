/**
 * Compares two resourceVersions of the same resource: negative, zero or positive. Kubernetes 1.35 documents them as
 * comparable decimal numbers of any length; earlier apiservers over etcd already made them so.
 */
export function compareResourceVersions(a: string, b: string): number {
  if (a.length !== b.length) {
    return a.length - b.length;
  }
  return a < b ? -1 : a > b ? 1 : 0;
}

/** The greater of two; undefined counts as lowest. */
export function maxResourceVersion(a: string | undefined, b: string | undefined): string | undefined {
  if (a === undefined) {
    return b;
  }
  if (b === undefined) {
    return a;
  }
  return compareResourceVersions(a, b) >= 0 ? a : b;
}
