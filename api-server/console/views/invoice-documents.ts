import { action, outcome } from "../lib/actions.ts";
import { documentFrame, download } from "../lib/documents.ts";
import { h } from "../lib/dom.ts";
import { DOCUMENT_LINES, documentParts, fileName } from "../lib/invoice.ts";
import { choice } from "../lib/parts.ts";
import type { Context } from "../lib/view.ts";

interface Documented {
  /** Of the API. */
  path: string;
  id: string;
  /** How many it has. */
  lines: number;
}

/** An invoice as a file for spreadsheets, and as a page to print. */
export function invoiceDocuments({ api, signal }: Context, { path, id, lines }: Documented): HTMLElement {
  const parts = documentParts(lines);
  const to = outcome();
  const frame = h("div", {});
  let page = "1";
  const read = (format: string, type: string) =>
    api.file(path, { format, page, limit: DOCUMENT_LINES }, type, signal);
  const store = async () => {
    download(await read("csv", "text/csv"), fileName(id, page, parts.length));
    return "Downloaded.";
  };
  /** Ends the frame that there is. */
  let shown = new AbortController();
  const show = async () => {
    const document = await read("html", "text/html");
    shown.abort();
    shown = new AbortController();
    const made = documentFrame(document, `Invoice ${id}`, AbortSignal.any([signal, shown.signal]));
    // Before the document is there, an empty page would be printed.
    const print = h("button", { type: "button", class: "primary", disabled: true }, "Print");
    made.addEventListener(
      "load",
      () => {
        print.disabled = false;
      },
      { once: true },
    );
    print.addEventListener("click", () => made.contentWindow?.print());
    frame.replaceChildren(h("div", { class: "actions" }, print), made);
    return "";
  };
  const select = choice("Lines", parts, page, (chosen) => {
    page = chosen;
  });
  return h(
    "section",
    { class: "card stack" },
    h("h2", {}, "Documents"),
    h(
      "div",
      { class: "actions" },
      parts.length > 1 ? select : undefined,
      action("Download as CSV", { run: store, outcome: to, signal }),
      action("Show to print", { run: show, outcome: to, signal }),
    ),
    to.element,
    frame,
  );
}
