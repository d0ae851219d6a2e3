import { expect, test } from "vitest";
import { setBuildConditions } from "./status.ts";

const image = { reference: "registry.example/a/b", digest: `sha256:${"a".repeat(64)}` };

test.for([
  [{}, "Unknown/Pending", "Unknown/Pending"],
  [{ phase: "pending" }, "Unknown/Pending", "Unknown/Pending"],
  [{ phase: "building" }, "Unknown/Building", "Unknown/Building"],
  [{ phase: "building", image }, "True/Pushed", "Unknown/Pushed"],
  [{ phase: "success", image }, "True/Pushed", "True/Published"],
  [{ phase: "failed" }, "False/Failed", "False/Failed"],
  [{ phase: "failed", image }, "True/Pushed", "False/PublishFailed"],
  [{ phase: "failed", image, errorCode: "PROJECT_PUBLISH_TIMEOUT" }, "True/Pushed", "False/PublishTimeout"],
  [{ phase: "superseded" }, "False/Superseded", "False/Superseded"],
] as const)(
  "of a build with status %o: Succeeded is %s, Published is %s",
  ([status, succeeded, published]) => {
    const set: Record<string, string> = {};
    const conditions = {
      set: (one: { type: string; status: string; reason: string }) => {
        set[one.type] = `${one.status}/${one.reason}`;
      },
    };
    setBuildConditions(conditions, status);
    expect(set).toEqual({ Succeeded: succeeded, Published: published });
  },
);
