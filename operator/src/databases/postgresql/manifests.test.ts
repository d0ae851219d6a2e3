import { fileURLToPath } from "node:url";
import { type DatabaseCase, databaseOf } from "../../../../test/kit/databases/examples.ts";
import { goldenTests } from "../../../../test/kit/operator/golden.ts";
import { desired } from "./manifests.ts";

goldenTests(fileURLToPath(new URL("testdata", import.meta.url)), (input) =>
  desired(databaseOf(input as DatabaseCase)),
);
