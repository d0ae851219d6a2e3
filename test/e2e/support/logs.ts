import { request } from "undici";
import { expect } from "vitest";
import type { apiClient } from "./api.ts";
import { stack } from "./stack.ts";

/** Lines that the sample application is asked to write, and the search of them. */

type Call = ReturnType<typeof apiClient>;

export interface FoundLine {
  readonly timestamp: string;
  readonly instance: string;
  readonly container: string;
  readonly stream: string;
  readonly level: string | null;
  readonly message: string;
}

export interface Page {
  readonly data: readonly FoundLine[];
  readonly next_cursor: string | null;
  readonly omitted: { readonly lines: number; readonly bytes: number; readonly files: number };
}

/** Has an instance with `SAMPLE_FAULTS=1` write so many lines: the text and the line's number, from 1. */
export async function writeLines(domain: string, text: string, lines: number): Promise<void> {
  const url = `${stack.ingressUrl}/lines/${lines}?text=${encodeURIComponent(text)}`;
  const answer = await request(url, { method: "POST", headers: { host: domain } });
  await answer.body.dump();
  expect(answer.statusCode).toBe(200);
}

/** One page of a search. */
export async function searchLogs(
  call: Call,
  id: string,
  query: Readonly<Record<string, string>>,
): Promise<Page> {
  const { status, body } = await call<FoundLine[]>(
    "GET",
    `/v1/project/${id}/logs/search?${new URLSearchParams(query)}`,
  );
  expect(status, JSON.stringify(body).slice(0, 500)).toBe(200);
  return body as unknown as Page;
}

/** Lines of all pages. */
export async function allLines(
  call: Call,
  id: string,
  query: Readonly<Record<string, string>>,
): Promise<FoundLine[]> {
  const found: FoundLine[] = [];
  const { from: _, to: __, ...others } = query;
  for (let page = await searchLogs(call, id, { limit: "200", ...query }); ; ) {
    found.push(...page.data);
    if (page.next_cursor === null) {
      return found;
    }
    page = await searchLogs(call, id, { limit: "200", ...others, cursor: page.next_cursor });
  }
}
