import { Readable } from "node:stream";
import { expect, test } from "vitest";
import { Body } from "./body.ts";
import { failure, failureOf, statusOf } from "./errors.ts";
import { readRequest } from "./request.ts";
import { pieces } from "./rows.ts";

const read = (headers: Record<string, string>, query = "") =>
  readRequest(headers, new URLSearchParams(query));

test("parameters that are not the interface's own are settings or values", () => {
  const request = read(
    { "x-clickhouse-database": "d" },
    "query=SELECT+1&query_id=q&max_threads=2&param_a=%271%27&param_b=2&enable_http_compression=1&wait_end_of_query=1",
  );
  expect(request).toMatchObject({ query: "SELECT 1", queryId: "q", database: "d", format: "TabSeparated" });
  expect(request).toMatchObject({
    settings: { max_threads: "2" },
    parameters: { a: "'1'", b: "2" },
    mayCompress: true,
  });
  expect(read({ "x-clickhouse-format": "CSV" }).format).toBe("CSV");
  expect(read({ "x-clickhouse-format": "CSV" }, "default_format=JSON").format).toBe("JSON");
  expect(() => read({}, "a%20b=1")).toThrow("Code: 36.");
  expect(() => read({}, "compress=1")).toThrow("Code: 48.");
});

test("a user is named in one of three ways, or is the default one", () => {
  expect(read({})).toMatchObject({ user: "default", password: "" });
  expect(read({ "x-clickhouse-user": "u", "x-clickhouse-key": "k" })).toMatchObject({
    user: "u",
    password: "k",
  });
  const authorization = `Basic ${Buffer.from("u:a:b").toString("base64")}`;
  expect(read({ authorization })).toMatchObject({ user: "u", password: "a:b" });
  expect(read({}, "user=u&password=p%26")).toMatchObject({ user: "u", password: "p&" });
  expect(() => read({ authorization }, "user=u")).toThrow("Code: 516.");
  expect(() => read({ authorization: "Bearer x" })).toThrow("Code: 516.");
});

test("a session has an id and a time that it lasts", () => {
  expect(read({}).session).toBeUndefined();
  expect(read({}, "session_id=s").session).toEqual({ id: "s", timeoutMs: 60_000, mustExist: false });
  expect(read({}, "session_id=s&session_timeout=5&session_check=1").session).toMatchObject({
    timeoutMs: 5_000,
    mustExist: true,
  });
  for (const wrong of ["3601", "-1", "x"]) {
    expect(() => read({}, `session_id=s&session_timeout=${wrong}`)).toThrow("Code: 374.");
  }
});

test("a body can be looked at before it is read", async () => {
  const body = () => new Body(Readable.from([Buffer.from("ab"), Buffer.from("cd"), Buffer.from("ef")]));
  const looked = body();
  expect(await looked.start(3)).toEqual({ bytes: Buffer.from("abcd"), whole: false });
  expect(Buffer.concat(await Readable.from(looked.rest(1)).toArray()).toString()).toBe("bcdef");
  expect((await body().all(6)).toString()).toBe("abcdef");
  await expect(body().all(5)).rejects.toThrow("Code: 229.");
});

test.each([
  ["TabSeparated", ["1\n2\n3", "\n4\n5\n"], ["1\n2\n", "3\n4\n5\n"]],
  ["JSONEachRow", ['{"a":1}\n{"a":', '[{}\n,{}]}\n{"a":3}'], ['{"a":1}\n', '{"a":[{}\n,{}]}\n', '{"a":3}']],
  ["JSONEachRow", [' [{"a":1},\n', '{"a":2}\n', "]"], [' [{"a":1},\n{"a":2}\n]']],
  ["CSV", ['"a\n', 'b"\n'], ['"a\nb"\n']],
])("data of %s are cut between rows", async (format, chunks, wanted) => {
  const data = Readable.from(chunks.map((chunk) => Buffer.from(chunk)));
  const cut = await Readable.from(pieces(format, data, { piece: 5, whole: 100 })).toArray();
  expect(cut.map(String)).toEqual(wanted);
});

test("what cannot be cut is refused when it is too large", async () => {
  const data = Readable.from([Buffer.alloc(30), Buffer.alloc(30)]);
  await expect(Readable.from(pieces("Native", data, { piece: 5, whole: 50 })).toArray()).rejects.toThrow(
    "Code: 229.",
  );
});

test("failures have ClickHouse's numbers and statuses", () => {
  const thrown = failureOf(new Error("Query failed: Code: 60. DB::Exception: no table. (UNKNOWN_TABLE)\n"));
  expect(thrown.message).toBe("Code: 60. DB::Exception: no table. (UNKNOWN_TABLE)");
  expect([thrown, failureOf("?"), failure("READONLY", "x")].map(statusOf)).toEqual([404, 500, 500]);
  expect([failure("AUTHENTICATION_FAILED", "x"), failure("SYNTAX_ERROR", "x")].map(statusOf)).toEqual([
    403, 400,
  ]);
});
