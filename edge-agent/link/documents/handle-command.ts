import { CommandClaims } from '../../../policy/documents/agent-messages.ts'
import { DOCUMENT_KINDS } from '../../../policy/documents/kinds.ts'
import { claimedKeyId, openDocument } from '../../../policy/documents/signed-document.ts'
import type { AgentClock } from '../../trust/time/clock.ts'
import type { Trust } from '../../trust/trust.ts'

/** `poll`: the command is no signed order, so the agent only polls for documents. */
export type CommandResult = 'done' | 'poll'

export interface CommandParts {
  agentId: string
  trust: Pick<Trust, 'keys'>
  clock: Pick<AgentClock, 'now'>
  /** Voids a token for ever. */
  giveUp(nonce: string): void
  /** A command signed with this key revoked the agent. */
  onRevoked(kid: string): void
}

/** Takes what the cloud asks for, by whichever way it came: only what is signed, and of now unless it is for ever, does more than look. */
export function commandHandler({
  agentId,
  trust,
  clock,
  giveUp,
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
    // Whoever is revoked stays so, and gets no login any more with which to ask for the time: a clock that has drifted must not keep it from hearing.
    if (open()?.command === 'revoke') {
      onRevoked(claimedKeyId(text, DOCUMENT_KINDS.command) ?? '')
      return 'done'
    }
    const { nowMs, trust: clockTrust } = clock.now()
    const command = open(clockTrust === 'none' ? undefined : nowMs / 1_000)
    if (command?.command !== 'void' || command.nonce === undefined) return 'poll'
    giveUp(command.nonce)
    return 'done'
  }
}
