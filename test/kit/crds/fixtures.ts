import { readdirSync, readFileSync } from "node:fs";
import { parse } from "yaml";
import { type Kind, kinds } from "../../../crds/src/kinds.ts";

/** A resource as a fixture has it. */
export interface FixtureResource {
  apiVersion: string;
  kind: string;
  metadata: { name: string; [key: string]: unknown };
  spec: Record<string, unknown>;
  status?: Record<string, unknown>;
}

export type Layer = "zod" | "ajv" | "apiserver";

/** A change to a valid resource and what each layer must say of it. */
export interface FixtureCase {
  /** File and sentence. */
  name: string;
  kind: Kind;
  base: FixtureResource;
  changed: FixtureResource;
  /** Field that every refusing layer must name. */
  path?: string;
  /** What zod and the apiserver must say; on updates, absent when the change must be accepted. */
  message?: string;
  /** True when the structural schema alone cannot decide. */
  cel: boolean;
  /** The layers that refuse; all of them unless given. */
  only: readonly Layer[];
  /** Whether the change is one to the status, which has an endpoint of its own. */
  status: boolean;
}

interface CaseFile {
  base: string;
  cases: {
    name: string;
    set?: Record<string, unknown>;
    unset?: string[];
    /** Text and how often it is repeated. */
    repeat?: Record<string, [string, number]>;
    path?: string;
    message?: string;
    cel?: boolean;
    only?: Layer[];
  }[];
}

const testdata = new URL("../../../crds/testdata/", import.meta.url);
const examples = new URL("../../../docs/resources/examples/", import.meta.url);
const read = (url: URL): unknown => parse(readFileSync(url, "utf8"));
const yamlFiles = (directory: URL): string[] =>
  readdirSync(directory).filter((file) => file.endsWith(".yaml"));

/** The kind of a resource. @throws Error when it is none of ours */
export function kindOf(resource: FixtureResource): Kind {
  const kind = kinds.find((one) => one.kind === resource.kind);
  if (kind === undefined) {
    throw new Error(`no kind ${resource.kind}`);
  }
  return kind;
}

/** Every valid fixture and every documented example, with its path. */
export function validFixtures(): [name: string, resource: FixtureResource][] {
  const own = kinds.flatMap(({ singular }) =>
    yamlFiles(new URL(`valid/${singular}/`, testdata)).map((file) => `${singular}/${file}`),
  );
  return [
    ...own.map((file): [string, FixtureResource] => [
      file,
      read(new URL(`valid/${file}`, testdata)) as FixtureResource,
    ]),
    ...yamlFiles(examples).map((file): [string, FixtureResource] => [
      `docs/resources/examples/${file}`,
      read(new URL(file, examples)) as FixtureResource,
    ]),
  ];
}

/** Every case of `testdata/invalid` or `testdata/update`. */
export function fixtureCases(group: "invalid" | "update"): FixtureCase[] {
  return kinds.flatMap((kind) => {
    const directory = new URL(`${group}/${kind.singular}/`, testdata);
    return yamlFiles(directory).flatMap((file) => {
      const { base, cases } = read(new URL(file, directory)) as CaseFile;
      return cases.map((one): FixtureCase => {
        const resource = read(new URL(`valid/${base}`, testdata)) as FixtureResource;
        return {
          name: `${kind.singular}/${file}: ${one.name}`,
          kind,
          base: resource,
          changed: change(resource, one),
          path: one.path,
          message: one.message,
          cel: one.cel ?? false,
          only: one.only ?? ["zod", "ajv", "apiserver"],
          status: [...Object.keys({ ...one.set, ...one.repeat }), ...(one.unset ?? [])].some((path) =>
            path.startsWith("status."),
          ),
        };
      });
    });
  });
}

function change(resource: FixtureResource, { set = {}, unset = [], repeat = {} }: CaseFile["cases"][number]) {
  const copy = structuredClone(resource);
  for (const [path, value] of Object.entries(set)) {
    assign(copy, path, value);
  }
  for (const [path, [text, times]] of Object.entries(repeat)) {
    assign(copy, path, text.repeat(times));
  }
  for (const path of unset) {
    assign(copy, path, undefined);
  }
  return copy;
}

function assign(target: object, path: string, value: unknown): void {
  const keys = path.split(".");
  const last = keys.pop() ?? "";
  const parent = keys.reduce((at, key) => (at as Record<string, object>)[key] ?? {}, target);
  if (value === undefined) {
    delete (parent as Record<string, unknown>)[last];
  } else {
    (parent as Record<string, unknown>)[last] = value;
  }
}

/** `a.b[0].c`, as the apiserver writes paths. */
export function dotted(path: readonly PropertyKey[]): string {
  return path.reduce<string>((text, part) => {
    if (typeof part === "number" || /^[0-9]+$/.test(String(part))) {
      return `${text}[${String(part)}]`;
    }
    return text === "" ? String(part) : `${text}.${String(part)}`;
  }, "");
}
