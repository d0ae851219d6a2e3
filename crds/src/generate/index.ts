import { kinds } from "../kinds.ts";
import { crdFileName, crdYaml } from "./crd.ts";

export { type Crd, crdOf } from "./crd.ts";
export { NotStructural, type StructuralSchema, toStructural } from "./structural.ts";

/** The files of `crds/generated/`, by path from the repository's root. */
export function generateCrds(): Map<string, string> {
  return new Map(kinds.map((kind) => [`crds/generated/${crdFileName(kind)}`, crdYaml(kind)]));
}
