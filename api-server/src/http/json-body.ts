import type { FastifyInstance } from "fastify";
import { failures } from "../errors/catalog.ts";

/** The character set that a content type names; JSON has only one. */
const CHARSET = /;\s*charset\s*=\s*"?([^\s;"]*)/i;
const utf8 = new TextDecoder("utf-8", { fatal: true });

/**
 * Reads JSON bodies: bytes that are no UTF-8, broken JSON, objects with `__proto__` or `constructor.prototype`, keys that
 * occur twice, unbounded nesting and more values than any operation accepts are refused. An absent body is left undefined for the schema to check.
 */
export function installJsonBody(app: FastifyInstance): void {
  const parseJson = app.getDefaultJsonParser("error", "error");
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("application/json", { parseAs: "buffer" }, (request, bytes, done) => {
    const charset = CHARSET.exec(request.headers["content-type"] ?? "")?.[1];
    if (charset !== undefined && !/^utf-?8$/i.test(charset)) {
      done(failures.mediaTypeUnsupported());
      return;
    }
    if (bytes.length === 0) {
      // Some clients send the content type with nothing behind it.
      done(null, undefined);
      return;
    }
    let text: string;
    try {
      text = utf8.decode(bytes as Buffer);
    } catch {
      done(failures.malformedBody("the body is not valid UTF-8"));
      return;
    }
    const problem = jsonShapeProblem(text);
    if (problem === undefined) {
      void parseJson(request, text, done);
    } else {
      done(failures.malformedBody(problem));
    }
  });
}

/** Leaves bodies of every type as received bytes: signatures are computed over these. For a context of its own. */
export function installRawBody(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", { parseAs: "buffer" }, (_request, bytes, done) => done(null, bytes));
}

/** Deeper than any body of the API, and not deep enough to overflow the stack. */
const DEEPEST = 32;
/** Keys of one object, characters of one key as it is written, and values of a whole body: far more than any operation accepts. */
export const MAX_KEYS = 1_000;
export const MAX_KEY_LENGTH = 256;
export const MAX_VALUES = 10_000;

const QUOTE = 0x22;
const COMMA = 0x2c;
const BACKSLASH = 0x5c;

/** An object that is open, with its keys so far; a list has none. */
interface Open {
  keys: Set<string> | undefined;
  expectsKey: boolean;
}

/**
 * What is wrong with the shape of a text that should be JSON: a key that occurs twice in one object (the parser keeps the
 * last, others the first), nesting without end, or so many keys and values that reading and judging them would keep
 * all others waiting. Undefined when nothing is, and for a text that is no JSON: the parser says so. It comes before
 * the parser. Pure, not recursive.
 */
export function jsonShapeProblem(text: string): string | undefined {
  const open: Open[] = [];
  let top: Open | undefined;
  let values = 1;
  for (let at = 0; at < text.length; at += 1) {
    switch (text.charCodeAt(at)) {
      case QUOTE: {
        const end = stringEnd(text, at);
        if (end === undefined) {
          return undefined;
        }
        if (top?.keys && top.expectsKey) {
          const problem = addKey(top.keys, text, at, end);
          if (problem !== undefined) {
            return problem;
          }
          top.expectsKey = false;
        }
        at = end;
        break;
      }
      case COMMA:
        values += 1;
        if (values > MAX_VALUES) {
          return `the body has more than ${MAX_VALUES} values`;
        }
        if (top) {
          top.expectsKey = true;
        }
        break;
      case 0x7b: // {
      case 0x5b: // [
        values += 1;
        if (values > MAX_VALUES) {
          return `the body has more than ${MAX_VALUES} values`;
        }
        top = { keys: text.charCodeAt(at) === 0x7b ? new Set() : undefined, expectsKey: true };
        open.push(top);
        if (open.length > DEEPEST) {
          return `the body is nested deeper than ${DEEPEST} levels`;
        }
        break;
      case 0x7d: // }
      case 0x5d: // ]
        open.pop();
        top = open.at(-1);
        break;
    }
  }
  return undefined;
}

/** Where the string that begins at `from` ends: the index of its closing quote. Undefined when it has none. */
function stringEnd(text: string, from: number): number | undefined {
  let end = from;
  for (;;) {
    end = text.indexOf('"', end + 1);
    if (end === -1) {
      return undefined;
    }
    let backslashes = 0;
    while (text.charCodeAt(end - 1 - backslashes) === BACKSLASH) {
      backslashes += 1;
    }
    if (backslashes % 2 === 0) {
      return end;
    }
  }
}

/** Reads the key between two quotes; returns what is wrong with it. */
function addKey(keys: Set<string>, text: string, from: number, to: number): string | undefined {
  if (to - from - 1 > MAX_KEY_LENGTH) {
    return `a key is longer than ${MAX_KEY_LENGTH} characters`;
  }
  const key = keyOf(text.slice(from, to + 1));
  if (key === undefined) {
    return undefined;
  }
  if (keys.has(key)) {
    return `the key ${JSON.stringify(key.slice(0, 64))} stands twice in an object`;
  }
  keys.add(key);
  return keys.size > MAX_KEYS ? `an object has more than ${MAX_KEYS} keys` : undefined;
}

/** What a quoted key means; undefined when it is no JSON. */
function keyOf(quoted: string): string | undefined {
  if (!quoted.includes("\\")) {
    return quoted.slice(1, -1);
  }
  try {
    return JSON.parse(quoted) as string;
  } catch {
    return undefined;
  }
}
