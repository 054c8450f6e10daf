import { sql } from 'kysely'
import {
  keyId,
  keyRing,
  type KeyRing,
  type VerificationKey,
  publicKeyWeakness,
} from '../../../policy/documents/keys.ts'
import type { Db } from '../../platform/persistence/database.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { raiseDocumentVersion } from '../../platform/stores/queries.ts'
import { endLogins, findAgent } from './sessions.ts'
import { z } from 'zod'
import { RotationClaims } from '../../../policy/documents/agent-messages.ts'
import { DOCUMENT_KINDS } from '../../../policy/documents/kinds.ts'
import { openDocument } from '../../../policy/documents/signed-document.ts'
import { invalid, notFound, precondition } from '../../platform/foundation/failure.ts'
import { Success } from '../../platform/operations/fields.ts'
import { operation } from '../../platform/operations/operation.ts'
import { deleteSome } from '../../platform/persistence/delete-some.ts'

/** An agent's keys: the current one and, during a rotation, the next one. */

/**
 * How long the cloud accepts outcome reports signed with a former key, ms. The cloud keeps unresolved delegated rights
 * for about the same time.
 */
const FORMER_KEYS_FOR_MS = 91 * 86_400_000
/** Maximum number of former keys per agent. An agent rotates its key every 30 days. */
const FORMER_KEYS_LIMIT = 10

/** Keys with which this agent may sign. */
export function agentKeys({ agent_id, x, next_x: next }: Row<'agent'>): KeyRing {
  return ringOf(agent_id, [x, ...(next === null ? [] : [next])])
}

/**
 * Current and former keys of an agent. The receipt home may forward an outcome report long after the reporting agent
 * signed it.
 */
export async function currentAndFormerKeys(db: Db, agent: Row<'agent'>, nowMs: number): Promise<KeyRing> {
  const formerKeys = await db
    .selectFrom('agent_former_key')
    .select('x')
    .where('agent_id', '=', agent.agent_id)
    .where('retired_ms', '>', nowMs - FORMER_KEYS_FOR_MS)
    .orderBy('retired_ms', 'desc')
    .limit(FORMER_KEYS_LIMIT)
    .execute()
  return new Map([
    ...ringOf(
      agent.agent_id,
      formerKeys.map(({ x }) => x),
    ),
    ...agentKeys(agent),
  ])
}

/** Deletes former keys that the cloud no longer accepts. */
export function pruneFormerKeys(db: Db, nowMs: number): Promise<number> {
  return deleteSome(db, 'agent_former_key', ['agent_id', 'x'], sql`retired_ms <= ${nowMs - FORMER_KEYS_FOR_MS}`)
}

function ringOf(iss: string, keys: readonly string[]): KeyRing {
  return keyRing(
    keys.map((key) => ({
      kid: keyId(key),
      alg: 'EdDSA' as const,
      x: key,
      use: 'agent' as const,
      iss,
      state: 'active' as const,
    })),
  )
}

/** Makes the next key current after its first use. The agent can no longer log in with the former key. */
export async function promoteNextKey(db: Db, agent: Row<'agent'>, key: VerificationKey, nowMs: number): Promise<void> {
  if (key.x !== agent.next_x) return
  await db
    .insertInto('agent_former_key')
    .values({ agent_id: agent.agent_id, x: agent.x, retired_ms: nowMs })
    .onConflict((c) => c.columns(['agent_id', 'x']).doUpdateSet({ retired_ms: nowMs }))
    .execute()
  const kept = await db
    .selectFrom('agent_former_key')
    .select('x')
    .where('agent_id', '=', agent.agent_id)
    .orderBy('retired_ms', 'desc')
    .orderBy('x')
    .limit(FORMER_KEYS_LIMIT)
    .execute()
  await db
    .deleteFrom('agent_former_key')
    .where('agent_id', '=', agent.agent_id)
    .where(
      'x',
      'not in',
      kept.map((key) => key.x),
    )
    .execute()
  await db.updateTable('agent').set({ x: key.x, next_x: null }).where('agent_id', '=', agent.agent_id).execute()
  await endLogins(db, agent.agent_id)
  await raiseDocumentVersion(db, agent.store_id)
}

/** True if another agent has this key as its current or next key. */
export async function isKeyTaken(db: Db, x: string, agentId: string): Promise<boolean> {
  const other = await db
    .selectFrom('agent')
    .select('agent_id')
    .where((eb) => eb.or([eb('x', '=', x), eb('next_x', '=', x)]))
    .where('agent_id', '!=', agentId)
    .executeTakeFirst()
  return other !== undefined
}

/** Stores the next key and publishes it in the policy. */
async function storeNextKey(db: Db, agentId: string, x: string): Promise<void> {
  const { store_id: storeId } = await db
    .updateTable('agent')
    .set({ next_x: x })
    .where('agent_id', '=', agentId)
    .returning('store_id')
    .executeTakeFirstOrThrow()
  await raiseDocumentVersion(db, storeId)
}

export const rotateAgentKey = operation({
  name: 'rotateAgentKey',
  area: 'agents',
  minimumPackage: 'GROW',
  roles: [],
  summary: 'Rotates an agent’s own key. The old key stays valid until the agent uses the new one.',
  description:
    'Repeating the same key returns the same response. A different key replaces a new key that the agent has not used yet.',
  callers: ['agent'],
  refusals: ['key_taken'],
  changes: true,
  request: z.strictObject({
    publicJwk: z.strictObject({ kty: z.literal('OKP'), crv: z.literal('Ed25519'), x: z.string().max(64) }),
    proof: z.string().max(1_024).describe('rotate+jwt, signed with the new key: {aud: agentId, formerKid}.'),
  }),
  response: z.strictObject({ ...Success, kid: z.string() }),
  example: {
    publicJwk: { kty: 'OKP', crv: 'Ed25519', x: '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo' },
    proof: 'eyJ…',
  },
  async run(call, { publicJwk: { x }, proof }) {
    if (call.caller.kind !== 'agent') throw notFound('agent')
    const agent = await findAgent(call.db, call.caller.agentId)
    if (!agent) throw notFound('agent')
    const weakness = publicKeyWeakness(x)
    if (weakness) throw invalid('publicJwk.x', `is a weak key: ${weakness}; generate another one`, 'weak_key')
    const keys = keyRing([{ kid: keyId(x), alg: 'EdDSA', x, use: 'agent', iss: agent.agent_id, state: 'active' }])
    // Does not check the time of the proof: the agent's clock may be wrong, and the login is recent.
    const opened = openDocument<RotationClaims>(proof, DOCUMENT_KINDS.rotation, { keys, audience: agent.agent_id })
    const claims = opened.ok ? RotationClaims.safeParse(opened.claims) : undefined
    if (!claims?.success || !agentKeys(agent).has(claims.data.formerKid))
      throw invalid('proof', 'is not signed with publicJwk for this agent and its current key', 'invalid')
    call.changed(agent.agent_id)
    // If the key is already current, the agent repeats a request because the first response was lost.
    if (agent.x === x) return { success: true as const, kid: keyId(x) }
    if (await isKeyTaken(call.db, x, agent.agent_id))
      throw precondition('key_taken', 'another agent already uses this key: generate a new one')
    await storeNextKey(call.db, agent.agent_id, x)
    call.afterCommit(() => call.services.agents.storeChanged(agent.store_id))
    return { success: true as const, kid: keyId(x) }
  },
})
