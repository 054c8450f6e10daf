import type { CommandResult, DeviceCommand, DeviceEvent } from '../../device-drivers/drivers/device.ts'
import { releaseActionOf, type DeviceFacts } from '../../policy/devices.ts'
import { newId } from '../../policy/ids.ts'
import { ITEM_IDENTIFIER_KINDS } from '../../policy/identifiers.ts'
import type { Platform } from '../../policy/platform.ts'
import type { ReceiptClaims } from '../../policy/receipts/claims.ts'
import { openReceipt, receiptTextIn } from '../../policy/receipts/receipt-token.ts'
import type { DeviceType, ProtectionAction, ScanSource } from '../../policy/vocabulary.ts'
import type { Authorize } from '../decisions/authorize.ts'
import type { AuthorizeAnswer, AuthorizeRequest } from '../decisions/request.ts'
import { classify, type Scanned } from '../decisions/scan.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { Log } from '../log.ts'
import type { AgentClock } from '../trust/clock.ts'
import type { Trust } from '../trust/trust.ts'
import type { Gates } from './gate/gates.ts'
import { gateSignal } from './gate-signals.ts'
import type { OpenedSession, Operators, Proof } from './operators.ts'

/**
 *   scanner ─▶ what is it? ─▶ the lane's action ─▶ authorize ─▶ page, lamp, siren
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
  scan(deviceId: string, text: string, operatorId?: string): Promise<ScanResult>
  /** The operator who stands at a station, by badge. */
  operatorAt(deviceId: string): string | undefined
  /** Somebody signs in at a device, and stands behind what is asked there until they leave or 15 idle minutes. */
  signIn(deviceId: string, proof: Proof): OpenedSession
  leave(deviceId: string): void
}

export type ScanResult =
  /** `item`: the tag or line that was named. */
  | { kind: 'decision'; answer: AuthorizeAnswer; item?: string }
  | { kind: 'operator'; name: string }
  | { kind: 'not_understood'; why: 'unknown_code' | 'product_code' | 'wrong_badge' | 'locked' | 'out_of_order' }

export interface LaneParts {
  platform: Platform
  storeId: string
  ledger: Ledger
  clock: AgentClock
  trust: Trust
  operators: Operators
  gates: Gates
  authorize: Authorize
  execute(deviceId: string, command: DeviceCommand, signal: AbortSignal): Promise<CommandResult>
  log: Log
  /** Which device a scanner belongs to. */
  feeds(scannerId: string): string | undefined
  hasPassageSensor(deviceId: string): boolean
  /** For the pages: what came of whatever was asked at a device, and who stands there. */
  onResult(deviceId: string, result: ScanResult): void
  onOperator(deviceId: string, name: string | null): void
}

const SOURCES: Record<DeviceType, ScanSource> = {
  pos_deactivator: 'pos',
  self_checkout_detacher: 'sco',
  exit_gate: 'exit_gate',
  handheld_reader: 'associate_handheld',
  cabinet_unlocker: 'pos',
}

/** A receipt shown at a device serves for the tags that follow, ms. */
const RECEIPT_MEMORY_MS = 2 * 60_000
/** A second look at a gate repeats the signal within, ms. */
const SECOND_LOOK_MS = 20_000
const SIGNAL_WITHIN_MS = 2_000

interface LaneState {
  receipt?: { text: string; atMs: number }
  operatorSession?: string
  /** The last receipt that opened a gate, until somebody goes through. */
  opened?: { text: string | undefined; answer: AuthorizeAnswer; atMs: number }
}

/** Starts a lane for every device. */
export function openLanes(parts: LaneParts): Lanes {
  const { platform, trust, operators, authorize } = parts
  const states = new Map<string, LaneState>()

  function stateOf(deviceId: string): LaneState {
    const known = states.get(deviceId)
    if (known) return known
    const state: LaneState = {}
    states.set(deviceId, state)
    return state
  }

  function factsOf(deviceId: string): DeviceFacts | undefined {
    return trust.policy?.devices.find((d) => d.deviceId === deviceId)
  }

  function signal(deviceId: string, command: DeviceCommand): void {
    const within = new AbortController()
    const cancel = platform.timers.after(SIGNAL_WITHIN_MS, () => within.abort())
    void parts.execute(deviceId, command, within.signal).finally(cancel)
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

  async function decide(asked: AuthorizeRequest): Promise<AuthorizeAnswer> {
    const device = factsOf(asked.deviceId)
    const repeated = device?.deviceType === 'exit_gate' ? await secondLook(asked) : undefined
    if (repeated) return repeated
    if (device?.deviceType !== 'exit_gate') return authorize(asked)
    const receipt = receiptAlone(asked)
    const answer = await authorize(asked)
    await showAtGate(asked, answer)
    if (receipt && answer.authorized) parts.gates.onReceipt(asked.deviceId, receipt.claims, receipt.unused)
    return answer
  }

  /** A receipt without tags, with the entries whose way out is free until now: their tags may follow. */
  function receiptAlone(asked: AuthorizeRequest): { claims: ReceiptClaims; unused: number[] } | undefined {
    if (asked.receipt === undefined || namesTag(asked)) return undefined
    const opened = openReceipt(asked.receipt, { keys: trust.keys, storeId: parts.storeId })
    if (!opened.ok) return undefined
    const { claims } = opened
    const cti = Buffer.from(claims.cti).toString('hex')
    const { nowMs } = parts.clock.now()
    return { claims, unused: Array.from({ length: claims.units }, (_, n) => n).filter((n) => parts.ledger.claims.isFree(cti, 'exit', n, nowMs, false)) }
  }

  function namesTag({ identifiers }: AuthorizeRequest): boolean {
    return ITEM_IDENTIFIER_KINDS.some((kind) => identifiers[kind] !== undefined)
  }

  /** The same receipt again before anybody went through: the same redemption, shown once more. */
  async function secondLook(asked: AuthorizeRequest): Promise<AuthorizeAnswer | undefined> {
    const { opened } = stateOf(asked.deviceId)
    const isSame = opened !== undefined && asked.receipt !== undefined && receiptTextIn(asked.receipt) === opened.text && !namesTag(asked)
    if (!isSame || platform.clock.elapsed() - opened.atMs > SECOND_LOOK_MS) return undefined
    signal(asked.deviceId, { kind: 'release' })
    signal(asked.deviceId, { kind: 'signal', signal: 'green', seconds: 4 })
    return opened.answer
  }

  async function showAtGate(asked: AuthorizeRequest, answer: AuthorizeAnswer): Promise<void> {
    const hasTag = namesTag(asked)
    const shown = gateSignal(answer, hasTag, trust.policy?.policy)
    if (shown) signal(asked.deviceId, { kind: 'signal', signal: shown.signal, seconds: shown.seconds })
    const state = stateOf(asked.deviceId)
    if (answer.authorized && asked.receipt !== undefined && !hasTag && parts.hasPassageSensor(asked.deviceId)) {
      state.opened = { text: receiptTextIn(asked.receipt), answer, atMs: platform.clock.elapsed() }
    }
    if (shown?.isAlarm) await recordAlarm(asked, answer)
  }

  async function recordAlarm(asked: AuthorizeRequest, answer: AuthorizeAnswer): Promise<void> {
    const { nowMs } = parts.clock.now()
    await parts.ledger.record({
      atMs: nowMs,
      event: {
        type: 'protection.exception.raised',
        eventId: newId('evt', platform),
        occurredAt: new Date(nowMs).toISOString(),
        storeId: parts.storeId,
        deviceId: asked.deviceId,
        protectionAction: asked.action,
        reason: 'gate_alarm',
        offline: answer.offline,
        detail: `an item left that is ${answer.itemStatus ?? 'not covered by the receipt'}`,
        ...asked.identifiers,
        ...(answer.itemStatus && { itemStatus: answer.itemStatus }),
      },
    })
  }

  function actionOf(device: DeviceFacts): ProtectionAction {
    if (device.deviceType === 'exit_gate') return 'authorize_exit'
    if (device.deviceType === 'handheld_reader') return 'verify_item_status'
    if (device.deviceType === 'cabinet_unlocker') return 'unlock_fixture'
    return releaseActionOf(device) ?? 'deactivate_label'
  }

  async function scan(deviceId: string, text: string, operatorId?: string): Promise<ScanResult> {
    const result = await take(deviceId, text, operatorId)
    parts.onResult(deviceId, result)
    return result
  }

  async function take(deviceId: string, text: string, operatorId: string | undefined): Promise<ScanResult> {
    const scanned = classify(text)
    const device = factsOf(deviceId)
    const state = stateOf(deviceId)
    if (scanned.kind === 'badge') return takeBadge(deviceId, scanned.text)
    if (scanned.kind === 'ean') return { kind: 'not_understood', why: 'product_code' }
    if (scanned.kind === 'unknown') return { kind: 'not_understood', why: 'unknown_code' }
    const operator = operatorId ?? operators.find(state.operatorSession)?.operatorId
    const base = {
      deviceId,
      action: device ? actionOf(device) : ('deactivate_label' as const),
      ...(device && { scanSource: SOURCES[device.deviceType] }),
      ...(operator !== undefined && { operatorId: operator }),
    }
    if (scanned.kind === 'receipt') state.receipt = { text: scanned.text, atMs: platform.clock.elapsed() }
    const asked = { ...base, ...presented(scanned, state) }
    return decision(asked, await decide(asked))
  }

  function presented(scanned: Scanned, { receipt }: LaneState): Pick<AuthorizeRequest, 'identifiers' | 'receipt' | 'token'> {
    if (scanned.kind === 'token') return { token: scanned.text, identifiers: {} }
    if (scanned.kind === 'receipt') return { receipt: scanned.text, identifiers: {} }
    const isFresh = receipt !== undefined && platform.clock.elapsed() - receipt.atMs <= RECEIPT_MEMORY_MS
    return { identifiers: scanned.kind === 'epc' ? { epc: scanned.epc } : {}, ...(isFresh && { receipt: receipt.text }) }
  }

  function takeBadge(deviceId: string, badge: string): ScanResult {
    const opened = signIn(deviceId, { badge })
    if (!opened.ok) return { kind: 'not_understood', why: opened.reason === 'locked' ? 'locked' : 'wrong_badge' }
    return { kind: 'operator', name: opened.name }
  }

  function signIn(deviceId: string, proof: Proof): OpenedSession {
    const opened = operators.open(proof)
    if (!opened.ok || !factsOf(deviceId)) return opened
    // Whoever stood here before does not any more.
    const state = stateOf(deviceId)
    if (state.operatorSession !== undefined) operators.close(state.operatorSession)
    state.operatorSession = opened.session
    parts.onOperator(deviceId, opened.name)
    return opened
  }

  return {
    request,
    scan,
    onEvent(sourceId, event) {
      const deviceId = parts.feeds(sourceId) ?? sourceId
      if (event.type === 'tags' && factsOf(deviceId)?.deviceType === 'exit_gate') parts.gates.onReads(deviceId, sourceId, event.reads)
      if (event.type === 'passage') {
        delete stateOf(deviceId).opened
        parts.gates.onPassage(deviceId)
      }
      if (event.type !== 'scan') return
      scan(deviceId, event.text).catch((error: unknown) => {
        parts.log.error({ err: error, deviceId }, 'a scan could not be decided')
        parts.onResult(deviceId, { kind: 'not_understood', why: 'out_of_order' })
      })
    },
    signIn,
    operatorAt: (deviceId) => operators.look(states.get(deviceId)?.operatorSession)?.name,
    leave(deviceId) {
      const state = states.get(deviceId)
      if (state?.operatorSession === undefined) return
      operators.close(state.operatorSession)
      delete state.operatorSession
      parts.onOperator(deviceId, null)
    },
  }
}
