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
  | { view: "missing" };

export const tabs = ["overview", "traffic", "usage", "logs", "runs", "builds"] as const;
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
    return link(["projects"], query);
  }
  const { project, tab, item } = route;
  return link(["project", project, tab, ...(item === undefined ? [] : [item])], query);
}
