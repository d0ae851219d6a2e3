import { failure } from "./errors.ts";
import { type Token, tokens } from "./tokens.ts";

/** What has to be known of a statement to carry it out; all else is the engine's. */
export interface Statement {
  /** First words in capitals: `SELECT`, `INSERT INTO`, `CREATE USER`. */
  verb: string;
  /** It changes nothing, so a GET request may carry it. */
  readOnly: boolean;
  /** It gives rows, in a format. */
  gives: boolean;
  /** It changes the session that it runs in. */
  changesSession: boolean;
  /** Format that its FORMAT clause names. */
  format?: string;
  /** For an INSERT with data of its own. */
  insert?: { format: string /** Offset at which the data begin. */; dataAt: number };
}

const GIVES = ["SELECT", "WITH", "SHOW", "DESCRIBE", "DESC", "EXPLAIN", "EXISTS", "CHECK", "VALUES", "FROM"];
const READS = [...GIVES, "USE", "SET"];
const SESSION = ["SET", "USE"];

/**
 * Reads a statement as far as needed.
 * @throws Failure when there is none, or more than one
 */
export function parseStatement(text: string): Statement {
  const seen: Token[] = [];
  let depth = 0;
  let format: string | undefined;
  let previous: Token | undefined;
  let selects = false;
  for (const token of tokens(text)) {
    const word = token.kind === "word" ? token.text.toUpperCase() : undefined;
    if (token.text === "(" || token.text === "[") {
      depth++;
    } else if (token.text === ")" || token.text === "]") {
      depth--;
    } else if (depth === 0 && token.text === ";" && token.kind === "symbol") {
      refuseMore(text, token.end);
      break;
    } else if (depth === 0 && seen.length > 0) {
      const insert = insertData(seen[0], previous, token, { text, selects });
      selects ||= word === "SELECT";
      if (insert) {
        return { ...describe(seen), format, insert };
      }
      const before = previous?.kind === "word" ? previous.text.toUpperCase() : undefined;
      if (before === "FORMAT" && word !== undefined) {
        format = token.text;
      }
      if (before === "INTO" && word === "OUTFILE") {
        throw failure("INTO_OUTFILE_NOT_ALLOWED", "INTO OUTFILE is not allowed.");
      }
      if (before === "FROM" && word === "INFILE") {
        throw failure("SUPPORT_IS_DISABLED", "FROM INFILE is not allowed.");
      }
    }
    if (seen.length < 4) {
      seen.push(token);
    }
    previous = token;
  }
  if (seen.length === 0) {
    throw failure("EMPTY_QUERY", "Empty query.");
  }
  return { ...describe(seen), format };
}

function describe(seen: Token[]): Statement {
  const words = seen.map(({ text }) => text.toUpperCase()).filter((word) => word !== "(");
  const [first = "", second = ""] = words;
  return {
    verb: /^(CREATE|ALTER|DROP|INSERT|SHOW)$/.test(first) ? `${first} ${second}` : first,
    readOnly: READS.includes(first),
    gives: GIVES.includes(first),
    changesSession: SESSION.includes(first),
  };
}

/** Where the data of an INSERT begin, if they begin behind this token. */
function insertData(
  first: Token | undefined,
  previous: Token | undefined,
  token: Token,
  { text, selects }: { text: string; selects: boolean },
) {
  if (first?.text.toUpperCase() !== "INSERT" || token.kind !== "word") {
    return undefined;
  }
  const before = previous?.kind === "word" ? previous.text.toUpperCase() : "";
  if (token.text.toUpperCase() === "VALUES" && !NAMES_FOLLOW.includes(before)) {
    return { format: "Values", dataAt: token.end };
  }
  if (before !== "FORMAT") {
    return undefined;
  }
  // The engine as a library would take the data and insert nothing.
  if (selects) {
    throw failure("NOT_IMPLEMENTED", "INSERT SELECT with data of its own is not supported by this server.");
  }
  // As ClickHouse does: spaces and one line break are no data.
  const gap = /[ \t\f\r]*\n?/y;
  gap.lastIndex = token.end;
  return { format: token.text, dataAt: token.end + (gap.exec(text)?.[0].length ?? 0) };
}

/** Behind these, `values` is a name. */
const NAMES_FOLLOW = ["INTO", "TABLE", "FUNCTION", "SELECT", "FROM", "JOIN", "FORMAT", "AS", "BY"];

function refuseMore(text: string, from: number): void {
  for (const token of tokens(text, from)) {
    if (token.text === ";") {
      continue;
    }
    throw failure("SYNTAX_ERROR", "Syntax error (Multi-statements are not allowed).");
  }
}
