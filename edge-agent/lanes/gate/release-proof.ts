import { openAuthorization } from '../../../policy/documents/authorization.ts'
import { SILENT_SECONDS, type AnnouncedRelease } from '../../../policy/documents/release-notice.ts'
import { canPerform } from '../../../policy/devices.ts'
import { normaliseIdentifiers } from '../../../policy/item-identifiers.ts'
import { openReceipt } from '../../../policy/receipts/receipt-token.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import { validationTime, type AgentClock } from '../../trust/time/clock.ts'
import type { Trust } from '../../trust/trust.ts'
import { unitsThatFit, type ReleasedUnit, type UnitProof } from './released-units.ts'

/**
 * Verifies a release of this agent, or a release notice of another agent, before a gate stays silent for the unit.
 * Checks the sender's device, the age, the receipt or token, and the named tag.
 */
export interface ReleaseProofParts {
  agentId: string
  storeId: string
  trust: Pick<Trust, 'keys' | 'policy' | 'stage'>
  clock: Pick<AgentClock, 'now'>
  ledger: Pick<Ledger, 'claims'>
}

export type CheckedRelease = { ok: true; unit: ReleasedUnit } | { ok: false; why: string }

/** Maximum difference between the clocks of two agents in a store, s. */
const CLOCKS_DIFFER_S = 60

const refuse = (why: string) => ({ ok: false as const, why })

/**
 * Returns the unit for which the release has a valid proof, or why the release is rejected. `senderId`: agent that
 * announces the release.
 */
export function verifyRelease(parts: ReleaseProofParts, release: AnnouncedRelease, senderId: string): CheckedRelease {
  const fault = senderFault(parts, release, senderId) ?? ageFault(parts, release)
  if (fault !== undefined) return refuse(fault)
  const { releasedS } = release
  const opened = 'receipt' in release.proof ? byReceipt(parts, release.proof) : byToken(parts, release, release.proof)
  if (!opened.ok) return opened
  const { epc, tagUid } = release
  const named = normaliseIdentifiers({ epc, tagUid })
  if (!named.ok || named.identifiers.epc !== epc || named.identifiers.tagUid !== tagUid)
    return refuse('the named tag is not in its normal form')
  const tags = [...(epc === undefined ? [] : [epc]), ...(tagUid === undefined ? [] : [`U${tagUid}`])]
  const tag = tags.find((each) => unitsThatFit(each)(opened.proof))
  if (tags.length > 0 && tag === undefined) return refuse('the named tag is not the unit of the receipt or token')
  const untilMs = Math.min(releasedS + SILENT_SECONDS, opened.endsS ?? Number.POSITIVE_INFINITY) * 1_000
  return { ok: true, unit: { proof: opened.proof, untilMs, ...(tag !== undefined && { tag }) } }
}

/** Returns why the sender cannot have made the release. */
function senderFault(
  { agentId, trust }: ReleaseProofParts,
  release: AnnouncedRelease,
  senderId: string,
): string | undefined {
  const device = trust.policy?.devices.find(({ deviceId }) => deviceId === release.deviceId)
  if (!device || trust.stage() === 'expired') return 'the device is unknown, or the policy expired'
  // If no agent has adopted the device, it counts as a device of this agent.
  const owner = device.agentId ?? agentId
  if (owner !== senderId) return 'the sender does not own the device'
  return device.revoked || !canPerform(device, release.protectionAction)
    ? 'the device cannot perform this action'
    : undefined
}

/** Returns why the age of the release is not acceptable. Without trusted time the age is unknown. */
function ageFault({ clock }: ReleaseProofParts, { releasedS }: AnnouncedRelease): string | undefined {
  const { nowMs, trust } = clock.now()
  const ageS = nowMs / 1_000 - releasedS
  if (trust === 'none') return 'this agent has no trusted time'
  return ageS < -CLOCKS_DIFFER_S || ageS >= SILENT_SECONDS ? 'the release is not of the last hour' : undefined
}

type OpenedProof = { ok: true; proof: UnitProof; endsS?: number } | { ok: false; why: string }

function byReceipt(
  { storeId, trust, clock, ledger }: ReleaseProofParts,
  { receipt, ordinal }: { receipt: string; ordinal: number },
): OpenedProof {
  const opened = openReceipt(receipt, { keys: trust.keys, storeId, ...validationTime(clock) })
  if (!opened.ok) return refuse(`the receipt is ${opened.fault}`)
  const { cti, entries, exp } = opened.claims
  const entry = entries?.[ordinal]
  if (!entry) return refuse('the receipt has no entry for the unit')
  if (ledger.claims.isDenied(Buffer.from(cti).toString('hex'))) return refuse('the receipt was revoked')
  return { ok: true, proof: { kind: 'receipt', cti, ordinal, entry: Buffer.from(entry).toString('hex') }, endsS: exp }
}

function byToken(
  { trust, ledger }: ReleaseProofParts,
  { deviceId, protectionAction, releasedS }: AnnouncedRelease,
  { token }: { token: string },
): OpenedProof {
  const opened = openAuthorization(token, { keys: trust.keys, audience: deviceId })
  if (!opened.ok) return refuse(`the token is ${opened.fault}`)
  const { aud, jti, ith, act, iat, exp } = opened.authorization
  if (act !== protectionAction || releasedS < iat - CLOCKS_DIFFER_S || releasedS > exp + CLOCKS_DIFFER_S)
    return refuse('the token is for another action or another time')
  if (ith === undefined) return refuse('the token names no item')
  if (ledger.claims.isDenied(jti)) return refuse('the token was revoked')
  return { ok: true, proof: { kind: 'token', aud, jti, ith } }
}
