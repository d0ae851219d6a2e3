/** Deeper than any body of the API; below it nobody has to fear for the stack. */
const DEEPEST = 32;

const QUOTE = 0x22;
const COMMA = 0x2c;
const BACKSLASH = 0x5c;

/** An object that is open, with its keys so far; a list has none. */
interface Open {
  keys: Set<string> | undefined;
  expectsKey: boolean;
}

/**
 * What is wrong with the shape of a JSON text that the parser has taken: a key that stands twice in one object (the
 * parser keeps the last, others the first), or nesting without end. Undefined when nothing is. Pure, not recursive.
 */
export function jsonShapeProblem(text: string): string | undefined {
  const open: Open[] = [];
  let top: Open | undefined;
  for (let at = 0; at < text.length; at += 1) {
    switch (text.charCodeAt(at)) {
      case QUOTE: {
        const end = stringEnd(text, at);
        if (top?.keys && top.expectsKey) {
          const key = keyOf(text.slice(at, end + 1));
          if (top.keys.has(key))
            return `the key ${JSON.stringify(key.slice(0, 64))} stands twice in an object`;
          top.keys.add(key);
          top.expectsKey = false;
        }
        at = end;
        break;
      }
      case COMMA:
        if (top) top.expectsKey = true;
        break;
      case 0x7b: // {
      case 0x5b: // [
        top = { keys: text.charCodeAt(at) === 0x7b ? new Set() : undefined, expectsKey: true };
        open.push(top);
        if (open.length > DEEPEST) return `the body is nested deeper than ${DEEPEST} levels`;
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

/** Where the string that begins at `from` ends: the index of its closing quote. */
function stringEnd(text: string, from: number): number {
  let end = from;
  for (;;) {
    end = text.indexOf('"', end + 1);
    let backslashes = 0;
    while (text.charCodeAt(end - 1 - backslashes) === BACKSLASH) backslashes += 1;
    if (backslashes % 2 === 0) return end;
  }
}

const keyOf = (quoted: string): string =>
  quoted.includes("\\") ? (JSON.parse(quoted) as string) : quoted.slice(1, -1);
