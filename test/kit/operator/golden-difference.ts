/** The differences between two lists of Kubernetes objects, as lines of YAML that a person reads. */

import type { KubernetesObject } from "@slipway/controller-runtime";
import { stringify } from "yaml";

/** A line of either text: in both, only in the first, or only in the second. */
interface Line {
  sign: " " | "-" | "+";
  text: string;
}

/** Lines in both texts that are shown beside each that is not. */
const CONTEXT = 1;

/**
 * One paragraph for each object that is not the same in both: only its name where `after` lacks it, the whole of it where
 * `before` does, else the lines that differ, below the names of the fields that they are in.
 */
export function differenceOf(
  before: readonly KubernetesObject[],
  after: readonly KubernetesObject[],
): string {
  const [old, now] = [textsOf(before), textsOf(after)];
  const kept = [...old.keys()].filter((name) => now.has(name));
  const order = [...now.keys()].filter((name) => old.has(name));
  return [
    ...(kept.join() === order.join() ? [] : [`order: ${order.join(", ")}\n`]),
    ...[...old.keys()].filter((name) => !now.has(name)).map((name) => `removed: ${name}\n`),
    ...[...now].map(([name, text], index) => {
      const previous = old.get(name);
      return previous === undefined
        ? `added after ${[...now.keys()][index - 1] ?? "nothing"}: ${name}\n${signed("+", text)}`
        : hunksOf(linesOf(previous, text))
            .map((hunk) => `changed: ${name}${hunk}`)
            .join("");
    }),
  ].join("");
}

function textsOf(objects: readonly KubernetesObject[]): Map<string, string> {
  const texts = objects.map((object) => {
    const name = `${object.kind} ${object.metadata?.name}`;
    return [
      name,
      stringify(object, { aliasDuplicateObjects: false, sortMapEntries: true, lineWidth: 0 }),
    ] as const;
  });
  const byName = new Map(texts);
  if (byName.size < texts.length) {
    throw new Error("two objects of one kind have the same name");
  }
  return byName;
}

const signed = (sign: string, text: string) => text.replaceAll(/^(?=.)/gm, sign);

/** Runs of lines that differ, each with the fields that it is in. */
function hunksOf(lines: readonly Line[]): string[] {
  const shown = lines.map((_, at) =>
    lines.slice(Math.max(at - CONTEXT, 0), at + CONTEXT + 1).some(({ sign }) => sign !== " "),
  );
  const hunks: string[] = [];
  for (let from = shown.indexOf(true); from >= 0; from = shown.indexOf(true, from)) {
    const end = shown.indexOf(false, from);
    const to = end < 0 ? lines.length : end;
    const body = lines.slice(from, to).map(({ sign, text }) => `${sign}${text}\n`);
    hunks.push(`${fieldsAbove(lines, from)}\n${body.join("")}`);
    from = to;
  }
  return hunks;
}

/** The names of the fields that a line is in, from the outermost: of lines above it that are indented less. */
function fieldsAbove(lines: readonly Line[], at: number): string {
  const depthOf = (text = "") => text.search(/[^ -]/);
  const names: string[] = [];
  let least = depthOf(lines[at]?.text);
  for (const { text } of lines.slice(0, at).toReversed()) {
    const [, name] = /^[ -]*([\w./-]+):( |$)/.exec(text) ?? [];
    if (name !== undefined && depthOf(text) < least) {
      least = depthOf(text);
      names.unshift(` > ${name}`);
    }
  }
  return names.join("");
}

/** The lines of both texts, as many as possible of them in both: the longest common subsequence. */
function linesOf(before: string, after: string): Line[] {
  const a = before.trimEnd().split("\n");
  const b = after.trimEnd().split("\n");
  const common = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1));
  const at = (i: number, j: number) => common[i]?.[j] ?? 0;
  for (let i = a.length - 1; i >= 0; i -= 1) {
    const row = common[i] ?? new Uint16Array();
    for (let j = b.length - 1; j >= 0; j -= 1) {
      row[j] = a[i] === b[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
    }
  }
  const lines: Line[] = [];
  for (let i = 0, j = 0; i < a.length || j < b.length; ) {
    const [old, now] = [a[i], b[j]];
    if (old !== undefined && old === now) {
      lines.push({ sign: " ", text: old });
      i += 1;
      j += 1;
    } else if (old !== undefined && (now === undefined || at(i + 1, j) >= at(i, j + 1))) {
      lines.push({ sign: "-", text: old });
      i += 1;
    } else {
      lines.push({ sign: "+", text: now ?? "" });
      j += 1;
    }
  }
  return lines;
}
