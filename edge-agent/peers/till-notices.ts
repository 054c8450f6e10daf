import { DOCUMENT_KINDS } from '../../policy/documents/kinds.ts'
import type { Signer } from '../../policy/documents/keys.ts'
import { decodeUnverifiedClaims, openDocument, signDocument } from '../../policy/documents/signed-document.ts'
import { RECEIPT_LIFE } from '../../policy/receipts/receipt-token.ts'
import { TILL_NOTICE_LIFE, TillNotice, withoutUnfit, type SoldCode } from '../../policy/documents/till-notice.ts'
import { retryDelays, type Cancel, type Platform } from '../../policy/platform.ts'
import type { ItemStatus } from '../../policy/vocabulary.ts'
import { identifiersOf, type Replica } from '../items/replica.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { SALE_NAMES_LIMIT, type TagNotice } from '../ledger/till-reports.ts'
import { ENDED_AT_ONCE } from '../decisions/goods-back.ts'
import { isSaleOver } from '../decisions/sale-goods.ts'
import { httpClient, type Fetch } from '../link/wire/http-client.ts'
import type { Log } from '../log.ts'
import type { AgentClock } from '../trust/time/clock.ts'
import { messageTimes } from '../trust/time/cloud-contact.ts'
import type { Trust } from '../trust/trust.ts'
import { agentKeys, storeAgent } from './store-agents.ts'

const FIRST_RETRY_MS = 250
const LONGEST_RETRY_MS = 15_000
const ANSWER_WITHIN_MS = 2_000
/** Maximum difference of clocks in a store, s (ADR trusted-time). */
const CLOCKS_DIFFER_S = 60
/** Time for which a report of another agent counts without its place in the items, ms: longer than P4 promises. */
export const RECEIVED_LIFE_MS = 80 * 3_600_000
/** Tags that one agent may announce in an hour: those of three days that another agent was off. */
const TAGS_PER_HOUR = 200_000
const HOUR_MS = 3_600_000
/** Expiry of the denial of a void sale, s: a receipt is valid for a day. */
const DENIED_SECONDS = 25 * 3_600
/** Statuses that a till may give a tag. */
const BY_TILLS: ReadonlySet<ItemStatus> = new Set(['paid', 'returned', 'cancelled', 'sellable'])

type NoticeReply =
  | { kind: 'taken' }
  | { kind: 'not_genuine' }
  | { kind: 'refused'; why: string }
  | { kind: 'missing' }
  | { kind: 'too_many'; retryAfterSeconds: number }

interface TillNoticesParts {
  platform: Platform
  agentId: string
  storeId: string
  trust: Pick<Trust, 'policy'>
  clock: Pick<AgentClock, 'now'>
  ledger: Ledger
  items: Pick<Replica, 'isUnsold'>
  signer(): Signer
  fetch: Fetch
  log: Log
  onChanged(): void
  /** Called inside a transaction for a sale of this agent of which goods came back at another one. */
  onBack(saleKey: string, status: ItemStatus): void
  /** Called inside a transaction with the sales of paid tags, and the codes, that another agent announced. */
  onSold(sales: ReadonlySet<string>, codes: readonly SoldCode[]): void
}

/** How long the number of the last acknowledged change waits for the disk, ms. After a crash it is sent again. */
const STORE_AFTER_MS = 10_000
/** Metadata key, before the id of the other agent: last change that it acknowledged. */
const ACKED = 'till_notice '
/** Metadata key, before the id of the other agent: last change that came from it. */
const TAKEN = 'till_taken '
/** Code with which an agent asks for all changes again. */
const MISSING = 'notices_missing'

/** Delivery to one agent. */
interface Peer {
  /** Number of the last change that the agent acknowledged. */
  acked: number
  isBusy: boolean
  delays: Generator<number, never>
  retry: Cancel | undefined
}

/**
 * Announces what tills reported to this agent to the other agents of the store, until each has acknowledged it, so that
 * their gates are silent, or alarm, also without the cloud. A notice has the newest state of each tag, so a lost or
 * repeated notice does no harm.
 */
export class TillNotices {
  readonly #parts: TillNoticesParts
  readonly #peers = new Map<string, Peer>()
  readonly #received = new Map<string, { sinceMs: number; tags: number }>()
  /**
   * Number of the last change at the start. It may be lower than what other agents acknowledged, because their reports
   * replaced the changes with the highest numbers.
   */
  readonly #firstChange: number
  #store: Cancel | undefined
  #isStopped = false

  constructor(parts: TillNoticesParts) {
    this.#parts = parts
    this.#firstChange = parts.ledger.till.lastChange
  }

  /** Sends what the other agents lack. Returns at once, never throws. Call it after each report and acknowledgement. */
  send(): void {
    const { trust, agentId, ledger } = this.#parts
    if (this.#isStopped || ledger.till.lastChange === 0) return
    for (const other of trust.policy?.agents ?? [])
      if (other.agentId !== agentId && other.url !== null) void this.#deliver(other.agentId)
  }

  /**
   * Verifies a notice of another agent and stores it. Resolves when it is durable. `isForwarded`: the receipt home sent
   * it later. Then only its codes count, because its tags may have changed since.
   */
  async receive(text: string, isForwarded = false): Promise<NoticeReply> {
    const { agentId, storeId, trust, ledger, clock, onChanged } = this.#parts
    const { iss } = decodeUnverifiedClaims(text)
    if (typeof iss !== 'string' || iss === agentId) return { kind: 'not_genuine' }
    const keys = agentKeys(trust, iss)
    const opened = openDocument<TillNotice>(text, DOCUMENT_KINDS.tillNotice, { keys, audience: storeId })
    if (!opened.ok) return { kind: 'not_genuine' }
    const isTrusted = (sender: string) => trust.policy?.policy.tillSales.agents.includes(sender) === true
    if (!isTrusted(iss)) return { kind: 'refused', why: 'the policy does not name the sender in tillSales.agents' }
    const notice = TillNotice.safeParse(opened.claims)
    if (!notice.success || notice.data.iss !== iss) return { kind: 'refused', why: 'the claims describe no sales' }
    const { nowMs, trust: timeTrust } = clock.now()
    const { iat, codes } = notice.data
    const { tags, pieces } = isForwarded ? { tags: [], pieces: [] } : notice.data
    // No code is valid for longer than a receipt.
    const exp = isForwarded ? iat + RECEIPT_LIFE : notice.data.exp
    const isCurrent = iat - CLOCKS_DIFFER_S <= nowMs / 1_000 && nowMs / 1_000 < exp + CLOCKS_DIFFER_S
    if (timeTrust !== 'none' && !isCurrent) return { kind: 'refused', why: 'the time of the notice is not current' }
    // The data folder of this agent comes from an older copy: the sender believes that it has the changes in between.
    const changes = isForwarded ? undefined : notice.data.changes
    if (changes && changes.after > Number(ledger.metadata.get(TAKEN + iss) ?? 0)) return { kind: 'missing' }
    // A tag may pass for each piece.
    const named = pieces.reduce((sum, { count }) => sum + Math.max(1, count), tags.length + codes.length)
    const retryAfterSeconds = this.#take(iss, named)
    if (retryAfterSeconds > 0) return { kind: 'too_many', retryAfterSeconds }
    const passSeconds = (trust.policy?.policy.tillSales.passByProduct ?? 0) * 60
    let ended = 0
    const back = new Map<string, ItemStatus>()
    const sold = new Set<string>()
    const before = ledger.till.lastChange
    await ledger.commits.durably(() => {
      for (const tag of tags) {
        // The sender repeats the notice, and the rest follows.
        if (ended >= SALE_NAMES_LIMIT) return
        if (!BY_TILLS.has(tag.status)) continue
        if (tag.status !== 'paid' && passSeconds > 0) this.#endPieces(tag, nowMs)
        if (tag.name.startsWith('S') && ledger.till.sale(tag.name.slice(1))?.state === 'paid')
          ledger.till.noteRecorder(tag.name.slice(1), iss, agentId, nowMs)
        if (!ledger.till.receiveTag(tag, iss, nowMs, isTrusted)) continue
        const isEnd = tag.name.startsWith('R')
        const sale = isEnd ? tag.name.slice(1) : tag.sale
        if (isEnd) ledger.claims.deny(tag.name.slice(1), Math.floor(nowMs / 1_000) + DENIED_SECONDS)
        // The void may have come to an agent that does not have the sale, or before this notice of it.
        const end = sale === null ? undefined : ledger.till.endSale(sale, isTrusted, this.#parts.items.isUnsold)
        ended += end?.count ?? 0
        if (sale !== null && tag.status !== 'paid') back.set(sale, tag.status)
        if (sale !== null && tag.status === 'paid' && !tag.name.startsWith('S') && !tag.name.startsWith('Q'))
          sold.add(sale)
        // The next sale of a tag has its own right to a release.
        const unsold = [...(end?.names ?? []), ...(tag.status === 'paid' || isEnd ? [] : [tag.name])]
        if (unsold.length > 0 && !ledger.claims.hasNoTags) ledger.claims.forgetTags(identifiersOf(unsold))
      }
      for (const [sale, status] of [...back].slice(0, ENDED_AT_ONCE)) this.#parts.onBack(sale, status)
      // No receipt is valid longer than a day.
      const fromS = Math.floor(nowMs / 1_000)
      ledger.till.pieces.receive(pieces, iss, fromS, passSeconds)
      const latestS = (isForwarded ? Math.min(fromS, iat) : fromS) + RECEIPT_LIFE + CLOCKS_DIFFER_S
      const limited = codes.map((code) => ({ ...code, exp: Math.min(code.exp, latestS) }))
      ledger.till.receiveCodes(limited, iss, trust.policy?.policy.home === agentId ? text : undefined)
      this.#parts.onSold(sold, limited)
      if (changes) ledger.metadata.set(TAKEN + iss, String(changes.last))
    })
    onChanged()
    if (ledger.till.lastChange > before) this.send()
    return ended >= SALE_NAMES_LIMIT ? { kind: 'too_many', retryAfterSeconds: 1 } : { kind: 'taken' }
  }

  /**
   * As the receipt home: the notices from which another agent learns which sales printed this code, at most two. Empty if
   * there is none, if a sale is over, or if this agent lacks the notice of one: the other agent must not take it for the
   * only one.
   */
  noticesOf(code: string): string[] {
    const { agentId, trust, ledger, clock } = this.#parts
    const agents = trust.policy?.policy.tillSales.agents ?? []
    const sales = ledger.till
      .salesWithCode(code, Math.floor(clock.now().nowMs / 1_000))
      .filter(({ sender }) => agents.includes(sender === '' ? agentId : sender))
      .slice(0, 2)
    const notices = sales.map(({ sender, ...sale }) => {
      if (isSaleOver(this.#parts, sale.sale)) return undefined
      return sender === '' ? this.#sign({ tags: [], codes: [sale], pieces: [] }) : ledger.till.noticeOf(sale)
    })
    return notices.every((notice) => notice !== undefined) ? notices : []
  }

  /** Number of the last change that all other agents which may sell have acknowledged; infinite if there are none. */
  get acknowledged(): number {
    const { trust, agentId } = this.#parts
    const sellers = trust.policy?.policy.tillSales.agents ?? []
    const others = (trust.policy?.agents ?? []).filter((each) => each.agentId !== agentId)
    const acked = others.flatMap((other) => (sellers.includes(other.agentId) ? this.#peerOf(other.agentId).acked : []))
    return Math.min(Number.POSITIVE_INFINITY, ...acked)
  }

  stop(): void {
    this.#isStopped = true
    this.#store?.()
    for (const { retry } of this.#peers.values()) retry?.()
  }

  /** Ends the pieces of the sale of a tag that came back. The agent that took it back may not know its sale. */
  #endPieces({ name, sale }: TagNotice, nowMs: number): void {
    const { till } = this.#parts.ledger
    for (const ended of new Set([sale, till.tag(name)?.sale ?? null]))
      if (ended !== null) till.pieces.end(ended, Math.floor(nowMs / 1_000))
  }

  /** Counts tags of a sender. Returns the seconds until its next hour if it has used up this one. */
  #take(sender: string, count: number): number {
    const nowMs = this.#parts.platform.clock.elapsed()
    const known = this.#received.get(sender)
    const hour = known && nowMs - known.sinceMs < HOUR_MS ? known : { sinceMs: nowMs, tags: 0 }
    if (hour.tags + count > TAGS_PER_HOUR) return Math.ceil((hour.sinceMs + HOUR_MS - nowMs) / 1_000)
    // As many entries as agents of the store: only their signatures come here.
    this.#received.set(sender, { ...hour, tags: hour.tags + count })
    return 0
  }

  async #deliver(agentId: string): Promise<void> {
    const peer = this.#peerOf(agentId)
    if (peer.isBusy || peer.retry) return
    peer.isBusy = true
    const result = await this.#sendAll(agentId, peer).catch((error: unknown) => {
      this.#parts.log.error({ err: error }, 'sales of tills could not be announced')
      return 'later' as const
    })
    peer.isBusy = false
    if (this.#isStopped) return
    if (result === 'done') {
      peer.delays = this.#newDelays()
      return
    }
    peer.retry = this.#parts.platform.timers.after(peer.delays.next().value, () => {
      peer.retry = undefined
      void this.#deliver(agentId)
    })
  }

  async #sendAll(agentId: string, peer: Peer): Promise<'done' | 'later'> {
    const { ledger, trust, fetch, platform, log } = this.#parts
    while (!this.#isStopped) {
      const { last, ...changes } = ledger.till.changesAfter(peer.acked)
      const url = storeAgent(trust, agentId)?.url
      if (last === undefined || !url) return 'done'
      const [said, unfit] = withoutUnfit(changes)
      if (unfit > 0) log.error({ changes: unfit }, 'changes by tills do not fit into a notice: other agents lack them')
      const body = { notice: this.#sign({ ...said, changes: { after: peer.acked, last } }) }
      const answer = await httpClient(`${url}/v1`, fetch, platform).post('till-notices', body, {
        timeoutMs: ANSWER_WITHIN_MS,
      })
      if (answer.kind === 'unreachable') return 'later'
      if (answer.kind !== 'answered' && answer.code === MISSING && peer.acked > 0) {
        log.warn({ agentId }, 'another agent lacks earlier sales of tills: they are announced again')
        peer.acked = 0
        continue
      }
      if (answer.kind !== 'answered') {
        // The other agent may have an older policy, or too much to do.
        log.warn({ agentId, code: answer.code }, `another agent refused sales of tills: ${answer.message}`)
        return 'later'
      }
      peer.acked = last
      this.#storeLater()
    }
    return 'done'
  }

  #sign(said: Pick<TillNotice, 'tags' | 'codes' | 'pieces' | 'changes'>): string {
    const { agentId, storeId, clock, signer } = this.#parts
    const claims = { aud: storeId, ...messageTimes(clock.now().nowMs, TILL_NOTICE_LIFE), iss: agentId, ...said }
    return signDocument(DOCUMENT_KINDS.tillNotice, claims, signer())
  }

  #peerOf(agentId: string): Peer {
    const known = this.#peers.get(agentId)
    if (known) return known
    const acked = Math.min(Number(this.#parts.ledger.metadata.get(ACKED + agentId) ?? 0), this.#firstChange)
    const peer: Peer = { acked, isBusy: false, delays: this.#newDelays(), retry: undefined }
    this.#peers.set(agentId, peer)
    return peer
  }

  #storeLater(): void {
    const { platform, ledger, log } = this.#parts
    this.#store ??= platform.timers.after(STORE_AFTER_MS, () => {
      this.#store = undefined
      const store = () => {
        for (const [agentId, { acked }] of this.#peers) ledger.metadata.set(ACKED + agentId, String(acked))
      }
      ledger.commits
        .durably(store)
        .catch((error: unknown) => log.warn({ err: error }, 'what other agents know of sales could not be stored'))
    })
  }

  #newDelays(): Generator<number, never> {
    return retryDelays(this.#parts.platform.random, FIRST_RETRY_MS, LONGEST_RETRY_MS)
  }
}
