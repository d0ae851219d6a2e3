/** The route in the page: the part of its address behind `#`. Never a credential. */
export type Route =
  | { view: "projects"; query: ReadonlyMap<string, string> }
  | {
      view: "project";
      project: string;
      tab: Tab;
      item: string | undefined;
      query: ReadonlyMap<string, string>;
    }
  | {
      view: "notifications";
      kind: ReceiverKind | undefined;
      /** An id, or `new`. */
      item: string | undefined;
      query: ReadonlyMap<string, string>;
    }
  | {
      view: "costs";
      /** The number of an invoice. */
      invoice: string | undefined;
      query: ReadonlyMap<string, string>;
    }
  | { view: "missing" };

/** Where events are sent, by the words of the API's paths. */
export const receiverKinds = ["webhooks", "email-recipients"] as const;
export type ReceiverKind = (typeof receiverKinds)[number];

export const tabs = ["overview", "traffic", "usage", "logs", "runs", "builds", "alerts"] as const;
export type Tab = (typeof tabs)[number];

const isTab = (text: string): text is Tab => (tabs as readonly string[]).includes(text);

/** Reads `#/projects?…`, `#/project/<id>/<tab>/<item>?…`. Pure; nothing in it is trusted. */
export function parseRoute(hash: string): Route {
  const [path = "", search = ""] = hash.replace(/^#/, "").split("?", 2);
  const query = new Map(new URLSearchParams(search));
  const words = path.split("/").filter((word) => word !== "");
  const parts = words.map(decode);
  const [view = "projects", project, tab = "overview", item] = parts;
  if (view === "projects" && parts.length <= 1) {
    return { view, query };
  }
  if (view === "costs" && (parts.length === 1 || (parts.length === 3 && project === "invoices"))) {
    return { view, invoice: parts[2], query };
  }
  if (view === "notifications" && parts.length <= 3) {
    const kind = receiverKinds.find((one) => one === project);
    const isWhole = project === undefined || (kind !== undefined && parts.length === 3);
    return isWhole ? { view, kind, item: parts[2], query } : { view: "missing" };
  }
  const isProject = view === "project" && project !== undefined && parts.length <= 4;
  if (isProject && isTab(tab)) {
    return { view, project, tab, item, query };
  }
  return { view: "missing" };
}

function decode(word: string): string {
  try {
    return decodeURIComponent(word);
  } catch {
    return word;
  }
}

/** The address of a route, for links. Parameters without a value are left out. */
export function link(
  parts: readonly string[],
  query: Readonly<Record<string, string | undefined>> = {},
): string {
  const given = Object.entries(query).filter(
    (pair): pair is [string, string] => pair[1] !== undefined && pair[1] !== "",
  );
  const search = new URLSearchParams(given).toString();
  return `#/${parts.map(encodeURIComponent).join("/")}${search === "" ? "" : `?${search}`}`;
}

/** The same route with other parameters. */
export function withQuery(route: Route, change: Readonly<Record<string, string | undefined>>): string {
  if (route.view === "missing") {
    return link([]);
  }
  const query = { ...Object.fromEntries(route.query), ...change };
  if (route.view === "projects") {
    return link([route.view], query);
  }
  if (route.view === "costs") {
    return link(["costs", ...(route.invoice === undefined ? [] : ["invoices", route.invoice])], query);
  }
  if (route.view === "notifications") {
    const parts = [route.view, route.kind, route.item].filter((part) => part !== undefined);
    return link(parts, query);
  }
  const { project, tab, item } = route;
  return link(["project", project, tab, ...(item === undefined ? [] : [item])], query);
}
