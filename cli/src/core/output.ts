import { type Cell, formatTable } from "./table.ts";

export const FORMATS = ["table", "json", "yaml"] as const;
export type Format = (typeof FORMATS)[number];

/** Columns of a table: their titles, and what they show of a row. */
export type Columns<Row> = Readonly<Record<string, (row: Row) => Cell>>;

/** Where results go. Standard output has results alone; what is said beside them goes to standard error. */
export interface Output {
  readonly format: Format;
  readonly hasColour: boolean;
  /** A list: a table, or all of its fields as JSON or YAML. */
  readonly list: <Row>(rows: readonly Row[], columns: Columns<Row>) => Promise<void>;
  /** One object: a table of its fields, or JSON or YAML. */
  readonly object: (value: object) => Promise<void>;
  /** A line of a result, whatever the format: of a log, of a program's own output. */
  readonly line: (text: string) => void;
  /** What happens, for people. */
  readonly note: (text: string) => void;
}

/** How an output is written. */
export interface Streams {
  readonly out: (text: string) => void;
  readonly err: (text: string) => void;
}

export function createOutput(format: Format, hasColour: boolean, { out, err }: Streams): Output {
  const structured = async (value: unknown): Promise<void> => {
    out(format === "json" ? `${JSON.stringify(value, null, 2)}\n` : (await import("yaml")).stringify(value));
  };
  return {
    format,
    hasColour,
    list: async <Row>(rows: readonly Row[], columns: Columns<Row>) => {
      if (format !== "table") {
        return structured(rows);
      }
      const shown = rows.map((row) => Object.values(columns).map((cell) => cell(row)));
      out(formatTable(Object.keys(columns), shown, { hasColour }));
    },
    object: async (value) => {
      if (format !== "table") {
        return structured(value);
      }
      const rows = Object.entries(value).map(([name, field]) => [name, cellOf(field)]);
      out(formatTable([], rows, { hasColour }));
    },
    line: (text) => out(`${text}\n`),
    note: (text) => err(`${text}\n`),
  };
}

const cellOf = (value: unknown): Cell =>
  value === null || value === undefined
    ? ""
    : typeof value === "object"
      ? JSON.stringify(value)
      : String(value);

/** Whether colours are written: to a terminal, unless NO_COLOR is set (https://no-color.org). Pure. */
export const hasColour = (isTerminal: boolean, environment: Readonly<Record<string, string | undefined>>) =>
  isTerminal && (environment.NO_COLOR ?? "") === "" && environment.TERM !== "dumb";
