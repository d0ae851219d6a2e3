import { createVariableGroupBody, patchVariableGroupBody } from "@slipway/crds";
import { z } from "zod";
import type { Principal } from "../../auth/principal.ts";
import { failures } from "../../errors/catalog.ts";
import { type Call, defineRoute } from "../../http/route.ts";
import { newVariableGroupId } from "../../ids.ts";
import { isProvisioned, readNamespace } from "../../organizations/service.ts";
import { ENVIRONMENT_BODY_LIMIT, messageOnly, success } from "../../projects/routes/schemas.ts";
import type { Services } from "../../services.ts";
import { attachedTo, createGroup, deleteGroup, findGroup, listGroups, patchGroup } from "../cluster.ts";
import {
  createValues,
  ownSecret,
  readValues,
  refuseReferences,
  replaceValues,
  usageOf,
  valuesSecretName,
} from "../values.ts";
import { groupSchema, groupView, wholeGroupSchema, wholeGroupView } from "../view.ts";

const TAGS = ["Variable groups"];
const NO_STORE = { "cache-control": "no-store" };
/** Each waits for the cluster. */
const MAX_CONCURRENT = 16;

const organizationOf = ({ principal }: Pick<Call<unknown, unknown, unknown>, "principal">): string =>
  (principal as Principal).organizationId;

function groupOf(
  call: Pick<Call<unknown, unknown, unknown>, "principal" | "request">,
  { kube }: Pick<Services, "kube">,
) {
  const { groupId } = call.request.params as { groupId: string };
  return findGroup(kube, organizationOf(call), groupId);
}

export const listVariableGroups = defineRoute({
  operationId: "listVariableGroups",
  method: "GET",
  path: "/v1/organization/variable-groups",
  summary: "List variable groups",
  description: "All of the organization, the oldest first, without their variables.",
  tags: TAGS,
  responses: {
    200: {
      description: "All of them.",
      schema: success({ data: z.object({ variable_groups: z.array(groupSchema) }) }),
    },
  },
  maxConcurrent: MAX_CONCURRENT,
  handler: async (call, { kube }) => {
    const found = await listGroups(kube, organizationOf(call));
    return { status: 200, body: { status: "success", data: { variable_groups: found.map(groupView) } } };
  },
});

export const readVariableGroup = defineRoute({
  operationId: "readVariableGroup",
  method: "GET",
  path: "/v1/organization/variable-groups/:groupId",
  summary: "Read a variable group with its variables, in clear text",
  tags: TAGS,
  responses: {
    200: { description: "The group.", schema: success({ data: wholeGroupSchema }) },
  },
  refusals: [404, 409],
  maxConcurrent: MAX_CONCURRENT,
  handler: async (call, services) => {
    const group = await groupOf(call, services);
    const data = wholeGroupView(group, await readValues(services.kube, group));
    return { status: 200, headers: NO_STORE, body: { status: "success", data } };
  },
});

export const createVariableGroup = defineRoute({
  operationId: "createVariableGroup",
  method: "POST",
  path: "/v1/organization/variable-groups",
  summary: "Create a variable group",
  description: "Every value is literal: a group has no references to projects.",
  tags: TAGS,
  body: createVariableGroupBody,
  responses: {
    201: {
      description: "Created.",
      schema: success({ message: z.string(), data: groupSchema }),
    },
  },
  refusals: [409],
  bodyLimit: ENVIRONMENT_BODY_LIMIT,
  maxConcurrent: MAX_CONCURRENT,
  handler: async (call, { kube, usage }) => {
    const { name: displayName, description, variables } = call.body;
    const organizationId = organizationOf(call);
    refuseReferences(variables);
    if (!isProvisioned(await readNamespace(kube, organizationId))) {
      throw failures.organizationRuntimeUnavailable();
    }
    const id = newVariableGroupId();
    const used = usageOf(id, variables);
    await usage.reserve(organizationId, [used]);
    try {
      const secretRef = { name: valuesSecretName(id) };
      const spec = { displayName, ...(description === undefined ? {} : { description }), secretRef };
      const group = await createGroup(kube, organizationId, id, spec);
      // Without its Secret it would be worth nothing.
      await createValues(kube, group, variables).catch(async (error: unknown) => {
        await deleteGroup(kube, group).catch(() => {});
        throw error;
      });
      const body = { status: "success", message: "variable group created", data: groupView(group) };
      return { status: 201, body };
    } catch (error) {
      await usage.release(organizationId, [used]);
      throw error;
    }
  },
});

export const updateVariableGroup = defineRoute({
  operationId: "updateVariableGroup",
  method: "PATCH",
  path: "/v1/organization/variable-groups/:groupId",
  summary: "Change a variable group",
  description:
    "`variables` is the complete list. Each project that attaches the group is rolled once to other values, a limited number of an " +
    "organization's projects at a time; the same values roll none.",
  tags: TAGS,
  body: patchVariableGroupBody,
  responses: { 200: { description: "Changed; deployments start in the background.", schema: messageOnly } },
  refusals: [404, 409],
  bodyLimit: ENVIRONMENT_BODY_LIMIT,
  maxConcurrent: MAX_CONCURRENT,
  handler: async (call, services) => {
    const { name, description, variables } = call.body;
    refuseReferences(variables ?? []);
    const { kube, usage } = services;
    const group = await groupOf(call, services);
    // Whatever would refuse the values does so before anything is written.
    const live = variables === undefined ? undefined : await ownSecret(kube, group);
    if (variables !== undefined) {
      await usage.reserve(organizationOf(call), [usageOf(group.metadata.name, variables)]);
    }
    if (name !== undefined || description !== undefined) {
      await patchGroup(kube, group, { displayName: name, description });
    }
    if (variables !== undefined) {
      await replaceValues(kube, group, live, variables);
    }
    return { status: 200, body: { status: "success", message: "variable group updated" } };
  },
});

export const deleteVariableGroup = defineRoute({
  operationId: "deleteVariableGroup",
  method: "DELETE",
  path: "/v1/organization/variable-groups/:groupId",
  summary: "Delete a variable group",
  description: "Not while projects attach it: the answer names up to 20 of them.",
  tags: TAGS,
  responses: { 200: { description: "Deleted.", schema: messageOnly } },
  refusals: [404, 409],
  maxConcurrent: MAX_CONCURRENT,
  handler: async (call, services) => {
    const { kube } = services;
    const group = await groupOf(call, services);
    const projects = await attachedTo(kube, group);
    if (projects.length > 0) {
      throw failures.variableGroupInUse(group.metadata.name, projects);
    }
    await deleteGroup(kube, group);
    return { status: 200, body: { status: "success", message: "variable group deleted" } };
  },
});
