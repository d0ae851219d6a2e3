import { fileURLToPath } from "node:url";
import { goldenTests } from "../../../../test/kit/operator/golden.ts";
import { type DatabaseCase, databaseOf } from "../testing.ts";
import { desired } from "./desired.ts";

goldenTests(fileURLToPath(new URL("testdata", import.meta.url)), (input) =>
  desired(databaseOf(input as DatabaseCase)),
);
