/** Variables of projects, as arguments and files write them. Pure. */

export interface Variable {
  readonly name: string;
  readonly value: string;
}

/** `NAME=value`. @throws Error that names what is wrong, without the value */
export function parseAssignment(text: string): Variable {
  const at = text.indexOf("=");
  const name = at < 0 ? text : text.slice(0, at);
  if (at < 1) {
    throw new Error(`${JSON.stringify(at < 0 ? text : name)} is no variable: write NAME=value`);
  }
  return { name, value: text.slice(at + 1) };
}

/**
 * A file of variables: a line each, comments after `#`, `export` before names, values between quotes over several lines. Between double
 * quotes `\n`, `\t`, `\"` and `\\` stand for a character. Nothing is expanded.
 * @throws Error with the line that is no variable
 */
export function parseDotenv(text: string): Variable[] {
  const source = text.replaceAll("\r\n", "\n");
  const pattern =
    /[^\S\n]*(?:#[^\n]*|(?:export[^\S\n]+)?([A-Za-z_][\w.-]*)[^\S\n]*=[^\S\n]*(?:"((?:[^"\\]|\\.)*)"|'([^']*)'|([^\n]*?))[^\S\n]*(?:#[^\n]*)?)?(?:\n|$)/sy;
  const found = new Map<string, string>();
  while (pattern.lastIndex < source.length) {
    const at = pattern.lastIndex;
    const match = pattern.exec(source);
    if (match === null) {
      throw new Error(`line ${source.slice(0, at).split("\n").length} is no variable: write NAME=value`);
    }
    const [, name, double, single, plain] = match;
    if (name !== undefined) {
      found.set(name, double === undefined ? (single ?? plain ?? "") : withoutEscapes(double));
    }
  }
  return [...found].map(([name, value]) => ({ name, value }));
}

const ESCAPES: Readonly<Record<string, string>> = { n: "\n", r: "\r", t: "\t" };
const withoutEscapes = (text: string): string =>
  text.replace(/\\(.)/gs, (_, character: string) => ESCAPES[character] ?? character);

/** The variables with others set; their order stays. */
export const withVariables = (all: readonly Variable[], set: readonly Variable[]): Variable[] =>
  [...new Map([...all, ...set].map(({ name, value }) => [name, value]))].map(([name, value]) => ({
    name,
    value,
  }));
