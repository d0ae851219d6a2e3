/** The parts of a Kubernetes API path. */
export interface Route {
  apiVersion: string;
  /** `group/version/plural`: what is stored together. */
  collection: string;
  plural: string;
  namespace: string | undefined;
  name: string | undefined;
  subresource: string | undefined;
}

/** Takes a path of the API apart; undefined when it is none. */
export function parseRoute(path: string): Route | undefined {
  const parts = path
    .split("/")
    .filter((part) => part !== "")
    .map(decodeURIComponent);
  const apiVersion = parts[0] === "api" ? parts[1] : `${parts[1]}/${parts[2]}`;
  const rest = parts.slice(parts[0] === "api" ? 2 : 3);
  if (!apiVersion || rest.length === 0) {
    return undefined;
  }
  // `/namespaces/x` itself is an object of the core group; `/namespaces/x/pods` is a collection within.
  const within = rest[0] === "namespaces" && rest.length > 2 && rest[2] !== "status";
  const [plural, name, subresource] = within ? rest.slice(2) : rest;
  if (!plural) {
    return undefined;
  }
  const namespace = within ? rest[1] : undefined;
  return { apiVersion, collection: `${apiVersion}/${plural}`, plural, namespace, name, subresource };
}

/** A label selector of equalities (`a=b,c`), as a predicate. */
export function labelMatcher(
  selector: string | null,
): (labels: Record<string, string> | undefined) => boolean {
  const terms = (selector ?? "").split(",").filter((term) => term !== "");
  return (labels) =>
    terms.every((term) => {
      const [key = "", value] = term.split("=");
      return value === undefined ? labels?.[key] !== undefined : labels?.[key] === value;
    });
}
