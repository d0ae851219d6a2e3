/** One token of SQL: as much of ClickHouse's lexer as telling statements apart needs. */
export interface Token {
  kind: "word" | "number" | "string" | "identifier" | "symbol";
  /** As written. */
  text: string;
  /** Offset of its first character. */
  start: number;
  /** Offset behind its last one. */
  end: number;
}

const SPACE = /[\s\0]+/y;
const LINE_COMMENT = /(--|#[! ]|\/\/)[^\n]*/y;
const BLOCK_COMMENT = /\/\*/y;
const WORD = /[A-Za-z_][A-Za-z0-9_]*/y;
const NUMBER = /[0-9][A-Za-z0-9_.]*/y;
const HEREDOC = /\$([A-Za-z0-9_]*)\$/y;

/**
 * The tokens of a text, without spaces and comments. A text that ends within a quotation or a comment ends with what is
 * there: the engine will say what is wrong.
 */
export function* tokens(text: string, from = 0): Generator<Token> {
  let at = from;
  const match = (pattern: RegExp): string | undefined => {
    pattern.lastIndex = at;
    return pattern.exec(text)?.[0];
  };
  while (at < text.length) {
    const skipped = match(SPACE) ?? match(LINE_COMMENT);
    if (skipped !== undefined) {
      at += skipped.length;
      continue;
    }
    if (match(BLOCK_COMMENT) !== undefined) {
      at = blockCommentEnd(text, at);
      continue;
    }
    const { kind, end } = tokenAt(text, at, match);
    yield { kind, text: text.slice(at, end), start: at, end };
    at = end;
  }
}

function tokenAt(text: string, at: number, match: (pattern: RegExp) => string | undefined) {
  const quote = text[at];
  if (quote === "'") {
    return { kind: "string" as const, end: quotationEnd(text, at) };
  }
  if (quote === "`" || quote === '"') {
    return { kind: "identifier" as const, end: quotationEnd(text, at) };
  }
  const heredoc = match(HEREDOC);
  if (heredoc !== undefined) {
    const close = text.indexOf(heredoc, at + heredoc.length);
    return { kind: "string" as const, end: close < 0 ? text.length : close + heredoc.length };
  }
  const word = match(WORD);
  if (word !== undefined) {
    return { kind: "word" as const, end: at + word.length };
  }
  const number = match(NUMBER);
  if (number !== undefined) {
    return { kind: "number" as const, end: at + number.length };
  }
  return { kind: "symbol" as const, end: at + 1 };
}

/** A quote is part of a quotation when it is doubled, or has a backslash before it. */
function quotationEnd(text: string, start: number): number {
  const quote = text[start];
  for (let at = start + 1; at < text.length; at++) {
    if (text[at] === "\\") {
      at++;
    } else if (text[at] === quote) {
      if (text[at + 1] !== quote) {
        return at + 1;
      }
      at++;
    }
  }
  return text.length;
}

/** Comments of this kind may hold each other. */
function blockCommentEnd(text: string, start: number): number {
  let depth = 0;
  for (let at = start; at < text.length; at++) {
    if (text.startsWith("/*", at)) {
      depth++;
      at++;
    } else if (text.startsWith("*/", at)) {
      depth--;
      at++;
      if (depth === 0) {
        return at + 1;
      }
    }
  }
  return text.length;
}

/** What a quoted token stands for; any other token stands for itself. */
export function unquoted({ kind, text }: Token): string {
  if ((kind !== "string" && kind !== "identifier") || text.length < 2) {
    return text;
  }
  const heredoc = /^\$\w*\$/.exec(text)?.[0];
  if (heredoc) {
    return text.slice(heredoc.length, -heredoc.length);
  }
  const quote = text.charAt(0);
  const plain: Record<string, string> = { n: "\n", t: "\t", r: "\r", b: "\b", f: "\f", "0": "\0" };
  return text
    .slice(1, -1)
    .replace(/\\x([0-9A-Fa-f]{2})|\\([\s\S])|(['"`])\3/g, (whole, hex, escaped, doubled) => {
      if (hex !== undefined) {
        return String.fromCharCode(Number.parseInt(hex, 16));
      }
      if (escaped !== undefined) {
        return plain[escaped] ?? escaped;
      }
      return doubled === quote ? quote : whole;
    });
}
