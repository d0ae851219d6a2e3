import { describe, expect, it } from "vitest";
import { ownedByApply } from "./created-fields.ts";

const update = { manager: "m", operation: "Update", apiVersion: "v1", time: "t", fieldsType: "FieldsV1" };
const fieldsV1 = { "f:data": { ".": {}, "f:a": {} } };

describe("ownedByApply", () => {
  it("makes an update an apply, and leaves the entries of others and of subresources alone", () => {
    const others = [
      { ...update, manager: "other", fieldsV1 },
      { ...update, subresource: "status", fieldsV1 },
    ];
    const owned = ownedByApply([{ ...update, fieldsV1 }, ...others], "m");
    expect(owned).toEqual([...others, { ...update, operation: "Apply", fieldsV1 }]);
  });

  it("unites it with what the manager has applied already", () => {
    const applied = { ...update, operation: "Apply", fieldsV1: { "f:data": { "f:b": {} }, "f:x": {} } };
    const [owned, ...rest] = ownedByApply([applied, { ...update, fieldsV1 }], "m") ?? [];
    expect(rest).toEqual([]);
    expect(owned).toMatchObject({
      operation: "Apply",
      fieldsV1: { "f:data": { ".": {}, "f:a": {}, "f:b": {} }, "f:x": {} },
    });
  });

  it("changes nothing where the manager has no update", () => {
    expect(ownedByApply([{ ...update, operation: "Apply", fieldsV1 }], "m")).toBeUndefined();
    expect(ownedByApply([{ ...update, manager: "other", fieldsV1 }], "m")).toBeUndefined();
    expect(ownedByApply([], "m")).toBeUndefined();
  });
});
