/** Names of archives, and which of them have expired. Pure. */

/** What a place keeps. */
export interface Retention {
  /** Archives that are older have expired. */
  days: number;
  /** The newest ones that stay although they have expired. */
  keepAtLeast: number;
}

const DAY_MS = 86_400_000;
/** The id sets it apart from the names that a person gives: nobody else's file is read as the newest, or deleted. */
const NAME = /^platform-(\d{4})(\d{2})(\d{2})T(\d{2})(\d{2})(\d{2})Z-[0-9a-f]{8}\.age$/;

/**
 * @param createdAt RFC 3339 in UTC
 * @param id of the backup, a UUID
 * @returns `platform-20261129T040000Z-1b9d6bcd.age`: names in order are archives in order
 */
export function archiveName(createdAt: string, id: string): string {
  const time = createdAt.replace(/\.\d+Z$/, "Z").replaceAll(/[-:]/g, "");
  return `platform-${time}-${id.slice(0, 8)}.age`;
}

/** When an archive was begun, by its name; undefined when the name is not one of {@link archiveName}. */
export function createdAtOf(name: string): Date | undefined {
  const [, year, month, day, hour, minute, second] = NAME.exec(name) ?? [];
  const time = Date.parse(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`);
  return Number.isNaN(time) ? undefined : new Date(time);
}

/** The newest of all names that are archives'. */
export const newestName = (names: readonly string[]): string | undefined =>
  archivesOf(names)
    .map(({ name }) => name)
    .at(-1);

/** Names of archives that are to be deleted, oldest first. Other names are never among them. */
export function expiredNames(
  names: readonly string[],
  { days, keepAtLeast }: Retention,
  now: Date,
): string[] {
  const archives = archivesOf(names);
  return archives
    .slice(0, Math.max(0, archives.length - keepAtLeast))
    .filter(({ at }) => now.getTime() - at.getTime() > days * DAY_MS)
    .map(({ name }) => name);
}

function archivesOf(names: readonly string[]): { name: string; at: Date }[] {
  return names
    .flatMap((name) => {
      const at = createdAtOf(name);
      return at ? [{ name, at }] : [];
    })
    .toSorted((a, b) => (a.name < b.name ? -1 : 1));
}
