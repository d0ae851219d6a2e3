import { describe, expect, it } from "vitest";
import { imageReference } from "./parts.ts";

const digest = `sha256:${"a".repeat(64)}`;
const other = `sha256:${"b".repeat(64)}`;

describe("imageReference", () => {
  it.each([
    [{ url: "nginx:1.29" }, "nginx:1.29"],
    [{ url: "nginx:1.29", digest }, `nginx:1.29@${digest}`],
    [{ url: "registry.example.com:5000/team/app", digest }, `registry.example.com:5000/team/app@${digest}`],
    [{ url: `nginx:1.29@${other}`, digest }, `nginx:1.29@${digest}`],
    [{ url: `nginx@${other}` }, `nginx@${other}`],
  ])("%j runs %s", (image, reference) => {
    expect(imageReference(image)).toBe(reference);
  });
});
