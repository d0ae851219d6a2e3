import { expect, test } from "vitest";
import { rowCounter } from "./sql-pieces.ts";

const dump = `--
CREATE TABLE public.notes (id integer, text text);
COPY public.charges (id, amount) FROM stdin;
1\t200
2\t\\N
\\\\.\t5
\\.

COPY public.empty (id) FROM stdin;
\\.

COPY public.notes (id, text) FROM stdin;
1\tCOPY public.empty (id) FROM stdin;
\\.
SELECT 1;
`;

test("rows of a dump are counted by table, in whatever pieces of whole lines it comes", () => {
  const lines = dump.split(/(?<=\n)/);
  for (const size of [1, 2, 3, lines.length]) {
    const counter = rowCounter();
    for (let at = 0; at < lines.length; at += size) {
      counter.add(lines.slice(at, at + size).join(""));
    }
    expect(counter.rows()).toEqual({ "public.charges": 3, "public.empty": 0, "public.notes": 1 });
  }
});
