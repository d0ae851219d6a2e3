/**
 * Scheduled events (`CREATE EVENT`) of a project run on one member: the primary. Its scheduler is on, the others' are off.
 *
 * Statements about events reach every member, but what one keeps of an event that another one has created or altered is the
 * status SLAVESIDE_DISABLED, whatever the statement sets. So a new primary has to enable them itself, and
 * cannot know from its own which ones were disabled: the primary records those in a table of the platform's, which all have.
 */

import type { ClusterContext, LiveDatabase, LivePod } from "../driver.ts";
import { order } from "./commands.ts";
import { OWN_SCHEMA } from "./names.ts";
import type { MemberStates } from "./topology.ts";

/** How often the primary records which events are disabled, in seconds. A scheduled event of the platform's own does it. */
const RECORD_SECONDS = 5;

const DISABLED_EVENTS = `${OWN_SCHEMA}.disabled_events`;
const DISABLED = "SELECT db, name FROM mysql.event WHERE status = 'DISABLED'";

/**
 * Statements for the script that sets accounts up. Nothing is written while nothing changes. The names have the character
 * set that the server keeps them in.
 */
export const NOTING: readonly string[] = [
  `CREATE TABLE IF NOT EXISTS ${DISABLED_EVENTS} (db VARCHAR(64) COLLATE utf8mb3_bin, name VARCHAR(64) COLLATE utf8mb3_bin,`,
  "  PRIMARY KEY (db, name)) ENGINE=InnoDB CHARACTER SET utf8mb3;",
  "DELIMITER //",
  `CREATE PROCEDURE IF NOT EXISTS ${OWN_SCHEMA}.note_events() BEGIN`,
  `  DELETE FROM ${DISABLED_EVENTS} WHERE (db, name) NOT IN (${DISABLED});`,
  `  INSERT INTO ${DISABLED_EVENTS} ${DISABLED} AND (db, name) NOT IN (SELECT db, name FROM ${DISABLED_EVENTS});`,
  "END//",
  "DELIMITER ;",
  `CREATE EVENT IF NOT EXISTS ${OWN_SCHEMA}.note_events ON SCHEDULE EVERY ${RECORD_SECONDS} SECOND DO CALL ${OWN_SCHEMA}.note_events();`,
];

/**
 * The script of a member that has become the primary; it can be repeated. It alters events on this member alone. An altered
 * event gets the definer and the character set of the session that alters it, so both are set to what they are.
 */
export const LEAD_SQL = `SET SESSION wsrep_on = OFF;
DELIMITER //
BEGIN NOT ATOMIC
  DECLARE CONTINUE HANDLER FOR SQLEXCEPTION BEGIN END;
  FOR one IN (
    SELECT character_set_client AS client, collation_connection AS connection, CONCAT(
      'ALTER DEFINER = ', quoted(definer), ' EVENT ', quoted(e.db), '.', quoted(e.name),
      IF(n.name IS NULL, ' ENABLE', ' DISABLE')) AS statement
    FROM mysql.event e LEFT JOIN ${DISABLED_EVENTS} n ON n.db = e.db AND n.name = e.name
    WHERE e.status = 'SLAVESIDE_DISABLED'
  ) DO
    EXECUTE IMMEDIATE CONCAT('SET NAMES ', one.client, ' COLLATE ', one.connection);
    EXECUTE IMMEDIATE one.statement;
  END FOR;
END//
DELIMITER ;
SET GLOBAL event_scheduler = ON;
`
  .replace("quoted(definer)", definer("e.definer"))
  .replace("quoted(e.db)", quoted("e.db"))
  .replace("quoted(e.name)", quoted("e.name"));

/** An expression for a name between backticks. */
function quoted(name: string): string {
  return `CONCAT('\`', REPLACE(${name}, '\`', '\`\`'), '\`')`;
}

/** The same of `user@host`, or of a role, which has no host. */
function definer(account: string): string {
  const host = `SUBSTRING_INDEX(${account}, '@', -1)`;
  const user = `LEFT(${account}, CHAR_LENGTH(${account}) - CHAR_LENGTH(${host}) - 1)`;
  return `${quoted(user)}, IF(${host} = '', '', CONCAT('@', ${quoted(host)}))`;
}

/**
 * Runs events on the primary alone. They are not started before every other member of its part of the group is known to
 * run none: late is better than twice.
 * @returns whether they run where they should
 */
export async function moveEvents(
  live: LiveDatabase,
  primary: LivePod,
  memberStates: MemberStates,
  context: ClusterContext,
): Promise<boolean> {
  let resting = 0;
  for (const pod of live.pods.filter((one) => one !== primary)) {
    const facts = memberStates.get(pod);
    if (facts?.phase !== "running") {
      continue;
    }
    if (!facts.events || (await order(pod, "rest", facts.run, context))) {
      resting += facts.primary ? 1 : 0;
    }
  }
  const facts = memberStates.get(primary);
  if (facts?.phase !== "running" || facts.events) {
    return facts?.phase === "running";
  }
  return resting + 1 >= facts.size && (await order(primary, "lead", facts.run, context));
}
