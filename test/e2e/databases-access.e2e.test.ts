import { afterAll, beforeAll, expect, test } from "vitest";
import { apiClient, deleteProjects } from "./support/api.ts";
import { createDatabase, type DatabaseProject, databaseProject, untilReady } from "./support/databases.ts";
import { eventually } from "./support/eventually.ts";
import { type NetworkNamespace, networkNamespace } from "./support/network-namespace.ts";

/** Who may connect to a database, tried from two network namespaces with addresses of their own. */

const call = apiClient();
const made: string[] = [];
let office: NetworkNamespace;
let elsewhere: NetworkNamespace;
beforeAll(async () => {
  // Of the addresses that documentation may use (RFC 5737).
  office = await networkNamespace("slw-office", "203.0.113.1/30", "203.0.113.2");
  elsewhere = await networkNamespace("slw-else", "198.51.100.1/30", "198.51.100.2");
});
afterAll(async () => {
  await deleteProjects(call, made);
  await office?.remove();
  await elsewhere?.remove();
});

const list = (...cidrs: string[]) => cidrs.map((cidr) => ({ cidr, description: "a test" }));

async function withLists(white: string[], black: string[]): Promise<DatabaseProject> {
  const project = await createDatabase(
    call,
    databaseProject("db-basic", {
      type_project: "postgresql",
      version: "17",
      network_access: { ingress_white_list: list(...white), ingress_black_list: list(...black) },
    }),
  );
  made.push(project.id);
  await untilReady(project);
  return project;
}

const reaches = ({ connection }: DatabaseProject, from: NetworkNamespace): Promise<boolean> =>
  from.reaches(connection.host, connection.port);

test("the addresses of the white list connect, and no others", async () => {
  const project = await withLists(["203.0.113.0/30"], []);
  await eventually(async () => expect(await reaches(project, office)).toBe(true));
  expect(await reaches(project, elsewhere)).toBe(false);
});

test("the addresses of the black list do not connect, though the white list has them", async () => {
  const project = await withLists(["0.0.0.0/0"], ["203.0.113.2/32"]);
  await eventually(async () => expect(await reaches(project, elsewhere)).toBe(true));
  expect(await reaches(project, office)).toBe(false);
});
