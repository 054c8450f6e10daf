import type { CommandClaims } from '../../../../policy/documents/agent-messages.ts'
import { DOCUMENT_KINDS } from '../../../../policy/documents/kinds.ts'
import { signDocument } from '../../../../policy/documents/signed-document.ts'
import type { AgentCommand } from '../../../platform/foundation/agent-channel.ts'
import type { Call, Services } from '../../../platform/operations/operation.ts'
import { prepared } from '../../../platform/persistence/prepared.ts'

/** Commands for an agent. The cloud sends them over the broker and with the agent's documents. */

const COMMAND_LIFE = 60
/** Time after the expiry of a token in which an agent with a slow clock may still honour the token, s. */
const GUARD_SECONDS = 60
/** Maximum number of void commands in one response. The next response contains the rest. */
const VOIDS_AT_ONCE = 50

/** Signs a command for this agent (`cmd+jwt`). */
export function signCommand(
  agentId: string,
  command: AgentCommand,
  { authority, platform }: Pick<Services, 'authority' | 'platform'>,
): string {
  const iat = Math.floor(authority.clock.nowMs() / 1_000)
  const jti = Buffer.from(platform.random.bytes(16)).toString('base64url')
  const claims: CommandClaims = { aud: agentId, iat, exp: iat + COMMAND_LIFE, jti, ...command }
  return signDocument(DOCUMENT_KINDS.command, claims, authority.freshnessSigner)
}

const openVoids = prepared((db, p: { agentId: string; sinceS: number }) =>
  db
    .selectFrom('protection_authorization')
    .select('nonce')
    .where('agent_id', '=', p.agentId)
    .where('void_asked_ms', 'is not', null)
    .where('voided_ms', 'is', null)
    .where('exp', '>', p.sinceS)
    .orderBy('exp')
    .limit(VOIDS_AT_ONCE),
)

/** Signed commands that the agent has not answered yet. */
export async function pendingCommands({ db, nowMs, services }: Call, agentId: string): Promise<string[]> {
  const rows = await openVoids(db, { agentId, sinceS: Math.floor(nowMs / 1_000) - GUARD_SECONDS })
  return rows.map(({ nonce }) => signCommand(agentId, { command: 'void', nonce }, services))
}
