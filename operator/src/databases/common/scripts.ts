/**
 * Shell programs that run in an engine's containers. They are `.sh` files with placeholders such as `__SOCKET__`, so that
 * shellcheck reads them; what is not for the container is removed when they are read.
 */

import { readFileSync } from "node:fs";

type Values = Readonly<Record<string, string | number>>;

const COMMENT = /^(?:#|--)/;
const LINTER_COMMENT = /^ *# shellcheck .*\n/gm;
/** `. ./file.sh`, or psql's `\ir ./file.sql`: the containers have no such file, so its text replaces the line. */
const SOURCE = /^(?:\.|\\ir) (\.{1,2}\/\S+)\n/gm;
const PLACEHOLDER = /__([A-Z]+(?:_[A-Z]+)*)__/g;

/** The text of a script or of SQL, without the comment at its top and with the files that it includes. */
export function readScript(file: URL): string {
  const text = readFileSync(file, "utf8");
  const body = COMMENT.test(text) ? text.slice(text.indexOf("\n\n") + 2) : text;
  return body
    .replace(LINTER_COMMENT, "")
    .replace(SOURCE, (_line, path: string) => readScript(new URL(path, file)));
}

/** @throws when the text has a placeholder that `values` lacks */
export function renderScript(text: string, values: Values): string {
  return text.replace(PLACEHOLDER, (_placeholder, name: string) => {
    const value = values[name];
    if (value === undefined) {
      throw new TypeError(`no value for the placeholder ${name}`);
    }
    return String(value);
  });
}
