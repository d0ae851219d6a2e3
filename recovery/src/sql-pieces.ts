/** What `pg_dump` writes, in pieces, and what is in them. Pure. */

import { StringDecoder } from "node:string_decoder";

/** Characters of SQL a record. */
const PIECE = 256 * 1024;

/** Text in pieces that end with a line feed, but for the last one. */
export async function* wholeLines(chunks: AsyncIterable<Buffer>): AsyncGenerator<string> {
  const decoder = new StringDecoder("utf8");
  let text = "";
  for await (const chunk of chunks) {
    text += decoder.write(chunk);
    if (text.length >= PIECE) {
      const end = text.lastIndexOf("\n") + 1;
      if (end > 0) {
        yield text.slice(0, end);
        text = text.slice(end);
      }
    }
  }
  text += decoder.end();
  if (text !== "") {
    yield text;
  }
}

const COPY = /^COPY (\w+\.\w+) \(.*\) FROM stdin;$/;

/** Counts the rows of each table in a dump whose pieces are whole lines: those between its `COPY` and `\.`. */
export function rowCounter(): { add(sql: string): void; rows(): Record<string, number> } {
  const counts: Record<string, number> = {};
  let table: string | undefined;
  return {
    add(sql) {
      for (let at = 0; at < sql.length; ) {
        const found = sql.indexOf("\n", at);
        const end = found < 0 ? sql.length : found;
        if (table === undefined) {
          const [, name] = sql.startsWith("COPY ", at) ? (COPY.exec(sql.slice(at, end)) ?? []) : [];
          if (name !== undefined) {
            table = name;
            counts[name] ??= 0;
          }
        } else if (end - at === 2 && sql.startsWith("\\.", at)) {
          table = undefined;
        } else {
          counts[table] = (counts[table] ?? 0) + 1;
        }
        at = end + 1;
      }
    },
    rows: () => counts,
  };
}
