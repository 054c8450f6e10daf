import { CommandClaims } from '../../../policy/documents/agent-messages.ts'
import { DOCUMENT_KINDS } from '../../../policy/documents/kinds.ts'
import { claimedKeyId, openDocument } from '../../../policy/documents/signed-document.ts'
import type { AgentClock } from '../../trust/time/clock.ts'
import type { Trust } from '../../trust/trust.ts'

/**
 * `done`: the agent carried out `revoke` or `void`. `poll`: for other commands and invalid texts, the agent only polls
 * for documents.
 */
export type CommandResult = 'done' | 'poll'

interface CommandParts {
  agentId: string
  trust: Pick<Trust, 'keys'>
  clock: Pick<AgentClock, 'now'>
  /** Voids a token for ever. */
  voidToken(nonce: string): void
  /** Called when a command revoked the agent. `kid`: id of the key that signed the command. */
  onRevoked(kid: string): void
}

/**
 * Handles a command of the cloud, from the broker or a poll. Verifies the signature. If the clock is trusted, also
 * verifies the time of all commands except `revoke`. Other commands than `revoke` and `void`, and invalid texts, only
 * trigger a poll.
 */
export function commandHandler({
  agentId,
  trust,
  clock,
  voidToken,
  onRevoked,
}: CommandParts): (text: string) => CommandResult {
  return (text) => {
    const open = (now?: number) => {
      const opened = openDocument<CommandClaims>(text, DOCUMENT_KINDS.command, {
        keys: trust.keys,
        audience: agentId,
        ...(now !== undefined && { now }),
      })
      return opened.ok ? CommandClaims.safeParse(opened.claims).data : undefined
    }
    // A revocation is final, and a revoked agent cannot log in to request the time. So a wrong clock must not block the
    // command.
    if (open()?.command === 'revoke') {
      onRevoked(claimedKeyId(text, DOCUMENT_KINDS.command) ?? '')
      return 'done'
    }
    const { nowMs, trust: clockTrust } = clock.now()
    const command = open(clockTrust === 'none' ? undefined : nowMs / 1_000)
    if (command?.command !== 'void' || command.nonce === undefined) return 'poll'
    voidToken(command.nonce)
    return 'done'
  }
}
