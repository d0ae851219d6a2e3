import type { KubeError } from "@slipway/controller-runtime";
import { failures } from "../errors/catalog.ts";
import type { Failure } from "../errors/failure.ts";
import { projectResource } from "../resources.ts";

/** What a spec is refused for by the apiserver, as errors of the fields that the client sent. */

/** The prefix that an apiserver puts before the message of a rule. */
const SHOWN_VALUE = /^(?:Invalid|Unsupported|Duplicate) value: (?:"(?:[^"\\]|\\.)*"|\S+): /;

/**
 * What the apiserver refused of a project by a rule that only it has, such as an admission policy's. Undefined when it
 * refused another object, such as a Secret: that is nothing that the client wrote. Pure.
 * @param fieldOf what the operation's body calls a path of the spec
 */
export function refusedByRule(
  { body }: KubeError,
  fieldOf: (path: readonly PropertyKey[]) => string,
): Failure | undefined {
  const { group, causes = [] } = body?.details ?? {};
  if (group !== projectResource.group || causes.length === 0) {
    return undefined;
  }
  const errors = causes.map(({ field = "", message = "is not valid" }) => ({
    field: fieldOf(pathOf(field)),
    message: message.replace(SHOWN_VALUE, ""),
  }));
  return failures.validation(errors, new Error(body?.message));
}

/** `spec.customDomains[0]` as a path below the spec. */
const pathOf = (field: string): PropertyKey[] =>
  field
    .replace(/^spec(?=\.|\[|$)/, "")
    .split(/[.[\]]+/)
    .filter((part) => part !== "")
    .map((part) => (/^\d+$/.test(part) ? Number(part) : part));
