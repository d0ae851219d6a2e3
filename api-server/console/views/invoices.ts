import { h } from "../lib/dom.ts";
import { brl, count } from "../lib/format.ts";
import { badge, type Column, fullMoment, pages, table, text } from "../lib/parts.ts";
import { link } from "../lib/route.ts";
import type { InvoiceItem, InvoiceList } from "../lib/shapes.ts";
import { type Context, empty, refreshed } from "../lib/view.ts";

const POLL_INTERVAL_MS = 60_000;

/** The organization's invoices, the newest first. Their page is of this part alone: what is beside it stays as it is. */
export function invoices({ api, signal }: Context): HTMLElement {
  const place = h("div", {});
  let page = 1;
  const show = (to: number) => () => {
    page = to;
    void reload();
  };
  const reload = refreshed(
    place,
    {
      intervalMs: POLL_INTERVAL_MS,
      load: async () => {
        const loaded = page;
        const { data } = await api.getExact<InvoiceList>("/v1/organization/invoices", { page }, signal);
        return { ...data, page: loaded };
      },
      show: ({ invoices: found, pagination, page: shown }) =>
        pagination.total === "0"
          ? empty("No invoices")
          : [
              table("Invoices", columns, found),
              h(
                "div",
                { class: "foot" },
                h("span", { class: "quiet" }, `${count(Number(pagination.total))} in all`),
                pages(shown, Number(pagination.pages), show, "Pages of invoices"),
              ),
            ],
    },
    { signal },
  );
  return h("section", { class: "card flush" }, h("h2", {}, "Invoices"), place);
}

const columns: Column<InvoiceItem>[] = [
  {
    name: "Number",
    cell: ({ id }) =>
      h(
        "a",
        { href: link(["costs", "invoices", id]), class: "strong", "data-key": `invoice ${id}` },
        text(id),
      ),
  },
  { name: "Cycle", cell: ({ cycle_started_at: cycle }) => cycle.slice(0, 7) },
  { name: "State", cell: ({ status }) => badge(status) },
  { name: "Due", cell: ({ due_at: due }) => fullMoment(due) },
  { name: "Total", cell: ({ total_amount: total }) => brl(total), isNumber: true },
  { name: "Still to pay", cell: ({ open_amount: open }) => brl(open), isNumber: true },
];
