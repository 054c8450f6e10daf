import type { DeviceCommand } from '../../../device-drivers/drivers/device.ts'
import { namesTag } from '../../../policy/identifiers.ts'
import type { Platform } from '../../../policy/platform.ts'
import { receiptTextIn } from '../../../policy/receipts/receipt-token.ts'
import type { Authorize } from '../../decisions/authorize.ts'
import type { AuthorizeAnswer, AuthorizeRequest } from '../../decisions/request.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import type { AgentClock } from '../../trust/time/clock.ts'
import type { Trust } from '../../trust/trust.ts'
import { AMBER_SECONDS, gateSignal } from '../gate-signals.ts'
import type { Execute } from '../../devices/release-watch.ts'
import { unusedRights, type UnusedRights } from '../unused-rights.ts'
import type { Wiring } from '../../devices/wiring.ts'
import { tagNameOf } from './gate-tag.ts'
import type { DeviceJournal } from '../../devices/device-journal.ts'
import type { Gates } from './gates.ts'
import type { TagEntry } from './receipt-pass.ts'

/** What is asked for at gates by receipt or name: answered, shown and sounded. Tags that readers see go their own way (gates.ts). */
export interface GateRequests {
  decide(asked: AuthorizeRequest): Promise<AuthorizeAnswer>
  /** Somebody went through. */
  passage(deviceId: string): void
}

export interface GateRequestsParts {
  platform: Platform
  storeId: string
  ledger: Ledger
  clock: AgentClock
  trust: Trust
  gates: Gates
  wiring: Wiring
  authorize: Authorize
  execute: Execute
  journal: Pick<DeviceJournal, 'add' | 'write'>
}

/** A second look at a gate repeats the signal within, ms. */
const SECOND_LOOK_MS = 20_000
const SIGNAL_WITHIN_MS = 2_000
const ONE_BY_ONE_MS = 4_000

/** No receipt was shown yet. */
export function openGateRequests(parts: GateRequestsParts): GateRequests {
  const { platform, trust, authorize } = parts
  /** The last receipt that opened a gate, until somebody goes through. */
  const opened = new Map<string, { text: string | undefined; answer: AuthorizeAnswer; atMs: number }>()
  /** Receipts that are being decided, for a scanner reads one more than once while it is held there. */
  const underWay = new Map<string, Promise<AuthorizeAnswer>>()
  const passages = new Map<string, number>()

  function signal(deviceId: string, command: DeviceCommand): void {
    const within = new AbortController()
    const cancel = platform.timers.after(SIGNAL_WITHIN_MS, () => within.abort())
    void parts.execute(deviceId, command, within.signal).finally(cancel)
  }

  /** The same receipt again before anybody went through: the same redemption, shown once more. */
  function secondLook({ deviceId, action, receipt, identifiers }: AuthorizeRequest): AuthorizeAnswer | undefined {
    const last = opened.get(deviceId)
    if (last === undefined || receipt === undefined || namesTag(identifiers)) return undefined
    const isSame = last.answer.action === action && receiptTextIn(receipt) === last.text
    if (!isSame || platform.clock.elapsed() - last.atMs > SECOND_LOOK_MS) return undefined
    signal(deviceId, { kind: 'release' })
    signal(deviceId, { kind: 'signal', signal: 'green', seconds: 4 })
    return last.answer
  }

  async function show(asked: AuthorizeRequest, answer: AuthorizeAnswer): Promise<void> {
    const { deviceId } = asked
    const shown = gateSignal(
      answer,
      namesTag(asked.identifiers),
      trust.policy?.policy,
      parts.wiring.sirenSecondsOf(deviceId),
    )
    if (shown) signal(deviceId, { kind: 'signal', signal: shown.signal, seconds: shown.seconds })
    if (!shown?.isAlarm) return
    parts.journal.add({
      type: 'protection.exception.raised',
      deviceId,
      protectionAction: asked.action,
      reason: 'gate_alarm',
      offline: answer.offline,
      detail: `an item left that is ${answer.itemStatus ?? 'not covered by the receipt'}`,
      ...asked.identifiers,
      ...(answer.itemStatus && { itemStatus: answer.itemStatus }),
    })
    await parts.journal.write()
  }

  /**
   * Only what is confirmed stands for a second look (P2): the right of what failed is free again, that of an outcome which nobody
   * knows is for staff, and a question has used up none.
   */
  function remember({ deviceId, receipt, identifiers }: AuthorizeRequest, answer: AuthorizeAnswer): void {
    if (!answer.authorized || answer.outcome !== 'confirmed' || receipt === undefined || namesTag(identifiers)) return
    if (!parts.wiring.hasPassageSensor(deviceId)) return
    opened.set(deviceId, { text: receiptTextIn(receipt), answer, atMs: platform.clock.elapsed() })
  }

  /**
   * A receipt that is shown at the gate: each unit whose tag is here leaves by itself, all others together with the
   * receipt (contracts §4), and the gate opens once.
   */
  async function leave(asked: AuthorizeRequest, { claims, unused }: UnusedRights): Promise<AuthorizeAnswer> {
    const beganMs = platform.clock.elapsed()
    const out: TagEntry[] = []
    let first: AuthorizeAnswer | undefined
    for (const { tag, entry } of parts.gates.withReceipt(asked.deviceId, claims, unused)) {
      // A person stands there: what cannot be told one by one in time leaves with the rest.
      if (platform.clock.elapsed() - beganMs > ONE_BY_ONE_MS) break
      const answer = await authorize({ ...asked, identifiers: tagNameOf(tag), isOpen: first !== undefined })
      if (!answer.authorized) continue
      first ??= answer
      out.push({ tag, entry })
      if (answer.outcome !== 'confirmed') break
    }
    const isRestDue = first === undefined || (first.outcome === 'confirmed' && out.length < unused.length)
    const rest = isRestDue ? await authorize({ ...asked, isOpen: first !== undefined }) : undefined
    const answer = first ?? rest
    if (!answer) throw new Error('a receipt without an answer')
    if (answer.authorized)
      parts.gates.onReceipt(
        asked.deviceId,
        claims,
        rest?.authorized === true ? unused : out.map(({ entry }) => entry),
        out,
      )
    if (first === undefined) return answer
    const isRestLeft = rest?.authorized === false && rest.reason !== 'already_redeemed'
    return {
      ...answer,
      itemCount: claims.units,
      remaining: isRestLeft || first.outcome !== 'confirmed' ? unused.length - out.length : 0,
    }
  }

  const passagesAt = (deviceId: string) => passages.get(deviceId) ?? 0

  async function decideAnew(asked: AuthorizeRequest): Promise<AuthorizeAnswer> {
    const { deviceId } = asked
    const isAlone = asked.receipt !== undefined && !namesTag(asked.identifiers)
    const before = passagesAt(deviceId)
    // Before it is used up: the tags of what was free may follow.
    const receipt = isAlone ? unusedRights(parts, asked.receipt ?? '', 'exit') : undefined
    const answer = await (receipt ? leave(asked, receipt) : authorize(asked)).catch((error: unknown) => {
      // The ledger takes nothing now: whoever stands there is to wait for staff.
      signal(deviceId, { kind: 'signal', signal: 'amber', seconds: AMBER_SECONDS })
      throw error
    })
    // Whoever went through before the outcome was known needs no second look.
    if (passagesAt(deviceId) === before) remember(asked, answer)
    await show(asked, answer)
    return answer
  }

  return {
    decide(asked) {
      const repeated = secondLook(asked)
      if (repeated) return Promise.resolve(repeated)
      const text = asked.receipt === undefined || namesTag(asked.identifiers) ? undefined : receiptTextIn(asked.receipt)
      if (text === undefined) return decideAnew(asked)
      const key = [asked.deviceId, asked.action, asked.operatorId ?? '', text].join(' ')
      const joined = underWay.get(key)
      if (joined) return joined
      const decided = decideAnew(asked).finally(() => underWay.delete(key))
      underWay.set(key, decided)
      return decided
    },
    passage(deviceId) {
      opened.delete(deviceId)
      passages.set(deviceId, passagesAt(deviceId) + 1)
    },
  }
}
