import { z } from 'zod'
import { RotationClaims } from '../../../policy/documents/agent-messages.ts'
import { DOCUMENT_KINDS } from '../../../policy/documents/kinds.ts'
import { keyId, keyRing, publicKeyWeakness } from '../../../policy/documents/keys.ts'
import { openDocument } from '../../../policy/documents/signed-document.ts'
import { invalid, notFound, precondition } from '../../platform/foundation/failure.ts'
import { Success } from '../../platform/operations/fields.ts'
import { operation } from '../../platform/operations/operation.ts'
import { agentKeys, storeNextKey, isKeyTaken } from './agent-keys.ts'
import { findAgent } from './sessions.ts'

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
