import { parse } from "yaml";
import { z } from "zod";
import { compareDecimal, equalDecimal, parseDecimal, timesDecimal } from "./billing.ts";
import { type Catalog, catalogFields, type PlanLimit } from "./catalog.ts";
import { parseCreateProject } from "./v1/create-project.ts";

/** What is wrong with a catalog whose every field is well-formed. */
interface Problem {
  path: (string | number)[];
  message: string;
}

/** The rules that span the catalog's sections. */
export function catalogProblems(all: Catalog): Problem[] {
  return [
    ...idProblems(all),
    ...engineProblems(all),
    ...priceProblems(all),
    ...limitProblems(all),
    ...templateProblems(all),
  ];
}

function idProblems({ httpPlans, jobPlans, databasePlans }: Catalog): Problem[] {
  const ids = [...httpPlans, ...jobPlans, ...databasePlans].map(({ plan }) => plan);
  const expect = (
    key: string,
    plans: readonly { plan: string }[],
    pattern: RegExp,
    message: string,
  ): Problem[] =>
    plans.flatMap(({ plan }, i) => (pattern.test(plan) ? [] : [{ path: [key, i, "plan"], message }]));
  return [
    ...(new Set(ids).size === ids.length ? [] : [{ path: [], message: "no plan id may stand twice" }]),
    ...expect(
      "httpPlans",
      httpPlans,
      /^(?!(job|db|analytics|cache|queue)-)/,
      "must not begin with the prefix of another type",
    ),
    ...expect("jobPlans", jobPlans, /^job-/, "must begin with job-"),
    ...expect(
      "databasePlans",
      databasePlans,
      /^(db|analytics|cache|queue)-/,
      "must begin with db-, analytics-, cache- or queue-",
    ),
  ];
}

function engineProblems({ databasePlans, engines: known }: Catalog): Problem[] {
  return databasePlans.flatMap(({ plan, engines }, i) => {
    const problems: Problem[] = [];
    if (plan.startsWith("analytics-") !== (engines.clickhouse !== undefined)) {
      problems.push({
        path: ["databasePlans", i, "engines"],
        message: "clickhouse is for analytics- plans, and they are for it",
      });
    }
    for (const [name, offer] of Object.entries(engines)) {
      const versions = known.find(({ id }) => id === name)?.versions ?? [];
      if (!offer.versions.every((version) => versions.includes(version))) {
        problems.push({
          path: ["databasePlans", i, "engines", name, "versions"],
          message: "must be versions of the engine",
        });
      }
    }
    return problems;
  });
}

const isZero = (price: string): boolean => compareDecimal(parseDecimal(price), parseDecimal("0")) === 0;

function priceProblems({ storagePlans, httpPlans, databasePlans }: Catalog): Problem[] {
  const storage = storagePlans.flatMap(({ prices }, i) => {
    const monthly = parseDecimal(prices.monthly);
    const problems: Problem[] = [];
    if (!equalDecimal(timesDecimal(parseDecimal(prices.hourly), 720n), monthly)) {
      problems.push({ path: ["storagePlans", i, "prices", "hourly"], message: "must be monthly / 720" });
    }
    if (!equalDecimal(timesDecimal(monthly, 12n), parseDecimal(prices.yearly))) {
      problems.push({ path: ["storagePlans", i, "prices", "yearly"], message: "must be 12 x monthly" });
    }
    return problems;
  });
  const plans = Object.entries({ httpPlans, databasePlans }).flatMap(([key, list]) =>
    list.flatMap(({ free, prices }, i) =>
      free === Object.values(prices).every(isZero)
        ? []
        : [{ path: [key, i, "prices"], message: "must all be 0 on free plans, and only there" }],
    ),
  );
  return [...storage, ...plans];
}

function limitProblems({ httpPlans, jobPlans, databasePlans }: Catalog): Problem[] {
  const scopes = new Map<string, PlanLimit>();
  return [...httpPlans, ...jobPlans, ...databasePlans].flatMap(({ limit }) => {
    if (limit === undefined) {
      return [];
    }
    const earlier = scopes.get(limit.scope) ?? limit;
    scopes.set(limit.scope, limit);
    return earlier.max === limit.max && earlier.counts === limit.counts
      ? []
      : [{ path: [], message: `plans that share the limit ${limit.scope} must agree on it` }];
  });
}

/** A template must be a body that is accepted once it has a name, on a plan of the catalog. */
function templateProblems({ templates, httpPlans, jobPlans, databasePlans }: Catalog): Problem[] {
  const plans = new Set([...httpPlans, ...jobPlans, ...databasePlans].map(({ plan }) => plan));
  const keys = templates.map(({ id, revision }) => `${id} ${revision}`);
  return templates.flatMap(({ body }, i): Problem[] => {
    const path = ["templates", i, "body"];
    const parsed = parseCreateProject({ ...body, name: "template" });
    const broken = parsed.ok ? [] : parsed.issues.map(({ field, message }) => `${field}: ${message}`);
    const unknown = parsed.ok && !plans.has(parsed.value.spec.plan);
    return [
      ...broken.map((message) => ({ path, message })),
      ...(unknown ? [{ path: [...path, "plan"], message: "must be a plan of the catalog" }] : []),
      ...(keys.indexOf(keys[i] ?? "") === i ? [] : [{ path, message: "no id and revision may stand twice" }]),
    ];
  });
}

/** The whole file. */
export const catalog = catalogFields.superRefine((all, context) => {
  for (const { path, message } of catalogProblems(all)) {
    context.addIssue({ code: "custom", path, message });
  }
});

/** The catalog that a YAML text is. @throws Error that lists every broken rule */
export function parseCatalog(text: string): Catalog {
  const result = catalog.safeParse(parse(text));
  if (!result.success) {
    throw new Error(`no valid plan catalog:\n${z.prettifyError(result.error)}`);
  }
  return result.data;
}
