import type { DeviceEvent, TagName } from '../../device-drivers/drivers/device.ts'
import { releaseActionOf, releasesByTag, type DeviceFacts } from '../../policy/devices.ts'
import { ITEM_IDENTIFIER_KINDS, namesTag, normaliseIdentifiers } from '../../policy/identifiers.ts'
import {
  rightClass,
  SCAN_SOURCE_OF,
  type DenyReason,
  type DeviceType,
  type ProtectionAction,
  type TagTechnology,
  type WorkflowType,
} from '../../policy/vocabulary.ts'
import type { AuthorizeAnswer, AuthorizeRequest } from '../decisions/request.ts'
import { looksLikePickupCode, type PickupOrder, type VerifiedCode } from '../decisions/pickup-code.ts'
import { classify, type Scanned } from '../decisions/scan.ts'
import { itemNamed } from '../items/item-named.ts'
import type { Replica } from '../items/replica.ts'
import type { Log } from '../log.ts'
import { openGateRequests, type GateRequestsParts } from './gate/gate-requests.ts'
import type { OpenedSession, Operators, Proof } from './operators.ts'
import { openPresentations } from './presentations.ts'
import { sessionFor, type Caller, type LaneState } from './lane-state.ts'
import { laneStates } from './lane-states.ts'
import { openStaffCards } from './staff-cards.ts'
import type { DeviceAlarm } from '../devices/devices.ts'
import { unusedRights } from './unused-rights.ts'

/**
 *   scanner ─▶ what is it? ─▶ the lane's action ─▶ authorize ─▶ page, lamp, siren
 *   reader ─▶ a tag is presented ─┘
 *
 * A lane is a device at which people stand: a staff station, a detacher, a gate. What is scanned or
 * presented there becomes one request; what the page sends takes the same way.
 */
export interface Lanes {
  /** Something happened at a device. */
  onEvent(deviceId: string, event: DeviceEvent): void
  /** A request from the page or a program, with the gate's signals if it is one. */
  request(request: AuthorizeRequest): Promise<AuthorizeAnswer>
  /** A text that was scanned or typed at a device. */
  scan(deviceId: string, text: string, by?: ScannedBy): Promise<ScanResult>
  /** The operator who stands at a station, by badge or card. */
  operatorAt(deviceId: string): string | undefined
  /** Somebody signs in at a device, and stands behind what is asked there until they leave or 15 idle minutes. */
  /** `callerId`: the caller for which wrong PINs are counted. */
  signIn(deviceId: string, proof: Proof, callerId: string): OpenedSession
  leave(deviceId: string): void
  stop(): void
  /** Resolves when what was being decided is written down with its outcome. */
  settled(): Promise<void>
}

/** Who is known to have had something scanned; without it anybody may have. */
export interface ScannedBy {
  /** Of a session of its own. */
  operatorId?: string | undefined
  /** Somebody typed or pressed a button: whoever has signed in at the device is still there. What is scanned, shoppers scan too. */
  byHand?: boolean | undefined
  /** Over HTTP; the device's own scanner needs to be nobody. */
  from?: Caller | undefined
}

export type ScanResult =
  /** `item`: the tag or line that was named. */
  | { kind: 'decision'; answer: AuthorizeAnswer; item?: string }
  | { kind: 'operator'; name: string }
  /** A receipt that counts for the tags that follow; `left`: units that are still to be released. */
  | { kind: 'receipt'; left: number }
  /** Something went on that nobody asked for. */
  | { kind: 'alarm'; what: DeviceAlarm }
  /** The order of a pick-up code. */
  | { kind: 'order'; order: PickupOrder }
  | {
      kind: 'not_understood'
      why:
        | 'unknown_code'
        | 'needs_connection'
        | 'product_code'
        | 'wrong_badge'
        | 'locked'
        | 'no_store_key'
        | 'out_of_order'
    }

export interface LaneParts extends GateRequestsParts {
  operators: Operators
  items: Pick<Replica, 'find' | 'onChange'>
  verifyPickupCode(code: string): Promise<VerifiedCode>
  log: Log
  /** For the pages: what came of whatever was asked at a device, and who stands there. */
  onResult(deviceId: string, result: ScanResult): void
  onOperator(deviceId: string, name: string | null): void
  onPerson(deviceId: string, direction: 'in' | 'out'): void
}

/** Where only staff hold something to the scanner. */
const BY_STAFF: ReadonlySet<WorkflowType> = new Set(['staff_assisted', 'pos_integrated'])
/** Where the number that is printed on a tag may be scanned: staff stand there. */
const TAKES_TAG_NUMBERS: ReadonlySet<DeviceType> = new Set(['handheld_reader', 'cabinet_unlocker'])

/** Why a tag is refused that is not the receipt's, or whose receipt counts for nothing. */
const OF_A_RECEIPT: ReadonlySet<DenyReason> = new Set([
  'item_not_paid',
  'token_invalid',
  'token_expired',
  'token_revoked',
])

/** A receipt shown at a device serves for the tags that follow, ms. */
const RECEIPT_MEMORY_MS = 2 * 60_000

/** Starts a lane for every device. */
export function openLanes(parts: LaneParts): Lanes {
  const { platform, trust, operators, authorize } = parts
  const gateRequests = openGateRequests(parts)
  const states = laneStates((deviceId) => factsOf(deviceId) !== undefined)
  const stateOf = states.of
  const underWay = new Set<Promise<unknown>>()
  const presentations = openPresentations({ platform, find: (tag) => itemNamed(parts.items, tag), ask: askForTag })
  const stopListening = parts.items.onChange(presentations.itemsChanged)

  function factsOf(deviceId: string): DeviceFacts | undefined {
    return trust.policy?.devices.find((d) => d.deviceId === deviceId)
  }

  /** Whether tags that are read here are on their way out. A policy that is not believed any more leaves gates gates (P6). */
  function isGate(deviceId: string): boolean {
    if (trust.policy) stateOf(deviceId).wasGate = factsOf(deviceId)?.deviceType === 'exit_gate'
    return stateOf(deviceId).wasGate ?? parts.wiring.looksLikeGate(deviceId)
  }

  async function request(asked: AuthorizeRequest): Promise<AuthorizeAnswer> {
    const answer = await decide(asked)
    parts.onResult(asked.deviceId, decision(asked, answer))
    return answer
  }

  function decision({ identifiers }: AuthorizeRequest, answer: AuthorizeAnswer): ScanResult {
    const named = ITEM_IDENTIFIER_KINDS.find((kind) => identifiers[kind] !== undefined)
    const item = named && identifiers[named]
    return { kind: 'decision', answer, ...(item !== undefined && { item }) }
  }

  async function decideAt(asked: AuthorizeRequest): Promise<AuthorizeAnswer> {
    const isGate = factsOf(asked.deviceId)?.deviceType === 'exit_gate'
    return isGate ? gateRequests.decide(asked) : withRest(asked, await authorize(asked))
  }

  function decide(asked: AuthorizeRequest): Promise<AuthorizeAnswer> {
    const decided = decideAt(asked)
    underWay.add(decided)
    return decided.finally(() => underWay.delete(decided))
  }

  /** Of a receipt with tags the answer names one unit; whoever stands there wants to know how many are left. */
  function withRest(asked: AuthorizeRequest, answer: AuthorizeAnswer): AuthorizeAnswer {
    if (
      !answer.authorized ||
      asked.receipt === undefined ||
      !namesTag(asked.identifiers) ||
      rightClass(asked.action) !== 'release'
    )
      return answer
    const rest = unusedRights(parts, asked.receipt, 'release')
    return rest ? { ...answer, itemCount: rest.claims.units, remaining: rest.unused.length } : answer
  }

  function actionOf(device: DeviceFacts): ProtectionAction {
    if (device.deviceType === 'exit_gate') return 'authorize_exit'
    if (device.deviceType === 'handheld_reader') return 'verify_item_status'
    if (device.deviceType === 'cabinet_unlocker') return 'unlock_fixture'
    return releaseActionOf(device) ?? 'deactivate_label'
  }

  async function scan(deviceId: string, text: string, by: ScannedBy = {}): Promise<ScanResult> {
    const result = await take(deviceId, text, by)
    parts.onResult(deviceId, result)
    return result
  }

  async function take(deviceId: string, text: string, by: ScannedBy): Promise<ScanResult> {
    const { operatorId, byHand, from } = by
    const scanned = classify(text)
    const device = factsOf(deviceId)
    const state = stateOf(deviceId)
    const session = sessionFor(state, from)
    if (byHand || (device && BY_STAFF.has(device.workflowType))) operators.find(session)
    if (scanned.kind === 'badge')
      return takeProof(deviceId, { badge: scanned.text }, typeof from === 'object' ? from.id : undefined)
    if (device?.deviceType === 'handheld_reader' && scanned.kind !== 'receipt' && looksLikePickupCode(text)) {
      const verified = await parts.verifyPickupCode(text)
      if (verified.kind === 'order') return verified
      // It may be the printed number of a tag all the same.
      if (verified.kind === 'unreachable' && scanned.kind === 'unknown')
        return { kind: 'not_understood', why: 'needs_connection' }
    }
    if (scanned.kind === 'ean') return { kind: 'not_understood', why: 'product_code' }
    const tagId =
      scanned.kind === 'unknown' && device && TAKES_TAG_NUMBERS.has(device.deviceType) ? tagIdIn(text) : undefined
    if (scanned.kind === 'unknown' && tagId === undefined) return { kind: 'not_understood', why: 'unknown_code' }
    const operator = operatorId ?? operators.look(session)?.operatorId
    const base = baseOf(deviceId, device, operator)
    if (scanned.kind === 'receipt') {
      state.receipt = { text: scanned.text, atMs: platform.clock.elapsed() }
      const rest = device && releasesByTag(device) ? unusedRights(parts, scanned.text, 'release') : undefined
      presentations.again(deviceId)
      if (rest) return { kind: 'receipt', left: rest.unused.length }
    }
    const asked = {
      ...base,
      ...(tagId === undefined ? presented(scanned, state, base.action) : { identifiers: { tagId } }),
    }
    return decision(asked, await decideWith(asked))
  }

  /** What a bar code on a tag may say that is no EPC: the number under which the tag is registered. */
  function tagIdIn(text: string): string | undefined {
    const normal = normaliseIdentifiers({ tagId: text.trim() })
    return normal.ok ? normal.identifiers.tagId : undefined
  }

  function baseOf(deviceId: string, device: DeviceFacts | undefined, operatorId: string | undefined) {
    return {
      deviceId,
      action: device ? actionOf(device) : ('deactivate_label' as const),
      ...(device && { scanSource: SCAN_SOURCE_OF[device.deviceType] }),
      ...(operatorId !== undefined && { operatorId }),
    }
  }

  function presented(
    scanned: Scanned,
    state: LaneState,
    action: ProtectionAction,
  ): Pick<AuthorizeRequest, 'identifiers' | 'receipt' | 'token'> {
    if (scanned.kind === 'token') return { token: scanned.text, identifiers: {} }
    if (scanned.kind === 'receipt') return { receipt: scanned.text, identifiers: {} }
    return { identifiers: scanned.kind === 'epc' ? { epc: scanned.epc } : {}, ...receiptBefore(state, action) }
  }

  /** The receipt that was shown here a moment ago covers what follows, unless it is only asked about. */
  function receiptBefore({ receipt }: LaneState, action: ProtectionAction): { receipt?: string } {
    const isFresh = receipt !== undefined && platform.clock.elapsed() - receipt.atMs <= RECEIPT_MEMORY_MS
    return isFresh && rightClass(action) !== null ? { receipt: receipt.text } : {}
  }

  /** A tag was presented to a reader: it is the request. */
  async function askForTag(deviceId: string, tag: TagName, tagTechnology?: TagTechnology): Promise<boolean> {
    const device = factsOf(deviceId)
    const state = stateOf(deviceId)
    const base = baseOf(deviceId, device, operators.look(state.operatorSession)?.operatorId)
    try {
      const asked = { ...base, identifiers: tag, tagTechnology, ...receiptBefore(state, base.action) }
      const answer = await decideWith(asked)
      parts.onResult(deviceId, decision(asked, answer))
      return answer.authorized
    } catch (error) {
      parts.log.error({ err: error, deviceId }, 'a tag could not be decided about')
      parts.onResult(deviceId, { kind: 'not_understood', why: 'out_of_order' })
      return false
    }
  }

  /** Somebody else's receipt may have been shown before, or one that counts for nothing: an item that is paid needs none. */
  async function decideWith({ receipt, ...alone }: AuthorizeRequest): Promise<AuthorizeAnswer> {
    const first = await decide({ ...alone, ...(receipt !== undefined && { receipt }) })
    const isOfReceipt = receipt !== undefined && first.reason !== undefined && OF_A_RECEIPT.has(first.reason)
    const status = isOfReceipt && itemNamed(parts.items, alone.identifiers)?.status
    return status === 'paid' || status === 'picked_up' ? decide(alone) : first
  }

  function takeProof(deviceId: string, proof: Proof, callerId = `device ${deviceId}`): ScanResult {
    const opened = signIn(deviceId, proof, callerId)
    if (!opened.ok) return { kind: 'not_understood', why: opened.reason === 'wrong' ? 'wrong_badge' : opened.reason }
    return { kind: 'operator', name: opened.name }
  }

  function signIn(deviceId: string, proof: Proof, callerId: string): OpenedSession {
    const opened = operators.open(proof, callerId)
    if (!opened.ok || !factsOf(deviceId)) return opened
    // Whoever stood here before does not any more.
    const state = stateOf(deviceId)
    if (state.operatorSession !== undefined) operators.close(state.operatorSession)
    state.operatorSession = opened.session
    parts.onOperator(deviceId, opened.name)
    presentations.again(deviceId)
    return opened
  }

  const staffCards = openStaffCards({
    platform,
    wiring: parts.wiring,
    onCard: (deviceId, readerId, card) => parts.onResult(deviceId, takeProof(deviceId, { card, readerId })),
  })

  return {
    request,
    scan,
    onEvent(sourceId, event) {
      const deviceId = parts.wiring.laneOf(sourceId)
      if (staffCards.take(sourceId, deviceId, event)) return
      if (event.type === 'tags' && isGate(deviceId)) parts.gates.onReads(deviceId, sourceId, event.reads)
      else if (event.type === 'tags' && factsOf(deviceId))
        presentations.onReads(deviceId, event.reads, {
          awayMs: parts.wiring.awayMsOf(sourceId),
          nearDbm: parts.wiring.nearDbmOf(sourceId),
        })
      if (event.type === 'tag_gone') presentations.onGone(deviceId, event.tag)
      if (event.type === 'passage') {
        gateRequests.passage(deviceId)
        parts.gates.onPassage(deviceId)
      }
      if (event.type === 'person') parts.onPerson(deviceId, event.direction)
      if (event.type !== 'scan') return
      scan(deviceId, event.text).catch((error: unknown) => {
        parts.log.error({ err: error, deviceId }, 'a scan could not be decided')
        parts.onResult(deviceId, { kind: 'not_understood', why: 'out_of_order' })
      })
    },
    signIn,
    operatorAt: (deviceId) => operators.look(states.find(deviceId)?.operatorSession)?.name,
    leave(deviceId) {
      const state = states.find(deviceId)
      if (state?.operatorSession === undefined) return
      operators.close(state.operatorSession)
      delete state.operatorSession
      parts.onOperator(deviceId, null)
    },
    stop() {
      stopListening()
      presentations.stop()
    },
    async settled() {
      await Promise.allSettled(underWay)
    },
  }
}
