import { timingSafeEqual } from "node:crypto";
import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { type AccessChange, parseAccess } from "./access-statement.ts";
import { type Identified, sha256, type User } from "./config.ts";
import { failure } from "./errors.ts";

/** The users of the configuration, who cannot be changed, and those made by SQL, who are kept in a file. */
export class Access {
  readonly #configured: Map<string, User>;
  readonly #made: Map<string, User>;
  readonly #file: string;
  #saving: Promise<void> = Promise.resolve();

  private constructor(configured: User[], made: User[], file: string) {
    this.#configured = byName(configured);
    this.#made = byName(made);
    this.#file = file;
  }

  /** @param file where users made by SQL are kept; need not be there */
  static async open(configured: User[], file: string): Promise<Access> {
    const text = await readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT") {
        return "[]";
      }
      throw error;
    });
    return new Access(configured, JSON.parse(text) as User[], file);
  }

  /** @throws Failure that does not reveal whether there is such a user */
  authenticate(name: string, password: string): User {
    const user = this.#configured.get(name) ?? this.#made.get(name);
    const methods = [user ?? { sha256: "".padEnd(64) }, ...(user?.others ?? [])];
    const accepted = methods.filter((method) => accepts(method, password));
    if (user && accepted.length > 0) {
      return user;
    }
    throw failure(
      "AUTHENTICATION_FAILED",
      `${name}: Authentication failed: password is incorrect, or there is no user with such name.`,
    );
  }

  /**
   * Carries out a statement about users, and has kept it when it resolves.
   * @returns false when the statement is about something else
   */
  async carryOut(text: string, by: User): Promise<boolean> {
    const change = parseAccess(text);
    if (!change) {
      return false;
    }
    if (!by.manages) {
      throw failure(
        "ACCESS_DENIED",
        `${by.name}: Not enough privileges. To execute this query, manage users.`,
      );
    }
    for (const name of change.names) {
      this.#change(name, change);
    }
    await this.#save();
    return true;
  }

  #change(name: string, change: AccessChange): void {
    if (this.#configured.has(name)) {
      throw failure(
        "ACCESS_DENIED",
        `Cannot change user \`${name}\`: it is in the configuration, which is readonly.`,
      );
    }
    const there = this.#made.get(name);
    if (change.kind === "create") {
      if (there && change.ifNotExists) {
        return;
      }
      if (there && !change.orReplace) {
        throw failure("ACCESS_ENTITY_ALREADY_EXISTS", `User \`${name}\` already exists.`);
      }
      // Nobody who was granted nothing writes.
      this.#made.set(name, {
        name,
        sha256: sha256(""),
        readOnly: true,
        manages: false,
        ...change.identified,
      });
      return;
    }
    if (!there) {
      if (change.kind !== "grant" && change.ifExists) {
        return;
      }
      throw failure("UNKNOWN_USER", `There is no user \`${name}\` in the storages.`);
    }
    if (change.kind === "drop") {
      this.#made.delete(name);
    } else if (change.kind === "alter") {
      this.#made.set(name, { ...there, salt: undefined, others: undefined, ...change.identified });
    } else {
      const readOnly = there.readOnly && change.readOnly;
      this.#made.set(name, { ...there, readOnly, manages: there.manages || change.manages });
    }
  }

  /** One write after the other, each whole or not at all. */
  #save(): Promise<void> {
    const write = async (): Promise<void> => {
      await mkdir(dirname(this.#file), { recursive: true, mode: 0o700 });
      const making = `${this.#file}.new`;
      await writeFile(making, JSON.stringify([...this.#made.values()]), { mode: 0o600, flush: true });
      await rename(making, this.#file);
    };
    this.#saving = this.#saving.then(write, write);
    return this.#saving;
  }
}

function accepts({ sha256: hash, salt = "" }: Identified, password: string): boolean {
  const given = Buffer.from(sha256(password + salt));
  const wanted = Buffer.from(hash);
  return given.length === wanted.length && timingSafeEqual(given, wanted);
}

function byName(users: User[]): Map<string, User> {
  return new Map(users.map((user) => [user.name, user]));
}
