/** What is wrong with variables that have references. Pure. */

import { type DeclaredReference, parseValue, referenceText } from "@slipway/crds";
import type { Finding } from "../projects/status.ts";
import { MAX_RESOLVED_BYTES, MAX_VARIABLE_BYTES } from "./resolved-secret.ts";

/** What is wrong with the values themselves. */
export function problemOf(
  texts: readonly (readonly [string, string])[],
  declared: readonly DeclaredReference[],
): Finding | undefined {
  const known = new Set(declared.map(({ reference }) => reference));
  const invalid = (variable: string, message: string): Finding => ({
    reason: "ReferenceInvalid",
    message: `${variable} -> ${message}`,
  });
  for (const [variable, value] of texts) {
    for (const part of parseValue(value)) {
      if ("broken" in part) {
        return invalid(variable, `a reference reads \${project:NAME.MEMBER}, and $\${project: is the text`);
      }
      if ("reference" in part && !known.has(referenceText(part.reference))) {
        return invalid(variable, `${referenceText(part.reference)} is not among the references of the spec`);
      }
    }
  }
  return undefined;
}

/** What makes values too long for a process, or for a Secret. */
export function tooLong(values: Readonly<Record<string, string>>): Finding | undefined {
  const sizes = Object.entries(values).map(
    ([name, value]) => [name, Buffer.byteLength(name) + Buffer.byteLength(value) + 2] as const,
  );
  const longest = sizes.find(([, bytes]) => bytes > MAX_VARIABLE_BYTES);
  if (longest) {
    return { reason: "ReferenceInvalid", message: `${longest[0]} is longer than Linux passes to a process` };
  }
  return sizes.reduce((sum, [, bytes]) => sum + bytes, 0) > MAX_RESOLVED_BYTES
    ? { reason: "ReferenceInvalid", message: "The values are together longer than 256 KiB" }
    : undefined;
}
