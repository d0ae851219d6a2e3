// Ends with 0 when node_modules has what package-lock.json names, else with 1. Plain JavaScript without
// dependencies: it runs before anything is installed, on any Node from 20 on.
import { existsSync, readFileSync, realpathSync } from "node:fs";

const packages = (file) => JSON.parse(readFileSync(file, "utf8")).packages;

function current() {
  const installed = "node_modules/.package-lock.json";
  if (!existsSync(installed)) {
    return false;
  }
  const have = packages(installed);
  return Object.entries(packages("package-lock.json")).every(([path, wanted]) => {
    // Optional packages are there for some platforms only.
    if (!path.startsWith("node_modules/") || wanted.optional) {
      return true;
    }
    // A workspace is a link to its folder, which may have moved.
    if (wanted.link) {
      return existsSync(path) && realpathSync(path) === realpathSync(wanted.resolved);
    }
    return have[path]?.version === wanted.version && existsSync(path);
  });
}

process.exit(current() ? 0 : 1);
