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
  /** True if a release at this device switches an output or writes to the named tag. */
  canRelease(deviceId: string, isTagNamed: boolean): boolean
  /** Moves a device; never throws. */
  execute: Execute
}

/** Longest wait for the outcome, ms. The API of POST /v1/authorize promises this limit. */
const OUTCOME_TIMEOUT_MS = 10_000

const ALREADY_OPEN: CommandResult = {
  outcome: 'confirmed',
  commanded: false,
  detail: 'already_open: the gate was opened for another unit of the receipt',
}
const NOTHING_TO_OPEN: CommandResult = {
  outcome: 'confirmed',
  commanded: false,
  detail: 'nothing_to_open: this gate has nothing to open',
}

/**
 * Sends at most one command for a claimed redemption, and resolves with the device's result. Never throws.
 */
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
  // No decision depends on the stored time of the command, so the command does not wait for this write.
  ledger.commits.durably(() => ledger.claims.markCommanded(redemptionId)).catch(() => undefined)
  const limit = deadline(platform.timers, OUTCOME_TIMEOUT_MS)
  try {
    return await execute(deviceId, { kind: 'release', ...(tag && { tag }) }, limit.signal)
  } finally {
    limit.done()
  }
}

/**
 * Tag that the device must write to. If the request names both EPC and UID, the capabilities of the device determine
 * which of the two is returned.
 */
function tagOf({ epc, tagUid }: ItemIdentifiers, { capabilities }: DeviceFacts): TagName | undefined {
  const isByUid =
    tagUid !== undefined && (epc === undefined || (capabilities.canReadHfNfc && !capabilities.canReadUhfRfid))
  if (isByUid) return { tagUid }
  return epc === undefined ? undefined : { epc }
}
