import { pause, type Platform } from '../../../policy/platform.ts'
import type { ReportedDevice } from '../../../policy/documents/agent-messages.ts'
import { UNTAG_VERSION } from '../../../policy/version.ts'
import { LedgerFull } from '../../ledger/file/commit.ts'
import type { HandledAlarms } from '../../lanes/gate/handled-alarms.ts'
import type { Pictures } from '../../items/pictures.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import type { Log } from '../../log.ts'
import { storeRequiredRelease, clearRequiredRelease, type Acceptance } from '../../trust/verify/open-claims.ts'
import type { Trust } from '../../trust/trust.ts'
import type { CloudAnswer } from '../wire/http-client.ts'
import { newId } from '../../../policy/ids.ts'
import type { ExceptionKind } from '../../../policy/vocabulary.ts'

interface RefusalsParts {
  platform: Platform
  ledger: Pick<Ledger, 'record'>
  storeId: string
  /** Trusted time, ms. */
  nowMs(): number
  log: Log
}

/** `agent_too_old`: the document needs a later release of the agent. */
type RefusalReason = Extract<ExceptionKind, 'refused_document' | 'agent_too_old'>
/** Reports that the agent refused a message of the cloud, or that the cloud refused a call. */
export type ReportRefusal = (what: string, reason?: RefusalReason) => void

const KINDS_LIMIT = 100

/**
 * Groups refusals that differ only in numbers or key ids, because a forger can vary numbers and key ids without limit.
 */
function refusalKind(what: string): string {
  return what
    .slice(0, 300)
    .replace(/ \(.*$/s, '')
    .replace(/\d+/g, '#')
}

/** Creates a reporter that reports each kind of refusal once, because the same refusal may occur with each poll. */
export function refusalReporter({ platform, ledger, storeId, nowMs, log }: RefusalsParts): ReportRefusal {
  const reported = new Set<string>()
  return (what, reason = 'refused_document') => {
    const kind = refusalKind(what)
    if (reported.has(kind) || reported.size >= KINDS_LIMIT) return
    reported.add(kind)
    log.warn(
      { what: what.slice(0, 300) },
      'a message from the cloud was refused; further refusals of this kind are not logged',
    )
    const event = {
      type: 'protection.exception.raised' as const,
      eventId: newId('evt', platform),
      occurredAt: new Date(nowMs()).toISOString(),
      storeId,
      reason,
      detail: what.slice(0, 300),
    }
    ledger
      .record({ atMs: nowMs(), event })
      .catch((error: unknown) => log.error({ err: error }, 'a refusal could not be stored in the journal'))
  }
}

/**
 * Fetches signed documents from the cloud and passes them to `Trust`. The agent sends the versions that it holds; the
 * cloud answers with newer documents, commands, and whether the ledger is forked.
 */

/** Health of the agent's devices. */
export interface DeviceReport {
  /** Rises with each change of `devices`. */
  readonly version: number
  readonly devices: readonly ReportedDevice[]
}

interface DocumentReceiverParts {
  platform: Platform
  trust: Trust
  /** Small pictures of products, which the agent fetches together with the documents. */
  pictures: Pick<Pictures, 'request' | 'receive'>
  /** Alarms of the gates, whose state the agent fetches together with the documents. */
  alarms: Pick<HandledAlarms, 'request' | 'receive'>
  session: { readonly isOnline: boolean; call(operation: string, body: object): Promise<CloudAnswer> }
  /**
   * Address at which other agents of the store reach this agent. The agent sends this address to the cloud with each
   * poll.
   */
  address: string | undefined
  ledger: Pick<Ledger, 'commits' | 'journal' | 'cloudGeneration' | 'metadata'>
  /**
   * Health of the devices. The agent sends it with the first request of a login, and with the next poll after each
   * change, so the cloud also learns of it without a broker.
   */
  deviceReport(): DeviceReport
  nowMs(): number
  /** Receives the address of the broker. */
  brokerAddress: { readonly version: string; receive(document: string): void }
  /** True if a gate of this agent uses the items. */
  hasGate(): boolean
  onReceived(): void
  /** Called after each poll. `isForked` is true if the cloud has detected a fork of this ledger. */
  onForked(isForked: boolean): void
  onCommand(command: string): unknown
  /** Called for each refused document, and for missing denials. */
  onRefused: ReportRefusal
  log: Log
}

type HeldVersions = Omit<ReturnType<Trust['heldVersions']>, 'items'> & { items?: [number, number] | undefined }

/** Delay of the poll that confirms documents, ms. Documents that arrive within this delay share one poll. */
const CONFIRM_MS = 100
/**
 * Time within which an older version may arrive after a newer one, ms. Documents come by HTTP and from the broker, and
 * overtake each other.
 */
const OVERTAKEN_MS = 60_000
/** Maximum pages of one `fetch`. */
const PAGES_LIMIT = 1_000

/** Creates the receiver for documents from HTTP and from the broker. */
export class DocumentReceiver {
  readonly #parts: DocumentReceiverParts
  /** Time at which each kind of document was accepted last, ms of `elapsed`. */
  readonly #takenMs = new Map<string, number>()
  #polling: Promise<void> | undefined
  /** The versions that the last answered poll reported. */
  #reported: { items: string; denySeq: number; resynced: number | undefined } | undefined
  /** Version of the device report that the cloud has. */
  #reportedDevices: number | undefined

  constructor(parts: DocumentReceiverParts) {
    this.#parts = parts
  }

  /**
   * Passes a document to `Trust`, and reports a refusal. Returns the kind of the document if `Trust` accepted the
   * document.
   */
  receive(document: unknown): string | undefined {
    const result = typeof document === 'string' ? this.#accept(document) : undefined
    if (result?.taken) this.#takenMs.set(result.kind, this.#parts.platform.clock.elapsed())
    if (result && !result.taken && result.why === 'refused' && !this.#wasOvertaken(result.isOlderThan))
      this.#parts.onRefused(result.detail, result.requiredRelease ? 'agent_too_old' : 'refused_document')
    return result?.taken ? result.kind : undefined
  }

  /** True if this agent accepted a newer version of the kind a moment ago. */
  #wasOvertaken(kind: 'keys' | 'policy' | undefined): boolean {
    const takenMs = kind && this.#takenMs.get(kind)
    return takenMs !== undefined && this.#parts.platform.clock.elapsed() - takenMs <= OVERTAKEN_MS
  }

  /** Polls once. Concurrent callers share one poll. */
  poll(): Promise<void> {
    this.#polling ??= this.#pollOnce().finally(() => void (this.#polling = undefined))
    return this.#polling
  }

  /** Fetches all newer documents. `without items` skips the many item pages. Returns false if the cloud is offline. */
  async fetch(scope: 'all' | 'without items'): Promise<boolean> {
    const { trust, session, pictures } = this.#parts
    let cursor: string | undefined
    // A fetch without items is the first one of a login. The cloud may have lost the report meanwhile.
    if (scope === 'without items') this.#reportedDevices = undefined
    for (let page = 0; page < PAGES_LIMIT; page++) {
      const have = scope === 'all' ? trust.heldVersions() : { ...trust.heldVersions(), items: undefined }
      const wanted = scope === 'all' ? pictures.request() : []
      const answer = await this.#request(have, cursor, wanted)
      if (answer.kind === 'refused') return session.isOnline
      if (answer.kind === 'unreachable') return false
      await this.#receiveAll(answer.body['documents'] as unknown[])
      const hasNewPictures = pictures.receive(wanted, answer.body['pictures'])
      const next = answer.body['nextCursor']
      if (typeof next !== 'string' && !hasNewPictures) break
      cursor = typeof next === 'string' ? next : undefined
    }
    this.#onPolled()
    return true
  }

  /**
   * Time within which a poll must report the held versions, ms. Undefined if the regular poll suffices. The report is
   * urgent after a resync, after new denials of tokens or receipts, and after new items if this agent has a gate.
   */
  get confirmWithinMs(): number | undefined {
    const { trust, ledger, hasGate } = this.#parts
    if (this.#reported?.resynced !== ledger.cloudGeneration.resynced) return 0
    const isDue =
      trust.lastRevocationSeq > (this.#reported?.denySeq ?? 0) ||
      (hasGate() && this.#reported?.items !== String(trust.heldVersions().items))
    return isDue ? CONFIRM_MS : undefined
  }

  async #request(have: HeldVersions, cursor?: string, pictures: readonly string[] = []): Promise<CloudAnswer> {
    const { session, ledger, brokerAddress, alarms, onForked, onCommand } = this.#parts
    const { resynced } = ledger.cloudGeneration
    const body = await this.#requestBody(have, cursor, resynced)
    // The cloud ignores reports in requests of later pages.
    const report = cursor === undefined ? this.#newDeviceReport() : undefined
    const awaited = alarms.request()
    const answer = await session.call('fetchSignedDocuments', {
      ...body,
      ...report?.fields,
      ...(pictures.length > 0 && { pictures }),
      ...(awaited.size > 0 && { alarms: [...awaited.keys()] }),
    })
    if (answer.kind !== 'answered') return answer
    if (report) this.#reportedDevices = report.version
    this.#reported = { items: String(have.items), denySeq: have.deny?.[1] ?? 0, resynced }
    const { broker, commands, forked } = answer.body
    if (typeof broker === 'string') brokerAddress.receive(broker)
    onForked(forked === true)
    alarms.receive(awaited, answer.body['alarms'])
    for (const command of Array.isArray(commands) ? (commands as unknown[]) : [])
      if (typeof command === 'string') onCommand(command)
    return answer
  }

  /** The fields that report the devices. Undefined if the cloud already has this report. */
  #newDeviceReport(): { version: number; fields: object } | undefined {
    const { deviceReport, nowMs } = this.#parts
    const { version, devices } = deviceReport()
    if (version === this.#reportedDevices) return undefined
    return { version, fields: { devices: { observedAt: new Date(nowMs()).toISOString(), states: devices } } }
  }

  async #requestBody(have: HeldVersions, cursor: string | undefined, resynced: number | undefined): Promise<object> {
    const { trust, brokerAddress, address } = this.#parts
    const ledgerSeq = await this.#ledgerEnd()
    const { revocationReminders: revocations } = trust
    return {
      have,
      broker: brokerAddress.version,
      ...(cursor !== undefined && { cursor }),
      release: UNTAG_VERSION,
      ...(address !== undefined && { address }),
      ...(ledgerSeq !== undefined && { ledgerSeq }),
      ...(resynced !== undefined && { resynced }),
      ...(revocations.length > 0 && { revocations }),
    }
  }

  /**
   * Returns the number of the last journal row, after claims that are under way have written their rows. Undefined if
   * the disk is full.
   */
  #ledgerEnd(): Promise<number | undefined> {
    const { commits, journal } = this.#parts.ledger
    return commits.durably(() => journal.head.seq).catch(() => undefined)
  }

  /**
   * On a full disk a document cannot be stored, but the following documents must still be applied (P6). Gates need only
   * items and freshness, which are in memory. The next poll fetches again the documents that were not stored.
   */
  #accept(document: string): Acceptance | undefined {
    const { trust, ledger, log } = this.#parts
    try {
      const result = trust.accept(document)
      if (result.taken && result.kind === 'policy') clearRequiredRelease(ledger)
      if (!result.taken && result.why === 'refused' && result.requiredRelease)
        storeRequiredRelease(ledger, result.requiredRelease)
      return result
    } catch (error) {
      if (!(error instanceof LedgerFull)) throw error
      log.warn({}, 'the disk is full: a document was not stored')
      return undefined
    }
  }

  async #receiveAll(documents: readonly unknown[]): Promise<void> {
    for (const document of documents) {
      // A page of items takes some milliseconds. The pause lets other work, such as reads at a gate, run in between.
      if (this.receive(document) === 'items') await pause(this.#parts.platform.timers, 0)
    }
  }

  async #pollOnce(): Promise<void> {
    const answer = await this.#request(this.#parts.trust.heldVersions())
    if (answer.kind !== 'answered') return
    await this.#receiveAll(answer.body['documents'] as unknown[])
    this.#onPolled()
  }

  #onPolled(): void {
    const { trust, onRefused, onReceived } = this.#parts
    if (trust.missingDenials !== undefined) onRefused(trust.missingDenials)
    onReceived()
  }
}
