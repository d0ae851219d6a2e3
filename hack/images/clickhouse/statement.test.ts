import { expect, test } from "vitest";
import { parseStatement } from "./statement.ts";
import { tokens, unquoted } from "./tokens.ts";

test("tokens leave out spaces and all kinds of comments", () => {
  const text = "select /* a /* b */ c */ 'it''s; \\'x' -- end\n, `b;c`, 1e5 # ! no\n#! yes\n, $$ ; $$";
  expect([...tokens(text)].map(({ text }) => text)).toEqual([
    ...["select", "'it''s; \\'x'", ",", "`b;c`", ",", "1e5", ",", "$$ ; $$"],
  ]);
});

test("quotations are read as what they stand for", () => {
  const values = [..."'it''s' 'a\\'b\\n\\x41' `a``b` \"c\" $x$ ' $x$ word".matchAll(/.*/g)];
  const text = values[0]?.[0] ?? "";
  expect([...tokens(text)].map(unquoted)).toEqual(["it's", "a'b\nA", "a`b", "c", " ' ", "word"]);
});

test.each([
  ["SELECT 1", { verb: "SELECT", readOnly: true, gives: true }],
  ["(SELECT 1) UNION ALL (SELECT 2) FORMAT JSON;", { verb: "SELECT", format: "JSON" }],
  ["with 1 as x select x format JSONEachRow settings max_threads=1", { gives: true, format: "JSONEachRow" }],
  ["SELECT formatDateTime(now(), 'FORMAT x'), format('{}', 1)", { format: undefined }],
  ["create table t (format String) engine = Memory", { verb: "CREATE TABLE", readOnly: false, gives: false }],
  ["SET max_threads = 1", { changesSession: true, gives: false }],
  ["-- c\nUSE `x`", { changesSession: true }],
  ["insert into t select * from values('a Int8', 1)", { verb: "INSERT INTO", readOnly: false }],
  ["SELECT ';' -- ; more\n;\n", { gives: true }],
])("%s", (text, wanted) => {
  const { insert, ...statement } = parseStatement(text);
  expect(insert).toBeUndefined();
  expect(statement).toMatchObject(wanted);
});

test.each([
  ["INSERT INTO t FORMAT JSONEachRow\n{}", "JSONEachRow", "{}"],
  ["INSERT INTO t (a, `b c`) SETTINGS x=1 FORMAT CSV \r\n1;2", "CSV", "1;2"],
  ["INSERT INTO t VALUES (1, ';'); ", "Values", " (1, ';'); "],
  ["insert into t (a) values(1)", "Values", "(1)"],
  ["INSERT INTO t FORMAT TabSeparated\n\n", "TabSeparated", "\n"],
  ["INSERT INTO t FORMAT RowBinary", "RowBinary", ""],
])("%s holds data", (text, format, data) => {
  const { insert } = parseStatement(text);
  expect(insert?.format).toBe(format);
  expect(text.slice(insert?.dataAt)).toBe(data);
});

test("what one request may not ask for is refused", () => {
  for (const text of ["", " -- nothing", ";"]) {
    expect(() => parseStatement(text)).toThrow("Code: 211.");
  }
  expect(() => parseStatement("SELECT 1; DROP TABLE t")).toThrow(/Code: 62\. .*Multi-statements/);
  expect(() => parseStatement("SELECT 1 INTO OUTFILE '/tmp/x'")).toThrow("Code: 358.");
  const input = "INSERT INTO t SELECT lower(a) FROM input('a String') FORMAT CSV\nA";
  expect(() => parseStatement(input)).toThrow("Code: 48.");
  expect(() => parseStatement("INSERT INTO t FROM INFILE '/etc/passwd' FORMAT CSV")).toThrow("Code: 344.");
});
