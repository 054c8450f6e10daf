import { decide, isStaffPriced } from '../../../policy/decide.ts'
import { isolatedDenial } from '../../../policy/decide-units.ts'
import type { ItemIdentifiers } from '../../../policy/item-identifiers.ts'
import { parseEpc } from '../../../policy/gs1/epc.ts'
import { productHash } from '../../../policy/sold-pieces.ts'
import { riskClassOf, type ProtectionPolicy } from '../../../policy/store-policy.ts'
import { isSaleOver } from '../../decisions/sale-goods.ts'
import type { KnownItem } from '../../items/item-table.ts'
import type { Replica } from '../../items/replica.ts'
import { LedgerFull } from '../../ledger/file/commit.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import type { CloudLink } from '../../link/cloud-link.ts'
import type { Log } from '../../log.ts'
import type { TillNotices } from '../../peers/till-notices.ts'
import type { AgentClock } from '../../trust/time/clock.ts'
import type { Trust } from '../../trust/trust.ts'
import { tagNameOf } from './tags/deduplicate.ts'

interface SoldPiecesParts {
  ledger: Pick<Ledger, 'till' | 'claims' | 'journal' | 'commits'>
  items: Pick<Replica, 'find' | 'keysOf'>
  trust: Pick<Trust, 'policy' | 'stage' | 'lastContactMs'>
  clock: Pick<AgentClock, 'now'>
  link: Pick<CloudLink, 'isOnline'>
  notices: Pick<TillNotices, 'acknowledged'>
  storeId: string
  agentId: string
  /** Called when a use is on the disk. */
  onChanged(): void
  log: Log
}

/**
 *   tag of a sellable item ─▶ rules of the policy ─▶ piece of a sale that is left ─▶ the tag passes, and counts as paid
 *                                                                                    └─▶ journal, other agents
 *
 * Lets tags pass for pieces that tills sold without naming their tags (`tillSales.passByProduct`, ADR till-sales). The
 * gate does not wait for the disk: until the use is stored, it is in memory. A crash in between lets one more tag pass.
 */
export class SoldPieces {
  readonly #parts: SoldPiecesParts
  /** Tags that passed, until the use is stored, with their sale and product. */
  readonly #passing = new Map<string, { sale: string; product: string }>()
  /** Sales whose pieces end, until that is stored. */
  readonly #ending = new Set<string>()
  #writes: Promise<void> = Promise.resolve()

  constructor(parts: SoldPiecesParts) {
    this.#parts = parts
  }

  /** True if this tag may leave for a piece, which it then uses. `item`: its item. */
  covers(deviceId: string, tag: string, item: KnownItem): boolean {
    const { ledger, clock, trust, storeId } = this.#parts
    const policy = trust.policy?.policy
    const name = tagNameOf(tag)
    if (!policy || !('epc' in name) || !this.#mayPass(deviceId, item, policy)) return false
    const gtin = parseEpc(name.epc)?.gtin14
    if (gtin === undefined) return false
    const product = productHash(storeId, gtin)
    const revokedTills = (trust.policy?.revokedTills ?? []).map(({ tillId }) => tillId)
    const free = ledger.till.pieces
      .free(product, Math.floor(clock.now().nowMs / 1_000), policy.tillSales.agents, revokedTills)
      .filter(({ sale }) => !this.#ending.has(sale))
    const isLeft = (sale: string) => !isSaleOver({ ledger }, sale)
    const known = this.#passing.get(tag)
    if (known) return free.some(({ sale }) => sale === known.sale && isLeft(sale))
    const found = free.find(({ sale, left }) => left > this.#passingFor(sale, product) && isLeft(sale))
    if (!found || this.#isLimited(item, policy)) return false
    this.#passing.set(tag, { sale: found.sale, product })
    this.#writes = this.#writes.then(() => this.#store(tag, name.epc, { sale: found.sale, product }))
    return true
  }

  /** True if a tag passed a gate of this store for a piece of a sale. */
  hasPassed(sale: string): boolean {
    const isPassing = [...this.#passing.values()].some((use) => use.sale === sale)
    return isPassing || this.#parts.ledger.till.pieces.usesOf(sale).count > 0
  }

  /** The receipt of a sale releases this tag: it uses a piece of its product. Without a known product, all of them end. */
  release(sale: string, { epc }: ItemIdentifiers): void {
    const { ledger, items, trust, clock, storeId, onChanged } = this.#parts
    const policy = trust.policy?.policy
    const gtin = epc === undefined ? undefined : parseEpc(epc)?.gtin14
    if (epc === undefined || gtin === undefined || !policy || !isOn(policy)) return this.end(sale)
    const product = productHash(storeId, gtin)
    const free = ledger.till.pieces.free(product, Math.floor(clock.now().nowMs / 1_000), policy.tillSales.agents)
    const tag = epc
    if (this.#passing.has(tag) || free.every((each) => each.sale !== sale)) return
    this.#passing.set(tag, { sale, product })
    void this.#write(
      () => {
        const names = items.keysOf('epc', epc)
        ledger.till.pieces.use(sale, product, names[0] ?? '', Math.floor(clock.now().nowMs / 1_000), 0)
      },
      () => {
        this.#passing.delete(tag)
        onChanged()
      },
    )
  }

  /** Ends the pieces of a sale. Returns at once. */
  end(sale: string): void {
    const { ledger, trust, clock, onChanged } = this.#parts
    if (!isOn(trust.policy?.policy)) return
    this.#ending.add(sale)
    this.#write(() => ledger.till.pieces.end(sale, Math.floor(clock.now().nowMs / 1_000)), onChanged).finally(() =>
      this.#ending.delete(sale),
    )
  }

  /** Resolves when all uses are stored. */
  settled(): Promise<void> {
    return this.#writes
  }

  /** True if the policy lets goods like this item leave without staff, and the agent may use pieces. */
  #mayPass(deviceId: string, item: KnownItem, policy: ProtectionPolicy): boolean {
    const { trust, clock, storeId, agentId } = this.#parts
    // The cloud and the other agents accept uses only of these agents.
    if (!isOn(policy) || !policy.tillSales.agents.includes(agentId)) return false
    if (item.status !== 'sellable' || item.recalled || item.paying || isStaffPriced(item, policy)) return false
    const device = trust.policy?.devices.find((each) => each.deviceId === deviceId)
    const facts = {
      action: 'authorize_exit',
      storeId,
      device: device ?? null,
      clockTrusted: clock.now().trust !== 'none',
      stage: trust.stage(),
      item: { ...item, status: 'paid' },
      identifiedBy: ['epc'],
      right: 'free',
      hasOperator: false,
    } as const
    return decide(facts, policy).allowed
  }

  /**
   * True if an isolated agent has let as many tags pass as the policy allows. A use counts until the cloud or all other
   * agents that sell have it. The receipt home and the only agent have no limit.
   */
  #isLimited({ priceCent }: KnownItem, policy: ProtectionPolicy): boolean {
    const { ledger, trust, clock, link, notices, agentId } = this.#parts
    const { acknowledged } = notices
    if (link.isOnline || policy.home === agentId || acknowledged === Number.POSITIVE_INFINITY) return false
    const uses = ledger.till.pieces.usesAfter(acknowledged, ledger.journal.acked) + this.#passing.size
    const isolatedSeconds = uses === 0 ? 0 : Math.max(0, (clock.now().nowMs - trust.lastContactMs) / 1_000)
    const riskClass = priceCent === undefined ? Number.POSITIVE_INFINITY : riskClassOf(priceCent)
    const facts = { riskClass, stage: trust.stage(), isolatedSeconds, otherReceipts: uses }
    return isolatedDenial(policy, facts) !== undefined
  }

  #passingFor(sale: string, product: string): number {
    return [...this.#passing.values()].filter((use) => use.sale === sale && use.product === product).length
  }

  #store(tag: string, epc: string, use: { sale: string; product: string }): Promise<void> {
    const { ledger, items, clock, onChanged } = this.#parts
    const { nowMs } = clock.now()
    return this.#write(
      () => {
        // A till may have sold the tag itself meanwhile.
        if (items.find('epc', epc)?.status !== 'sellable') return
        const seq = ledger.journal.append({ atMs: nowMs, evidence: { kind: 'sale_piece', sale: use.sale, epc } })
        const names = items.keysOf('epc', epc)
        for (const name of names) ledger.till.saveTag(name, 'paid', nowMs, seq, use.sale)
        ledger.till.pieces.use(use.sale, use.product, names[0] ?? '', Math.floor(nowMs / 1_000), seq)
      },
      () => {
        this.#passing.delete(tag)
        onChanged()
      },
    )
  }

  /** If the disk is full, the use stays in memory. Its event is stored when there is room. */
  #write(work: () => void, then: () => void): Promise<void> {
    const { ledger, log } = this.#parts
    return ledger.commits.durably(work).then(then, (error: unknown) => {
      if (error instanceof LedgerFull)
        log.warn({}, 'the disk is full: a tag that passed for a sold piece is not stored')
      else log.error({ err: error }, 'a tag that passed for a sold piece could not be stored')
    })
  }
}

const isOn = (policy: ProtectionPolicy | undefined) => policy !== undefined && policy.tillSales.passByProduct > 0
