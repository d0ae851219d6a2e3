import { h } from "./dom.ts";

/** Documents of the API that are stored or printed. Their bytes are fetched with the key in a header, so no address has it. */

/** How long a browser may take to begin the download of what is in memory. */
const DOWNLOAD_MS = 60_000;

/** Stores a document as a file of the user. */
export function download(blob: Blob, name: string): void {
  const href = URL.createObjectURL(blob);
  h("a", { href, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(href), DOWNLOAD_MS);
}

/**
 * A frame with an HTML document, in which no script runs, whatever it has: `sandbox` does not allow any, and the document has a policy of its
 * own and the page's. It has the page's origin only so that the page may print it.
 * @param signal ends it
 */
export function documentFrame(blob: Blob, title: string, signal: AbortSignal): HTMLIFrameElement {
  const src = URL.createObjectURL(blob);
  signal.addEventListener("abort", () => URL.revokeObjectURL(src), { once: true });
  return h("iframe", { title, src, sandbox: "allow-same-origin allow-modals", class: "document" });
}
