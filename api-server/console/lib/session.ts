/** Where the key is kept while the tab is open: nowhere that another tab, or the next visitor, reads it. */
const NAME = "slipway-api-key";

/** The key of this tab; undefined before a user has signed in. */
export function readKey(): string | undefined {
  try {
    return sessionStorage.getItem(NAME) ?? undefined;
  } catch {
    return undefined;
  }
}

/** Keeps the key, or forgets it. Where nothing may be stored it lasts until the page is left. */
export function keepKey(key: string | undefined): void {
  try {
    if (key === undefined) {
      sessionStorage.removeItem(NAME);
    } else {
      sessionStorage.setItem(NAME, key);
    }
  } catch {
    // Storage is off: nothing is kept, and nothing has to be forgotten.
  }
}
