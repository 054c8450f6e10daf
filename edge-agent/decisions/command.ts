import type { CommandResult, TagName } from '../../device-drivers/drivers/device.ts'
import type { DeviceFacts } from '../../policy/devices.ts'
import type { ItemIdentifiers } from '../../policy/item-identifiers.ts'
import { deadline, type Platform } from '../../policy/platform.ts'
import type { Execute } from '../devices/release-watch.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { RequestContext } from './request.ts'

export interface CommandParts {
  platform: Pick<Platform, 'timers'>
  ledger: Pick<Ledger, 'commits' | 'claims'>
  /** Whether a release does anything at this device, by an output or to the tag that it names. */
  canRelease(deviceId: string, isTagNamed: boolean): boolean
  /** Moves a device; never throws. */
  execute: Execute
}

/** The answer comes when the outcome is known, ms at most (contracts §6). */
const OUTCOME_TIMEOUT_MS = 10_000

const ALREADY_OPEN: CommandResult = {
  outcome: 'confirmed',
  commanded: false,
  detail: 'already_open: it was opened for another unit of the receipt',
}
const NOTHING_TO_OPEN: CommandResult = {
  outcome: 'confirmed',
  commanded: false,
  detail: 'nothing_to_open: nothing bars the way out at this gate',
}

/** Commands the device of a claimed redemption, once, and resolves with what it confirms. Never throws. */
export async function commandRelease(
  { platform, ledger, canRelease, execute }: CommandParts,
  redemptionId: string,
  { request, device }: RequestContext,
): Promise<CommandResult> {
  const { deviceId, action } = request
  const tag = tagOf(request.identifiers, device)
  if (request.isAlreadyOpen === true) return ALREADY_OPEN
  const isExit = device.deviceType === 'exit_gate' && action === 'authorize_exit'
  if (isExit && !canRelease(deviceId, tag !== undefined)) return NOTHING_TO_OPEN
  // Only for people who read the ledger: no decision depends on it, so the command does not wait for it.
  ledger.commits.durably(() => ledger.claims.markCommanded(redemptionId)).catch(() => undefined)
  const limit = deadline(platform.timers, OUTCOME_TIMEOUT_MS)
  try {
    return await execute(deviceId, { kind: 'release', ...(tag && { tag }) }, limit.signal)
  } finally {
    limit.done()
  }
}

/** The tag that a device is to write to, by the name that its own reader knows where both are given. */
function tagOf({ epc, tagUid }: ItemIdentifiers, { capabilities }: DeviceFacts): TagName | undefined {
  const isByUid =
    tagUid !== undefined && (epc === undefined || (capabilities.canReadHfNfc && !capabilities.canReadUhfRfid))
  if (isByUid) return { tagUid }
  return epc === undefined ? undefined : { epc }
}
