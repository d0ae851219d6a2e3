/** Rules of custom resources that bind what was valid before. Pure. */

/** The parts of an object's schema that rules are about. */
interface Ruled {
  readonly properties?: Readonly<
    Record<string, { readonly enum?: readonly unknown[]; readonly properties?: object }>
  >;
  readonly "x-kubernetes-validations"?: readonly { readonly rule: string }[];
}

interface Versions {
  readonly before: Ruled;
  readonly after: Ruled;
}

/**
 * The rules that a schema has gained, without those that say nothing about values that fitted the schema before: about a field that it
 * did not have, a value that an enumeration did not have, or the same as before for all other values.
 */
export function addedRules({ before, after }: Versions): string[] {
  const known = new Set(rulesOf(before).map(simplified));
  return rulesOf(after).filter((rule) => {
    const bound = boundBefore(rule, { before, after });
    return !isVacuous(bound) && !known.has(bound);
  });
}

const rulesOf = ({ "x-kubernetes-validations": rules = [] }: Ruled): string[] =>
  rules.map(({ rule }) => rule);

/** The rule as it is for values without what is new. It reads only the forms in which the rules of Projects are written. */
function boundBefore(rule: string, { before, after }: Versions): string {
  const own = before.properties ?? {};
  const isNew = (name: string) => before.properties !== undefined && !Object.hasOwn(own, name);
  const isNewPart = (name: string, part: string) => {
    const parts = own[name]?.properties;
    return parts !== undefined && !Object.hasOwn(parts, part);
  };
  let bound = rule.replaceAll(
    /has\((?:self|oldSelf)\.(\w+)(?:\.(\w+))?\)/g,
    (has, name: string, part?: string) =>
      isNew(name) || (part !== undefined && isNewPart(name, part)) ? "false" : has,
  );
  for (const [name, { enum: values = [] }] of Object.entries(after.properties ?? {})) {
    const known = own[name]?.enum;
    for (const value of values.filter((one) => known !== undefined && !known.includes(one))) {
      bound = withoutValue(bound, name, value);
    }
  }
  return simplified(bound);
}

/** The rule for a field that never has a value. */
function withoutValue(rule: string, name: string, value: unknown): string {
  const field = `self.${name}`;
  return rule
    .replaceAll(`${field} == '${value}'`, "false")
    .replaceAll(`${field} != '${value}'`, "true")
    .replaceAll(new RegExp(`(?<=${field} in )\\[([^\\]]*)\\]`, "g"), (_, list: string) => {
      const items = list.split(", ").filter((item) => item !== `'${value}'`);
      return `[${items.join(", ")}]`;
    });
}

/** One form for what can be written in several. */
const simplified = (rule: string): string =>
  rule
    .replaceAll(/(self\.\w+) in \[('[^',]*')\]/g, "$1 == $2")
    .replaceAll(/!\((self\.\w+) == ('[^']*')\)/g, "$1 != $2")
    .replaceAll("!false", "true");

const isVacuous = (rule: string): boolean => !rule.includes("?") && alternatives(rule).includes("true");

/** What of a rule is enough for it to hold: the operands of `||` outside parentheses and lists. */
function alternatives(rule: string): string[] {
  const found = [""];
  let depth = 0;
  for (const token of rule.split(/( \|\| |[()[\]])/)) {
    if (token === "(" || token === "[") {
      depth += 1;
    } else if (token === ")" || token === "]") {
      depth -= 1;
    }
    if (token === " || " && depth === 0) {
      found.push("");
    } else {
      found[found.length - 1] += token;
    }
  }
  return found;
}
