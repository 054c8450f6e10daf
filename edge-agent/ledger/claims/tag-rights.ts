import type { Database as Connection } from 'better-sqlite3'
import { comparableIdentifier, type ItemIdentifierInput } from '../../../policy/item-identifiers.ts'
import { RECEIPT_LIFE } from '../../../policy/receipts/receipt-token.ts'
import type { ClaimRequest } from './claim-request.ts'
import type { RedeemedRights } from './redeemed-rights.ts'
import type { Resolver, UnresolvedRedemptions } from './unresolved-redemptions.ts'

/**
 * Releases of tags at this agent in the last 24 hours, by the names that the requests gave. An operator releases a paid
 * tag without a receipt, and a token may belong to a receipt that the agent cannot link to it yet. So the agent does not
 * always know that two requests are about one unit, but both name its tag. These rows keep them from releasing it
 * twice. They are rows of used_right with the tag in the place of the receipt. The ordinal shows who released the tag.
 */
const BY_STAFF = 0
const BY_AUTHORIZATION = 1

/** Allowed difference between the clocks of the cloud and of this agent, ms. */
const CLOCKS_DIFFER_MS = 1_000

const KINDS = ['epc', 'tagUid', 'tagId'] as const

type TagRequest = Pick<ClaimRequest, 'tag' | 'source' | 'rightClass' | 'nowMs'>

/** The releases of tags in this ledger's tables. */
export class TagRights {
  readonly #redeemed: RedeemedRights
  readonly #unresolved: UnresolvedRedemptions
  readonly #stateOf
  readonly #forget
  readonly #any

  constructor(db: Connection, redeemed: RedeemedRights, unresolved: UnresolvedRedemptions) {
    this.#redeemed = redeemed
    this.#unresolved = unresolved
    this.#stateOf = db.prepare<[string], { state: string; at_ms: number }>(
      'SELECT state, at_ms FROM claim WHERE redemption_id = ? LIMIT 1',
    )
    this.#forget = db.prepare('DELETE FROM used_right WHERE cti = ?')
    this.#any = db.prepare("SELECT cti FROM used_right WHERE cti > 'tag:' AND cti < 'tag;' LIMIT 1")
  }

  /**
   * True if no earlier release of the tag blocks this request. A release blocks staff, receipts and tokens. Of tokens,
   * a release by staff blocks those that the cloud issued before it knew the release, and a release by receipt or token
   * those that are older than the release. After an unknown outcome an operator may try again. With a token, staff may
   * open a fixture again.
   */
  isFree({ tag, source, rightClass, nowMs }: TagRequest, by: Resolver): boolean {
    if (rightClass === 'open' && source === 'token' && by.operator) return true
    const isNewer = (id: string) => source === 'token' && this.#isOlder(id, by)
    return keysOf(tag).every((cti) => {
      const releasesBy = (ordinal: number) => this.#redeemed.redemptionsOf({ cti, rightClass, ordinal }, nowMs)
      const blocking = [...releasesBy(BY_STAFF), ...releasesBy(BY_AUTHORIZATION).filter((id) => !isNewer(id))]
      return blocking.every((id) => this.#isResolved(id, source, by))
    })
  }

  add({ tag, source, rightClass, nowMs, redemptionId }: TagRequest & Pick<ClaimRequest, 'redemptionId'>): void {
    const ordinal = source === 'item' ? BY_STAFF : BY_AUTHORIZATION
    const untilS = Math.ceil(nowMs / 1_000) + RECEIPT_LIFE
    for (const cti of keysOf(tag)) this.#redeemed.add({ cti, rightClass, ordinal }, untilS, redemptionId)
  }

  /** Forgets the releases of tags whose goods came back. */
  forget(tags: readonly ItemIdentifierInput[]): void {
    for (const key of tags.flatMap(keysOf)) this.#forget.run(key)
  }

  get isEmpty(): boolean {
    return this.#any.get() === undefined
  }

  /** True if the redemption is older than the token. */
  #isOlder(redemptionId: string, { issuedS = 0 }: Resolver): boolean {
    const claim = this.#stateOf.get(redemptionId)
    return claim !== undefined && claim.at_ms + CLOCKS_DIFFER_MS < issuedS * 1_000
  }

  #isResolved(redemptionId: string, source: ClaimRequest['source'], by: Resolver): boolean {
    if (by.operator && this.#stateOf.get(redemptionId)?.state === 'unknown') return true
    return source === 'token' && this.#unresolved.isResolvedFor(redemptionId, { ...by, operator: false })
  }
}

function keysOf(tag: ItemIdentifierInput = {}): string[] {
  return KINDS.flatMap((kind) => {
    const name = tag[kind]
    return name === undefined ? [] : [`tag:${kind}:${comparableIdentifier(kind, name)}`]
  })
}
