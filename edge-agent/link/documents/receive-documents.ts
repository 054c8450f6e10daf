import { pause, type Platform } from '../../../policy/platform.ts'
import { UNTAG_VERSION } from '../../../policy/version.ts'
import { LedgerFull } from '../../ledger/file/commit.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import type { Log } from '../../log.ts'
import { noteNeeded, noteTaken } from '../../trust/verify/required-release.ts'
import type { Acceptance } from '../../trust/verify/open-claims.ts'
import type { Trust } from '../../trust/trust.ts'
import type { CloudAnswer } from '../wire/http-client.ts'
import type { TellRefusal } from './refusals.ts'

/**
 *   versions held here ─▶ fetchSignedDocuments ─▶ documents, page by page ─▶ trust: accepted, known or refused
 *                                       └ commands, and whether the ledger is forked             └ reported
 *
 * Brings signed documents from the cloud and hands them to those who check them.
 */

export interface DocumentsParts {
  platform: Platform
  trust: Trust
  session: { readonly isOnline: boolean; call(operation: string, body: object): Promise<CloudAnswer> }
  /** Told to the cloud with every look: where other agents reach this one. */
  address: string | undefined
  ledger: Pick<Ledger, 'commits' | 'journal' | 'cloudGeneration' | 'marks'>
  /** Whether a gate judges by the items here. */
  hasGate(): boolean
  onTaken(): void
  /** Whether the cloud knows of two copies of our ledger. */
  onForked(isForked: boolean): void
  onCommand(command: string): unknown
  /** A document was refused: to be reported. */
  onRefused: TellRefusal
  log: Log
}

type Held = Omit<ReturnType<Trust['have']>, 'items'> & { items?: [number, number] | undefined }

/** What comes together is confirmed together, ms. */
const CONFIRM_MS = 100
/** Pages that are fetched in one go. */
const PAGES_LIMIT = 1_000

/** The documents of this agent's store, over HTTP and from wherever else they come. */
export function openDocuments(parts: DocumentsParts): Documents {
  return new Documents(parts)
}

export class Documents {
  readonly #parts: DocumentsParts
  #looking: Promise<void> | undefined
  /** What the cloud was last told that is here. */
  #told: { items: string; denySeq: number; resynced: number | undefined } | undefined

  constructor(parts: DocumentsParts) {
    this.#parts = parts
  }

  /** What kind of document was taken; undefined when it was not. */
  take(document: unknown): string | undefined {
    const taken = typeof document === 'string' ? this.#accept(document) : undefined
    if (taken && !taken.taken && taken.why === 'refused')
      this.#parts.onRefused(taken.detail, taken.needed ? 'agent_too_old' : 'refused_document')
    return taken?.taken ? taken.kind : undefined
  }

  /** One look at what is newer; whoever asks meanwhile gets the same. */
  look(): Promise<void> {
    this.#looking ??= this.#lookOnce().finally(() => void (this.#looking = undefined))
    return this.#looking
  }

  /** Fetches all that is newer than here; a start can do without the many pages of items. False when the cloud did not answer. */
  async fetch(scope: 'all' | 'without items'): Promise<boolean> {
    const { trust, session } = this.#parts
    let cursor: string | undefined
    for (let page = 0; page < PAGES_LIMIT; page++) {
      const have = scope === 'all' ? trust.have() : { ...trust.have(), items: undefined }
      const answer = await this.#ask(have, cursor)
      if (answer.kind === 'refused') return session.isOnline
      if (answer.kind === 'unreachable') return false
      await this.#takeAll(answer.body['documents'] as unknown[])
      const next = answer.body['nextCursor']
      if (typeof next !== 'string') break
      cursor = next
    }
    this.#looked()
    return true
  }

  /**
   * How soon the cloud should hear what is held here, ms; undefined: it knows, or the next look is soon enough. Grants wait for the word
   * that it was told everything again, shoppers for the gates to know their goods, refunds for what was taken back.
   */
  get confirmWithinMs(): number | undefined {
    const { trust, ledger, hasGate } = this.#parts
    if (this.#told?.resynced !== ledger.cloudGeneration.resynced) return 0
    const isDue =
      trust.takenBackSeq > (this.#told?.denySeq ?? 0) || (hasGate() && this.#told?.items !== String(trust.have().items))
    return isDue ? CONFIRM_MS : undefined
  }

  async #ask(have: Held, cursor?: string): Promise<CloudAnswer> {
    const { session, ledger, onForked, onCommand } = this.#parts
    const { resynced } = ledger.cloudGeneration
    const answer = await session.call('fetchSignedDocuments', await this.#question(have, cursor, resynced))
    if (answer.kind !== 'answered') return answer
    this.#told = { items: String(have.items), denySeq: have.deny?.[1] ?? 0, resynced }
    const { commands, forked } = answer.body
    onForked(forked === true)
    for (const command of Array.isArray(commands) ? (commands as unknown[]) : [])
      if (typeof command === 'string') onCommand(command)
    return answer
  }

  async #question(have: Held, cursor: string | undefined, resynced: number | undefined): Promise<object> {
    const { trust, address } = this.#parts
    const ledgerSeq = await this.#ledgerEnd()
    const { forgottenRevocations: revocations } = trust
    return {
      have,
      ...(cursor !== undefined && { cursor }),
      release: UNTAG_VERSION,
      ...(address !== undefined && { address }),
      ...(ledgerSeq !== undefined && { ledgerSeq }),
      ...(resynced !== undefined && { resynced }),
      ...(revocations.length > 0 && { revocations }),
    }
  }

  /** Behind everything that was decided by what we have: a claim that is under way comes before it. Undefined: the disk is full. */
  #ledgerEnd(): Promise<number | undefined> {
    const { commits, journal } = this.#parts.ledger
    return commits.durably(() => journal.head.seq).catch(() => undefined)
  }

  /**
   * A full disk keeps no document, and must not keep the others away (P6): what gates go by, the items and how young they are,
   * is in memory. The rest comes again with the next look.
   */
  #accept(document: string): Acceptance | undefined {
    const { trust, ledger, log } = this.#parts
    try {
      const taken = trust.accept(document)
      if (taken.taken && taken.kind === 'policy') noteTaken(ledger)
      if (!taken.taken && taken.why === 'refused' && taken.needed) noteNeeded(ledger, taken.needed)
      return taken
    } catch (error) {
      if (!(error instanceof LedgerFull)) throw error
      log.warn({}, 'the disk is full: a document was not kept')
      return undefined
    }
  }

  async #takeAll(documents: readonly unknown[]): Promise<void> {
    for (const document of documents) {
      // A page of items takes some milliseconds: tags are looked up in between.
      if (this.take(document) === 'items') await pause(this.#parts.platform.timers, 0)
    }
  }

  async #lookOnce(): Promise<void> {
    const answer = await this.#ask(this.#parts.trust.have())
    if (answer.kind !== 'answered') return
    await this.#takeAll(answer.body['documents'] as unknown[])
    this.#looked()
  }

  #looked(): void {
    const { trust, onRefused, onTaken } = this.#parts
    if (trust.heldBack !== undefined) onRefused(trust.heldBack)
    onTaken()
  }
}
