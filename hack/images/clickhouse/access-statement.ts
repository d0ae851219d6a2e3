import { type Identified, sha256 } from "./config.ts";
import { failure } from "./errors.ts";
import { type Token, tokens, unquoted } from "./tokens.ts";

/** The ways in which a user proves who it is, any of which is accepted. */
type Methods = Identified & { others?: readonly Identified[] };

/** A statement about users, as far as it is understood here. */
export type AccessChange = { names: string[] } & (
  | { kind: "create"; ifNotExists: boolean; orReplace: boolean; identified?: Methods }
  | { kind: "alter"; ifExists: boolean; identified?: Methods }
  | { kind: "drop"; ifExists: boolean }
  | { kind: "grant"; readOnly: boolean; manages: boolean }
);

/** Reads `CREATE USER`, `ALTER USER`, `DROP USER` and `GRANT`; undefined for any other statement. */
export function parseAccess(text: string): AccessChange | undefined {
  const words = new Words([...tokens(text)].filter(({ text }) => text !== ";"));
  if (words.take("GRANT")) {
    return grant(words);
  }
  if (words.take("CREATE", "USER")) {
    const [orReplace, ifNotExists] = [words.take("OR", "REPLACE"), words.take("IF", "NOT", "EXISTS")];
    return { kind: "create", orReplace, ifNotExists, names: words.names(), identified: identified(words) };
  }
  if (words.take("ALTER", "USER")) {
    const ifExists = words.take("IF", "EXISTS");
    return { kind: "alter", ifExists, names: words.names(), identified: identified(words) };
  }
  if (words.take("DROP", "USER")) {
    return { kind: "drop", ifExists: words.take("IF", "EXISTS"), names: words.names() };
  }
  for (const about of ["ROLE", "QUOTA", "ROW", "SETTINGS", "PROFILE"]) {
    if (["CREATE", "ALTER", "DROP"].some((verb) => words.sees(verb, about))) {
      throw unknown(`${about}s`);
    }
  }
  if (words.sees("REVOKE")) {
    throw unknown("REVOKE");
  }
  return undefined;
}

/** Distinguishes reading from all else; does not distinguish databases and tables. */
const READS = ["SELECT", "SHOW", "dictGet", "SYSTEM FLUSH LOGS"].map((name) => name.toUpperCase());

function grant(words: Words): AccessChange {
  const privileges: string[] = [];
  while (!words.done() && !words.sees("ON") && !words.sees("TO")) {
    privileges.push(words.next().toUpperCase());
  }
  const target: string[] = [];
  if (words.take("ON")) {
    while (!words.done() && !words.sees("TO")) {
      target.push(words.next());
    }
  }
  if (!words.take("TO")) {
    throw failure("SYNTAX_ERROR", "Syntax error: expected TO in GRANT.");
  }
  const names = words.names();
  const readOnly = READS.includes(privileges[0] ?? "") && !privileges.includes(",");
  const manages =
    privileges[0] === "ALL" && target.join("") === "*.*" && words.take("WITH", "GRANT", "OPTION");
  return { kind: "grant", names, readOnly, manages };
}

function identified(words: Words): Methods | undefined {
  if (words.take("ON", "CLUSTER")) {
    words.next();
  }
  if (words.take("NOT", "IDENTIFIED")) {
    return { sha256: sha256("") };
  }
  if (!words.take("IDENTIFIED")) {
    return undefined;
  }
  const first = method(words, words.take("WITH") ? words.next().toLowerCase() : "sha256_password");
  const others: Identified[] = [];
  while (words.takeComma()) {
    others.push(method(words, words.next().toLowerCase()));
  }
  return others.length === 0 ? first : { ...first, others };
}

function method(words: Words, name: string): Identified {
  if (name === "no_password") {
    return { sha256: sha256("") };
  }
  if (!words.take("BY")) {
    throw failure("SYNTAX_ERROR", "Syntax error: expected BY.");
  }
  const value = words.next();
  if (name === "sha256_hash") {
    return { sha256: value.toLowerCase(), ...(words.take("SALT") ? { salt: words.next() } : {}) };
  }
  if (!["plaintext_password", "sha256_password"].includes(name)) {
    throw unknown(name);
  }
  return { sha256: sha256(value) };
}

function unknown(what: string): Error {
  return failure("NOT_IMPLEMENTED", `${what} are not supported by this server.`);
}

/** A statement's tokens, read from the front. */
class Words {
  readonly #tokens: Token[];
  #at = 0;

  constructor(list: Token[]) {
    this.#tokens = list;
  }

  done(): boolean {
    return this.#at >= this.#tokens.length;
  }

  sees(...wanted: string[]): boolean {
    return wanted.every((word, index) => {
      const token = this.#tokens[this.#at + index];
      return token?.kind === "word" && token.text.toUpperCase() === word;
    });
  }

  /** Goes behind these words when they come next. */
  take(...wanted: string[]): boolean {
    const there = this.sees(...wanted);
    if (there) {
      this.#at += wanted.length;
    }
    return there;
  }

  takeComma(): boolean {
    const there = this.#tokens[this.#at]?.text === ",";
    this.#at += there ? 1 : 0;
    return there;
  }

  next(): string {
    const token = this.#tokens[this.#at++];
    if (!token) {
      throw failure("SYNTAX_ERROR", "Syntax error: the statement ends too early.");
    }
    return unquoted(token);
  }

  /** Names with commas between them. */
  names(): string[] {
    const found = [this.next()];
    while (this.takeComma()) {
      found.push(this.next());
    }
    return found;
  }
}
