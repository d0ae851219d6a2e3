import { stringify } from "yaml";
import { z } from "zod";
import type { Kind } from "../kinds.ts";
import { GROUP, SERVED_VERSIONS, VERSION } from "../names.ts";
import { renderMessage } from "../rule.ts";
import { type StructuralSchema, toStructural } from "./structural.ts";

/** A CustomResourceDefinition, as far as we write it. */
export interface Crd {
  apiVersion: "apiextensions.k8s.io/v1";
  kind: "CustomResourceDefinition";
  metadata: { name: string };
  spec: Record<string, unknown> & {
    versions: (Record<string, unknown> & { schema: { openAPIV3Schema: StructuralSchema } })[];
  };
}

function structural(schema: z.ZodType, path: string): StructuralSchema {
  return toStructural(z.toJSONSchema(schema, { target: "openapi-3.0", io: "input" }), path);
}

/**
 * The CustomResourceDefinition of a kind.
 * @throws NotStructural naming the path when its schema says something that Kubernetes forbids
 */
export function crdOf(kind: Kind): Crd {
  const root: StructuralSchema = {
    description: kind.description,
    type: "object",
    required: ["spec"],
    properties: {
      apiVersion: { description: "Version of this representation.", type: "string" },
      kind: { description: "Kind of this resource.", type: "string" },
      metadata: { type: "object" },
      spec: structural(kind.spec, "spec"),
      ...(kind.status === undefined ? {} : { status: structural(kind.status, "status") }),
    },
  };
  if (kind.rules.length > 0) {
    root["x-kubernetes-validations"] = kind.rules.map(({ cel, message }) => ({
      rule: cel,
      message: renderMessage(message),
    }));
  }
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `${kind.plural}.${GROUP}` },
    spec: {
      group: GROUP,
      scope: kind.scope,
      names: {
        kind: kind.kind,
        listKind: `${kind.kind}List`,
        plural: kind.plural,
        singular: kind.singular,
        shortNames: [...kind.shortNames],
        categories: ["slipway"],
      },
      versions: SERVED_VERSIONS.map((name) => ({
        name,
        served: true,
        storage: name === VERSION,
        ...(kind.status === undefined ? {} : { subresources: { status: {} } }),
        additionalPrinterColumns: kind.columns.map((column) => ({ ...column })),
        schema: { openAPIV3Schema: root },
      })),
    },
  };
}

/** File name under `crds/generated/`. */
export function crdFileName(kind: Kind): string {
  return `${GROUP}_${kind.plural}.yaml`;
}

/** The committed text of a definition. */
export function crdYaml(kind: Kind): string {
  const body = stringify(crdOf(kind), { lineWidth: 0, aliasDuplicateObjects: false });
  return `# Generated from crds/src by \`npm run generate\`. Do not edit.\n${body}`;
}
