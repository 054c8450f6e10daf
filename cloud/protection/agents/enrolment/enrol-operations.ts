import { z } from 'zod'
import { publicJwk } from '../../../../policy/documents/keys.ts'
import { type Tenant, rolesFrom } from '../../../platform/foundation/caller.ts'
import { notFound } from '../../../platform/foundation/failure.ts'
import { Id, iso, Success, scanned, text } from '../../../platform/operations/fields.ts'
import { operation, type Call } from '../../../platform/operations/operation.ts'
import type { Row } from '../../../platform/persistence/schema.ts'
import { ownStore } from '../../../platform/stores/own-store.ts'
import { findStore } from '../../../platform/stores/queries.ts'
import { policyDocumentOf, signPolicy } from '../../store-policy/policy-document.ts'
import { freshnessDocument } from '../documents/freshness-and-denials.ts'
import { createCode, enrol } from './enrolment.ts'
import { PREDECESSORS_LIMIT } from '../../../../policy/documents/agent-messages.ts'

/**
 *   merchant ─ createEnrolmentCode ─▶ code ─▶ agent ─ enrolEdgeAgent (code, own key, proof) ─▶ agent row, first documents
 *
 *   with `replaces`: the first login ends the predecessor (`replacePredecessor` ─▶ `endAgent`)
 *
 * How an agent joins a store or replaces another agent.
 */

export const createEnrolmentCode = operation({
  name: 'createEnrolmentCode',
  area: 'agents',
  minimumPackage: 'GROW',
  roles: rolesFrom('manager'),
  summary: 'Creates a code with which one edge agent enrols in a store.',
  description:
    'Valid for 15 minutes and one agent. It contains the thumbprint of the root key, which the agent checks.',
  refusals: ['too_many_agents'],
  changes: true,
  secretResponse: true,
  request: z.strictObject({ storeId: Id, name: text(120).optional() }),
  response: z.strictObject({ ...Success, code: z.string(), expiresAt: z.string() }),
  example: { storeId: 'st_01KANX6Y7C3V9Q2M8R5T4W6Z1B', name: 'Kasse 1' },
  async run(call, { storeId, name }) {
    const store = await ownStore(call, storeId)
    const { code, expiresMs } = await createCode(call, store, name ?? 'edge agent')
    call.changed(storeId)
    return { success: true as const, code, expiresAt: iso(expiresMs) }
  },
})

const Mqtt = z.strictObject({
  url: z.string(),
  clientId: z.string(),
  username: z.string(),
  password: z.string().optional(),
})

const Predecessor = z.strictObject({
  agentId: Id,
  proof: z.string().max(1_024).describe('enrol+jwt with the same claims, signed with the predecessor’s key.'),
})

export const enrolEdgeAgent = operation({
  name: 'enrolEdgeAgent',
  area: 'agents',
  minimumPackage: 'GROW',
  roles: [],
  summary: 'Enrols an edge agent with a code and its own key. Needs no API key.',
  description: 'Repeating the call with the same code and key returns the same response.',
  callers: ['anyone'],
  refusals: ['code_used', 'code_blocked', 'key_taken', 'ledger_taken'],
  changes: true,
  request: z.strictObject({
    code: scanned(60),
    publicJwk: z.strictObject({ kty: z.literal('OKP'), crv: z.literal('Ed25519'), x: z.string().max(64) }),
    proof: z.string().max(1_024).describe('enrol+jwt: {aud: base URL, codeHash, ledger}.'),
    name: text(120).optional(),
    replaces: Predecessor.optional().describe(
      'The predecessor whose ledger the new agent continues. At its first login the new agent takes over devices, receipt home and unsent rows. The cloud then revokes the predecessor.',
    ),
    predecessors: z
      .array(Predecessor)
      .max(PREDECESSORS_LIMIT)
      .optional()
      .describe(
        'Earlier agents of the same ledger, newest first. If a restored cloud does not know `replaces`, the first known one counts.',
      ),
  }),
  response: z.strictObject({
    ...Success,
    agentId: z.string(),
    storeId: z.string(),
    root: z.strictObject({ kty: z.literal('OKP'), crv: z.literal('Ed25519'), x: z.string() }),
    documents: z.array(z.string()),
    mqtt: Mqtt,
  }),
  example: {
    code: 'K7QX-4M2P-9TRW-0000-0000-0000-0000',
    publicJwk: { kty: 'OKP', crv: 'Ed25519', x: '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo' },
    proof: 'eyJ…',
  },
  async run(call, input) {
    const agent = await enrol(call, input)
    const store = await findStore(call.db, agent.store_id)
    if (!store) throw notFound('store')
    call.changed(agent.agent_id)
    const { root, documents } = await firstDocuments(call, store)
    const mqtt = { url: call.services.config.mqttUrl, clientId: agent.agent_id, username: agent.agent_id }
    return { success: true as const, agentId: agent.agent_id, storeId: agent.store_id, root, documents, mqtt }
  },
})

async function firstDocuments(call: Call, store: Row<'store'>) {
  const { authority } = call.services
  const { keySet } = await authority.readyWithin(call.db, store.tenant as Tenant)
  const policy = await policyDocumentOf(call.db, store, call.services)
  return {
    root: publicJwk(authority.rootX),
    documents: [
      keySet.jws,
      signPolicy(policy, call.services),
      await freshnessDocument(call.db, store, call.services, policy),
    ],
  }
}
