import { z } from 'zod'
import { AssertionClaims, CLOUD_AUDIENCE } from '../../../../policy/documents/agent-messages.ts'
import { DOCUMENT_KINDS } from '../../../../policy/documents/kinds.ts'
import { openDocument } from '../../../../policy/documents/signed-document.ts'
import { isOlderStep, isOlderVersion, OLDEST_AGENT, UNTAG_VERSION, VersionNumber } from '../../../../policy/version.ts'
import { Failure, precondition } from '../../../platform/foundation/failure.ts'
import { Id, iso, Success } from '../../../platform/operations/fields.ts'
import { operation, type Call } from '../../../platform/operations/operation.ts'
import type { Row } from '../../../platform/persistence/schema.ts'
import { ensureStoreKey, storeKeyParts } from '../../operators/store-keys.ts'
import { agentKeys, promoteNextKey } from '../../agent-identity/agent-keys.ts'
import { signCommand } from '../documents/freshness-and-denials.ts'
import { ledgerHandshake } from './ledger-handshake.ts'
import { writeLastSeen } from '../../agent-identity/agent-queries.ts'
import { replacePredecessor } from '../enrolment/enrolment.ts'
import { findAgent, openChallenge, openLogin, useChallenge, type ChallengeFor } from '../../agent-identity/sessions.ts'

/**
 *   agentId ─▶ challenge ─▶ agent signs it ─▶ revoked? ─ yes ─▶ signed command to stop
 *                                               └─ no ─▶ replacePredecessor ─▶ ledgerHandshake ─▶ access token, broker
 *                                                                                                  challenge, store key
 *
 * `replacePredecessor` ends the predecessor of a re-enrolled agent. `ledgerHandshake` detects a restored or copied
 * ledger.
 */

export const agentLogin = operation({
  name: 'agentLogin',
  area: 'agents',
  minimumPackage: 'GROW',
  roles: [],
  summary: 'Logs an agent in: the first call returns a challenge, the second sends the signed assertion.',
  callers: ['anyone'],
  changes: true,
  audited: false,
  refusals: ['release_not_supported'],
  request: z.strictObject({
    agentId: Id,
    assertion: z
      .string()
      .max(1_024)
      .optional()
      .describe('assert+jwt: {iss: agentId, aud: "cloud", challenge, ledger, generation, seq, head}.'),
    release: VersionNumber.optional().describe(
      'Release of the agent. The cloud refuses agents that are newer than the cloud, or older by more than one minor release.',
    ),
  }),
  response: z.strictObject({
    ...Success,
    challenge: z.string().optional(),
    accessToken: z.string().optional(),
    expiresAt: z.string().optional(),
    mqttChallenge: z.string().optional(),
    revoked: z
      .string()
      .optional()
      .describe(
        'If the agent was revoked, the answer contains only this signed command (cmd+jwt) to stop. After it the agent releases nothing, even offline.',
      ),
    storeKey: z
      .string()
      .optional()
      .describe(
        'Key with which the agent checks PINs, badges and cards of operators against the policy. The policy names the key in `storeKey`. The cloud replaces it when it revokes an agent.',
      ),
    ledger: z
      .strictObject({
        generation: z.int(),
        denySeq: z.int(),
        onlineOnlyUntil: z.string().optional(),
        forked: z.literal(true).optional(),
      })
      .optional()
      .describe(
        'Generation with which the ledger continues. If it is above the agent’s own, the cloud detected a rollback: the agent starts this generation. It then decides nothing without the cloud until it has the deny list up to `denySeq`. `forked`: the ledger exists twice.',
      ),
  }),
  example: { agentId: 'agt_01KANX6Y7C3V9Q2M8R5T4W6Z1B' },
  async run(call, { agentId, assertion, release }) {
    const { random } = call.services.platform
    // An unknown id gets a challenge too, so that the response does not reveal which agents exist.
    if (assertion === undefined)
      return { success: true as const, challenge: await openChallenge(call.db, agentId, 'http', random, call.nowMs) }
    const unsupported = unsupportedRelease(release)
    // A newer agent may sign assertions of a form that this cloud does not know.
    const opening = openAssertion(call, agentId, 'http', assertion)
    const { agent, claims, openedMs } = await opening.catch((error: unknown) => {
      throw unsupported ?? error
    })
    // Without a signed revocation, the agent would continue to accept receipts offline.
    if (agent.revoked_ms !== null)
      return { success: true as const, revoked: signCommand(agentId, { command: 'revoke' }, call.services) }
    if (unsupported) throw unsupported
    await replacePredecessor(call, agent)
    const ledger = await ledgerHandshake(call, agent, claims, openedMs)
    await writeLastSeen(call.db, agentId, call.nowMs)
    call.afterCommit(() => call.services.lastSeen.note(agentId, call.nowMs))
    const { accessToken, expiresMs } = await openLogin(call.db, agentId, random, call.nowMs)
    const mqttChallenge = await openChallenge(call.db, agentId, 'broker', random, call.nowMs)
    const storeKey = await ensureStoreKey(call.db, agent.store_id, storeKeyParts(call.services))
    return {
      success: true as const,
      accessToken,
      expiresAt: iso(expiresMs),
      mqttChallenge,
      ledger,
      storeKey,
    }
  },
})

/** The refusal of an agent whose release does not fit the cloud. Upgrades begin with the cloud. */
function unsupportedRelease(release: string | undefined): Failure | undefined {
  if (release === undefined) return undefined
  if (isOlderStep(UNTAG_VERSION, release))
    return precondition(
      'release_not_supported',
      `the agent has release ${release}, and the cloud ${UNTAG_VERSION}: upgrade the cloud`,
    )
  if (isOlderVersion(release, OLDEST_AGENT))
    return precondition(
      'release_not_supported',
      `the agent has release ${release}, and the cloud supports agents from ${OLDEST_AGENT}: upgrade the agent`,
    )
  return undefined
}

const REFUSED = () => new Failure('unauthenticated', 'the assertion is not valid')

type Asserting = Pick<Call, 'db' | 'services' | 'nowMs'>

/** Verifies the assertion that an agent sends as its broker password. Throws 401 if the assertion is invalid. */
export async function assertAgent(call: Asserting, agentId: string, assertion: string): Promise<Row<'agent'>> {
  const { agent } = await openAssertion(call, agentId, 'broker', assertion)
  if (agent.revoked_ms !== null) throw REFUSED()
  return agent
}

async function openAssertion(
  call: Asserting,
  agentId: string,
  where: ChallengeFor,
  assertion: string,
): Promise<{ agent: Row<'agent'>; claims: AssertionClaims; openedMs: number }> {
  const agent = await findAgent(call.db, agentId)
  if (!agent) throw REFUSED()
  const keys = agentKeys(agent)
  // Does not check the time of the assertion, because the agent's clock may be wrong. The single-use challenge shows
  // that the assertion is new.
  const opened = openDocument<AssertionClaims>(assertion, DOCUMENT_KINDS.assertion, { keys, audience: CLOUD_AUDIENCE })
  const claims = opened.ok ? AssertionClaims.safeParse(opened.claims) : undefined
  if (!claims?.success || claims.data.iss !== agentId) throw REFUSED()
  if (claims.data.ledger !== agent.ledger_id) throw REFUSED()
  const used = await useChallenge(call.db, agentId, where, claims.data.challenge, call.nowMs)
  if (!used) throw REFUSED()
  if (opened.ok) await promoteNextKey(call.db, agent, opened.key, call.nowMs)
  return { agent, claims: claims.data, openedMs: used.openedMs }
}
