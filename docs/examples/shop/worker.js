import { hostname } from "node:os";
import { openDatabase, openQueue, TAKEN, WAITING } from "./connections.js";

/** An order that has been handled stays as it is: one whose worker was killed is handled again. */
const HANDLE = "update orders set status = 'handled', handled_by = $2 where id = $1 and status = 'waiting'";
const SECONDS_TO_WAIT = 5;

const database = openDatabase();
const queue = openQueue();
let stopping = false;
process.on("SIGTERM", () => {
  stopping = true;
});

// What instances before this one have taken and not finished waits again.
while ((await queue.lmove(TAKEN, WAITING, "LEFT", "RIGHT")) !== null) {}
console.log("waiting for orders");

// An error ends the process, and the platform starts it again: the order stays in the list of those that were taken.
while (!stopping) {
  const id = await queue.blmove(WAITING, TAKEN, "RIGHT", "LEFT", SECONDS_TO_WAIT);
  if (id !== null) {
    await database.query(HANDLE, [id, hostname()]);
    await queue.lrem(TAKEN, 1, id);
    console.log(`order ${id} is handled`);
  }
}
await database.end();
queue.disconnect();
