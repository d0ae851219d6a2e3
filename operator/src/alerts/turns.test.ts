import { expect, test } from "vitest";
import type { WatchedProject } from "./rules.ts";
import { Turns } from "./turns.ts";

const projectsOf = (count: number): WatchedProject[] =>
  Array.from({ length: count }, (_, index) => ({
    ...{ organization: "acme", id: `p${index}`, uid: `u${index}`, rules: [] },
    resource: {} as WatchedProject["resource"],
  }));

/**
 * Evaluates for some time, and counts by project in how many evaluations it was measured.
 * @param groups of how many the store answers queries in one evaluation, if none fails
 * @param fails whether a query fails, which ends an evaluation
 */
function evaluate(
  turns: Turns,
  projects: readonly WatchedProject[],
  evaluations: number,
  groups: number,
  fails: (group: readonly WatchedProject[], evaluation: number) => boolean = () => false,
): Map<string, number> {
  const measured = new Map(projects.map(({ id }) => [id, 0]));
  for (let evaluation = 0; evaluation < evaluations; evaluation += 1) {
    let waiting = turns.begin(projects);
    for (let count = 0; count < groups && waiting.length > 0; count += 1) {
      const group = turns.next(waiting);
      waiting = waiting.slice(group.length);
      if (fails(group, evaluation)) {
        turns.failed(group);
        break;
      }
      turns.measured(group);
      for (const { id } of group) {
        measured.set(id, (measured.get(id) ?? 0) + 1);
      }
    }
  }
  return measured;
}

// Shows: docs/alerts.md#bounds: Projects that come last have a turn
test("where not all fit, those of a query that failed once are measured as often as others", () => {
  const projects = projectsOf(16);
  const turns = new Turns(4);
  const failing = evaluate(turns, projects, 1, 2, () => true);
  expect(Math.max(...failing.values())).toBe(0);
  const first = evaluate(turns, projects, 20, 2);
  expect(Math.min(...first.values())).toBeGreaterThan(0);
  const later = evaluate(turns, projects, 40, 2);
  expect(Math.min(...later.values())).toBeGreaterThanOrEqual(15);
});

// Shows: docs/alerts.md#bounds: Projects that come last have a turn
test("however many fail whenever they are queried, others are measured in most evaluations", () => {
  const projects = projectsOf(60);
  const bad = new Set(projects.slice(0, 20).map(({ id }) => id));
  const turns = new Turns(8);
  const isBad = (group: readonly WatchedProject[]) => group.some(({ id }) => bad.has(id));
  evaluate(turns, projects, 200, 100, isBad);
  const measured = evaluate(turns, projects, 100, 100, isBad);
  for (const [id, count] of measured) {
    expect([id, count >= 75]).toEqual([id, !bad.has(id)]);
  }
});

test("a group is of more projects only once those have been measured for a while", () => {
  const projects = projectsOf(8);
  const turns = new Turns(8);
  const sizes: number[] = [];
  evaluate(turns, projects, 24, 100, (group, evaluation) => {
    sizes[evaluation] ??= group.length;
    return group.length === 8;
  });
  expect(sizes).toEqual([8, ...Array(10).fill(4), 8, ...Array(10).fill(4), 8, 4]);
});

// Shows: docs/alerts.md#bounds: One query is of up to 200 projects
test("those of a query that failed are in none with others", () => {
  const projects = projectsOf(5);
  const turns = new Turns(4);
  const first = turns.next(turns.begin(projects));
  turns.failed(first);
  const waiting = turns.begin(projects);
  const others = turns.next(waiting);
  expect(others.map(({ id }) => id)).toEqual(["p4"]);
  expect(turns.next(waiting.slice(1)).map(({ id }) => id)).toEqual(["p0", "p1"]);
});
