import type { TagName } from '../../device-drivers/kit/device.ts'
import { releaseActionOf, releasesByTag, type DeviceFacts } from '../../policy/devices.ts'
import { readProductCode } from '../../policy/gs1/product-code.ts'
import { normaliseIdentifiers } from '../../policy/item-identifiers.ts'
import type { Platform } from '../../policy/platform.ts'
import {
  rightClassOf,
  SCAN_SOURCE_OF,
  type DeviceType,
  type ProtectionAction,
  type TagTechnology,
  type WorkflowType,
} from '../../policy/vocabulary.ts'
import {
  looksLikePickupCode,
  type VerifiedCode,
  numberEndIn,
  purchaseNumberIn,
  type FoundReceipt,
} from '../decisions/pickup-code.ts'
import type { AuthorizeRequest } from '../decisions/request.ts'
import type { SoldByCode } from '../decisions/sale-codes.ts'
import { classifyScan, type ScannedCode } from '../decisions/classify-scan.ts'
import type { LaneOperators, Operators } from './operators.ts'
import { sessionFor, type LaneState, type LaneStates } from './lane-states.ts'
import type { Replica } from '../items/replica.ts'
import { receiptResult, type ScanOrigin, type ScanResult } from './scan-result.ts'
import { unusedRights, type ReceiptParts, type UnusedRights } from './unused-rights.ts'

interface LaneReaderParts extends ReceiptParts {
  platform: Pick<Platform, 'clock'>
  states: LaneStates
  items: Pick<Replica, 'onlyProductOf' | 'namesByGtin'>
  operators: Operators
  laneOperators: Pick<LaneOperators, 'signInWithProof'>
  /** The policy's facts about the device; undefined if the policy does not list it. */
  deviceOf(deviceId: string): DeviceFacts | undefined
  verifyPickupCode(code: string): Promise<VerifiedCode>
  receiptOfPurchase(named: { purchaseId: string } | { number: string }): Promise<FoundReceipt>
  saleOfCode(code: string): Promise<SoldByCode>
  /** Called after a receipt was presented: the receipt may cover tags that are still at the reader. */
  onReceipt(deviceId: string): void
}

/** A scan becomes a request for a decision, or has a result at once. */
type ReadScan = { request: AuthorizeRequest } | { result: ScanResult }

type NotUnderstood = (ScanResult & { kind: 'not_understood' })['why']

/** Workflows in which only staff scan. */
const STAFF_WORKFLOWS: ReadonlySet<WorkflowType> = new Set(['staff_assisted', 'pos_integrated'])
/** Devices that accept a printed tag number or a pick-up code. */
const TAG_NUMBER_DEVICES: ReadonlySet<DeviceType> = new Set(['handheld_reader', 'cabinet_unlocker'])
/** Time in which the last receipt at a device covers the tags that follow, ms. */
const RECEIPT_MEMORY_MS = 2 * 60_000

/** The purchase that a text names. Only staff type the end of a number, because numbers of tags and codes of tills look alike. */
function purchaseIn(
  text: string,
  device: DeviceFacts | undefined,
  isTypedByStaff: boolean | undefined,
): { purchaseId: string } | { number: string } | undefined {
  const purchaseId = purchaseNumberIn(text)
  if (purchaseId !== undefined) return { purchaseId }
  const isEnd = isTypedByStaff === true && device !== undefined && !TAG_NUMBER_DEVICES.has(device.deviceType)
  const number = isEnd ? numberEndIn(text) : undefined
  return number === undefined ? undefined : { number }
}

/** Wrong codes at a lane in `WRONG_CODES_MS`, after which only staff may present one. */
const WRONG_CODES = 10
const WRONG_CODES_MS = 10 * 60_000

const notUnderstood = (why: NotUnderstood): ReadScan => ({ result: { kind: 'not_understood', why } })

/**
 *   text ─┬─ badge ─▶ sign-in of the operator
 *         ├─ number of a purchase, from staff ─▶ its receipt, from the cloud
 *         ├─ receipt, token, EPC, printed tag number ─▶ request
 *         ├─ code of a till's receipt ─▶ its receipt, or its sale
 *         ├─ pick-up code at a handheld ─▶ order; at a cabinet ─▶ request to open the locker
 *         └─ anything else ─▶ not understood
 *   tag at a reader ─▶ request
 *
 * Interprets scans and tags at a lane, with the lane's last receipt and operator session.
 */
export class LaneReader {
  readonly #parts: LaneReaderParts

  constructor(parts: LaneReaderParts) {
    this.#parts = parts
  }

  async readScan(
    deviceId: string,
    text: string,
    { operatorId, byHand, caller, symbology, isStillAllowed }: ScanOrigin,
  ): Promise<ReadScan> {
    const { states, operators, laneOperators, deviceOf } = this.#parts
    const device = deviceOf(deviceId)
    const state = states.of(deviceId)
    const session = sessionFor(state, caller)
    if (byHand || (device && STAFF_WORKFLOWS.has(device.workflowType))) operators.find(session)
    const named = purchaseIn(text, device, byHand && operators.peek(session) !== undefined)
    // Unlike a receipt, the number of a purchase is no secret: lists and webhooks contain it. So it needs staff.
    if (named !== undefined && !operators.peek(session)) return notUnderstood('needs_staff')
    const found = named === undefined ? undefined : await this.#parts.receiptOfPurchase(named)
    // What is the end of no number may be a code that a till printed.
    const isOther = named !== undefined && 'number' in named && found?.kind === 'none' && found.why === 'unknown_code'
    if (found?.kind === 'none' && !isOther) return notUnderstood(found.why)
    const scanned = classifyScan(found?.kind === 'receipt' ? found.text : text, symbology)
    if (scanned.kind === 'badge') {
      const callerId = typeof caller === 'object' ? caller.id : undefined
      return { result: laneOperators.signInWithProof(deviceId, { badge: scanned.text }, callerId) }
    }
    const order = await this.#readPickupCode(device, scanned, text, operators.peek(session) !== undefined)
    if (order) return order
    if (scanned.kind === 'ean') return notUnderstood('product_code')
    const tagId = scanned.kind === 'unknown' ? tagNumberIn(text, device) : undefined
    const base = { ...baseOf(deviceId, device, operatorId ?? operators.peek(session)?.operatorId), isStillAllowed }
    if (scanned.kind === 'unknown' && tagId === undefined) {
      if (readProductCode(text, symbology).ok) return notUnderstood('product_code')
      const read = await this.#readSaleCode(base, text.trim())
      const isUnknown = 'result' in read && read.result.kind === 'not_understood' && read.result.why === 'unknown_code'
      // Staff who have not signed in yet may have typed the end of a purchase number.
      const mayBeNumber = byHand === true && !operators.peek(session) && purchaseIn(text, device, true) !== undefined
      return isUnknown && mayBeNumber ? notUnderstood('unknown_code_or_number') : read
    }
    if (scanned.kind === 'receipt') {
      const rest = this.#rememberReceipt(deviceId, device, scanned.text)
      if (rest) return { result: receiptResult(this.#parts.items, rest) }
    }
    const presented = tagId === undefined ? this.#presented(scanned, state, base.action) : { identifiers: { tagId } }
    return { request: { ...base, ...presented } }
  }

  /**
   * Finds the sale of a code that a till printed on its receipt. After too many wrong codes at a lane, only staff may
   * present one, so that a shopper cannot find the code of another customer by trying.
   */
  async saleOfCode(deviceId: string, text: string, isStaff: boolean): Promise<SoldByCode> {
    // Invented devices would have no limit.
    if (!isStaff && !this.#parts.deviceOf(deviceId)) return { kind: 'none', why: 'needs_staff' }
    const state = this.#parts.states.of(deviceId)
    const nowMs = this.#parts.platform.clock.elapsed()
    const wrong = state.wrongCodes && nowMs - state.wrongCodes.sinceMs < WRONG_CODES_MS ? state.wrongCodes : undefined
    if (wrong && wrong.count >= WRONG_CODES && !isStaff) return { kind: 'none', why: 'needs_staff' }
    // Each counts as wrong until it was right: many may be on their way at once.
    const counted = { sinceMs: wrong?.sinceMs ?? nowMs, count: (wrong?.count ?? 0) + 1 }
    state.wrongCodes = counted
    const sold = await this.#parts.saleOfCode(text.trim())
    if ((sold.kind !== 'none' || sold.why === 'receipt_expired') && state.wrongCodes.sinceMs === counted.sinceMs)
      state.wrongCodes = { ...state.wrongCodes, count: state.wrongCodes.count - 1 }
    return sold
  }

  async #readSaleCode(base: ReturnType<typeof baseOf>, text: string): Promise<ReadScan> {
    const { deviceId, operatorId } = base
    const sold = await this.saleOfCode(deviceId, text, operatorId !== undefined)
    if (sold.kind === 'none') return notUnderstood(sold.why)
    const isExit = rightClassOf(base.action) === 'exit'
    if (!sold.releases && !isExit) return notUnderstood('code_for_exit')
    // Without the receipt, the goods of the sale are unknown here. Its tags count as paid by themselves.
    if (sold.kind === 'sale')
      return isExit ? { request: { ...base, sale: sold.sale, identifiers: {} } } : notUnderstood('needs_connection')
    // A remembered receipt would cover tags by their products.
    if (!sold.releases) return { request: { ...base, receipt: sold.text, isOnlyBarrier: true, identifiers: {} } }
    const rest = this.#rememberReceipt(deviceId, this.#parts.deviceOf(deviceId), sold.text)
    return rest
      ? { result: receiptResult(this.#parts.items, rest) }
      : { request: { ...base, receipt: sold.text, identifiers: {} } }
  }

  /** Makes the request for a tag that was presented to a reader. */
  readTag(deviceId: string, tag: TagName, tagTechnology: TagTechnology | undefined): AuthorizeRequest {
    const { states, operators, deviceOf } = this.#parts
    const state = states.of(deviceId)
    const base = baseOf(deviceId, deviceOf(deviceId), operators.peek(state.operatorSession)?.operatorId)
    return { ...base, identifiers: tag, tagTechnology, ...this.#receiptBefore(state, base.action) }
  }

  async #readPickupCode(
    device: DeviceFacts | undefined,
    scanned: ScannedCode,
    text: string,
    isSignedIn: boolean,
  ): Promise<ReadScan | undefined> {
    if (!device || !TAG_NUMBER_DEVICES.has(device.deviceType) || scanned.kind === 'receipt') return undefined
    if (!looksLikePickupCode(text)) return undefined
    const isLocker = device.deviceType === 'cabinet_unlocker'
    const verified = await this.#parts.verifyPickupCode(text)
    if (verified.kind === 'order') {
      if (!isLocker) return { result: verified }
      const { deviceId } = device
      return { request: { ...baseOf(deviceId, device, undefined), identifiers: {}, pickupCode: text.trim() } }
    }
    // If the cloud returned no order, the text may still be a tag number or another code.
    const isOnlyCode = verified.kind === 'unreachable' && scanned.kind === 'unknown' && !(isLocker && isSignedIn)
    return isOnlyCode ? notUnderstood('needs_connection') : undefined
  }

  /** Remembers a receipt. If the device reads the tags after the receipt, returns the unused units. */
  #rememberReceipt(deviceId: string, device: DeviceFacts | undefined, text: string): UnusedRights | undefined {
    const { states, platform, onReceipt } = this.#parts
    states.of(deviceId).receipt = { text, atMs: platform.clock.elapsed() }
    const rest = device && releasesByTag(device) ? unusedRights(this.#parts, text, 'release') : undefined
    onReceipt(deviceId)
    return rest
  }

  #presented(
    scanned: ScannedCode,
    state: LaneState,
    action: ProtectionAction,
  ): Pick<AuthorizeRequest, 'identifiers' | 'receipt' | 'token'> {
    if (scanned.kind === 'token') return { token: scanned.text, identifiers: {} }
    if (scanned.kind === 'receipt') return { receipt: scanned.text, identifiers: {} }
    const identifiers = scanned.kind === 'epc' ? { epc: scanned.epc } : {}
    return { identifiers, ...this.#receiptBefore(state, action) }
  }

  /**
   * Returns the remembered receipt. Returns an empty object if the receipt is too old, or if the action needs no right.
   */
  #receiptBefore({ receipt }: LaneState, action: ProtectionAction): { receipt?: string } {
    const nowMs = this.#parts.platform.clock.elapsed()
    const isFresh = receipt !== undefined && nowMs - receipt.atMs <= RECEIPT_MEMORY_MS
    return isFresh && rightClassOf(action) !== null ? { receipt: receipt.text } : {}
  }
}

/**
 * Returns the tag number in a bar code. Returns undefined if the text cannot be a tag number, or if the device is not
 * for staff.
 */
function tagNumberIn(text: string, device: DeviceFacts | undefined): string | undefined {
  if (!device || !TAG_NUMBER_DEVICES.has(device.deviceType)) return undefined
  const normal = normaliseIdentifiers({ tagId: text.trim() })
  return normal.ok ? normal.identifiers.tagId : undefined
}

function actionOf(device: DeviceFacts): ProtectionAction {
  if (device.deviceType === 'exit_gate') return 'authorize_exit'
  if (device.deviceType === 'handheld_reader') return 'verify_item_status'
  if (device.deviceType === 'cabinet_unlocker') return 'unlock_fixture'
  return releaseActionOf(device) ?? 'deactivate_label'
}

function baseOf(deviceId: string, device: DeviceFacts | undefined, operatorId: string | undefined) {
  return {
    deviceId,
    action: device ? actionOf(device) : ('deactivate_label' as const),
    ...(device && { scanSource: SCAN_SOURCE_OF[device.deviceType] }),
    ...(operatorId !== undefined && { operatorId }),
  }
}
