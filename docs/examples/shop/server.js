import { createServer } from "node:http";
import { openDatabase, openQueue, WAITING } from "./connections.js";

const LARGEST_BODY = 10_000;

const database = openDatabase();
const queue = openQueue();

async function bodyOf(request) {
  let text = "";
  for await (const chunk of request.setEncoding("utf8")) {
    text += chunk;
    if (text.length > LARGEST_BODY) {
      return undefined;
    }
  }
  return text;
}

/** The item of an order; undefined for any other body. */
function itemOf(text) {
  try {
    const { item } = JSON.parse(text);
    return typeof item === "string" && item !== "" ? item : undefined;
  } catch {
    return undefined;
  }
}

/** Writes the row first: a worker never gets an order that does not exist. */
async function placeOrder(item) {
  const { rows } = await database.query("insert into orders (item) values ($1) returning *", [item]);
  await queue.lpush(WAITING, rows[0].id);
  return rows[0];
}

/** @returns status and body of the answer */
async function answer(request) {
  const [, resource, id, ...more] = request.url.split("?")[0].split("/");
  if (resource !== "orders" || more.length > 0) {
    return [404, { message: "not found" }];
  }
  if (request.method === "POST" && id === undefined) {
    const item = itemOf(await bodyOf(request));
    return item === undefined ? [400, { message: "send an item" }] : [201, await placeOrder(item)];
  }
  if (id === undefined) {
    const { rows } = await database.query("select * from orders order by id desc limit 100");
    return [200, rows];
  }
  const { rows } = await database.query("select * from orders where id::text = $1", [id]);
  return rows.length === 0 ? [404, { message: "not found" }] : [200, rows[0]];
}

const server = createServer(async (request, response) => {
  const [status, body] = await answer(request).catch((error) => {
    console.error(error);
    return [500, { message: "the order could not be read or written" }];
  });
  response.writeHead(status, { "content-type": "application/json" }).end(`${JSON.stringify(body)}\n`);
});
server.listen(process.env.PORT, () => console.log(`listening on ${process.env.PORT}`));

process.on("SIGTERM", () => {
  server.close(async () => {
    await database.end();
    queue.disconnect();
  });
});
