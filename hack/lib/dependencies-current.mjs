// Ends with 0 when node_modules has what package-lock.json names, else with 1. Plain JavaScript without
// dependencies: it runs before anything is installed, on any Node from 20 on.
import { existsSync, readFileSync } from "node:fs";

const packages = (file) => JSON.parse(readFileSync(file, "utf8")).packages;

function current() {
  const installed = "node_modules/.package-lock.json";
  if (!existsSync(installed)) {
    return false;
  }
  const have = packages(installed);
  return Object.entries(packages("package-lock.json")).every(([path, wanted]) => {
    // Workspaces are links; optional packages are there for some platforms only.
    if (!path.startsWith("node_modules/") || wanted.link || wanted.optional) {
      return true;
    }
    return have[path]?.version === wanted.version && existsSync(path);
  });
}

process.exit(current() ? 0 : 1);
