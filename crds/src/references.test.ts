import fc from "fast-check";
import { describe, expect, it, test } from "vitest";
import { newPassword } from "./database.ts";
import {
  databaseMember,
  findCycle,
  findReferenced,
  hasReferenceSyntax,
  httpMember,
  parseValue,
  referencesIn,
  referenceText,
  resolveValue,
} from "./references.ts";

const mark = "{project:";
const refer = (text: string) => `$${mark}${text}}`;

describe("a value", () => {
  test.each<[string, ReturnType<typeof parseValue>]>([
    ["", []],
    ["plain", [{ text: "plain" }]],
    [`$HOME \${HOME} $$ {project:a.b}`, [{ text: `$HOME \${HOME} $$ {project:a.b}` }]],
    [refer("shop-db.password"), [{ reference: { project: "shop-db", member: "password" } }]],
    [
      `tcp://${refer("a.host")}:${refer("a.port")}/`,
      [
        { text: "tcp://" },
        { reference: { project: "a", member: "host" } },
        { text: ":" },
        { reference: { project: "a", member: "port" } },
        { text: "/" },
      ],
    ],
    [`$${refer("a.host")}`, [{ text: refer("a.host") }]],
    [`$$${refer("a.host")}`, [{ text: "$" }, { reference: { project: "a", member: "host" } }]],
    [`$$$${refer("a.host")}`, [{ text: `$${refer("a.host")}` }]],
    [refer("nothing"), [{ broken: refer("nothing") }, { text: "nothing}" }]],
    [`$${mark}a.host`, [{ broken: `$${mark}a.host` }, { text: "a.host" }]],
    [refer("A.host"), [{ broken: refer("A.host") }, { text: "A.host}" }]],
  ])("%s is read", (value, parts) => {
    expect(parseValue(value)).toEqual(parts);
  });

  const piece = fc.oneof(
    fc.string(),
    fc.constantFrom("$", "$$", mark, `$${mark}`, "}", refer("shop-db.host"), refer("p1.password")),
  );
  const value = fc.array(piece, { maxLength: 12 }).map((pieces) => pieces.join(""));

  // Shows: docs/references.md#syntax: anything else | literal
  it("without the syntax is literal", () => {
    fc.assert(
      fc.property(value, (text) => {
        if (!hasReferenceSyntax(text)) {
          expect(resolveValue(text, () => undefined)).toBe(text);
        }
      }),
    );
  });

  // Shows: docs/references.md#syntax: `$${project:` | the text
  it("stands for any text, once each run of dollars before the mark is doubled", () => {
    fc.assert(
      fc.property(value, (text) => {
        const escaped = text.replaceAll(/\$+(?=\{project:)/g, (run) => run + run);
        expect(resolveValue(escaped, () => undefined)).toBe(text);
      }),
    );
  });

  it("is resolved to its literal parts and values, in their order", () => {
    const plain = fc.string().filter((text) => !text.includes("$"));
    const reference = fc
      .tuple(fc.stringMatching(/^[a-z0-9]([a-z0-9-]{0,10}[a-z0-9])?$/), fc.stringMatching(/^[a-z_]{1,8}$/))
      .map(([project, member]) => ({ project, member }));
    fc.assert(
      fc.property(fc.array(fc.tuple(plain, reference)), (pairs) => {
        const text = pairs.map(([before, one]) => before + refer(referenceText(one))).join("");
        const resolved = resolveValue(text, (one) => `<${referenceText(one)}>`);
        expect(resolved).toBe(pairs.map(([before, one]) => `${before}<${referenceText(one)}>`).join(""));
        const texts = new Set(pairs.map(([, one]) => referenceText(one)));
        expect(referencesIn([text]).map(referenceText)).toEqual([...texts].sort());
      }),
    );
  });

  it("of a long run of dollars is read in linear time", () => {
    const began = performance.now();
    expect(parseValue(`${"$".repeat(1_000_000)}x${refer("a.host")}`)).toHaveLength(2);
    expect(performance.now() - began).toBeLessThan(5_000);
  });

  it("has no resolution where a reference has no value", () => {
    expect(resolveValue(`a ${refer("b.host")}`, () => undefined)).toBeUndefined();
  });
});

describe("the project of a reference", () => {
  const project = (id: string, name: string) => ({ metadata: { name: id }, spec: { name } });
  const all = [
    project("p1", "shop-db"),
    project("p2", "cache"),
    project("p3", "cache"),
    project("cache2", "p1"),
  ];

  test.each([
    ["p1", { found: all[0] }],
    ["shop-db", { found: all[0] }],
    ["cache", { ambiguous: ["p2", "p3"] }],
    ["cache2", { found: all[3] }],
    ["missing", { found: undefined }],
  ])("%s is the one of that id, else the only one of that name", (text, expected) => {
    expect(findReferenced(text, all)).toEqual(expected);
  });
});

describe("a cycle", () => {
  it("is found exactly when the start can be reached from itself, and is a way along references", () => {
    const edges = fc.array(fc.tuple(fc.nat(7), fc.nat(7)), { maxLength: 20 });
    fc.assert(
      fc.property(edges, (pairs) => {
        const targetsOf = (id: string) => pairs.flatMap(([a, b]) => (String(a) === id ? [String(b)] : []));
        const reachable = new Set<string>();
        const visit = (id: string): void => {
          for (const next of targetsOf(id)) {
            if (!reachable.has(next)) {
              reachable.add(next);
              visit(next);
            }
          }
        };
        visit("0");
        const cycle = findCycle("0", targetsOf);
        expect(cycle !== undefined).toBe(reachable.has("0"));
        for (const [index, id] of (cycle ?? []).slice(0, -1).entries()) {
          expect(targetsOf(id)).toContain(cycle?.[index + 1]);
        }
        if (cycle) {
          expect([cycle[0], cycle.at(-1)]).toEqual(["0", "0"]);
        }
      }),
    );
  });
});

// Shows: docs/references.md#members: `postgresql`, `mariadb`, `clickhouse`, `valkey` | `connection_string`
test("a database is reached at its address within the organization", () => {
  const password = newPassword(() => 0);
  const inside = { host: "p1.ns.svc", port: 5432, database: "app", username: "app", password };
  const value = (member: string) => databaseMember("postgresql", member, inside);
  expect(value("connection_string")).toBe(`postgresql://app:${password}@p1.ns.svc:5432/app`);
  expect(["host", "port", "database", "username", "password"].map(value)).toEqual([
    "p1.ns.svc",
    "5432",
    "app",
    "app",
    password,
  ]);
  expect(value("internal_url")).toBeUndefined();
});

// Shows: docs/references.md#members: `http` | `internal_url`
test("an HTTP project is reached at its Service", () => {
  const project = { metadata: { name: "p1", namespace: "slipway-org-acme" } };
  expect(["internal_url", "host", "port"].map((member) => httpMember(project, member))).toEqual([
    "http://p1.slipway-org-acme.svc",
    "p1.slipway-org-acme.svc",
    "80",
  ]);
});
